/* keras_h5_read.c: text attributes and number datasets of an HDF5 file. Sizes are checked before memory is taken. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_part.h"

/* Deflate cannot shrink further than this: a dataset that claims more is a trap or damaged. */
#define DEFLATE_MOST 1032

/* An open text attribute. */
typedef struct attribute {
    hid_t id, space, type;
    int64_t count;
    size_t width; /* bytes of one text; 0: of variable length */
} attribute;

static void attribute_close(attribute *a)
{
    if (a->type >= 0)
        H5Tclose(a->type);
    if (a->space >= 0)
        H5Sclose(a->space);
    if (a->id >= 0)
        H5Aclose(a->id);
}

static pc_status attribute_open(const char *path, hid_t object, const char *name, attribute *a)
{
    *a = (attribute){.id = H5Aopen(object, name, H5P_DEFAULT), .space = -1, .type = -1};
    if (a->id >= 0)
        a->space = H5Aget_space(a->id);
    if (a->space >= 0)
        a->type = H5Aget_type(a->id);
    a->count = a->type >= 0 ? H5Sget_simple_extent_npoints(a->space) : -1;
    if (a->count < 0)
        return pc__h5_fail("%s: the attribute '%s' is damaged", path, name);
    if (a->count == 0)
        return PC_OK; /* h5py gives empty lists the type float64 */
    if (H5Tget_class(a->type) != H5T_STRING)
        return pc__fail(PC_ERR_FORMAT, "%s: the attribute '%s' is not text", path, name);
    a->width = H5Tis_variable_str(a->type) > 0 ? 0 : H5Tget_size(a->type);
    if ((uint64_t)a->count > PC__KERAS_TEXT_MAX / PC__MAX(a->width, sizeof(char *)))
        return pc__fail(PC_ERR_FORMAT, "%s: the attribute '%s' claims %lld texts of %zu bytes, which is absurd", path,
                        name, (long long)a->count, a->width);
    return PC_OK;
}

static size_t text_length(const attribute *a, const char *text)
{
    size_t n = strnlen(text, a->width);
    if (H5Tget_strpad(a->type) == H5T_STR_SPACEPAD)
        while (n && text[n - 1] == ' ')
            n--;
    return n;
}

static pc_status fixed_texts(const char *path, const char *name, const attribute *a, pc__names *names)
{
    char *raw = pc__calloc((size_t)a->count, a->width);
    if (!raw)
        return PC_ERR_MEMORY;
    pc_status status = PC_OK;
    if (H5Aread(a->id, a->type, raw) < 0)
        status = pc__h5_fail("%s: cannot read the attribute '%s'", path, name);
    for (int64_t i = 0; i < a->count && status == PC_OK; i++) {
        const char *text = raw + (size_t)i * a->width;
        status = pc__names_add(names, text, text_length(a, text));
    }
    pc__free(raw);
    return status;
}

static pc_status read_names(const char *path, hid_t object, const char *name, pc__names *names)
{
    attribute a;
    pc_status status = attribute_open(path, object, name, &a);
    if (status == PC_OK && a.count)
        status = a.width ? fixed_texts(path, name, &a, names) : pc__h5_heap_texts(path, name, a.id, a.count, names);
    attribute_close(&a);
    return status;
}

pc_status pc__h5_text(const char *path, hid_t object, const char *name, char **text)
{
    *text = NULL;
    PC__TRY(pc__h5_attributes_check(path, object, name));
    if (H5Aexists(object, name) <= 0)
        return PC_OK;
    pc__names names = {0};
    pc_status status = read_names(path, object, name, &names);
    if (status == PC_OK && names.count != 1)
        status =
            pc__fail(PC_ERR_FORMAT, "%s: the attribute '%s' holds %d texts instead of one", path, name, names.count);
    if (status == PC_OK) {
        *text = names.items[0];
        names.count = 0;
    }
    pc__names_free(&names);
    return status;
}

pc_status pc__h5_names(const char *path, hid_t object, const char *name, pc__names *names, bool *found)
{
    PC__TRY(pc__h5_attributes_check(path, object, name));
    bool whole = H5Aexists(object, name) > 0, any = whole;
    pc_status status = whole ? read_names(path, object, name, names) : PC_OK;
    for (int part = 0; !whole && status == PC_OK; part++) {
        char numbered[64];
        snprintf(numbered, sizeof numbered, "%.48s%d", name, part);
        if (H5Aexists(object, numbered) <= 0)
            break;
        any = true;
        status = read_names(path, object, numbered, names);
    }
    if (found)
        *found = any;
    if (status != PC_OK)
        pc__names_free(names);
    return status;
}

/* External and virtual storage reach into other files: not followed. */
static hid_t dataset_open(hid_t group, const char *name)
{
    hid_t access = pc__h5_inside(H5P_DATASET_ACCESS), id = -1;
    if (access >= 0)
        id = H5Dopen2(group, name, access);
    H5Pclose(access);
    hid_t creation = id >= 0 ? H5Dget_create_plist(id) : -1;
    bool inside = creation >= 0 && H5Pget_external_count(creation) == 0 && H5Pget_layout(creation) != H5D_VIRTUAL;
    if (creation >= 0)
        H5Pclose(creation);
    if (id >= 0 && !inside) {
        H5Dclose(id);
        return -1;
    }
    return id;
}

static int dataset_shape(hid_t id, int64_t *shape)
{
    hsize_t sizes[PC__KERAS_RANK_MAX];
    hid_t space = H5Dget_space(id);
    int rank = space >= 0 ? H5Sget_simple_extent_ndims(space) : -1;
    if (rank > PC__KERAS_RANK_MAX || (rank > 0 && H5Sget_simple_extent_dims(space, sizes, NULL) != rank))
        rank = -1;
    for (int i = 0; i < rank; i++)
        shape[i] = sizes[i] > INT64_MAX ? INT64_MAX : (int64_t)sizes[i];
    if (space >= 0)
        H5Sclose(space);
    return rank;
}

static H5T_class_t dataset_class(hid_t id, size_t *width)
{
    hid_t type = H5Dget_type(id);
    H5T_class_t class = type >= 0 ? H5Tget_class(type) : H5T_NO_CLASS;
    *width = type >= 0 ? H5Tget_size(type) : 0;
    if (type >= 0)
        H5Tclose(type);
    return class;
}

void pc__h5_shape(hid_t group, const char *name, int *rank, int64_t *shape)
{
    hid_t id = dataset_open(group, name);
    *rank = id >= 0 ? dataset_shape(id, shape) : -1;
    if (id >= 0)
        H5Dclose(id);
}

static pc_status dataset_check(const char *path, hid_t id, const char *what, int rank, int64_t *shape, size_t *count)
{
    int64_t got[PC__KERAS_RANK_MAX], elements = 1;
    int got_rank = dataset_shape(id, got);
    bool fits = got_rank == rank;
    for (int i = 0; fits && i < rank; i++) {
        fits = got[i] > 0 && (shape[i] < 0 || shape[i] == got[i]);
        if (__builtin_mul_overflow(elements, got[i], &elements) || elements > PC__KERAS_ELEMENTS_MAX)
            return pc__fail(PC_ERR_FORMAT, "%s: %s claims the absurd shape %s", path, what,
                            pc__keras_shape_text(got_rank, got).text);
    }
    if (!fits)
        return pc__fail(PC_ERR_FORMAT, "%s: %s has the shape %s, but the model needs %s", path, what,
                        pc__keras_shape_text(got_rank, got).text, pc__keras_shape_text(rank, shape).text);
    size_t width;
    if (dataset_class(id, &width) != H5T_FLOAT)
        return pc__fail(PC_ERR_FORMAT, "%s: %s does not hold floating point numbers", path, what);
    hsize_t stored = H5Dget_storage_size(id);
    if ((uint64_t)elements * width / DEFLATE_MOST > stored || stored == 0)
        return pc__fail(PC_ERR_FORMAT, "%s: %s should hold %lld numbers, but the file has %llu bytes of it", path, what,
                        (long long)elements, (unsigned long long)stored);
    memcpy(shape, got, (size_t)rank * sizeof *shape);
    *count = (size_t)elements;
    return PC_OK;
}

pc_status pc__h5_floats(const char *path, hid_t group, const char *name, const char *what, int rank, int64_t *shape,
                        float **values)
{
    *values = NULL;
    hid_t id = dataset_open(group, name);
    if (id < 0)
        return pc__h5_fail("%s: %s is missing or damaged (dataset '%.100s')", path, what, name);
    size_t count = 0;
    pc_status status = dataset_check(path, id, what, rank, shape, &count);
    float *buffer = status == PC_OK ? pc__alloc(count * sizeof *buffer) : NULL;
    if (status == PC_OK && !buffer)
        status = PC_ERR_MEMORY;
    if (status == PC_OK && H5Dread(id, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer) < 0)
        status = pc__h5_fail("%s: cannot read %s", path, what);
    H5Dclose(id);
    if (status != PC_OK) {
        pc__free(buffer);
        return status;
    }
    *values = buffer;
    return PC_OK;
}

static bool scalar(hid_t group, const char *name, H5T_class_t class, hid_t type, void *value)
{
    int64_t shape[PC__KERAS_RANK_MAX];
    size_t width;
    hid_t id = dataset_open(group, name);
    bool good = id >= 0 && dataset_shape(id, shape) == 0 && dataset_class(id, &width) == class &&
                H5Dread(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0;
    if (id >= 0)
        H5Dclose(id);
    return good;
}

bool pc__h5_integer(hid_t group, const char *name, int64_t *value)
{
    return scalar(group, name, H5T_INTEGER, H5T_NATIVE_INT64, value);
}

bool pc__h5_real(hid_t group, const char *name, double *value)
{
    return scalar(group, name, H5T_FLOAT, H5T_NATIVE_DOUBLE, value);
}

pc__shape_text pc__keras_shape_text(int rank, const int64_t *shape)
{
    pc__shape_text out = {"(no shape)"};
    if (rank < 0)
        return out;
    size_t n = (size_t)snprintf(out.text, sizeof out.text, "(");
    for (int i = 0; i < rank && n < sizeof out.text; i++) {
        const char *comma = i ? ", " : "";
        n += (size_t)(shape[i] < 0 ? snprintf(out.text + n, sizeof out.text - n, "%sNone", comma)
                                   : snprintf(out.text + n, sizeof out.text - n, "%s%lld", comma, (long long)shape[i]));
    }
    if (n < sizeof out.text)
        snprintf(out.text + n, sizeof out.text - n, rank == 1 ? ",)" : ")");
    return out;
}

#endif

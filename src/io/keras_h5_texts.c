/* keras_h5_texts.c: text attributes of an HDF5 file. Sizes are checked before memory is taken. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_h5_raw.h"

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

/* What the file has of a text of variable length is a reference to it. A damaged type may claim another size for that,
 * which HDF5 1.10 takes for the bytes that there are, and then copies whole references. */
static pc_status references_check(const char *path, const char *name, attribute *a)
{
    const hsize_t stored = H5Aget_storage_size(a->id);
    a->width = 0;
    if (stored / PC__H5_REFERENCE >= (hsize_t)a->count)
        return PC_OK;
    return pc__fail(PC_ERR_FORMAT, "%s: the attribute '%s' is damaged: %lld texts of variable length in %llu bytes",
                    path, name, (long long)a->count, (unsigned long long)stored);
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
    a->width = H5Tget_size(a->type);
    if (H5Tis_variable_str(a->type) > 0)
        PC__TRY(references_check(path, name, a));
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

/* HDF5 looks at every attribute up to the one that it finds: damage there is not the same as "there is none". */
static pc_status attribute_exists(const char *path, hid_t object, const char *name, bool *exists)
{
    const htri_t found = H5Aexists(object, name);
    *exists = found > 0;
    return found >= 0 ? PC_OK : pc__h5_fail("%s: what should have the attribute '%s' is damaged", path, name);
}

pc_status pc__h5_raw_names(const char *path, hid_t object, const char *name, pc__names *names, bool *found)
{
    PC__TRY(pc__h5_attributes_check(path, object, name));
    PC__TRY(attribute_exists(path, object, name, found));
    if (*found)
        return read_names(path, object, name, names);
    pc_status status = PC_OK;
    for (int part = 0; status == PC_OK; part++) {
        char numbered[64];
        bool more;
        snprintf(numbered, sizeof numbered, "%.48s%d", name, part);
        status = attribute_exists(path, object, numbered, &more);
        if (status != PC_OK || !more)
            break;
        *found = true;
        status = read_names(path, object, numbered, names);
    }
    return status;
}

#endif

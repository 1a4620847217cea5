/* keras_h5_read.c: groups and number datasets of an HDF5 file. Sizes are checked before memory is taken. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_h5_raw.h"

/* Deflate cannot shrink further than this: a dataset that claims more is a trap or damaged. */
#define DEFLATE_MOST 1032

static herr_t no_link(const char *parent_file, const char *parent_group, const char *child_file,
                      const char *child_object, unsigned *flags, hid_t access, void *context)
{
    (void)parent_file, (void)parent_group, (void)child_file, (void)child_object, (void)flags, (void)access,
        (void)context;
    return -1;
}

/* An access list that follows no link into another file. */
static hid_t inside(hid_t class)
{
    hid_t access = H5Pcreate(class);
    if (access < 0 || H5Pset_elink_cb(access, no_link, NULL) >= 0)
        return access;
    H5Pclose(access);
    return H5I_INVALID_HID;
}

pc_status pc__h5_raw_group(const char *path, hid_t parent, const char *name, hid_t *group)
{
    hid_t access = inside(H5P_GROUP_ACCESS);
    *group = access >= 0 ? H5Gopen2(parent, name, access) : H5I_INVALID_HID;
    pc_status status = *group >= 0 ? PC_OK : pc__h5_fail("%s: the group '%.100s' is missing or damaged", path, name);
    H5Pclose(access);
    return status;
}

/* External and virtual storage reach into other files: not followed. */
static hid_t dataset_open(hid_t group, const char *name)
{
    hid_t access = inside(H5P_DATASET_ACCESS), id = -1;
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

void pc__h5_raw_shape(hid_t group, const char *name, int *rank, int64_t *shape)
{
    hid_t id = dataset_open(group, name);
    *rank = id >= 0 ? dataset_shape(id, shape) : -1;
    if (id >= 0)
        H5Dclose(id);
}

/* Bytes of one chunk, which HDF5 unpacks as a whole; 0 for a dataset without. */
static uint64_t chunk_bytes(hid_t id, size_t width)
{
    hsize_t sizes[PC__KERAS_RANK_MAX];
    uint64_t bytes = width;
    hid_t creation = H5Dget_create_plist(id);
    int rank =
        creation >= 0 && H5Pget_layout(creation) == H5D_CHUNKED ? H5Pget_chunk(creation, PC__KERAS_RANK_MAX, sizes) : 0;
    for (int i = 0; i < PC__MIN(rank, PC__KERAS_RANK_MAX); i++)
        if (__builtin_mul_overflow(bytes, sizes[i], &bytes))
            bytes = UINT64_MAX;
    if (creation >= 0)
        H5Pclose(creation);
    return rank > 0 ? bytes : 0;
}

/* Packed data may be a thousand times their size in the file: told from the header, before any of it is unpacked. */
static pc_status memory_check(const char *path, hid_t id, const char *what, uint64_t bytes, size_t width)
{
    const pc__h5_source *source;
    uint64_t base, chunk = chunk_bytes(id, width), most = PC__MAX(bytes, chunk);
    if (!pc__h5_raw(id, &source, &base) || most <= (uint64_t)source->limit)
        return PC_OK;
    return pc__fail(PC_ERR_FORMAT,
                    "%s: %s%s takes %.0f MB of memory, and a file of %.1f MB gets %.0f MB: if it is what you want, "
                    "unpack the file first: h5repack -f NONE %s unpacked.h5",
                    path, what, chunk > bytes ? ", in chunks larger than itself," : "", (double)most / 1e6,
                    (double)source->size / 1e6, (double)source->limit / 1e6, path);
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
    return memory_check(path, id, what, (uint64_t)elements * sizeof(float), width);
}

pc_status pc__h5_raw_floats(const char *path, hid_t group, const char *name, const char *what, int rank, int64_t *shape,
                            hid_t *dataset, size_t *count)
{
    *dataset = dataset_open(group, name);
    if (*dataset < 0)
        return pc__h5_fail("%s: %s is missing or damaged (dataset '%.100s')", path, what, name);
    pc_status status = dataset_check(path, *dataset, what, rank, shape, count);
    if (status != PC_OK)
        H5Dclose(*dataset);
    return status;
}

bool pc__h5_raw_scalar(hid_t group, const char *name, H5T_class_t class, hid_t type, void *value)
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

#endif

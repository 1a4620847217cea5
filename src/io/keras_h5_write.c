/* keras_h5_write.c: an HDF5 file made in memory and then written as a whole. HDF5 copes badly with a disk that fills up
 * under it (the file cannot even be closed); this way it never meets the disk. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/file.h"
#include "io/keras_part.h"

/* An attribute of more than 64 KiB does not fit an object header; a text of variable length takes 16 bytes there. */
#define NAMES_IN_ONE 4000

pc_status pc__h5_create(const char *path, hid_t *file)
{
    *file = H5I_INVALID_HID;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (access >= 0 && H5Pset_fapl_core(access, (size_t)1 << 18, false) >= 0 &&
        H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) >= 0)
        *file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    pc_status status = *file >= 0 ? PC_OK : pc__h5_fail("cannot make %s", path);
    H5Pclose(access);
    return status;
}

/* HDF5 refuses a file in memory by the name of one on the disk, and this is none. */
#define NAME_OF_NO_FILE "/dev/null/image"

pc_status pc__h5_edit(const char *path, const void *bytes, size_t n, hid_t *file)
{
    *file = H5I_INVALID_HID;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (access >= 0 && H5Pset_fapl_core(access, (size_t)1 << 18, false) >= 0 &&
        H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) >= 0 && H5Pset_file_image(access, (void *)bytes, n) >= 0)
        *file = H5Fopen(NAME_OF_NO_FILE, H5F_ACC_RDWR, access);
    pc_status status = *file >= 0 ? PC_OK : pc__h5_fail("cannot change %s", path);
    H5Pclose(access);
    return status;
}

void pc__h5_remove_attribute(hid_t object, const char *name)
{
    if (H5Aexists(object, name) > 0)
        H5Adelete(object, name);
    for (int part = 0;; part++) {
        char numbered[64];
        snprintf(numbered, sizeof numbered, "%.48s%d", name, part);
        if (H5Aexists(object, numbered) <= 0)
            return;
        H5Adelete(object, numbered);
    }
}

pc_status pc__h5_add_group(const char *path, hid_t parent, const char *name, hid_t *group)
{
    hid_t between = H5Pcreate(H5P_LINK_CREATE), creation = H5Pcreate(H5P_GROUP_CREATE);
    *group = H5I_INVALID_HID;
    if (between >= 0 && H5Pset_create_intermediate_group(between, 1) >= 0 && creation >= 0 &&
        H5Pset_obj_track_times(creation, false) >= 0)
        *group = H5Gcreate2(parent, name, between, creation, H5P_DEFAULT);
    pc_status status = *group >= 0 ? PC_OK : pc__h5_fail("cannot write %s: the group '%.100s'", path, name);
    H5Pclose(creation);
    H5Pclose(between);
    return status;
}

/* ASCII is what h5py marks bytes with, whatever they are; all versions of Keras decode those. */
static pc_status put_attribute(const char *path, hid_t object, const char *name, hid_t space, const char *const *items)
{
    hid_t type = H5Tcopy(H5T_C_S1), id = -1;
    if (space >= 0 && type >= 0 && H5Tset_size(type, H5T_VARIABLE) >= 0)
        id = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    pc_status status = PC_OK;
    if (id < 0 || (items && H5Awrite(id, type, items) < 0))
        status = pc__h5_fail("cannot write %s: the attribute '%s'", path, name);
    if (id >= 0)
        H5Aclose(id);
    H5Tclose(type);
    return status;
}

pc_status pc__h5_put_text(const char *path, hid_t object, const char *name, const char *text)
{
    hid_t space = H5Screate(H5S_SCALAR);
    pc_status status = put_attribute(path, object, name, space, &text);
    H5Sclose(space);
    return status;
}

pc_status pc__h5_put_names(const char *path, hid_t object, const char *name, char *const *items, int count)
{
    pc_status status = PC_OK;
    for (int part = 0, done = 0; status == PC_OK && (done < count || part == 0); part++) {
        char numbered[64];
        snprintf(numbered, sizeof numbered, count > NAMES_IN_ONE ? "%.48s%d" : "%.48s", name, part);
        hsize_t n = (hsize_t)PC__MIN(count - done, NAMES_IN_ONE);
        hid_t space = H5Screate_simple(1, &n, NULL);
        status = put_attribute(path, object, numbered, space, n ? (const char *const *)items + done : NULL);
        H5Sclose(space);
        done += (int)n;
    }
    return status;
}

pc_status pc__h5_put(const char *path, hid_t group, const char *name, int rank, const int64_t *shape, hid_t type,
                     const void *values)
{
    hsize_t sizes[PC__KERAS_RANK_MAX];
    for (int i = 0; i < rank; i++)
        sizes[i] = (hsize_t)shape[i];
    hid_t between = H5Pcreate(H5P_LINK_CREATE), creation = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = rank ? H5Screate_simple(rank, sizes, NULL) : H5Screate(H5S_SCALAR), id = -1;
    if (between >= 0 && H5Pset_create_intermediate_group(between, 1) >= 0 && creation >= 0 &&
        H5Pset_obj_track_times(creation, false) >= 0 && space >= 0)
        id = H5Dcreate2(group, name, type, space, between, creation, H5P_DEFAULT);
    pc_status status = PC_OK;
    if (id < 0 || H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
        status = pc__h5_fail("cannot write %s: the dataset '%.100s'", path, name);
    if (id >= 0)
        H5Dclose(id);
    H5Sclose(space);
    H5Pclose(creation);
    H5Pclose(between);
    return status;
}

pc_status pc__h5_image(const char *path, hid_t file, void *(*take)(void *context, uint64_t bytes), void *context,
                       size_t *n)
{
    const ssize_t bytes = H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0 ? H5Fget_file_image(file, NULL, 0) : -1;
    if (bytes <= 0)
        return pc__h5_fail("cannot write %s", path);
    void *image = take(context, (uint64_t)bytes);
    if (!image)
        return pc_error_last()->status;
    *n = (size_t)bytes;
    return H5Fget_file_image(file, image, *n) == bytes ? PC_OK : pc__h5_fail("cannot write %s", path);
}

static void *take_memory(void *context, uint64_t bytes)
{
    return *(void **)context = pc__alloc((size_t)bytes);
}

pc_status pc__h5_commit(const char *path, hid_t file)
{
    void *image = NULL;
    size_t n;
    pc_status status = pc__h5_image(path, file, take_memory, &image, &n);
    if (status == PC_OK)
        status = pc__file_write(path, image, n);
    pc__free(image);
    return status;
}

#endif

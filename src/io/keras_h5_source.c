/* keras_h5_source.c: HDF5 reads from a descriptor that is open already, or from memory, by a file driver of ours: so it
 * works where no file can be opened, and for files inside others. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_h5_raw.h"

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif
#include <errno.h>
#include <unistd.h>

/* HDF5's open file, and ours behind it. */
typedef struct opened {
    H5FD_t base;
    const pc__h5_source *source;
    haddr_t end; /* of what HDF5 has laid out */
} opened;

bool pc__h5_bytes(const pc__h5_source *source, uint64_t at, void *bytes, size_t n)
{
    if (at > source->size || n > source->size - at)
        return false;
    if (source->bytes) {
        memcpy(bytes, source->bytes + at, n);
        return true;
    }
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(source->fd, (char *)bytes + done, n - done, (off_t)(at + done));
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

static H5FD_t *open_source(const char *name, unsigned flags, hid_t access, haddr_t most)
{
    (void)name, (void)flags, (void)most;
    const pc__h5_source *const *source = H5Pget_driver_info(access);
    opened *file = source ? pc__calloc(1, sizeof *file) : NULL;
    if (!file)
        return NULL;
    file->source = *source;
    return &file->base;
}

static herr_t close_source(H5FD_t *file)
{
    pc__free(file);
    return 0;
}

static herr_t features(const H5FD_t *file, unsigned long *flags)
{
    (void)file;
    *flags = H5FD_FEAT_ACCUMULATE_METADATA_READ | H5FD_FEAT_DATA_SIEVE;
    return 0;
}

static haddr_t get_end(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return ((const opened *)file)->end;
}

static herr_t set_end(H5FD_t *file, H5FD_mem_t type, haddr_t end)
{
    (void)type;
    ((opened *)file)->end = end;
    return 0;
}

static haddr_t size_of(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return ((const opened *)file)->source->size;
}

/* Where the file ends, zeros follow: the laid-out end may lie behind the stored one. */
static herr_t read_source(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t n, void *bytes)
{
    (void)type, (void)transfer;
    const pc__h5_source *source = ((const opened *)file)->source;
    const uint64_t stored = at < source->size ? PC__MIN((uint64_t)n, source->size - at) : 0;
    memset((char *)bytes + stored, 0, n - stored);
    return pc__h5_bytes(source, at, bytes, stored) || !stored ? 0 : -1;
}

static herr_t write_nothing(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t n, const void *bytes)
{
    (void)file, (void)type, (void)transfer, (void)at, (void)n, (void)bytes;
    return -1;
}

static herr_t handle_of(H5FD_t *file, hid_t access, void **handle)
{
    (void)access;
    *handle = &((opened *)file)->source;
    return 0;
}

static const H5FD_class_t driver = {
#if H5_VERSION_GE(1, 13, 0)
    .version = H5FD_CLASS_VERSION,
    .value = 600, /* 512 and above are anybody's */
#endif
    .name = "paracord",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_STRONG, /* closing the file closes what an error path left open in it */
    .fapl_size = sizeof(pc__h5_source *),
    .open = open_source,
    .close = close_source,
    .query = features,
    .get_eoa = get_end,
    .set_eoa = set_end,
    .get_eof = size_of,
    .get_handle = handle_of,
    .read = read_source,
    .write = write_nothing,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

pc_status pc__h5_source_open(const char *path, const pc__h5_source *source, hid_t *file)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), id = H5FDregister(&driver);
    *file = H5I_INVALID_HID;
    if (access >= 0 && id >= 0 && H5Pset_driver(access, id, &source) >= 0 &&
        H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) >= 0)
        *file = H5Fopen(path, H5F_ACC_RDONLY, access);
    pc_status status = *file >= 0 ? PC_OK : pc__h5_fail("cannot read %s: it is damaged or truncated", path);
    if (access >= 0)
        H5Pclose(access);
    if (id >= 0)
        H5FDunregister(id);
    return status;
}

bool pc__h5_raw(hid_t object, const pc__h5_source **source, uint64_t *base)
{
    size_t address_bytes = 0, length_bytes = 0;
    hsize_t user = 0;
    const pc__h5_source **handle = NULL;
    hid_t file = H5Iget_file_id(object), creation = file >= 0 ? H5Fget_create_plist(file) : -1;
    bool good = file >= 0 && H5Fget_vfd_handle(file, H5P_DEFAULT, (void **)&handle) >= 0 && handle;
    *source = good ? *handle : NULL;
    good = good && creation >= 0 && H5Pget_sizes(creation, &address_bytes, &length_bytes) >= 0 && address_bytes == 8 &&
           length_bytes == 8 && H5Pget_userblock(creation, &user) >= 0;
    if (creation >= 0)
        H5Pclose(creation);
    if (file >= 0)
        H5Fclose(file);
    *base = user;
    return good;
}

#endif

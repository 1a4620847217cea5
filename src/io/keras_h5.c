/* keras_h5.c: entering HDF5, its errors, and opening files and groups. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_h5.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

/* Distributions build HDF5 without its own thread safety. */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

pc__h5_quiet pc__h5_enter(void)
{
    pc__h5_quiet quiet = {NULL, NULL};
    pthread_mutex_lock(&one_at_a_time);
    H5Eget_auto2(H5E_DEFAULT, &quiet.print, &quiet.context);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return quiet;
}

void pc__h5_leave(pc__h5_quiet quiet)
{
    H5Eset_auto2(H5E_DEFAULT, quiet.print, quiet.context);
    pthread_mutex_unlock(&one_at_a_time);
}

static herr_t take_innermost(unsigned n, const H5E_error2_t *error, void *context)
{
    if (n == 0 && error->desc)
        snprintf(context, PC_MESSAGE_MAX, "%s", error->desc);
    return 0;
}

pc_status pc__h5_fail_at(const char *file, int line, const char *format, ...)
{
    char message[PC_MESSAGE_MAX], cause[PC_MESSAGE_MAX] = "";
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_innermost, cause);
    H5Eclear2(H5E_DEFAULT);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return pc__fail_at(file, line, PC_ERR_FORMAT, cause, "%s", message);
}

pc_status pc__names_add(pc__names *names, const char *text, size_t n)
{
    PC__TRY(pc__grow((void **)&names->items, &names->capacity, names->count, sizeof *names->items));
    char *copy = pc__alloc(n + 1);
    if (!copy)
        return PC_ERR_MEMORY;
    memcpy(copy, text, n);
    copy[n] = 0;
    names->items[names->count++] = copy;
    return PC_OK;
}

void pc__names_free(pc__names *names)
{
    for (int i = 0; i < names->count; i++)
        pc__free(names->items[i]);
    pc__free(names->items);
    *names = (pc__names){0};
}

/* The words for what people hand over instead of an HDF5 file. */
static pc_status check_kind(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return pc__fail_file(errno, "cannot open %s", path);
    struct stat info;
    char head[4] = "";
    bool known = fstat(fd, &info) == 0;
    ssize_t got = known && S_ISREG(info.st_mode) ? read(fd, head, sizeof head) : 0;
    int problem = errno;
    close(fd);
    if (!known || got < 0)
        return pc__fail_file(problem, "cannot read %s", path);
    if (!S_ISREG(info.st_mode))
        return pc__fail(PC_ERR_FILE, "cannot read %s: it is not a regular file", path);
    if (info.st_size == 0)
        return pc__fail(PC_ERR_FORMAT, "%s is empty", path);
    if (got == 4 && memcmp(head, "PK\3\4", 4) == 0)
        return pc__fail(PC_ERR_UNSUPPORTED,
                        "%s is a zip archive, as Keras's .keras files are; save the model as .h5 "
                        "instead: model.save(\"model.h5\")",
                        path);
    return PC_OK;
}

pc_status pc__h5_open(const char *path, hid_t *file)
{
    *file = H5I_INVALID_HID;
    PC__TRY(check_kind(path));
    if (H5Fis_hdf5(path) <= 0)
        return pc__fail(PC_ERR_FORMAT, "%s is not an HDF5 file", path);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    /* Strong: closing the file closes what an error path left open in it. */
    if (access >= 0 && H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) >= 0)
        *file = H5Fopen(path, H5F_ACC_RDONLY, access);
    pc_status status = *file >= 0 ? PC_OK : pc__h5_fail("cannot read %s: it is damaged or truncated", path);
    H5Pclose(access);
    return status;
}

bool pc__h5_raw(hid_t object, int *fd, uint64_t *base)
{
    size_t address_bytes = 0, length_bytes = 0;
    hsize_t user = 0;
    int *handle = NULL;
    hid_t file = H5Iget_file_id(object), creation = file >= 0 ? H5Fget_create_plist(file) : -1;
    bool good = creation >= 0 && H5Pget_sizes(creation, &address_bytes, &length_bytes) >= 0 && address_bytes == 8 &&
                length_bytes == 8 && H5Pget_userblock(creation, &user) >= 0 &&
                H5Fget_vfd_handle(file, H5P_DEFAULT, (void **)&handle) >= 0 && handle;
    if (creation >= 0)
        H5Pclose(creation);
    if (file >= 0)
        H5Fclose(file);
    *fd = good ? *handle : -1;
    *base = user;
    return good;
}

bool pc__h5_bytes(int fd, uint64_t at, uint8_t *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = at > INT64_MAX / 2 ? -1 : pread(fd, bytes + done, n - done, (off_t)(at + done));
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

static herr_t no_link(const char *parent_file, const char *parent_group, const char *child_file,
                      const char *child_object, unsigned *flags, hid_t access, void *context)
{
    (void)parent_file, (void)parent_group, (void)child_file, (void)child_object, (void)flags, (void)access,
        (void)context;
    return -1;
}

hid_t pc__h5_inside(hid_t class)
{
    hid_t access = H5Pcreate(class);
    if (access < 0 || H5Pset_elink_cb(access, no_link, NULL) >= 0)
        return access;
    H5Pclose(access);
    return H5I_INVALID_HID;
}

pc_status pc__h5_group(const char *path, hid_t parent, const char *name, hid_t *group)
{
    hid_t access = pc__h5_inside(H5P_GROUP_ACCESS);
    *group = access >= 0 ? H5Gopen2(parent, name, access) : H5I_INVALID_HID;
    pc_status status = *group >= 0 ? PC_OK : pc__h5_fail("%s: the group '%.100s' is missing or damaged", path, name);
    H5Pclose(access);
    return status;
}

bool pc__h5_has_group(hid_t parent, const char *name)
{
    return H5Lexists(parent, name, H5P_DEFAULT) > 0;
}

#endif

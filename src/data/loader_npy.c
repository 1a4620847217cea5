/* loader_npy.c: loaders of the rows of .npy files. */
#include "data/rows.h"
#include "io/file.h"
#include "io/npy.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the file has; rows in *n. */
static pc_status describe(const char *path, const pc__npy *array, pc__row_array *a, int64_t *n)
{
    if (array->rank == 0)
        return pc__fail(PC_ERR_SHAPE, "%s is one number, and has no rows", path);
    const pc_dtype dtype = pc__npy_dtype(array->type);
    *n = array->shape[0];
    a->narrowed = dtype == PC_F64;
    a->field = (pc_field){a->narrowed ? PC_F32 : dtype, pc_shape_of(array->rank - 1, array->shape + 1)};
    return PC_OK;
}

/* As a whole, where rows are not one behind the other. */
static pc_status load(const char *path, pc__row_array *a)
{
    PC_SCOPE {
        a->held = pc_tensor_retain(pc_npy_load(path, PC_DEVICE_CPU));
    }
    a->memory = a->held ? pc_data(a->held) : NULL;
    return a->memory ? PC_OK : pc_error_last()->status;
}

static pc_status look(const char *path, pc__row_array *a, pc__npy_place *place, uint64_t *fingerprint)
{
    struct stat info;
    PC__TRY(pc__npy_find(path, a->fd, place));
    if (fstat(a->fd, &info) != 0)
        return pc__fail_file(errno, "cannot read %s", path);
    const int64_t facts[3] = {(int64_t)info.st_size, (int64_t)info.st_mtim.tv_sec, (int64_t)info.st_mtim.tv_nsec};
    *fingerprint = pc__hash_bytes(*fingerprint, facts, sizeof facts);
    return PC_OK;
}

static pc_status open_file(const char *path, pc__row_array *a, int64_t *n, uint64_t *fingerprint)
{
    int64_t size;
    pc__npy_place place;
    PC__TRY(pc__file_open(path, &a->fd, &size));
    a->path = pc__strdup(path);
    if (!a->path) {
        close(a->fd);
        return PC_ERR_MEMORY;
    }
    PC__TRY(look(path, a, &place, fingerprint));
    a->offset = place.offset;
    PC__TRY(describe(path, &place.array, a, n));
    return place.fortran && place.array.rank > 1 ? load(path, a) : PC_OK;
}

static pc_status open_all(const char *const *paths, int count, pc__row_array *arrays, int64_t *rows,
                          uint64_t *fingerprint)
{
    for (int k = 0; k < count; k++) {
        int64_t n = 0;
        PC__TRY(open_file(paths[k], &arrays[k], &n, fingerprint));
        *rows = k ? *rows : n;
        if (n != *rows)
            return pc__fail(PC_ERR_SHAPE, "%s has %lld rows, and %s has %lld", paths[0], (long long)*rows, paths[k],
                            (long long)n);
    }
    return PC_OK;
}

pc_loader *pc_loader_new_npy(const char *x_path, const char *y_path, pc_batch_options options)
{
    PC__NEED_OR(NULL, x_path);
    pc__row_array arrays[2] = {0};
    int64_t rows = 0;
    uint64_t fingerprint = 0xcbf29ce484222325u;
    const int count = y_path ? 2 : 1;
    if (open_all((const char *[]){x_path, y_path}, count, arrays, &rows, &fingerprint) == PC_OK)
        return pc__loader_of_rows(arrays, count, rows, fingerprint, &options);
    pc__row_arrays_close(arrays, 2);
    return NULL;
}

/* rows.c: samples that are rows of arrays: gathered into batches. */
#include "data/rows.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

typedef struct rows {
    int count;
    pc__row_array array[PC_FIELDS_MAX];
} rows;

void pc__row_arrays_close(pc__row_array *arrays, int count)
{
    for (int k = 0; k < count; k++) {
        pc_tensor_free(arrays[k].held);
        if (arrays[k].path)
            close(arrays[k].fd);
        pc__free(arrays[k].path);
        arrays[k] = (pc__row_array){0};
    }
}

static void release(void *context)
{
    rows *r = context;
    pc__row_arrays_close(r->array, r->count);
    pc__free(r);
}

static size_t stored_bytes(const pc__row_array *a)
{
    return pc__field_bytes(&a->field) * (a->narrowed ? 2 : 1);
}

static pc_status read_file(const pc__row_array *a, int64_t row, void *to, size_t bytes)
{
    const int64_t at = a->offset + row * (int64_t)stored_bytes(a);
    for (size_t done = 0; done < bytes;) {
        const ssize_t got = pread(a->fd, (char *)to + done, bytes - done, (off_t)(at + (int64_t)done));
        if (got == 0)
            return pc__fail(PC_ERR_FILE, "%s became shorter: row %lld is not there any more", a->path, (long long)row);
        if (got < 0 && errno != EINTR)
            return pc__fail_file(errno, "cannot read row %lld of %s", (long long)row, a->path);
        done += got > 0 ? (size_t)got : 0;
    }
    return PC_OK;
}

/* Rows that follow each other in the file are read at once. */
static int64_t run_of(const int64_t *samples, int64_t n)
{
    int64_t run = 1;
    while (run < n && samples[run] == samples[0] + run)
        run++;
    return run;
}

static pc_status gather(const pc__row_array *a, const int64_t *samples, int64_t n, char *to)
{
    const size_t bytes = stored_bytes(a);
    for (int64_t i = 0, run; i < n; i += run) {
        run = run_of(samples + i, n - i);
        if (a->memory)
            memcpy(to + (size_t)i * bytes, a->memory + (size_t)samples[i] * bytes, (size_t)run * bytes);
        else
            PC__TRY(read_file(a, samples[i], to + (size_t)i * bytes, (size_t)run * bytes));
    }
    return PC_OK;
}

/* Files may have any byte for true. */
static pc_status gather_bools(const pc__row_array *a, const int64_t *samples, int64_t n, uint8_t *to)
{
    PC__TRY(gather(a, samples, n, (char *)to));
    for (size_t i = 0; i < (size_t)n * stored_bytes(a); i++)
        to[i] = to[i] != 0;
    return PC_OK;
}

/* The one number of a row that no float32 holds, told by row and place in it. An infinity or NaN of the file is as good as any. */
static pc_status beyond(const pc__row_array *a, int64_t row, int64_t place, double number)
{
    char where[32] = "";
    if (a->field.shape.ndim)
        snprintf(where, sizeof where, ", number %lld", (long long)place);
    return pc__fail(PC_ERR_RANGE,
                    "%s: row %lld%s: %g is beyond float32, which float64 becomes in batches; scale the numbers in the "
                    "file, or give pc_loader_from_tensors the tensor of pc_npy_load, which stays float64",
                    a->path, (long long)row, where, number);
}

static pc_status narrow(const pc__row_array *a, int64_t row, const double *wide, int64_t count, float *to)
{
    bool fit = true;
    for (int64_t i = 0; i < count; i++) {
        to[i] = (float)wide[i];
        fit &= isfinite(to[i]) || !isfinite(wide[i]);
    }
    for (int64_t i = 0; i < count && !fit; i++)
        if (!isfinite(to[i]) && isfinite(wide[i]))
            return beyond(a, row, i, wide[i]);
    return PC_OK;
}

static pc_status gather_narrowed(const pc__row_array *a, const int64_t *samples, int64_t n, float *to)
{
    double *wide = pc__alloc((size_t)n * stored_bytes(a));
    if (!wide)
        return PC_ERR_MEMORY;
    pc_status status = gather(a, samples, n, (char *)wide);
    const int64_t count = (int64_t)(pc__field_bytes(&a->field) / sizeof(float));
    for (int64_t i = 0; status == PC_OK && i < n; i++)
        status = narrow(a, samples[i], wide + i * count, count, to + i * count);
    pc__free(wide);
    return status;
}

static pc_status gather_as_asked(const pc__row_array *a, const int64_t *samples, int64_t n, void *to)
{
    if (a->narrowed)
        return gather_narrowed(a, samples, n, to);
    return a->path && a->field.dtype == PC_BOOL ? gather_bools(a, samples, n, to) : gather(a, samples, n, to);
}

static pc_status batch(void *context, const int64_t *samples, int64_t n, int64_t epoch, void *const *to)
{
    const rows *r = context;
    (void)epoch;
    for (int k = 0; k < r->count; k++)
        PC__TRY(gather_as_asked(&r->array[k], samples, n, to[k]));
    return PC_OK;
}

pc_loader *pc__loader_of_rows(pc__row_array *arrays, int count, int64_t n, uint64_t fingerprint,
                              const pc_batch_options *options)
{
    rows *r = pc__calloc(1, sizeof *r);
    if (!r) {
        pc__row_arrays_close(arrays, count);
        return NULL;
    }
    pc_samples samples = {
        .count = n, .fields = count, .batch = batch, .context = r, .release = release, .fingerprint = fingerprint};
    r->count = count;
    for (int k = 0; k < count; k++) {
        r->array[k] = arrays[k];
        samples.field[k] = arrays[k].field;
        arrays[k] = (pc__row_array){0};
    }
    return pc_loader_new_samples(&samples, *options);
}

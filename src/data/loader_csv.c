/* loader_csv.c: CSV files as tensors and as loaders. */
#include "data/csv_table.h"
#include "data/loader_state.h"

static pc_field x_field(const pc__csv_table *t)
{
    return (pc_field){PC_F32, PC_SHAPE(t->columns.xs)};
}

static pc_field y_field(const pc__csv_table *t)
{
    return t->labels ? (pc_field){PC_I64, PC_SHAPE_SCALAR} : (pc_field){PC_F32, PC_SHAPE(t->columns.ys)};
}

static const void *y_of(const pc__csv_table *t)
{
    return t->labels ? (const void *)t->labels : t->y;
}

static pc_tensor *as_tensor(const void *rows, pc_field field, int64_t n)
{
    pc__meta meta;
    pc__rows_meta(&meta, &field, n);
    return pc_from_data(rows, pc_shape_of(meta.ndim, meta.shape), meta.dtype, PC_DEVICE_CPU);
}

pc_status pc_csv_read(const char *path, pc_csv_options options, pc_tensor **x, pc_tensor **y)
{
    PC__NEED(path);
    PC__NEED(x);
    *x = NULL;
    if (y)
        *y = NULL;
    else if (options.y)
        return pc__fail_null(__FILE__, __LINE__, __func__, "y");
    pc__csv_table t;
    PC__TRY(pc__csv_table_read(path, &options, &t));
    *x = as_tensor(t.x, x_field(&t), t.rows);
    if (*x && options.y)
        *y = as_tensor(y_of(&t), y_field(&t), t.rows);
    pc__csv_table_free(&t);
    return *x && (!options.y || *y) ? PC_OK : pc_error_last()->status;
}

static pc_status batch(void *context, const int64_t *samples, int64_t n, int64_t epoch, void *const *to)
{
    const pc__csv_table *t = context;
    const size_t x = (size_t)t->columns.xs * sizeof(float);
    const size_t y = t->labels ? sizeof(int64_t) : (size_t)t->columns.ys * sizeof(float);
    (void)epoch;
    for (int64_t i = 0; i < n; i++) {
        memcpy((char *)to[0] + (size_t)i * x, (const char *)t->x + (size_t)samples[i] * x, x);
        if (t->columns.ys)
            memcpy((char *)to[1] + (size_t)i * y, (const char *)y_of(t) + (size_t)samples[i] * y, y);
    }
    return PC_OK;
}

static void release(void *context)
{
    pc__csv_table_free(context);
    pc__free(context);
}

static uint64_t fingerprint(const pc__csv_table *t)
{
    uint64_t hash = 0xcbf29ce484222325u;
    hash = pc__hash_bytes(hash, t->x, (size_t)t->rows * (size_t)t->columns.xs * sizeof *t->x);
    if (t->y)
        hash = pc__hash_bytes(hash, t->y, (size_t)t->rows * (size_t)t->columns.ys * sizeof *t->y);
    if (t->labels)
        hash = pc__hash_bytes(hash, t->labels, (size_t)t->rows * sizeof *t->labels);
    return hash;
}

pc_loader *pc_loader_new_csv(const char *path, pc_csv_options csv, pc_batch_options options)
{
    PC__NEED_OR(NULL, path);
    pc__csv_table *t = pc__alloc(sizeof *t);
    if (!t)
        return NULL;
    if (pc__csv_table_read(path, &csv, t) != PC_OK) {
        pc__free(t);
        return NULL;
    }
    const int64_t skipped = t->skipped;
    pc_samples samples = {.count = t->rows,
                          .fields = t->columns.ys ? 2 : 1,
                          .field = {x_field(t), y_field(t)},
                          .batch = batch,
                          .context = t,
                          .release = release,
                          .class_names = (const char *const *)t->classes,
                          .class_count = t->class_count,
                          .fingerprint = fingerprint(t)};
    pc_loader *loader = pc_loader_new_samples(&samples, options);
    if (loader)
        loader->skipped = skipped;
    return loader;
}

/* sample_batch.c: a batch of samples, by the function that writes them. */
#include "data/sample_batch.h"

#include "base/parallel.h"
#include "data/kept.h"
#include "ops/epoch.h"

#include <stdlib.h>

typedef struct data {
    pc_samples samples;
    int64_t *part; /* numbers of those that the loader is of; NULL: all */
} data;

/* --- writing samples --- */

typedef struct writing {
    const pc__source *s;
    const pc__made *made;
    const int64_t *numbers;
    void *const *to;
} writing;

static pc_status checked(const pc_samples *samples, pc_status status, int64_t sample)
{
    if (status == PC_OK || pc_failed())
        return status == PC_OK ? PC_OK : pc_error_last()->status;
    return pc__fail((unsigned)status < PC_STATUS_COUNT ? status : PC_ERR_ARGUMENT,
                    "a loader's function failed for sample %lld of %lld, without saying why (pc_fail does)",
                    (long long)sample, (long long)samples->count);
}

static pc_status write_sample(void *context, int64_t i)
{
    const writing *w = context;
    const pc_samples *samples = &((const data *)w->s->data)->samples;
    void *to[PC_FIELDS_MAX];
    for (int k = 0; k < samples->fields; k++)
        to[k] = (char *)w->to[k] + (size_t)i * pc__field_bytes(&samples->field[k]);
    return checked(samples, samples->sample(samples->context, w->numbers[i], w->made->epoch, to), w->numbers[i]);
}

static pc_status write_all(const pc__source *s, int threads, const pc__made *made, const int64_t *numbers,
                           void *const *to)
{
    const pc_samples *samples = &((const data *)s->data)->samples;
    if (samples->batch)
        return checked(samples, samples->batch(samples->context, numbers, made->n, made->epoch, to), numbers[0]);
    writing w = {s, made, numbers, to};
    return pc__parallel_try(samples->threads ? (int)PC__MIN(threads, made->n) : 1, made->n, write_sample, &w);
}

static pc_status fill(const pc__source *s, int threads, const pc__made *made, void *const *to)
{
    const data *d = s->data;
    if (!d->part)
        return write_all(s, threads, made, made->samples, to);
    int64_t *numbers = pc__alloc((size_t)made->n * sizeof *numbers);
    if (!numbers)
        return PC_ERR_MEMORY;
    for (int64_t i = 0; i < made->n; i++)
        numbers[i] = d->part[made->samples[i]];
    const pc_status status = write_all(s, threads, made, numbers, to);
    pc__free(numbers);
    return status;
}

/* --- batches --- */

static pc_status here(const pc__source *s, int threads, pc__made *made)
{
    void *to[PC_FIELDS_MAX];
    pc__meta meta;
    for (int k = 0; k < s->tensors; k++) {
        pc__rows_meta(&meta, &s->part[k], made->n);
        made->tensor[k] = pc__tensor_unscoped(&meta, PC_DEVICE_CPU);
        if (!made->tensor[k])
            return PC_ERR_MEMORY;
        to[k] = pc__data(made->tensor[k]);
    }
    return fill(s, threads, made, to);
}

/* Copies, so that what failed on the way fails this stream too. */
static pc_status finish(const pc__source *s, pc__made *made)
{
    for (int k = 0; k < s->tensors; k++) {
        pc_tensor *copy = pc_clone(made->part[k]);
        if (!copy)
            return pc_error_last()->status;
        pc__scope_forget(copy);
        made->tensor[k] = copy;
    }
    return PC_OK;
}

static pc_status make_there(const pc__source *s, pc__made *made)
{
    return pc__kept_make(s->kept, s, made);
}

static uint64_t fingerprint(const pc__source *s, uint64_t hash)
{
    const data *d = s->data;
    const pc_samples *samples = &d->samples;
    hash = pc__hash_bytes(hash, &samples->fingerprint, sizeof samples->fingerprint);
    hash = pc__hash_bytes(hash, &samples->count, sizeof samples->count);
    hash = pc__hash_bytes(hash, &s->count, sizeof s->count);
    for (int k = 0; k < samples->fields; k++) {
        const pc_field *field = &samples->field[k];
        const int64_t kind[2] = {(int64_t)field->dtype, field->shape.ndim};
        hash = pc__hash_bytes(hash, kind, sizeof kind);
        hash = pc__hash_bytes(hash, field->shape.dim, (size_t)field->shape.ndim * sizeof *field->shape.dim);
    }
    return hash;
}

static void close_data(pc__source *s)
{
    data *d = s->data;
    pc__kept_free(s->kept);
    if (d->samples.release)
        d->samples.release(d->samples.context);
    pc__free(d->part);
    pc__free(d);
}

static const pc__kind kind = {.here = here,
                              .fill = fill,
                              .finish = finish,
                              .make_there = make_there,
                              .fingerprint = fingerprint,
                              .close = close_data};

/* --- the part --- */

static int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The first samples of an order that is the same for all seeds are for validation. */
static pc_status draw_part(data *d, int64_t *order, uint64_t *keys, const pc_batch_options *o, int64_t *count)
{
    static const uint64_t seed = 0x73706c6974u; /* "split" */
    const int64_t n = d->samples.count, held = (int64_t)((double)n * o->validation_share);
    const bool training = o->split == PC_SPLIT_TRAINING;
    *count = training ? n - held : held;
    if (*count == 0)
        return pc__fail(PC_ERR_NOT_FOUND, "there are no samples for validation: a share of %g is none of %lld",
                        o->validation_share, (long long)n);
    pc__epoch_order(seed, 0, n, order, keys);
    d->part = pc__alloc((size_t)*count * sizeof *d->part);
    if (!d->part)
        return PC_ERR_MEMORY;
    memcpy(d->part, order + (training ? held : 0), (size_t)*count * sizeof *d->part);
    qsort(d->part, (size_t)*count, sizeof *d->part, by_number);
    return PC_OK;
}

static pc_status take_part(data *d, const pc_batch_options *o, int64_t *count)
{
    *count = d->samples.count;
    if (o->split == PC_SPLIT_ALL)
        return PC_OK;
    int64_t *order = pc__alloc((size_t)*count * sizeof *order);
    uint64_t *keys = order ? pc__alloc((size_t)*count * sizeof *keys) : NULL;
    const pc_status status = keys ? draw_part(d, order, keys, o, count) : PC_ERR_MEMORY;
    pc__free(order);
    pc__free(keys);
    return status;
}

pc_status pc__sample_source(pc__source *s, const pc_samples *samples, const pc_batch_options *o)
{
    data *d = pc__calloc(1, sizeof *d);
    if (!d) {
        if (samples->release)
            samples->release(samples->context);
        return PC_ERR_MEMORY;
    }
    d->samples = *samples;
    s->kind = &kind;
    s->data = d;
    s->tensors = s->parts = samples->fields;
    memcpy(s->part, samples->field, sizeof s->part);
    s->wide = samples->threads;
    return take_part(d, o, &s->count);
}

/* loader_samples.c: loaders of samples: what is asked for checked, and where the samples are. */
#include "data/device_batch.h"
#include "data/kept.h"
#include "data/loader_state.h"
#include "data/sample_batch.h"

static pc_status check_field(const pc_field *field, int k)
{
    if ((unsigned)field->dtype >= PC_DTYPE_COUNT)
        return pc__fail(PC_ERR_DTYPE, "pc_loader_new_samples: %d is no data type (field %d)", (int)field->dtype, k);
    if (field->shape.ndim < 0 || field->shape.ndim >= PC_MAX_DIMS)
        return pc__fail(PC_ERR_SHAPE, "pc_loader_new_samples: field %d has %d dimensions; a sample has 0 to %d", k,
                        field->shape.ndim, PC_MAX_DIMS - 1);
    PC__TRY(pc__shape_check("pc_loader_new_samples", field->shape, field->dtype));
    return pc__count(field->shape.ndim, field->shape.dim)
               ? PC_OK
               : pc__fail(PC_ERR_SHAPE, "pc_loader_new_samples: field %d has no numbers: its shape is %s", k,
                          pc__shape_format(field->shape.ndim, field->shape.dim).s);
}

static pc_status check_classes(const pc_samples *s)
{
    if (!s->class_names)
        return PC_OK;
    if (s->class_count < 1 || s->fields < 2 || s->field[1].dtype != PC_I64)
        return pc__fail(PC_ERR_ARGUMENT,
                        "pc_loader_new_samples: %d class names; they are for labels, an int64 as the second field",
                        s->class_count);
    for (int i = 0; i < s->class_count; i++)
        if (!s->class_names[i])
            return pc__fail(PC_ERR_ARGUMENT, "pc_loader_new_samples: class name %d is NULL", i);
    return PC_OK;
}

static pc_status check_samples(const pc_samples *s)
{
    if (s->count < 0 || s->count > (int64_t)1 << 40)
        return pc__fail(PC_ERR_ARGUMENT, "pc_loader_new_samples: %lld samples", (long long)s->count);
    if (s->count == 0)
        return pc__fail(PC_ERR_NOT_FOUND, "pc_loader_new_samples: there are no samples");
    if (s->fields < 1 || s->fields > PC_FIELDS_MAX)
        return pc__fail(PC_ERR_ARGUMENT, "pc_loader_new_samples: samples of %d fields: give 1 to %d", s->fields,
                        PC_FIELDS_MAX);
    if (!s->sample == !s->batch)
        return pc__fail(PC_ERR_ARGUMENT, "pc_loader_new_samples: give `sample` or `batch`, one function that writes");
    for (int k = 0; k < s->fields; k++)
        PC__TRY(check_field(&s->field[k], k));
    return check_classes(s);
}

static pc_status copy_names(pc_loader *loader, const pc_samples *s)
{
    if (!s->class_names)
        return PC_OK;
    loader->class_names = pc__calloc((size_t)s->class_count, sizeof *loader->class_names);
    if (!loader->class_names)
        return PC_ERR_MEMORY;
    for (; loader->class_count < s->class_count; loader->class_count++)
        if (!(loader->class_names[loader->class_count] = pc__strdup(s->class_names[loader->class_count])))
            return PC_ERR_MEMORY;
    return PC_OK;
}

static pc_status open_device(pc_loader *loader, const pc_samples *samples, const pc_batch_options *o)
{
    pc__source *s = &loader->source;
    s->device = o->device;
    if (s->device.type == PC_CPU) {
        snprintf(loader->why, sizeof loader->why, "samples are in host memory, as their batches are");
        return PC_OK;
    }
    if (samples->by_epoch)
        snprintf(loader->why, sizeof loader->why, "samples stay in host memory: they differ from epoch to epoch");
    else
        PC__TRY(pc__kept_new(s, o->resident, loader->why, sizeof loader->why, &s->kept));
    pc__log(PC_LOG_INFO, "%s", loader->why);
    if (s->kept)
        return PC_OK;
    s->crossing = pc__crossing_new(s);
    return s->crossing ? PC_OK : pc_error_last()->status;
}

/* The samples' context is the source's from the first line on. */
static pc_status open_loader(pc_loader *loader, const pc_samples *samples, const pc_batch_options *o)
{
    PC__TRY(pc__sample_source(&loader->source, samples, o));
    const pc__walk walk = {o->batch ? o->batch : PC__BATCH, o->shuffle, o->drop_last, o->seed};
    if (o->drop_last && loader->source.count < walk.batch)
        return pc__fail(PC_ERR_NOT_FOUND, "%lld samples are no whole batch of %d: a smaller one, or no drop_last",
                        (long long)loader->source.count, walk.batch);
    PC__TRY(pc__source_open(&loader->source, &walk));
    PC__TRY(copy_names(loader, samples));
    return open_device(loader, samples, o);
}

static pc_loader *new_of(const pc_samples *samples, const pc_batch_options *o)
{
    pc_loader *loader = pc__loader_begin();
    if (loader)
        return pc__loader_ready(loader, open_loader(loader, samples, o),
                                o->prefetch ? PC__MAX(o->prefetch, 0) : PC__PREFETCH);
    if (samples->release)
        samples->release(samples->context);
    return NULL;
}

pc_loader *pc_loader_new_samples(const pc_samples *samples, pc_batch_options options)
{
    PC__NEED_OR(NULL, samples);
    if (check_samples(samples) == PC_OK &&
        pc__walk_check("samples", options.batch, options.prefetch, options.resident, options.split,
                       options.validation_share) == PC_OK &&
        pc__device_check(options.device, "pc_loader_new_samples") == PC_OK)
        return new_of(samples, &options);
    if (samples->release)
        samples->release(samples->context);
    return NULL;
}

/* facts.c: what a loader has. */
#include "data/gather.h"
#include "data/loader_state.h"
#include "data/picture_batch.h"

int64_t pc_loader_count(const pc_loader *loader)
{
    PC__NEED_OR(0, loader);
    return loader->source.count;
}

int64_t pc_loader_batches(const pc_loader *loader)
{
    PC__NEED_OR(0, loader);
    return loader->source.batches;
}

/* The pictures of a loader of a folder; NULL: it has none. */
static const pc__pictures *pictures_of(const pc_loader *loader)
{
    const pc__picture_data *d = pc__pictures_of(&loader->source);
    return d ? &d->pictures : NULL;
}

int64_t pc_loader_skipped(const pc_loader *loader)
{
    PC__NEED_OR(0, loader);
    return pictures_of(loader) ? pictures_of(loader)->skipped : loader->skipped;
}

int64_t pc_loader_damaged(const pc_loader *loader)
{
    PC__NEED_OR(0, loader);
    return pictures_of(loader) ? pictures_of(loader)->damaged : 0;
}

int64_t pc_loader_streamed(const pc_loader *loader)
{
    PC__NEED_OR(0, loader);
    return pictures_of(loader) ? pictures_of(loader)->streamed : 0;
}

int pc_loader_class_count(const pc_loader *loader)
{
    PC__NEED_OR(0, loader);
    return pictures_of(loader) ? pictures_of(loader)->folder.class_count : loader->class_count;
}

const char *pc_loader_class_name(const pc_loader *loader, int label)
{
    PC__NEED_OR(NULL, loader);
    if (label < 0 || label >= pc_loader_class_count(loader))
        return NULL;
    return pictures_of(loader) ? pictures_of(loader)->folder.classes[label] : loader->class_names[label];
}

int pc_loader_fields(const pc_loader *loader, pc_field *fields, int room)
{
    PC__NEED_OR(0, loader);
    const pc__source *s = &loader->source;
    if (!pictures_of(loader)) {
        for (int i = 0; fields && i < PC__MIN(s->tensors, room); i++)
            fields[i] = s->part[i];
        return s->tensors;
    }
    const pc__frame f = pictures_of(loader)->frame;
    const pc_field pictures[2] = {{PC_F32, PC_SHAPE(f.channels, f.height, f.width)}, s->part[s->parts - 1]};
    for (int i = 0; fields && i < PC__MIN(2, room); i++)
        fields[i] = pictures[i];
    return 2;
}

int pc__loader_label(const pc_loader *loader, int64_t sample)
{
    return loader->source.kind->label(&loader->source, sample);
}

bool pc__loader_names_classes(const pc_loader *loader)
{
    return pictures_of(loader);
}

pc_status pc_loader_picture(const pc_loader *loader, int64_t i, pc_picture *picture)
{
    PC__NEED(picture);
    *picture = (pc_picture){0};
    PC__NEED(loader);
    if (i < 0 || i >= pc_loader_count(loader))
        return pc__fail(PC_ERR_RANGE, "pc_loader_picture: there is no picture %lld of %lld", (long long)i,
                        (long long)pc_loader_count(loader));
    const pc__pictures *p = pictures_of(loader);
    if (!p)
        return pc__fail(PC_ERR_UNSUPPORTED, "pc_loader_picture: the loader is of samples, not of a folder's pictures");
    const pc__picture_file *file = &p->folder.files[i];
    const uint8_t *pixels;
    PC__TRY(pc__pictures_get(p, i, pc__pictures_of(&loader->source)->shown, &pixels));
    *picture = (pc_picture){.path = file->path,
                            .label = file->label,
                            .image = {(uint8_t *)pixels, p->frame.width, p->frame.height, p->frame.channels}};
    return PC_OK;
}

uint64_t pc_loader_fingerprint(const pc_loader *loader)
{
    PC__NEED_OR(0, loader);
    return loader->source.kind->fingerprint(&loader->source, 0xcbf29ce484222325u);
}

bool pc_loader_resident(const pc_loader *loader, char *why, size_t n)
{
    PC__NEED_OR(false, loader);
    if (why && n)
        snprintf(why, n, "%s", loader->why);
    return loader->source.resident || loader->source.kept;
}

/* facts.c: what a loader has. */
#include "data/gather.h"
#include "data/loader_state.h"

int64_t pc_loader_count(const pc_loader *loader)
{
    PC__NEED_OR(0, loader);
    return loader->source.pictures.folder.count;
}

int64_t pc_loader_batches(const pc_loader *loader)
{
    PC__NEED_OR(0, loader);
    return loader->source.batches;
}

int64_t pc_loader_skipped(const pc_loader *loader)
{
    PC__NEED_OR(0, loader);
    return loader->source.pictures.skipped;
}

int pc_loader_class_count(const pc_loader *loader)
{
    PC__NEED_OR(0, loader);
    return loader->source.pictures.folder.class_count;
}

const char *pc_loader_class_name(const pc_loader *loader, int label)
{
    PC__NEED_OR(NULL, loader);
    return label >= 0 && label < pc_loader_class_count(loader) ? loader->source.pictures.folder.classes[label] : NULL;
}

int64_t pc_loader_damaged(const pc_loader *loader)
{
    PC__NEED_OR(0, loader);
    return loader->source.pictures.damaged;
}

int64_t pc_loader_streamed(const pc_loader *loader)
{
    PC__NEED_OR(0, loader);
    return loader->source.pictures.streamed;
}

int pc__loader_label(const pc_loader *loader, int64_t sample)
{
    return loader->source.pictures.folder.files[sample].label;
}

pc_status pc_loader_picture(const pc_loader *loader, int64_t i, pc_picture *picture)
{
    PC__NEED(picture);
    *picture = (pc_picture){0};
    PC__NEED(loader);
    if (i < 0 || i >= pc_loader_count(loader))
        return pc__fail(PC_ERR_RANGE, "pc_loader_picture: there is no picture %lld of %lld", (long long)i,
                        (long long)pc_loader_count(loader));
    const pc__pictures *p = &loader->source.pictures;
    const pc__picture_file *file = &p->folder.files[i];
    const uint8_t *pixels;
    PC__TRY(pc__pictures_get(p, i, loader->shown, &pixels));
    *picture = (pc_picture){.path = file->path,
                            .label = file->label,
                            .image = {(uint8_t *)pixels, p->frame.width, p->frame.height, p->frame.channels}};
    return PC_OK;
}

/* FNV-1a, over the text and its end. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    do
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    while (*text++);
    return hash;
}

uint64_t pc_loader_fingerprint(const pc_loader *loader)
{
    PC__NEED_OR(0, loader);
    uint64_t hash = 0xcbf29ce484222325u;
    for (int i = 0; i < pc_loader_class_count(loader); i++)
        hash = hash_text(hash, loader->source.pictures.folder.classes[i]);
    for (int64_t i = 0; i < pc_loader_count(loader); i++)
        hash = hash_text(hash, loader->source.pictures.folder.files[i].path);
    return hash;
}

bool pc_loader_resident(const pc_loader *loader, char *why, size_t n)
{
    PC__NEED_OR(false, loader);
    if (why && n)
        snprintf(why, n, "%s", loader->why);
    return loader->source.resident;
}

/* facts.c: what a loader has. */
#include "data/loader_state.h"

int64_t pc_loader_count(const pc_loader *loader)
{
    return loader ? loader->source.pictures.folder.count : 0;
}

int64_t pc_loader_batches(const pc_loader *loader)
{
    return loader ? loader->source.batches : 0;
}

int64_t pc_loader_skipped(const pc_loader *loader)
{
    return loader ? loader->source.pictures.skipped : 0;
}

int pc_loader_class_count(const pc_loader *loader)
{
    return loader ? loader->source.pictures.folder.class_count : 0;
}

const char *pc_loader_class_name(const pc_loader *loader, int label)
{
    return label >= 0 && label < pc_loader_class_count(loader) ? loader->source.pictures.folder.classes[label] : NULL;
}

pc_status pc_loader_picture(const pc_loader *loader, int64_t i, pc_picture *picture)
{
    *picture = (pc_picture){0};
    if (i < 0 || i >= pc_loader_count(loader))
        return pc__fail(PC_ERR_RANGE, "pc_loader_picture: there is no picture %lld of %lld", (long long)i,
                        (long long)pc_loader_count(loader));
    const pc__pictures *p = &loader->source.pictures;
    const pc__picture_file *file = &p->folder.files[i];
    *picture = (pc_picture){.path = file->path,
                            .label = file->label,
                            .image = {p->pixels + (size_t)i * pc__picture_bytes(p->size), p->size, p->size, 3}};
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
    uint64_t hash = 0xcbf29ce484222325u;
    for (int i = 0; i < pc_loader_class_count(loader); i++)
        hash = hash_text(hash, loader->source.pictures.folder.classes[i]);
    for (int64_t i = 0; i < pc_loader_count(loader); i++)
        hash = hash_text(hash, loader->source.pictures.folder.files[i].path);
    return hash;
}

bool pc_loader_resident(const pc_loader *loader, char *why, size_t n)
{
    if (n)
        snprintf(why, n, "%s", loader ? loader->why : "there is no loader");
    return loader && loader->source.resident;
}

/* pictures.c: which pictures a folder has, which of them are kept decoded, and getting at any of them. */
#include "data/pictures.h"

#include "base/parallel.h"

#include <paracord/memory.h>

enum { AUTO_SHARE = 2 }; /* of the memory that is left: decoded pictures take one part in so many unless told */

static pc_status find(const char *root, const pc_loader_options *options, pc__folder *folder)
{
    PC__TRY(pc__folder_scan(root, folder));
    if (options->class_names)
        PC__TRY(pc__folder_relabel(folder, options->class_names, options->class_count));
    return pc__folder_check(folder);
}

/* Slots for as many pictures as may be kept. */
static pc_status open_cache(pc__pictures *p, int64_t wanted, int64_t *slots)
{
    const int64_t each = (int64_t)pc__frame_bytes(p->frame);
    const int64_t room = wanted > 0 ? wanted : wanted < 0 ? 0 : pc_memory_left() / AUTO_SHARE;
    *slots = PC__MIN(p->folder.count, room / each);
    p->cache = pc__calloc(1, sizeof *p->cache);
    if (!p->cache)
        return PC_ERR_MEMORY;
    p->cache->owners = 1;
    p->cache->pixels = *slots ? pc__alloc((size_t)*slots * (size_t)each) : NULL;
    return *slots && !p->cache->pixels ? PC_ERR_MEMORY : PC_OK;
}

/* Take the broken ones out. A class must have some left. */
static pc_status keep_whole(pc__pictures *p, const pc__decoded *decoded)
{
    pc__folder *folder = &p->folder;
    int kept = 0, label = 0, kept_of_label = 0;
    const int count = folder->count;
    for (int i = 0; i < count; i++) {
        pc__picture_file *file = &folder->files[i];
        kept_of_label = file->label == label ? kept_of_label : 0;
        label = file->label;
        char *path = file->path;
        file->path = NULL;
        if (decoded[i] == PC__DECODED_BROKEN) {
            pc__free(path);
        } else {
            folder->files[kept] = (pc__picture_file){path, label};
            p->slot[kept] = p->slot[i];
            p->streamed += p->slot[kept] < 0;
            p->damaged += decoded[i] == PC__DECODED_DAMAGED;
            kept++, kept_of_label++;
        }
        if ((i + 1 == count || folder->files[i + 1].label != label) && !kept_of_label)
            return pc__fail(PC_ERR_NOT_FOUND, "class %s has no picture that can be decoded: all in %s/%s are broken",
                            folder->classes[label], folder->root, folder->classes[label]);
    }
    folder->count = kept;
    p->skipped = count - kept;
    return PC_OK;
}

static pc_status decode(pc__pictures *p, const pc_loader_options *o)
{
    const pc__decode_options options = {.frame = p->frame,
                                        .shorter = p->shorter,
                                        .resize = o->resize,
                                        .no_exif = o->no_exif,
                                        .strict = o->strict,
                                        .broken = o->skipped,
                                        .damaged = o->damaged,
                                        .context = o->context};
    const int count = p->folder.count;
    int64_t slots;
    PC__TRY(open_cache(p, o->cache, &slots));
    p->slot = pc__alloc((size_t)count * sizeof *p->slot);
    pc__decoded *decoded = p->slot ? pc__alloc((size_t)count * sizeof *decoded) : NULL;
    pc_status status = PC_ERR_MEMORY;
    if (decoded)
        status = pc__pictures_decode(&p->folder, &options, p->cache->pixels, slots, decoded);
    for (int i = 0; status == PC_OK && i < count; i++)
        p->slot[i] = slots ? pc__slot_of(i, count, slots) : -1;
    if (status == PC_OK)
        status = keep_whole(p, decoded);
    pc__free(decoded);
    return status;
}

pc_status pc__pictures_load(const char *root, const pc_loader_options *options, pc__pictures *pictures)
{
    *pictures = (pc__pictures){.frame = {options->height, options->width, options->channels},
                               .shorter = options->shorter,
                               .resize = options->resize,
                               .no_exif = options->no_exif};
    pc_status status = find(root, options, &pictures->folder);
    if (status == PC_OK)
        status = decode(pictures, options);
    if (status != PC_OK)
        pc__pictures_free(pictures);
    return status;
}

void pc__pictures_free(pc__pictures *pictures)
{
    pc__cache *cache = pictures->cache;
    pc__folder_free(&pictures->folder);
    pc__free(pictures->slot);
    if (cache && --cache->owners == 0) {
        pc__free(cache->pixels);
        pc__free(cache);
    }
    *pictures = (pc__pictures){0};
}

pc_status pc__pictures_get(const pc__pictures *pictures, int64_t i, uint8_t *room, const uint8_t **pixels)
{
    const int64_t slot = pictures->slot[i];
    const pc__decode_options options = {.frame = pictures->frame,
                                        .shorter = pictures->shorter,
                                        .resize = pictures->resize,
                                        .no_exif = pictures->no_exif};
    *pixels = slot < 0 ? room : pictures->cache->pixels + (size_t)slot * pc__frame_bytes(pictures->frame);
    return slot < 0 ? pc__picture_decode(&pictures->folder, (int)i, &options, room, NULL) : PC_OK;
}

typedef struct copying {
    const pc__pictures *pictures;
    const int64_t *files;
    uint8_t *to;
} copying;

static pc_status copy_one(void *context, int64_t i)
{
    const copying *c = context;
    const size_t bytes = pc__frame_bytes(c->pictures->frame);
    uint8_t *to = c->to + (size_t)i * bytes;
    const uint8_t *pixels;
    PC__TRY(pc__pictures_get(c->pictures, c->files[i], to, &pixels));
    if (pixels != to)
        memcpy(to, pixels, bytes);
    return PC_OK;
}

pc_status pc__pictures_copy(const pc__pictures *pictures, const int64_t *files, int64_t n, int threads, uint8_t *to)
{
    return pc__parallel_try(threads, n, copy_one, &(copying){pictures, files, to});
}

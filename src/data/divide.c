/* divide.c: a share of each class's pictures apart, for testing. */
#include "data/pictures.h"

/* Room in `part` for what may move. */
static pc_status open_part(const pc__pictures *all, pc__pictures *part)
{
    const pc__folder *folder = &all->folder;
    *part =
        (pc__pictures){.frame = all->frame, .shorter = all->shorter, .resize = all->resize, .no_exif = all->no_exif};
    pc__folder *f = &part->folder;
    f->root = pc__strdup(folder->root);
    f->classes = pc__calloc((size_t)folder->class_count, sizeof *f->classes);
    f->files = pc__calloc((size_t)folder->count, sizeof *f->files);
    part->slot = pc__alloc((size_t)folder->count * sizeof *part->slot);
    if (!f->root || !f->classes || !f->files || !part->slot)
        return PC_ERR_MEMORY;
    f->class_capacity = folder->class_count;
    f->capacity = folder->count;
    for (; f->class_count < folder->class_count; f->class_count++)
        if (!(f->classes[f->class_count] = pc__strdup(folder->classes[f->class_count])))
            return PC_ERR_MEMORY;
    return PC_OK;
}

static void append(pc__pictures *to, pc__picture_file file, int64_t slot)
{
    to->slot[to->folder.count] = slot;
    to->folder.files[to->folder.count++] = file;
    to->streamed += slot < 0;
}

pc_status pc__pictures_divide(pc__pictures *pictures, double share, pc__pictures *validation)
{
    pc__folder *folder = &pictures->folder;
    const int count = folder->count;
    const pc_status status = open_part(pictures, validation);
    if (status != PC_OK) {
        pc__pictures_free(validation);
        return status;
    }
    validation->cache = pictures->cache;
    validation->cache->owners++;
    pictures->streamed = 0;
    for (int first = 0, end, kept = 0; first < count; first = end) {
        end = pc__folder_class_end(folder, first);
        const int middle = first + (int)((end - first) * share);
        for (int i = first; i < middle; i++)
            append(validation, folder->files[i], pictures->slot[i]);
        for (int i = middle; i < end; i++, kept++) {
            folder->files[kept] = folder->files[i];
            pictures->slot[kept] = pictures->slot[i];
            pictures->streamed += pictures->slot[kept] < 0;
        }
    }
    folder->count = count - validation->folder.count;
    for (int i = folder->count; i < count; i++)
        folder->files[i].path = NULL;
    return PC_OK;
}

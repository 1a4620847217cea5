/* chosen.c: the table of choices, and where they come from. */
#include "cuda/runtime/chosen.h"

#include "cuda/runtime/hash.h"

#include <stdio.h>

/* The place of a key, or one for it; NULL: the table is full. */
static pc__chosen_place *place_of(pc__chosen *all, const pc__choosing *by)
{
    unsigned at = pc__cuda_hash(by->key, by->bytes) % PC__CHOSEN_PLACES;
    for (; all->place[at].used; at = (at + 1) % PC__CHOSEN_PLACES)
        if (memcmp(all->place[at].key, by->key, by->bytes) == 0)
            return &all->place[at];
    return all->count < PC__CHOSEN_PLACES / 4 * 3 ? &all->place[at] : NULL;
}

static void name(const pc_stream *stream, const pc__choosing *by, char text[PC__CHOICE_TEXT])
{
    struct cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, stream->device.index) != cudaSuccess)
        (void)cudaGetLastError(), device.name[0] = 0;
    const int n = snprintf(text, PC__CHOICE_TEXT, "%.80s/%d ", device.name, pc__cuda_multiprocessors(stream));
    by->name(by->context, text + n, (size_t)(PC__CHOICE_TEXT - n));
    pc__choices_clean(text);
}

/* As the file says, or by measuring, which the file learns. */
static pc_status decide(const pc_stream *stream, const pc__choosing *by, int *number, bool *known)
{
    char text[PC__CHOICE_TEXT], path[PATH_MAX];
    const bool file = pc__choices_file(path);
    name(stream, by, text);
    const int recalled = file ? pc__choices_recall(path, text) : -1;
    *known = recalled >= 0 && by->exists(by->context, recalled);
    if (*known) {
        *number = recalled;
        return PC_OK;
    }
    PC__TRY(by->measure(by->context, number, known));
    if (*known && file)
        pc__choices_note(path, text, *number);
    return PC_OK;
}

pc_status pc__chosen_for(pc__chosen *all, const pc_stream *stream, const pc__choosing *by, int *number)
{
    bool known = false;
    pc_status status = PC_OK;
    *number = 0;
    pthread_mutex_lock(&all->lock);
    pc__chosen_place *p = place_of(all, by);
    if (p && p->used) {
        *number = p->number;
    } else if (p && !((const pc__cuda_stream *)stream->implementation)->branch) {
        status = decide(stream, by, number, &known);
        if (status == PC_OK && known) {
            *p = (pc__chosen_place){.used = true, .number = *number};
            memcpy(p->key, by->key, by->bytes);
            all->count++;
        }
    }
    pthread_mutex_unlock(&all->lock);
    return status;
}

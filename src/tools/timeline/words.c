/* words.c: each text of a timeline once, found by a hash. */
#include "timeline/timeline.h"

static uint32_t hash(const char *text)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 16777619u;
    return h ^ h >> 15;
}

static int *slot_of(pc__words *words, const char *text)
{
    uint32_t mask = (uint32_t)words->slot_count - 1, at = hash(text) & mask;
    while (words->slots[at] && strcmp(words->items[words->slots[at] - 1], text) != 0)
        at = (at + 1) & mask;
    return &words->slots[at];
}

static bool make_room(pc__words *words)
{
    if (2 * words->count < words->slot_count)
        return true;
    int wanted = words->slot_count ? 2 * words->slot_count : 64;
    int *slots = pc__calloc((size_t)wanted, sizeof *slots);
    if (!slots)
        return false;
    pc__free(words->slots);
    words->slots = slots;
    words->slot_count = wanted;
    for (int i = 0; i < words->count; i++)
        *slot_of(words, words->items[i]) = i + 1;
    return true;
}

int pc__words_add(pc__words *words, const char *text)
{
    if (!make_room(words))
        return -1;
    int *slot = slot_of(words, text);
    if (*slot)
        return *slot - 1;
    if (pc__grow((void **)&words->items, &words->capacity, words->count, sizeof *words->items) != PC_OK)
        return -1;
    char *copy = pc__strdup(text);
    if (!copy)
        return -1;
    words->items[words->count] = copy;
    *slot = words->count + 1;
    return words->count++;
}

void pc__words_free(pc__words *words)
{
    for (int i = 0; i < words->count; i++)
        pc__free(words->items[i]);
    pc__free(words->items);
    pc__free(words->slots);
    *words = (pc__words){0};
}

/* map.c: tables of words and of pairs. */
#include "text/map.h"

/* FNV-1a, then mixed. */
static uint32_t hash_of(const uint8_t *bytes, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ bytes[i]) * 0x100000001b3u;
    return (uint32_t)(h ^ h >> 32);
}

static uint32_t hash_of_pair(uint64_t pair)
{
    return (uint32_t)(pair * 0x9e3779b97f4a7c15u >> 32);
}

/* Places for twice as many keys as there are, or NULL. */
static int32_t *larger(uint32_t *mask)
{
    const uint32_t size = *mask ? (*mask + 1) * 2 : 64;
    int32_t *places = size ? pc__calloc(size, sizeof *places) : NULL;
    if (places)
        *mask = size - 1;
    return places;
}

static void settle(int32_t *places, uint32_t mask, uint32_t hash, int32_t number)
{
    uint32_t at = hash & mask;
    while (places[at])
        at = (at + 1) & mask;
    places[at] = number + 1;
}

static bool is_full(int count, uint32_t mask)
{
    return !mask || (uint32_t)count >= mask / 2;
}

int pc__words_map_get(const pc__words_map *map, const void *bytes, size_t n)
{
    const uint32_t hash = hash_of(bytes, n);
    for (uint32_t at = hash & map->mask; map->mask && map->places[at]; at = (at + 1) & map->mask) {
        const pc__slice *key = &map->keys[map->places[at] - 1];
        if (key->hash == hash && key->n == n && memcmp(key->bytes, bytes, n) == 0)
            return map->places[at] - 1;
    }
    return -1;
}

int pc__words_map_put(pc__words_map *map, const void *bytes, size_t n)
{
    const int known = pc__words_map_get(map, bytes, n);
    if (known >= 0)
        return known;
    if (pc__grow((void **)&map->keys, &map->room, map->count, sizeof *map->keys) != PC_OK)
        return -1;
    if (is_full(map->count, map->mask)) {
        int32_t *places = larger(&map->mask);
        if (!places)
            return -1;
        for (int i = 0; i < map->count; i++)
            settle(places, map->mask, map->keys[i].hash, i);
        pc__free(map->places);
        map->places = places;
    }
    map->keys[map->count] = (pc__slice){bytes, (uint32_t)n, hash_of(bytes, n)};
    settle(map->places, map->mask, map->keys[map->count].hash, map->count);
    return map->count++;
}

void pc__words_map_free(pc__words_map *map)
{
    pc__free(map->keys);
    pc__free(map->places);
    *map = (pc__words_map){0};
}

int pc__pairs_map_get(const pc__pairs_map *map, uint64_t pair)
{
    for (uint32_t at = hash_of_pair(pair) & map->mask; map->mask && map->places[at]; at = (at + 1) & map->mask)
        if (map->keys[map->places[at] - 1] == pair)
            return map->places[at] - 1;
    return -1;
}

int pc__pairs_map_put(pc__pairs_map *map, uint64_t pair)
{
    const int known = pc__pairs_map_get(map, pair);
    if (known >= 0)
        return known;
    if (pc__grow((void **)&map->keys, &map->room, map->count, sizeof *map->keys) != PC_OK)
        return -1;
    if (is_full(map->count, map->mask)) {
        int32_t *places = larger(&map->mask);
        if (!places)
            return -1;
        for (int i = 0; i < map->count; i++)
            settle(places, map->mask, hash_of_pair(map->keys[i]), i);
        pc__free(map->places);
        map->places = places;
    }
    map->keys[map->count] = pair;
    settle(map->places, map->mask, hash_of_pair(pair), map->count);
    return map->count++;
}

void pc__pairs_map_free(pc__pairs_map *map)
{
    pc__free(map->keys);
    pc__free(map->places);
    *map = (pc__pairs_map){0};
}

/* map.h: tables that give each key a number, in the order in which keys come: 0, 1, 2, ... Open addressing. */
#ifndef PC__TEXT_MAP_H
#define PC__TEXT_MAP_H

#include "base/base.h"

/* Keys are bytes, which are not copied. */
typedef struct pc__slice {
    const uint8_t *bytes;
    uint32_t n;
    uint32_t hash;
} pc__slice;

typedef struct pc__words_map {
    pc__slice *keys;
    int32_t *places; /* number + 1; 0: free */
    int count, room;
    uint32_t mask; /* of places; 0: none yet */
} pc__words_map;

/* The number of a key, which is put in where it is new; -1 where memory ran out. */
int pc__words_map_put(pc__words_map *map, const void *bytes, size_t n);

/* The number of a key; -1: it is not there. */
int pc__words_map_get(const pc__words_map *map, const void *bytes, size_t n);
void pc__words_map_free(pc__words_map *map);

/* Keys are pairs of numbers. */
typedef struct pc__pairs_map {
    uint64_t *keys;
    int32_t *places;
    int count, room;
    uint32_t mask;
} pc__pairs_map;

static inline uint64_t pc__pair(int32_t a, int32_t b)
{
    return (uint64_t)(uint32_t)a << 32 | (uint32_t)b;
}

int pc__pairs_map_put(pc__pairs_map *map, uint64_t pair);
int pc__pairs_map_get(const pc__pairs_map *map, uint64_t pair);
void pc__pairs_map_free(pc__pairs_map *map);

#endif

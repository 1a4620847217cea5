/* place.h: where the kernels of a SIMD level are. A processor uses those of one level, and each takes a megabyte or
 * more: the shared library has the narrowest inside, and the others are files beside it, of which a process opens one
 * (beside.c, file.c). In the static library, and where there are no such files, all are linked in (inside.c). */
#ifndef PC__CPU_PLACE_H
#define PC__CPU_PLACE_H

#include "base/parallel.h"
#include "cpu/level/level.h"
#include "device/plugin_file.h"
#include "ops/lessons.h"
#include "ops/table.h"

typedef struct pc__level {
    const char *build; /* pc__level_build; in every version the first, as the rest may differ where it does */
    const char *name;
    const pc__kernel *kernels;
    const pc__lesson_kernel *lessons;
    void (*parallel)(int threads, int64_t n, pc__part_fn part, void *context); /* whose functions it calls */
} pc__level;

#define PC__LEVEL_TABLES(level)                                                                                        \
    extern const pc__kernel pc__kernels_##level[PC__OP_COUNT];                                                         \
    extern const pc__lesson_kernel pc__lessons_##level[PC__LESSONS];
#define PC__LEVEL_OF(level) {.name = #level, .kernels = pc__kernels_##level, .lessons = pc__lessons_##level},

/* A hash of the sources that a level and the library have in common, made when they are built (cmake/build_hash.cmake):
 * a level lays hands on structures that no version number knows. */
extern const char pc__level_build[];

/* Level i of PC__EACH_LEVEL, whose name this is; NULL, with the reason and the way out in why, when it cannot be had.
 * The first always can. */
const pc__level *pc__level_find(int i, const char *name, char why[PC__PLUGIN_WHY]);

/* What a level's file shows: a pc__level of this name. */
#define PC__LEVEL_ENTRY "pc__cpu_level"

#endif

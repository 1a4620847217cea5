/* level.c: which SIMD level runs. */
#include "cpu/cpu.h"
#include "cpu/level/level.h"
#include "ops/lessons.h"
#include "ops/table.h"

#include <paracord/device.h>
#include <pthread.h>
#include <string.h>

#define DECLARE(level)                                                                                                 \
    extern const pc__kernel pc__kernels_##level[PC__OP_COUNT];                                                         \
    extern const pc__lesson_kernel pc__lessons_##level[PC__LESSONS];
PC__EACH_LEVEL(DECLARE)
#undef DECLARE

static const struct {
    const char *name;
    const pc__kernel *kernels;
    const pc__lesson_kernel *lessons;
} levels[] = {
#define ROW(level) {#level, pc__kernels_##level, pc__lessons_##level},
    PC__EACH_LEVEL(ROW)
#undef ROW
};

static int chosen;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool runs(const char *level)
{
#if defined(__x86_64__)
    if (strcmp(level, "v4") == 0)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512cd");
    if (strcmp(level, "v3") == 0)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
#endif
    return strcmp(level, "base") == 0;
}

/* The widest, or a narrower one that is asked for: of those that this machine has. */
static void choose(void)
{
    const char *names[PC__COUNT(levels)] = {levels[0].name};
    int place[PC__COUNT(levels)] = {0}, count = 1;
    for (int i = 1; i < PC__COUNT(levels); i++)
        if (runs(levels[i].name)) {
            names[count] = levels[i].name;
            place[count++] = i;
        }
    const int wanted = pc__env_word("PARACORD_SIMD", names, count);
    chosen = place[wanted < 0 ? count - 1 : wanted];
}

const pc__kernel *pc__cpu_kernels(void)
{
    pthread_once(&once, choose);
    return levels[chosen].kernels;
}

const pc__lesson_kernel *pc__cpu_lessons(void)
{
    pthread_once(&once, choose);
    return levels[chosen].lessons;
}

const char *pc_cpu_level(void)
{
    pthread_once(&once, choose);
    return levels[chosen].name;
}

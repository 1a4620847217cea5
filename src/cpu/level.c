/* level.c: which SIMD level runs. */
#include "cpu/cpu.h"
#include "cpu/place/place.h"

#include <errno.h>
#include <paracord/device.h>
#include <pthread.h>

#define NAME(level) #level,
static const char *const names[] = {PC__EACH_LEVEL(NAME)};
#undef NAME

static const pc__level *running;
static char reason[PC__PLUGIN_WHY]; /* why it is none of what is wider */
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

/* The widest, or a narrower one that is asked for: of those that this machine has. Which of them: a place in
 * PC__EACH_LEVEL. */
static int wanted(bool *asked)
{
    const char *there[PC__COUNT(names)] = {names[0]};
    int place[PC__COUNT(names)] = {0}, count = 1;
    for (int i = 1; i < PC__COUNT(names); i++)
        if (runs(names[i])) {
            there[count] = names[i];
            place[count++] = i;
        }
    const int said = pc__env_word("PARACORD_SIMD", there, count);
    *asked = said >= 0;
    return place[said < 0 ? count - 1 : said];
}

static int narrower(int i)
{
    do
        i--;
    while (i > 0 && !runs(names[i]));
    return i;
}

/* Where a level's file cannot be used, the next narrower one; and the reason of the widest is kept and told. */
static void choose(void)
{
    const int before = errno;
    char why[PC__PLUGIN_WHY] = "";
    bool asked;
    int i = wanted(&asked);
    while (!(running = pc__level_find(i, names[i], why))) {
        if (!reason[0])
            memcpy(reason, why, sizeof reason);
        i = narrower(i);
    }
    if (reason[0])
        pc__log(PC_LOG_WARNING, "the CPU computes at SIMD level %s: %s", running->name, reason);
    if (reason[0] && asked)
        pc__env_unmet("PARACORD_SIMD", reason);
    errno = before;
}

static const pc__level *chosen(void)
{
    pthread_once(&once, choose);
    return running;
}

const pc__kernel *pc__cpu_kernels(void)
{
    return chosen()->kernels;
}

const pc__lesson_kernel *pc__cpu_lessons(void)
{
    return chosen()->lessons;
}

const char *pc_cpu_level(void)
{
    return chosen()->name;
}

char *pc_cpu_level_why(char *why, size_t n)
{
    PC__NEED_OR(NULL, why);
    chosen();
    if (n)
        snprintf(why, n, "%s", reason);
    return why;
}

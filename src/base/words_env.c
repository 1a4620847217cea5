/* words_env.c: variables of the environment that choose one of some words. Who set one hears on standard error where
 * that comes to nothing. */
#include "base.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* Nobody else would hear of a misspelt one, and what it was to change would be as before. */
static void tell(const char *variable, const char *said, const char *const *words, int count)
{
    fprintf(stderr, "paracord: %s does not know \"%.60s\"; the valid words are ", variable, said);
    for (int i = 0; i < count; i++)
        fprintf(stderr, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " and ", words[i]);
    fputc('\n', stderr);
}

static uint64_t hash(uint64_t h, const char *text)
{
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    return h;
}

/* Once is enough, however many ask: the same words of the same variable. */
static bool is_told(const char *variable, const char *said)
{
    static _Atomic uint64_t told[16];
    const uint64_t these = hash(hash(0xcbf29ce484222325u, variable), said);
    for (int i = 0; i < PC__COUNT(told); i++) {
        uint64_t there = 0;
        if (atomic_compare_exchange_strong(&told[i], &there, these))
            return false;
        if (there == these)
            return true;
    }
    return false;
}

int pc__env_word(const char *variable, const char *const *words, int count)
{
    const char *said = getenv(variable);
    for (int i = 0; said && i < count; i++)
        if (strcmp(said, words[i]) == 0)
            return i;
    if (said && *said && !is_told(variable, said))
        tell(variable, said, words, count);
    return -1;
}

void pc__env_unmet(const char *variable, const char *why)
{
    const char *said = getenv(variable);
    fprintf(stderr, "paracord: %s=%.60s: %s\n", variable, said ? said : "", why);
}

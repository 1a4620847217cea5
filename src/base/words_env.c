/* words_env.c: variables of the environment that choose one of some words. Who set one hears on standard error where
 * that comes to nothing. */
#include "base.h"

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

int pc__env_word(const char *variable, const char *const *words, int count)
{
    const char *said = getenv(variable);
    for (int i = 0; said && i < count; i++)
        if (strcmp(said, words[i]) == 0)
            return i;
    if (said && *said)
        tell(variable, said, words, count);
    return -1;
}

void pc__env_unmet(const char *variable, const char *why)
{
    const char *said = getenv(variable);
    fprintf(stderr, "paracord: %s=%.60s: %s\n", variable, said ? said : "", why);
}

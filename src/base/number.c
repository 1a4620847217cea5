/* number.c: numbers apart from the program's locale. */
#include "base/number.h"

#include <pthread.h>
#include <stdlib.h>

static locale_t plain;

static void make_plain(void)
{
    plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
}

double pc__number_of(const char *text, char **end)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_plain);
    return plain ? strtod_l(text, end, plain) : strtod(text, end);
}

pc__plain_numbers pc__plain_numbers_begin(void)
{
    pc__plain_numbers scope = {.plain = newlocale(LC_ALL_MASK, "C", (locale_t)0)};
    scope.before = uselocale(scope.plain);
    return scope;
}

void pc__plain_numbers_end(pc__plain_numbers scope)
{
    uselocale(scope.before);
    if (scope.plain)
        freelocale(scope.plain);
}

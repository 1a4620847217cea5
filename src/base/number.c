/* number.c: numbers apart from the program's locale. */
#include "base/number.h"

#include <locale.h>
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

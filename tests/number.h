/* number.h: numbers of a test that the environment may set. */
#ifndef PC_TEST_NUMBER_H
#define PC_TEST_NUMBER_H

#include <stdint.h>
#include <stdlib.h>

static inline int64_t number(const char *variable, int64_t otherwise)
{
    const char *text = getenv(variable);
    return text ? strtoll(text, NULL, 10) : otherwise;
}

#endif

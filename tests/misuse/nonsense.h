/* nonsense.h: what is given where something is to be wrong, and the places for it, as the calls that `generate` makes have
 * them. */
#ifndef PC_TEST_NONSENSE_H
#define PC_TEST_NONSENSE_H

#include <paracord/tensor.h>

#include <float.h>
#include <limits.h>
#include <math.h>

enum { EVERY = -1, SANE = -2 }; /* places: every pointer; none */

static const int null[] = {0};
static const int ints[] = {-1, INT_MIN, INT_MAX, 0, 1 << 20};
static const int64_t longs[] = {-1, INT64_MIN, INT64_MAX, 0, 1LL << 40};
static const int64_t lengths[] = {-1, INT_MIN, 0};
static const size_t sizes[] = {SIZE_MAX, SIZE_MAX / 2, 0, 1};
static const uint32_t words[] = {UINT32_MAX, 0};
static const int16_t shorts[] = {-1, INT16_MIN, INT16_MAX};
static const double doubles[] = {NAN, -INFINITY, INFINITY, -1, DBL_MAX, 0};
static const int enums[] = {-1, 99, INT_MAX, INT_MIN};
static const pc_shape shapes[] = {{40, {0}},
                                  {-1, {0}},
                                  {INT_MIN, {0}},
                                  {INT_MAX, {0}},
                                  {2, {-5, 3}},
                                  {1, {INT64_MAX}},
                                  {8, {INT64_MAX, INT64_MAX, INT64_MAX}},
                                  {9, {1, 1, 1, 1, 1, 1, 1, 1}},
                                  {1, {0}}};
static const pc_device devices[] = {{-1, 0}, {99, 0}, {0, 99}, {PC_SIM, -1}, {INT16_MIN, INT16_MAX}};

struct place {
    const char *function, *argument;
    void (*call)(int place, int value);
    int at;
    const void *values;
    int refused; /* NULL is PC_ERR_ARGUMENT */
};

#endif

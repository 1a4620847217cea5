/* networks.h: what the tests of networks share: golden/nn.txt (made by golden/nn.py), and comparing tensors. */
#ifndef PC_TEST_NETWORKS_H
#define PC_TEST_NETWORKS_H

#include "device.h"

#include <math.h>
#include <paracord/autograd.h>
#include <paracord/random.h>
#include <stdio.h>
#include <stdlib.h>

static inline FILE *golden_open(void)
{
    FILE *file = fopen(PC_TEST_GOLDEN "/nn.txt", "r");
    if (!file)
        fail_msg("cannot open %s", PC_TEST_GOLDEN "/nn.txt");
    return file;
}

/* All elements as doubles; to be freed. */
static inline double *values_of(pc_tensor *t)
{
    int64_t n = pc_tensor_count(t);
    double *values = malloc((size_t)n * sizeof *values + 1);
    assert_non_null(values);
    PC_SCOPE {
        assert_ok(pc_read(pc_cast(t, PC_F64), values, (size_t)n * sizeof *values));
    }
    return values;
}

/* The largest |a - b| / (1 + |b|); NaN counts as infinitely far. */
static inline double distance(pc_tensor *a, pc_tensor *b)
{
    assert_not_null_ok(a);
    assert_not_null_ok(b);
    assert_int_equal(pc_tensor_count(a), pc_tensor_count(b));
    double *x = values_of(a), *y = values_of(b), most = 0;
    for (int64_t i = 0; i < pc_tensor_count(a); i++) {
        double d = fabs(x[i] - y[i]) / (1 + fabs(y[i]));
        most = d <= most ? most : isnan(d) ? INFINITY : d;
    }
    free(x);
    free(y);
    return most;
}

/* Everything that the test made is gone. */
static inline void assert_nothing_left(void)
{
    assert_false(pc_scope_active());
    assert_no_leak();
}

#endif

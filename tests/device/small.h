/* small.h: small calls, which a GPU does several of in a launch. */
#ifndef PC_TEST_SMALL_H
#define PC_TEST_SMALL_H

#include "device.h"

#include <paracord/ops.h>

enum {
    MOST = 2048,
    AT_ONCE = 32
}; /* elements of a small call, and such calls in a launch (src/cuda/pointwise/small.h) */

static inline pc_tensor *full(int n, double value)
{
    pc_tensor *t = pc_full(PC_SHAPE(n), value, PC_F32, test_device());
    assert_not_null_ok(t);
    return t;
}

static inline void assert_all(const pc_tensor *t, double want)
{
    static float got[3 * MOST];
    const int64_t n = pc_tensor_count(t);
    assert_ok(pc_read(t, got, (size_t)n * sizeof *got));
    for (int64_t i = 0; i < n; i++)
        if (got[i] != (float)want)
            fail_msg("element %d of %d is %g, not %g", (int)i, (int)n, (double)got[i], want);
}

#endif

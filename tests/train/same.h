/* same.h: two trainings that came to the same bits. */
#ifndef PC_TEST_SAME_H
#define PC_TEST_SAME_H

#include "device.h"

#include "nn/optimizer.h"

static inline void assert_same_bits(const pc_tensor *a, const pc_tensor *b)
{
    float x[4096], y[4096];
    size_t n = (size_t)pc_tensor_count(a) * sizeof *x;
    assert_true(n <= sizeof x);
    assert_ok(pc_read(a, x, n));
    assert_ok(pc_read(b, y, n));
    assert_memory_equal(x, y, n);
}

/* Weights, state and count. */
static inline void assert_same(const pc_optimizer *p, const pc_optimizer *q)
{
    assert_int_equal(p->count, q->count);
    for (int i = 0; i < p->count; i++)
        assert_same_bits(p->parameters[i], q->parameters[i]);
    for (int i = 0; i < p->count * p->slots; i++)
        assert_same_bits(p->state[i], q->state[i]);
    int64_t steps[2]; /* of the device, where it leaves some out */
    assert_ok(pc__optimizer_updates(p, &steps[0]));
    assert_ok(pc__optimizer_updates(q, &steps[1]));
    assert_int_equal(steps[0], steps[1]);
}

#endif

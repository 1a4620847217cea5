/* Copies between accelerators of different kinds, and of one kind: a test's device and a sim device, both ways. */
#include "device.h"

#include <paracord/autograd.h>
#include <paracord/ops.h>
#include <paracord/sim.h>

static pc_device far(void)
{
    return (pc_device){PC_SIM, 1};
}

/* What was queued for the source is in the copy, and what comes behind it is not. */
static void moved(pc_device from, pc_device to, bool non_blocking)
{
    int64_t got[6];
    PC_SCOPE {
        pc_tensor *t = pc_arange(0, 6, 1, PC_I64, from);
        assert_ok(pc_fill(pc_slice(t, 0, 0, 1, 1), 40));
        pc_tensor *there = pc_to(t, to, PC_I64, non_blocking);
        assert_not_null_ok(there);
        assert_true(pc_device_equal(pc_tensor_device(there), to));
        assert_ok(pc_fill(t, -1));
        assert_ok(pc_read(pc_add(there, there), got, sizeof got));
        assert_int_equal(got[0], 80);
        assert_int_equal(got[5], 10);

        pc_tensor *back = pc_to(pc_transpose(pc_reshape(there, PC_SHAPE(2, 3)), 0, 1), from, PC_F32, non_blocking);
        assert_not_null_ok(back);
        float numbers[6];
        assert_ok(pc_read(back, numbers, sizeof numbers));
        assert_close(numbers[1], 3, 0);
        assert_close(numbers[2], 1, 0);
    }
}

static void tensors_move_both_ways(void **state)
{
    (void)state;
    for (int non_blocking = 0; non_blocking < 2; non_blocking++) {
        moved(test_device(), far(), non_blocking);
        moved(far(), test_device(), non_blocking);
    }
}

static void copied(pc_device from, pc_device to)
{
    float got[6];
    PC_SCOPE {
        pc_tensor *x = pc_arange(0, 6, 1, PC_F32, to), *m = pc_zeros(PC_SHAPE(3, 2), PC_F32, to);
        assert_ok(pc_copy(x, pc_arange(9, 15, 1, PC_F32, from)));
        assert_ok(pc_read(x, got, sizeof got));
        assert_close(got[0], 9, 0);
        assert_close(got[5], 14, 0);
        assert_ok(pc_copy(pc_slice(x, 0, 2, 4, 1), pc_arange(0, 2, 1, PC_F32, from))); /* a part of it */
        assert_ok(pc_read(x, got, sizeof got));
        assert_close(got[1], 10, 0);
        assert_close(got[3], 1, 0);
        assert_close(got[4], 13, 0);
        assert_ok(pc_copy(m, pc_arange(1, 3, 1, PC_I64, from))); /* converted, and to every row */
        assert_ok(pc_read(m, got, sizeof got));
        assert_close(got[4], 1, 0);
        assert_close(got[5], 2, 0);
        assert_ok(pc_copy(pc_transpose(m, 0, 1), pc_reshape(pc_arange(0, 6, 1, PC_F32, from), PC_SHAPE(2, 3))));
        assert_ok(pc_read(m, got, sizeof got));
        assert_close(got[1], 3, 0);
        assert_close(got[2], 1, 0);
    }
}

static void copies_go_both_ways(void **state)
{
    (void)state;
    copied(test_device(), far());
    copied(far(), test_device());
}

enum { LONG = (9 << 20) / 4 + 3 }; /* several pieces, the last of them small */

static void long_copies_are_whole(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *t = pc_arange(0, LONG, 1, PC_I32, far()), *there = pc_to(t, test_device(), PC_I32, true);
        assert_ok(pc_fill(t, 7));
        assert_ok(pc_copy(t, there));
        int32_t *got = malloc(LONG * sizeof *got);
        assert_non_null(got);
        assert_ok(pc_read(t, got, LONG * sizeof *got));
        for (int i = 0; i < LONG; i++)
            if (got[i] != i)
                fail_msg("element %d is %d", i, got[i]);
        free(got);
    }
}

static void gradients_go_back(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *w = pc_full(PC_SHAPE(3), 2, PC_F32, test_device());
        assert_ok(pc_require_grad(w, true));
        pc_tensor *there = pc_to(w, far(), PC_F32, true);
        assert_ok(pc_backward(pc_sum(pc_mul(there, there))));
        float got[3];
        assert_ok(pc_read(pc_grad(w), got, sizeof got));
        assert_close(got[2], 4, 0);
        pc_zero_grad(w);
    }
}

/* They make the host wait, and are in no recording. */
static void waiting_is_told(void **state)
{
    (void)state;
    const bool across = test_device().type != PC_SIM && test_device().type != PC_CPU;
    if (!across)
        skip();
    PC_SCOPE {
        pc_tensor *t = pc_ones(PC_SHAPE(4), PC_F32, far()), *x = pc_ones(PC_SHAPE(4), PC_F32, test_device());
        pc_sync_policy before = pc_sync_policy_set(PC_SYNC_REFUSE);
        assert_fails(pc_copy(x, t), PC_ERR_STATE, "pc_copy makes the host wait for sim:1");
        assert_fails(pc_copy(t, x), PC_ERR_STATE, "wait for cuda:0");
        (void)pc_sync_policy_set(before);
        assert_ok(pc_graph_begin(pc_stream_current(test_device())));
        assert_fails(pc_copy(x, t), PC_ERR_STATE, "a copy between kinds of devices cannot be part of a recording");
        assert_fails(pc_graph_end(pc_stream_current(test_device())), PC_ERR_STATE, "pc_copy");
    }
}

static void faults_are_told(void **state)
{
    (void)state;
    if (test_device().type != PC_CUDA)
        skip();
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(4), PC_F32, test_device()), *t = pc_ones(PC_SHAPE(4), PC_F32, far());
        assert_ok(pc_device_synchronize(far()));
        assert_ok(pc_sim_inject(far(), PC_SIM_FAIL_KERNEL, 1));
        pc_tensor *bad = pc_add(t, t);
        assert_fails(pc_copy(x, bad), PC_ERR_BACKEND, "failed on sim:1: it was told to");
        assert_close(pc_item(pc_sum(x)), 4, 0);
    }
}

/* Sim devices live on in the host's memory, which is the CPU's. */
static int none_left(void **state)
{
    assert_false(pc_failed());
    return test_device().type == PC_CPU ? 0 : nothing_left(state);
}

int main(void)
{
    if (test_device().type != PC_SIM && pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 2)) != PC_OK)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(tensors_move_both_ways, none_left),
        cmocka_unit_test_teardown(copies_go_both_ways, none_left),
        cmocka_unit_test_teardown(long_copies_are_whole, none_left),
        cmocka_unit_test_teardown(gradients_go_back, none_left),
        cmocka_unit_test_teardown(waiting_is_told, none_left),
        cmocka_unit_test_teardown(faults_are_told, none_left),
    };
    return cmocka_run_group_tests_name("device.kinds", tests, NULL, NULL);
}

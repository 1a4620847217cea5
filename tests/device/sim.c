/* sim devices: results equal the CPU's, memory is out of the host's reach, errors come back naming their op. */
#include "support.h"

#include <paracord.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static pc_device sim(int i)
{
    return (pc_device){PC_SIM, (int16_t)i};
}

static int two_devices(void **state)
{
    (void)state;
    return pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 2, .memory = 64 << 20)) == PC_OK ? 0 : -1;
}

static void computes_as_the_cpu(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_arange(0, 1000, 1, PC_F32, sim(0)), *b = pc_full(PC_SHAPE(1000), 0.5, PC_F32, sim(0));
        pc_tensor *y = pc_exp(pc_mul(pc_div_scalar(a, 1000), b));
        pc_tensor *h = pc_arange(0, 1000, 1, PC_F32, PC_DEVICE_CPU);
        pc_tensor *want = pc_exp(pc_mul_scalar(pc_div_scalar(h, 1000), 0.5));
        float got[1000];
        assert_ok(pc_read(y, got, sizeof got));
        assert_memory_equal(got, pc_data(want), sizeof got);
        pc_tensor *there = pc_to(y, sim(1), PC_F32, true);
        assert_close(pc_item(pc_sum(there)), pc_item(pc_sum(want)), 0);
        assert_close(pc_item(pc_sum(pc_to(there, PC_DEVICE_CPU, PC_F32, true))), pc_item(pc_sum(want)), 0);
    }
    assert_false(pc_failed());
}

static void memory_is_out_of_reach(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_zeros(PC_SHAPE(4), PC_F32, sim(0));
        assert_fails(pc_data(a), PC_ERR_DEVICE, "pc_read");
        volatile float *stray = pc_device_pointer(a);
        pid_t child = fork();
        if (child == 0) {
            signal(SIGSEGV, SIG_DFL);
            *stray = 1;
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

static void late_errors_name_their_op(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_zeros(PC_SHAPE(4), PC_F32, sim(0)), *index = pc_full(PC_SHAPE(1), 9, PC_I64, sim(0));
        pc_tensor *bad = pc_index_select(a, 0, index);
        assert_fails(pc_item(pc_sum(bad)), PC_ERR_RANGE, "index_select, queued at");
        assert_close(pc_item(pc_sum(a)), 0, 0); /* the device goes on */
        assert_false(pc_failed());
    }
}

static void streams_share_data_in_order(void **state)
{
    (void)state;
    pc_stream *side = pc_stream_new(sim(0), .priority = 1);
    assert_non_null(side);
    assert_int_equal(pc_stream_priority(side), 1);
    PC_SCOPE {
        pc_tensor *a = pc_zeros(PC_SHAPE(1 << 18), PC_F32, sim(0));
        for (int i = 0; i < 50; i++)
            PC_SCOPE {
                PC_WITH_STREAM(side)
                {
                    assert_ok(pc_saxpy(a, 1, pc_ones(PC_SHAPE(1 << 18), PC_F32, sim(0))));
                }
                assert_ok(pc_saxpy(a, 1, pc_ones(PC_SHAPE(1 << 18), PC_F32, sim(0))));
            }
        assert_close(pc_item(pc_max(a)), 100, 0);
    }
    pc_stream_free(side);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(computes_as_the_cpu, two_devices),
        cmocka_unit_test_setup(memory_is_out_of_reach, two_devices),
        cmocka_unit_test_setup(late_errors_name_their_op, two_devices),
        cmocka_unit_test_setup(streams_share_data_in_order, two_devices),
    };
    return cmocka_run_group_tests_name("device.sim", tests, NULL, NULL);
}

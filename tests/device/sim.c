/* sim devices: results equal the CPU's, memory is out of the host's reach, errors come back naming their op. */
#include "comma.h"
#include "sim_support.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* A gradient finds its way back to the device of the leaf. */
static void gradients_cross_devices(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *w = pc_full(PC_SHAPE(3), 2, PC_F32, PC_DEVICE_CPU);
        assert_ok(pc_require_grad(w, true));
        pc_tensor *y = pc_to(pc_mul_scalar(pc_to(w, sim(0), PC_F32, true), 3), sim(1), PC_F64, true);
        assert_ok(pc_backward(pc_sum(pc_mul(y, y))));
        assert_true(pc_device_equal(pc_tensor_device(pc_grad(w)), PC_DEVICE_CPU));
        float got[3];
        assert_ok(pc_read(pc_grad(w), got, sizeof got));
        assert_close(got[0], 36, 0); /* d (3 w)^2 / dw = 18 w */
        pc_zero_grad(w);
    }
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
    pc_stream *side = pc_stream(sim(0), .priority = 1);
    assert_non_null(side);
    assert_int_equal(pc_stream_priority(side), 1);
    PC_SCOPE {
        pc_tensor *a = pc_zeros(PC_SHAPE(1 << 18), PC_F32, sim(0));
        for (int i = 0; i < 50; i++)
            PC_SCOPE {
                PC_WITH_STREAM(side) {
                    assert_ok(pc_saxpy(a, 1, pc_ones(PC_SHAPE(1 << 18), PC_F32, sim(0))));
                }
                assert_ok(pc_saxpy(a, 1, pc_ones(PC_SHAPE(1 << 18), PC_F32, sim(0))));
            }
        assert_close(pc_item(pc_max(a)), 100, 0);
    }
    pc_stream_free(side);
}

/* --- what devices are like --- */

#define CONFIGURE(...) pc_sim_configure(PC_OPTIONS(pc_sim_options, __VA_ARGS__))

static void options_and_their_errors(void **state)
{
    (void)state;
    assert_fails(CONFIGURE(.devices = -1), PC_ERR_ARGUMENT, "0 to 64");
    assert_fails(CONFIGURE(.devices = 65), PC_ERR_ARGUMENT, "65 sim devices");
    assert_fails(CONFIGURE(.devices = 1, .memory = -1), PC_ERR_ARGUMENT, "-1 bytes");
    assert_fails(CONFIGURE(.devices = 1, .memory = (int64_t)1 << 43), PC_ERR_ARGUMENT, "4 TiB");
    assert_fails(CONFIGURE(.devices = 1, .kernels = 17), PC_ERR_ARGUMENT, "1 to 16");
    assert_fails(CONFIGURE(.devices = 1, .bandwidth = -1), PC_ERR_ARGUMENT, "bandwidth");
    assert_fails(CONFIGURE(.devices = 1, .bandwidth = NAN), PC_ERR_ARGUMENT, "bandwidth");
    assert_fails(CONFIGURE(.devices = 1, .launch_latency = 11), PC_ERR_ARGUMENT, "0 to 10 seconds");
    assert_fails(CONFIGURE(.devices = 1, .kernel_time = -1e-9), PC_ERR_ARGUMENT, "0 to 10 seconds");
    assert_int_equal(pc_device_count(PC_SIM, NULL, 0), 2); /* nothing changed */
    pc_tensor *t = pc_ones(PC_SHAPE(10), PC_F32, sim(1));
    assert_fails(CONFIGURE(.devices = 1), PC_ERR_STATE, "tensors hold 64 bytes on sim:1; free them first");
    PC_SCOPE {
        assert_close(pc_item(pc_sum(t)), 10, 0);
    }
    pc_tensor_free(t);
}

static void the_number_of_devices_changes(void **state)
{
    (void)state;
    pc_memory_stats stats;
    char why[256];
    assert_ok(CONFIGURE(.devices = 1, .memory = 1 << 20));
    assert_int_equal(pc_device_count(PC_SIM, why, sizeof why), 1);
    assert_fails(pc_zeros(PC_SHAPE(1), PC_F32, sim(1)), PC_ERR_DEVICE, "sim:1");
    assert_ok(pc_memory_query(sim(0), &stats));
    assert_int_equal(stats.total, 1 << 20);
    assert_int_equal(stats.free, 1 << 20);
    assert_ok(CONFIGURE(.devices = 0));
    assert_int_equal(pc_device_count(PC_SIM, why, sizeof why), 0);
    assert_non_null(strstr(why, "asked for none"));
    assert_fails(pc_device_pick("sim:0").type == PC_SIM, PC_ERR_DEVICE, "sim:0");
    assert_ok(CONFIGURE(.devices = 3));
    PC_SCOPE {
        assert_close(pc_item(pc_ones(PC_SHAPE(1), PC_F32, pc_device_pick("sim:2"))), 1, 0);
    }
    assert_ok(pc_memory_query(sim(2), &stats));
    assert_int_equal(stats.total, 1 << 30);
}

static void faults_have_rules(void **state)
{
    (void)state;
    assert_fails(pc_sim_inject(PC_DEVICE_CPU, PC_SIM_LOSE, 1), PC_ERR_DEVICE, "for sim devices");
    assert_fails(pc_sim_inject(sim(2), PC_SIM_LOSE, 1), PC_ERR_DEVICE, "sim:2");
    assert_fails(pc_sim_inject(sim(0), (pc_sim_fault)9, 1), PC_ERR_ARGUMENT, "no fault 9");
    assert_fails(pc_sim_inject(sim(0), PC_SIM_LOSE, -1), PC_ERR_ARGUMENT, "operation -1");
    assert_int_equal(pc_sim_operations(PC_DEVICE_CPU), 0);
    int64_t before = pc_sim_operations(sim(0)), there = pc_sim_operations(sim(1));
    assert_ok(pc_sim_inject(sim(0), PC_SIM_FAIL_COPY, 1));
    PC_SCOPE {
        pc_tensor *t = pc_ones(PC_SHAPE(4), PC_F32, sim(0)); /* no copy */
        assert_ok(pc_stream_synchronize(usual(0)));
        assert_int_equal(pc_sim_operations(sim(0)), before + 1);
        assert_int_equal(pc_sim_operations(sim(1)), there);
        assert_ok(pc_sim_inject(sim(0), PC_SIM_NO_FAULT, 0));
        assert_close(pc_item(pc_max(t)), 1, 0);
        assert_ok(pc_sim_inject(sim(0), PC_SIM_FAIL_COPY, 1));
        assert_fails(pc_item(pc_max(t)), PC_ERR_BACKEND, "copy to host, queued at");
        assert_close(pc_item(pc_max(t)), 1, 0); /* once */
    }
}

/* What goes between devices arrives as something else, and nobody is told; copies to the host and kernels are fine. */
static void what_goes_between_is_spoilt(void **state)
{
    (void)state;
    int32_t got[4];
    PC_SCOPE {
        pc_tensor *t = pc_full(PC_SHAPE(4), 7, PC_I32, sim(0));
        assert_ok(pc_sim_inject(sim(0), PC_SIM_CORRUPT, 1));
        assert_ok(pc_sim_inject(sim(1), PC_SIM_CORRUPT, 1));
        assert_ok(pc_read(pc_neg(t), got, sizeof got));
        assert_int_equal(got[3], -7);
        assert_ok(pc_read(pc_to(t, sim(1), PC_I32, false), got, sizeof got));
        assert_int_equal(got[2], 7);
        assert_int_not_equal(got[3], 7);
        for (int i = 0; i < 2; i++)
            assert_ok(pc_sim_inject(sim(i), PC_SIM_NO_FAULT, 0));
        assert_ok(pc_read(pc_to(t, sim(1), PC_I32, false), got, sizeof got));
        assert_int_equal(got[3], 7);
    }
}

/* A copy that hangs holds up what waits for it, and goes on when somebody injects again, pc_sim_configure too. */
static void what_goes_between_hangs(void **state)
{
    (void)state;
    for (int way = 0; way < 2; way++) {
        assert_ok(pc_sim_inject(sim(0), PC_SIM_HANG, 1));
        assert_ok(pc_sim_inject(sim(1), PC_SIM_HANG, 1));
        PC_SCOPE {
            bool done[2];
            pc_tensor *there = pc_to(pc_ones(PC_SHAPE(4), PC_F32, sim(0)), sim(1), PC_F32, true);
            sleep_ms(30);
            assert_ok(pc_stream_query(usual(0), &done[0]));
            assert_ok(pc_stream_query(usual(1), &done[1]));
            assert_false(done[0] && done[1]);
            for (int i = 0; i < 2 && way == 0; i++)
                assert_ok(pc_sim_inject(sim(i), PC_SIM_NO_FAULT, 0));
            if (way == 0)
                assert_close(pc_item(pc_sum(there)), 4, 0);
        }
        assert_ok(pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 3)));
    }
}

/* --- in other processes --- */

static void in_a_child(void (*run)(void))
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        run();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("the child: %s %d", WIFSIGNALED(status) ? "signal" : "exit",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static pc_tensor *parents;

/* Exits with the line that is wrong. */
#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            _exit(__LINE__ % 200 + 1);                                                                                 \
    } while (0)

static void use_what_the_parent_has(void)
{
    float host[100];
    EXPECT(pc_read(parents, host, sizeof host) == PC_ERR_LOST);
    EXPECT(strstr(pc_error_last()->message, "do not go with a fork"));
    pc_error_clear();
    EXPECT(pc_device_synchronize(sim(0)) == PC_ERR_LOST); /* and does not wait for what nobody does here */
    pc_error_clear();
    EXPECT(pc_stream_synchronize(usual(0)) == PC_ERR_LOST);
    pc_error_clear();
    EXPECT(!pc_zeros(PC_SHAPE(3), PC_F32, sim(0)) && pc_error_last()->status == PC_ERR_LOST);
    pc_error_clear();
    EXPECT(pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 1)) == PC_ERR_LOST);
    pc_error_clear();
    pc_tensor_free(parents);
    PC_SCOPE {
        EXPECT(pc_item(pc_ones(PC_SHAPE(1), PC_F32, PC_DEVICE_CPU)) == 1); /* the cpu goes with it */
    }
}

static void devices_do_not_go_with_a_fork(void **state)
{
    (void)state;
    parents = pc_ones(PC_SHAPE(100), PC_F32, sim(0));
    hold_up(usual(0), 200);
    assert_ok(pc_saxpy(parents, 1, parents)); /* under way while it forks */
    in_a_child(use_what_the_parent_has);
    PC_SCOPE {
        assert_close(pc_item(pc_max(parents)), 2, 0);
    }
    pc_tensor_free(parents);
}

/* PARACORD_SIM as a new process reads it: text -> how many devices, and words of why there are none. */
static const struct {
    const char *text;
    int devices;
    const char *why;
} environments[] = {
    {"2", 2, ""},
    {"1,memory=64M", 1, ""},
    {"4,memory=64M,kernels=1,bandwidth=2G,latency=20us,time=1ms,fail=kernel:17", 4, ""},
    {"3,memory=1.5K,bandwidth=1e9,latency=0.1ms,time=100ns,fail=lost:1", 3, ""},
    {"1,fail=any:3", 1, ""},
    {"1,fail=memory:3", 1, ""},
    {"64,fail=copy:99", 64, ""},
    {"2,fail=hang:3@1", 2, ""},
    {"2,fail=hang:3@", 0, "is not understood"},
    {"2,fail=hang:3@64", 0, "is not understood"},
    {"", 0, "PARACORD_SIM is not set"},
    {"0", 0, "PARACORD_SIM=0 asks for none"},
    {"two", 0, "\"two\" is not understood; write 4, or"},
    {"2x", 0, "\"2x\" is not understood"},
    {"65", 0, "65 sim devices: it goes from 0 to 64"},
    {"-1", 0, "-1 sim devices"},
    {"4294967297", 0, "\"4294967297\" is not understood"},
    {",", 0, "\"\" is not understood"},
    {"2,", 0, "\"\" is not understood"},
    {"2,memory", 0, "\"memory\" is not understood"},
    {"2,memory=", 0, "\"memory=\" is not understood"},
    {"2,memory=64X", 0, "\"memory=64X\""},
    {"2,memory=-1", 0, "\"memory=-1\""},
    {"2,memory=inf", 0, "\"memory=inf\""},
    {"2,memory=nan", 0, "\"memory=nan\""},
    {"2,memory=8000G", 0, "it goes to 4 TiB"},
    {"2,kernels=0", 0, "\"kernels=0\""},
    {"2,kernels=2x", 0, "\"kernels=2x\""},
    {"2,kernels=17", 0, "1 to 16"},
    {"2,time=11s", 0, "0 to 10 seconds"},
    {"2,latency=5min", 0, "\"latency=5min\""},
    {"2,fail=kernel", 0, "\"fail=kernel\""},
    {"2,fail=kernel:0", 0, "\"fail=kernel:0\""},
    {"2,fail=kernel:1x", 0, "\"fail=kernel:1x\""},
    {"2,fail=kern:1", 0, "\"fail=kern:1\""},
    {"2,fail=:1", 0, "\"fail=:1\""},
    {"2,speed=3", 0, "\"speed=3\""},
};

/* This program again, with the number of the row: see main. */
static int look_at_environment(int i)
{
    char why[256], folder[] = "/tmp/paracord-sim-XXXXXX", place[64] = "";
    const bool comma = i == 3 && mkdtemp(folder) && comma_locale(folder, place, sizeof place); /* no matter */
    int devices = pc_device_count(PC_SIM, why, sizeof why);
    if (comma) {
        comma_locale_end(place);
        rmdir(folder);
    }
    bool fine = devices == environments[i].devices && strstr(devices ? "" : why, environments[i].why) != NULL;
    if (!fine)
        fprintf(stderr, "PARACORD_SIM=%s: %d devices, %s\n", environments[i].text, devices, why);
    pc_memory_stats stats;
    if (fine && i == 1)
        fine = pc_memory_query(sim(0), &stats) == PC_OK && stats.total == 64 << 20;
    if (fine && i == 3)
        PC_SCOPE {
            (void)pc_item(pc_ones(PC_SHAPE(1), PC_F32, sim(2)));
            fine = pc_error_last()->status == PC_ERR_LOST;
        }
    return fine ? 0 : 1;
}

static void paracord_sim(void **state)
{
    (void)state;
    for (int i = 0; i < (int)(sizeof environments / sizeof *environments); i++) {
        char row[16];
        snprintf(row, sizeof row, "%d", i);
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            setenv("PARACORD_SIM", environments[i].text, 1);
            execl("/proc/self/exe", "sim", row, (char *)NULL);
            _exit(100);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fail_msg("PARACORD_SIM=%s: status %x", environments[i].text, (unsigned)status);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return look_at_environment(atoi(argv[1]));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(computes_as_the_cpu, two_devices),
        cmocka_unit_test_setup(gradients_cross_devices, two_devices),
        cmocka_unit_test_setup(memory_is_out_of_reach, two_devices),
        cmocka_unit_test_setup(late_errors_name_their_op, two_devices),
        cmocka_unit_test_setup(streams_share_data_in_order, two_devices),
        cmocka_unit_test_setup(options_and_their_errors, two_devices),
        cmocka_unit_test_setup(the_number_of_devices_changes, two_devices),
        cmocka_unit_test_setup(faults_have_rules, two_devices),
        cmocka_unit_test_setup(what_goes_between_is_spoilt, two_devices),
        cmocka_unit_test_setup(what_goes_between_hangs, two_devices),
        cmocka_unit_test_setup(devices_do_not_go_with_a_fork, two_devices),
        cmocka_unit_test_setup(paracord_sim, two_devices),
    };
    return cmocka_run_group_tests_name("device.sim", tests, NULL, NULL);
}

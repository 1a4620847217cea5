/* PARACORD_NVTX=1: a tool that listens as NVIDIA's do hears of the program's ranges and, on a GPU, of what is queued.
 * The process finds the plug-in and the listener once, so each case is a child. */
#include "device.h"

#include <paracord/device.h>
#include <paracord/ops.h>
#include <paracord/trace.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define LISTENER PC_TEST_PLUGINS "/liblistener.so"

static void work(void)
{
    char why[512];
    PC_TRACE_RANGE("before anybody asked for CUDA") {
        (void)pc_device_count(PC_CUDA, why, sizeof why); /* opens the plug-in */
    }
    PC_TRACE_RANGE("epoch") {
        PC_TRACE_RANGE("step")
            PC_SCOPE {
                pc_tensor *x = pc_ones(PC_SHAPE(4), PC_F32, test_device());
                pc_tensor *y = pc_add(x, x);
                if (!y || pc_device_synchronize(test_device()) != PC_OK)
                    _exit(1);
            }
        pc_trace_range range = pc_trace_range_enter("closed twice");
        pc_trace_range_leave(&range);
        pc_trace_range_leave(&range);
    }
}

/* What the listener wrote, or "" where nobody called it. */
static void listen_to(const char *asked, char *heard, size_t n)
{
    char path[] = "/tmp/paracord-nvtx-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("NVTX_INJECTION64_PATH", LISTENER, 1);
        setenv("NVTX_LISTENER", path, 1);
        if (asked)
            setenv("PARACORD_NVTX", asked, 1);
        else
            unsetenv("PARACORD_NVTX");
        work();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    ssize_t got = pread(file, heard, n - 1, 0);
    heard[got > 0 ? got : 0] = 0;
    close(file);
    unlink(path);
}

/* Without a GPU the plug-in opens all the same: where this build has one. */
static bool can_listen(void)
{
    return access(LISTENER, R_OK) == 0;
}

static void ranges_are_heard(void **state)
{
    (void)state;
    char heard[16384];
    if (!can_listen())
        skip();
    listen_to("1", heard, sizeof heard);
    if (strncmp(test_device_name(), "cuda", 4) != 0) {
        assert_string_equal(heard, "Paracord push epoch\nParacord push step\nParacord pop\n"
                                   "Paracord push closed twice\nParacord pop\nParacord pop\n");
        return;
    }
    const char *step = strstr(heard, "Paracord push epoch\nParacord push step\n");
    const char *add = step ? strstr(step, "Paracord push add\nParacord pop\n") : NULL;
    if (!add)
        fail_msg("no add in a step in an epoch:\n%s", heard);
    int depth = 0;
    for (char *line = strtok(heard, "\n"); line; line = strtok(NULL, "\n")) {
        depth += strstr(line, " push ") ? 1 : -1;
        assert_true(depth >= 0);
    }
    assert_int_equal(depth, 0);
}

static void nobody_is_told_unless_asked(void **state)
{
    (void)state;
    char heard[1024];
    listen_to(NULL, heard, sizeof heard);
    assert_string_equal(heard, "");
    listen_to("0", heard, sizeof heard);
    assert_string_equal(heard, "");
}

/* Asked in a child: CUDA that was started before a fork does not work after it. */
static bool has_gpu(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(pc_device_available(PC_CUDA) ? 0 : 1);
    int status;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_heard),
        cmocka_unit_test(nobody_is_told_unless_asked),
    };
    if (strncmp(test_device_name(), "cuda", 4) == 0 && !has_gpu())
        return TEST_SKIPPED;
    return cmocka_run_group_tests_name("device.nvtx", tests, NULL, NULL);
}

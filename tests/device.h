/* device.h: the device that a test runs on: PARACORD_TEST_DEVICE, cpu unless set; and checks for devices that work
 * later. Results are read with pc_read and pc_item, which wait. */
#ifndef PC_TEST_DEVICE_H
#define PC_TEST_DEVICE_H

#include "support.h"

#include <paracord/memory.h>
#include <paracord/nn.h>
#include <paracord/stream.h>
#include <stdlib.h>

static inline const char *test_device_name(void)
{
    const char *name = getenv("PARACORD_TEST_DEVICE");
    return name ? name : "cpu";
}

/* Without a GPU what is to run on one is passed over: ctest shows it as skipped, and its output says why. */
#define TEST_SKIPPED 77

static inline pc_device test_device(void)
{
    pc_device device = pc_device_pick(test_device_name());
    if (device.type < 0 && strncmp(test_device_name(), "cuda", 4) == 0) {
        print_message("skipped: %s\n", pc_error_last()->message);
        exit(TEST_SKIPPED);
    }
    if (device.type < 0)
        fail_msg("PARACORD_TEST_DEVICE: %s", pc_error_last()->message);
    return device;
}

/* Tests about the CPU's own memory are passed over elsewhere. */
static inline void only_on_the_cpu(void)
{
    if (test_device().type != PC_CPU)
        skip();
}

/* tests/emulator: its memory is the host's, and what is launched is done at once. */
static inline bool emulated(void)
{
    const char *folder = getenv("PARACORD_PLUGIN_PATH");
    return test_device().type == PC_CUDA && folder && strstr(folder, "emulator");
}

/* Under the thread sanitizer, which takes ten times as long and looks at what threads do: where only numbers differ, some sizes
 * will do for all. */
static inline bool for_races(void)
{
#ifdef __SANITIZE_THREAD__
    return true;
#else
    return false;
#endif
}

/* Where lists of shapes times dtypes take too long: the emulated GPU, and the thread sanitizer, which looks at how
 * kernels share their work, whatever the numbers. */
static inline bool sampled(void)
{
    return for_races() || emulated();
}

/* The module, moved there. */
static inline pc_module *on_device(pc_module *module)
{
    assert_not_null_ok(module);
    assert_ok(pc_module_to(module, test_device(), PC_F32));
    return module;
}

/* Nothing is left behind: no memory of the test's device and, where this is the CPU, no allocation at all. */
static inline pc_memory_stats test_memory(void)
{
    pc_memory_stats stats;
    assert_ok(pc_memory_query(test_device(), &stats));
    return stats;
}

static inline void assert_no_leak(void)
{
    pc_device device = test_device();
    assert_ok(pc_device_synchronize(device));
    assert_ok(pc_memory_trim(device));
    assert_ok(pc_memory_trim(PC_DEVICE_CPU));
    const pc_memory_stats stats = test_memory();
    assert_int_equal(stats.in_use, 0);
    assert_int_equal(stats.cached, 0);
    if (device.type == PC_CPU)
        assert_int_equal(pc_allocator_live(), 0);
}

/* After a test: no error is left, and no memory. */
static inline int nothing_left(void **state)
{
    (void)state;
    assert_false(pc_failed());
    assert_no_leak();
    return 0;
}

/* As assert_fails, for what only the device finds out (an index out of range): where it works later, the error comes
 * with the next wait. */
#define assert_fails_on_device(expression, expected, words)                                                            \
    assert_fails((expression) && pc_stream_synchronize(pc_stream_current(test_device())), (expected), (words))

#endif

/* sim_support.h: sim devices for tests: made anew, held up, watched. */
#ifndef PC_TEST_SIM_SUPPORT_H
#define PC_TEST_SIM_SUPPORT_H

#include "support.h"

#include <paracord.h>
#include <stdatomic.h>
#include <time.h>

static inline pc_device sim(int i)
{
    return (pc_device){PC_SIM, (int16_t)i};
}

static inline double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static inline void sleep_ms(double ms)
{
    struct timespec t = {(time_t)(ms / 1e3), (long)((ms - 1e3 * (double)(long)(ms / 1e3)) * 1e6)};
    nanosleep(&t, NULL);
}

static inline void hold(void *ms)
{
    sleep_ms(*(const double *)ms);
}

/* The stream does nothing for that long, so that what does not wait for it goes wrong. */
static inline void hold_up(pc_stream *stream, double ms)
{
    static double kept[64];
    static int next;
    kept[next] = ms;
    assert_ok(pc_stream_call(stream, hold, &kept[next]));
    next = (next + 1) % 64;
}

/* The stream stops there until it is let go: however late the host is, what is queued behind has not begun. One at a
 * time. */
static atomic_bool gate_reached, gate_open;

static inline void wait_at_gate(void *unused)
{
    (void)unused;
    atomic_store(&gate_reached, true);
    while (!atomic_load(&gate_open))
        sleep_ms(0.2);
}

static inline void stop_stream(pc_stream *stream)
{
    atomic_store(&gate_reached, false);
    atomic_store(&gate_open, false);
    assert_ok(pc_stream_call(stream, wait_at_gate, NULL));
}

static inline void let_go(void)
{
    atomic_store(&gate_open, true);
}

static inline bool is_done(pc_stream *stream)
{
    bool done;
    assert_ok(pc_stream_query(stream, &done));
    return done;
}

static inline pc_stream *usual(int i)
{
    return pc_stream_current(sim(i));
}

/* `text` names a line of this test; where the library cannot read debug information, a place in it. */
static inline void assert_names(const char *text, const char *file, int line)
{
    char want[64];
#if PC_HAVE_DW
    snprintf(want, sizeof want, "%s:%d ", file, line);
#else
    (void)file, (void)line;
    snprintf(want, sizeof want, "+0x");
#endif
    if (!strstr(text, want))
        fail_msg("\"%s\" should name %s", text, want);
}

static inline void assert_empty(int i)
{
    pc_memory_stats stats;
    assert_ok(pc_memory_query(sim(i), &stats));
    assert_int_equal(stats.in_use, 0);
}

/* Setup of tests with two devices; and teardown of tests with the first `devices` of them: nothing is left there. */
static inline int two_sim_devices(void **state)
{
    (void)state;
    return pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 2, .memory = 64 << 20, .kernels = 1)) != PC_OK;
}

static inline int assert_all_empty(int devices)
{
    for (int i = 0; i < devices; i++) {
        assert_ok(pc_device_synchronize(sim(i)));
        assert_empty(i);
    }
    assert_false(pc_failed());
    return 0;
}

static inline int one_is_empty(void **state)
{
    (void)state;
    return assert_all_empty(1);
}

static inline int two_are_empty(void **state)
{
    (void)state;
    return assert_all_empty(2);
}

#endif

/* What goes wrong with waits, late errors, clocks and recordings, written as a user would write it: here the result is
 * right, or an error, a warning or a row of the timeline names the line. */
#include "sim_support.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define HERE "accidents_told.c"
enum { N = 1 << 17 };           /* floats: 512 KiB */
static const double rate = 8e6; /* bytes a second: 65 ms for them */

static int slow_copies(void **state)
{
    (void)state;
    return pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 1, .memory = 64 << 20, .bandwidth = rate)) != PC_OK;
}

static int slow_kernels(void **state)
{
    (void)state;
    return pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 1, .memory = 64 << 20, .kernel_time = 20e-3)) !=
           PC_OK;
}

/* --- the timeline --- */

static char trace_path[64];

static void trace_on(void)
{
    snprintf(trace_path, sizeof trace_path, "/tmp/paracord-accidents-%d.json", (int)getpid());
    assert_ok(pc_trace_start(trace_path));
}

/* The first row of the timeline that has both texts: "" where there is none. */
static void trace_off(const char *a, const char *b, char row[4096])
{
    assert_ok(pc_trace_stop());
    FILE *f = fopen(trace_path, "r");
    assert_non_null(f);
    bool found = false;
    while (!found && fgets(row, 4096, f))
        found = strstr(row, a) && strstr(row, b);
    if (!found)
        row[0] = 0;
    fclose(f);
    unlink(trace_path);
}

/* --- a copy from pageable memory --- */

/* The host is back while the stream has not even begun, and the timeline says what was done. 4 MiB take 500 ms. */
static void pageable_does_not_block(void **state)
{
    (void)state;
    const int64_t n = 8 * N;
    int line;
    double ms;
    char row[4096];
    float *mine = calloc((size_t)n, sizeof *mine);
    pc_event *start = pc_event_new(sim(0)), *end = pc_event_new(sim(0));
    PC_SCOPE {
        pc_tensor *batch = pc_from_memory(mine, PC_SHAPE(n), PC_F32, NULL, NULL);
        trace_on();
        stop_stream(usual(0));
        assert_ok(pc_event_record(start, NULL));
        pc_tensor *x = pc_to(batch, sim(0), PC_F32, true);
        line = __LINE__ - 1;
        assert_false(is_done(usual(0)));
        assert_ok(pc_event_record(end, NULL));
        let_go();
        assert_ok(pc_event_elapsed(start, end, &ms));
        trace_off("\"copy to device\"", "staged: the source is pageable", row);
        assert_names(row, HERE, line);
        assert_true(ms >= 500);
        assert_close(pc_item(pc_sum(x)), 0, 0);
    }
    pc_event_free(start);
    pc_event_free(end);
    free(mine);
}

static void other_copies_are_told_too(void **state)
{
    (void)state;
    char row[4096];
    int line;
    PC_SCOPE {
        pc_tensor *batch = pc_empty_pinned(PC_SHAPE(N), PC_F32, sim(0));
        assert_ok(pc_fill(batch, 1));
        trace_on();
        pc_tensor *x = pc_to(batch, sim(0), PC_F32, true);
        assert_ok(pc_stream_synchronize(usual(0)));
        trace_off("\"copy to device\"", "\"bytes\":524288", row);
        assert_string_not_equal(row, "");
        assert_null(strstr(row, "staged")); /* pinned: by itself */
        assert_non_null(pc_data(batch));
        trace_on();
        line = __LINE__ + 1;
        assert_ok(pc_copy(x, batch));
        assert_ok(pc_stream_synchronize(usual(0)));
        trace_off("\"copy to device\"", "staged: the program holds a pointer", row);
        assert_names(row, HERE, line);
        trace_on();
        line = __LINE__ + 1;
        pc_tensor *y = pc_to(x, PC_DEVICE_CPU, PC_F32, true);
        assert_ok(pc_stream_synchronize(usual(0)));
        trace_off("\"copy to host\"", "staged: the destination is pageable", row);
        assert_names(row, HERE, line);
        assert_close(pc_item(pc_sum(y)), N, 0);
    }
}

/* --- waits that nobody asked for --- */

static char warned[8][512];
static int warnings;

static void keep_warning(void *context, pc_log_level level, const char *text)
{
    (void)context;
    if (level == PC_LOG_WARNING && warnings < 8)
        snprintf(warned[warnings++], sizeof warned[0], "%s", text);
}

static void assert_warned(const char *call, int line)
{
    assert_int_equal(warnings, 1);
    if (strncmp(warned[0], call, strlen(call)) != 0 || !strstr(warned[0], "makes the host wait for sim:0"))
        fail_msg("\"%s\" should be about %s", warned[0], call);
    assert_names(warned[0], HERE, line);
    warnings = 0;
}

static void hidden_waits_are_warned_of(void **state)
{
    (void)state;
    static float got[N];
    int line;
    pc_log_set(keep_warning, NULL, PC_LOG_WARNING);
    assert_int_equal(pc_sync_policy_set(PC_SYNC_WARN), PC_SYNC_ALLOW);
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(N), PC_F32, sim(0)), *one = pc_sum(x), *y;
        double value = pc_item(one);
        assert_warned("pc_item", line = __LINE__ - 1);
        assert_close(value, N, 0);
        assert_ok(pc_read(x, got, sizeof got));
        assert_warned("pc_read", line = __LINE__ - 1);
        char *text = pc_tensor_text(one);
        line = __LINE__ - 1;
        assert_string_equal(text, "tensor(131072., device='sim:0')");
        assert_warned("pc_tensor_text", line);
        pc_text_free(text);
        y = pc_to(x, PC_DEVICE_CPU, PC_F32, false);
        assert_warned("pc_to", __LINE__ - 1);
        y = pc_to(x, PC_DEVICE_CPU, PC_F32, true);
        assert_int_equal(warnings, 0);
        const float *p = pc_data(y);
        assert_warned("pc_data", __LINE__ - 1);
        assert_close(p[N - 1], 1, 0);
        assert_ok(pc_copy(y, x)); /* the program holds a pointer to it */
        assert_warned("pc_copy", __LINE__ - 1);
        y = pc_to(x, PC_DEVICE_CPU, PC_F32, true);
        pc_tensor *sum = pc_sum(y);
        assert_warned("sum", __LINE__ - 1);
        assert_close(pc_item(sum), N, 0); /* on the cpu there is nothing to wait for */
        assert_ok(pc_stream_synchronize(usual(0)));
        assert_ok(pc_device_synchronize(sim(0)));
        assert_int_equal(warnings, 0); /* they say so */
    }
    assert_int_equal(pc_sync_policy_set(PC_SYNC_ALLOW), PC_SYNC_WARN);
    pc_log_set(NULL, NULL, PC_LOG_WARNING);
}

static void hidden_waits_are_refused(void **state)
{
    (void)state;
    static float got[N];
    int line = 0;
    assert_int_equal(pc_sync_policy_set(PC_SYNC_REFUSE), PC_SYNC_ALLOW);
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(N), PC_F32, sim(0)), *one = pc_sum(x);
        (void)pc_item(one);
        line = __LINE__ - 1;
        assert_int_equal(pc_error_last()->status, PC_ERR_STATE);
        assert_names(pc_error_last()->message, HERE, line);
        assert_fails(pc_item(one), PC_ERR_STATE, "pc_item makes the host wait for sim:0");
        assert_fails(pc_read(x, got, sizeof got), PC_ERR_STATE, "pc_read makes the host wait");
        assert_fails(pc_tensor_text(x), PC_ERR_STATE, "pc_tensor_text makes the host wait");
        assert_fails(pc_to(x, PC_DEVICE_CPU, PC_F32, false), PC_ERR_STATE, "pc_to makes the host wait");
        pc_tensor *y = pc_to(x, PC_DEVICE_CPU, PC_F32, true);
        assert_fails(pc_data(y), PC_ERR_STATE, "pc_data makes the host wait");
        assert_fails(pc_map(y, PC_MAP_READ), PC_ERR_STATE, "pc_map makes the host wait");
        assert_ok(pc_stream_synchronize(usual(0)));
        assert_fails(pc_item(one), PC_ERR_STATE, "pc_item"); /* always: not only when it is slow */
        assert_int_equal(pc_sync_policy_set(PC_SYNC_ALLOW), PC_SYNC_REFUSE);
        assert_close(pc_item(one), N, 0);
        assert_close(pc_item(pc_sum(y)), N, 0);
    }
}

static void waits_are_rows(void **state)
{
    (void)state;
    char row[4096];
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(N), PC_F32, sim(0));
        hold_up(usual(0), 400);
        pc_tensor *sum = pc_sum(x);
        trace_on();
        double value = pc_item(sum);
        int line = __LINE__ - 1;
        trace_off("\"wait\"", "pc_item", row);
        assert_names(row, HERE, line);
        assert_non_null(strstr(row, "sim:0"));
        const char *dur = strstr(row, "\"dur\":");
        assert_non_null(dur);
        assert_true(atof(dur + 6) >= 20e3); /* microseconds that the host stood still */
        assert_close(value, N, 0);
    }
}

/* --- errors that come later --- */

static void assert_blamed(const char *op, const char *cause, int line)
{
    const pc_error *e = pc_error_last();
    if (e->status != PC_ERR_RANGE || strncmp(e->message, op, strlen(op)) != 0 || !strstr(e->message, cause))
        fail_msg("%s: %s: should be about %s and \"%s\"", pc_status_name(e->status), e->message, op, cause);
    assert_names(e->message, HERE, line);
    pc_error_clear();
}

static void a_wrong_label_is_blamed_on_its_line(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_zeros(PC_SHAPE(4, 10), PC_F32, sim(0));
        assert_ok(pc_require_grad(x, true));
        pc_tensor *labels = pc_from_data((int64_t[]){3, 9, 12, 0}, PC_SHAPE(4), PC_I64, sim(0));
        stop_stream(usual(0));
        pc_tensor *loss = pc_cross_entropy(x, labels);
        int line = __LINE__ - 1;
        assert_not_null_ok(loss); /* nothing is known yet */
        assert_ok(pc_backward(loss));
        pc_tensor *later = pc_exp(pc_add_scalar(loss, 1));
        assert_not_null_ok(later);
        let_go();
        assert_true(pc_item(later) != pc_item(later)); /* and only here it comes out */
        assert_blamed("cross_entropy", "row 2 is 12", line);
        pc_zero_grad(x);
        labels = pc_from_data((int64_t[]){3, 9, 1, 0}, PC_SHAPE(4), PC_I64, sim(0));
        loss = pc_cross_entropy(x, labels);
        assert_ok(pc_backward(loss));
        assert_close(pc_item(loss), 2.302585093, 1e-6); /* the device goes on */
        assert_close(pc_item(pc_max(pc_grad(x))), 0.025, 1e-6);
    }
}

static void a_wrong_index_is_blamed_on_its_line(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_arange(0, 6, 1, PC_F32, sim(0)), *kept = pc_neg(x);
        pc_tensor *index = pc_from_data((int64_t[]){0, 5, 6}, PC_SHAPE(3), PC_I64, sim(0));
        stop_stream(usual(0));
        pc_tensor *picked = pc_index_select(x, 0, index);
        int line = __LINE__ - 1;
        pc_tensor *other = pc_stream_current(sim(0)) ? pc_mul_scalar(picked, 2) : NULL;
        assert_not_null_ok(other);
        let_go();
        assert_int_not_equal(pc_stream_synchronize(usual(0)), PC_OK);
        assert_blamed("index_select", "entry 2 of the index is 6", line);
        assert_close(pc_item(pc_sum(kept)), -15, 0);
    }
}

/* On another stream, and found by a third that waits for what the second made of it. */
static void a_failure_travels_with_the_data(void **state)
{
    (void)state;
    pc_stream *a = pc_stream(sim(0)), *b = pc_stream(sim(0));
    PC_SCOPE {
        pc_tensor *x = pc_zeros(PC_SHAPE(6), PC_F32, sim(0)), *index = pc_full(PC_SHAPE(1), -1, PC_I64, sim(0));
        pc_tensor *picked = NULL, *next = NULL;
        int line = 0;
        PC_WITH_STREAM(a) {
            stop_stream(a);
            picked = pc_index_select(x, 0, index);
            line = __LINE__ - 1;
        }
        PC_WITH_STREAM(b) {
            next = pc_add_scalar(picked, 1);
        }
        let_go();
        (void)pc_item(next);
        assert_blamed("index_select", "is -1", line);
        bool done;
        while (pc_device_synchronize(sim(0)) != PC_OK) /* the other two streams tell it, too */
            assert_blamed("index_select", "is -1", line);
        assert_ok(pc_stream_query(b, &done));
        assert_close(pc_item(pc_sum(x)), 0, 0);
    }
    pc_stream_free(a);
    pc_stream_free(b);
}

/* --- the clock --- */

static void timing_without_waiting(void **state)
{
    (void)state;
    pc_event *start = pc_event_new(sim(0)), *end = pc_event_new(sim(0));
    double ms = 0;
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(100), PC_F32, sim(0));
        assert_ok(pc_stream_synchronize(usual(0)));
        double before = now_ms();
        assert_ok(pc_event_record(start, NULL));
        stop_stream(usual(0));
        for (int i = 0; i < 10; i++)
            assert_ok(pc_saxpy(x, 1, x));
        assert_ok(pc_event_record(end, NULL));
        double queued = now_ms() - before; /* the accident: this is how long queuing takes */
        assert_false(is_done(usual(0)));
        let_go();
        assert_ok(pc_event_elapsed(start, end, &ms)); /* waits by itself */
        double waited = now_ms() - before;
        print_message("10 kernels of 20 ms: the host's clock says %.2f ms, the events %.2f ms\n", queued, ms);
        assert_true(ms >= 200 && ms <= waited);
        assert_close(pc_item(pc_max(x)), 1024, 0);
    }
    pc_event_free(start);
    pc_event_free(end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pageable_does_not_block, slow_copies, one_is_empty),
        cmocka_unit_test_setup_teardown(other_copies_are_told_too, slow_copies, one_is_empty),
        cmocka_unit_test_setup_teardown(hidden_waits_are_warned_of, slow_copies, one_is_empty),
        cmocka_unit_test_setup_teardown(hidden_waits_are_refused, slow_copies, one_is_empty),
        cmocka_unit_test_setup_teardown(waits_are_rows, slow_copies, one_is_empty),
        cmocka_unit_test_setup_teardown(a_wrong_label_is_blamed_on_its_line, slow_copies, one_is_empty),
        cmocka_unit_test_setup_teardown(a_wrong_index_is_blamed_on_its_line, slow_copies, one_is_empty),
        cmocka_unit_test_setup_teardown(a_failure_travels_with_the_data, slow_copies, one_is_empty),
        cmocka_unit_test_setup_teardown(timing_without_waiting, slow_kernels, one_is_empty),
    };
    return cmocka_run_group_tests_name("device.accidents_told", tests, NULL, NULL);
}

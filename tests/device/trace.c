/* The timeline's file: what the hooks are told comes out as rows, bars and arrows. */
#include "trace_file.h"

#include <paracord/stream.h>
#include <paracord/memory.h>
#include <paracord/ops.h>

static void rows_and_bars(void **state)
{
    (void)state;
    char line[1024];
    assert_ok(pc_trace_start(path));
    int64_t t = pc__now() + 1000000;
    do_work("conv2d", sim0, 7, 3, "compute", 0, t, t + 2500);
    do_work("conv2d", sim0, 7, 4, "compute", 1, t + 2500, t + 3000);
    do_work("copy to device", sim1, 8, 1, "copy in", 0, t, t + 1);
    pc__trace_work_done(&(pc__trace_work){.name = "plain", .device = PC_DEVICE_CPU, .stream = 1, .ticket = 9});
    assert_ok(pc_trace_stop());
    char *text = whole_trace();
    assert_ptr_equal(strstr(text, "[\n{\"name\":\"paracord\",\"ph\":\"M\",\"pid\":1,"), text);
    assert_line(text, "\"process_name\"", "\"pid\":1,", "\"host\"");
    assert_line(text, "\"process_name\"", "\"pid\":1010,", "\"sim:0\"");
    assert_line(text, "\"process_name\"", "\"pid\":1011,", "\"sim:1\"");
    assert_line(text, "\"process_name\"", "\"pid\":10,", "\"cpu\"");
    assert_line(text, "\"thread_name\"", "\"pid\":1010,\"tid\":7,", "\"stream 7\"");
    assert_line(text, "\"thread_name\"", "\"pid\":1010,", "\"engine compute\"");
    assert_line(text, "\"thread_name\"", "\"pid\":1010,", "\"engine compute 1\"");
    assert_line(text, "\"thread_name\"", "\"pid\":1011,", "\"engine copy in\"");
    assert_int_equal(lines_with(text, line, "\"thread_sort_index\"", "\"pid\":1010,", NULL), 3);
    assert_true(number_in(line, "sort_index") > 7);
    assert_int_equal(lines_with(text, line, "conv2d", "\"cat\":\"engine\"", "\"dur\":2.500", "\"stream\":7", NULL), 1);
    assert_int_equal(lines_with(text, line, "conv2d", "\"cat\":\"work\"", "\"tid\":7,", "\"ph\":\"X\"", "\"ticket\":3",
                                "\"bytes\":4096", "\"queued_us\":1.500", "\"note\":\"staged", "\"site\":\"", NULL),
                     1);
    assert_true(number_in(line, "ts") >= 1000 && number_in(line, "ts") < 1e8);
    assert_int_equal((int)number_in(line, "dur"), 2);
    assert_int_equal(lines_with(text, line, "\"plain\"", NULL), 1); /* unknown is left out, and it has no engine */
    assert_null(strstr(line, "bytes"));
    assert_null(strstr(line, "note"));
    assert_line(text, "paracord summary", "\"events\":7,", "\"dropped\":0");
    free(text);
}

static void host_rows(void **state)
{
    (void)state;
    assert_ok(pc_trace_start(path));
    int64_t before = pc__now() - 1000000000;
    pc__trace_host_done(&(pc__trace_host){.kind = "wait",
                                          .name = "pc_item",
                                          .note = "hidden in the call",
                                          .started = before,
                                          .ended = pc__now(),
                                          .device = sim1,
                                          .stream = 5,
                                          .site = 12});
    pc__trace_host_done(&(pc__trace_host){.kind = "loader", .name = "batch", .device = nowhere, .bytes = 77});
    int times = 0;
    PC_TRACE_RANGE("epoch") {
        PC_TRACE_RANGE("inner") {
            times++;
            break;
        }
        times++;
    }
    pc_trace_mark("graph captured");
    assert_int_equal(times, 2);
    assert_ok(pc_trace_stop());
    PC_TRACE_RANGE("nobody sees it")
        times++;
    pc_trace_mark("nobody sees it");
    assert_int_equal(times, 3);
    char *text = whole_trace();
    assert_line(text, "pc_item", "\"cat\":\"wait\"", "\"ts\":0.000", "\"device\":\"sim:1\"", "\"stream\":5",
                "hidden in");
    assert_line(text, "\"batch\"", "\"cat\":\"loader\"", "\"args\":{\"bytes\":77}");
    assert_line(text, "\"epoch\"", "\"cat\":\"range\"", "\"ph\":\"X\"");
    assert_line(text, "\"inner\"", "\"cat\":\"range\"");
    assert_line(text, "graph captured", "\"ph\":\"i\"", "\"s\":\"t\"");
    assert_line(text, "thread_name", "\"pid\":1,");
    assert_int_equal(lines_with(text, NULL, "nobody", NULL), 0);
    assert_line(text, "\"events\":5,");
    free(text);
}

/* The CPU does a recording's ops when it is launched, each a bar of that time, by the line that recorded it. */
static void launches_on_the_cpu(void **state)
{
    (void)state;
    char line[1024];
    PC_SCOPE {
        pc_stream *stream = pc_stream_current(PC_DEVICE_CPU);
        pc_tensor *x = pc_ones(PC_SHAPE(64), PC_F32, PC_DEVICE_CPU);
        assert_ok(pc_graph_begin(stream));
        assert_non_null(pc_cumsum(x, 0));
        pc_graph *graph = pc_graph_end(stream);
        assert_non_null(graph);
        assert_ok(pc_trace_start(path));
        for (int i = 0; i < 3; i++)
            assert_ok(pc_graph_launch(graph, NULL));
        assert_ok(pc_trace_stop());
        pc_graph_free(graph);
    }
    char *text = whole_trace();
    assert_int_equal(
        lines_with(text, line, "\"cumsum\"", "\"cat\":\"op\"", "\"ph\":\"X\"", "launches_on_the_cpu", NULL), 3);
    assert_true(number_in(line, "dur") > 0);
    free(text);
}

/* Both ends are known in any order, several works wait for one, and what never ends is given up. */
static void arrows(void **state)
{
    (void)state;
    char from[1024], to[1024];
    assert_ok(pc_trace_start(path));
    int64_t t = pc__now();
    pc__trace_wait(sim0, 2, 10, sim0, 1, 5);
    pc__trace_wait(sim1, 3, 11, sim0, 1, 5);
    do_work("waited for", sim0, 1, 5, "compute", 0, t, t + 100000);
    do_work("waits", sim0, 2, 10, "compute", 0, t + 200000, t + 300000);
    do_work("waits", sim1, 3, 11, "compute", 0, t + 400000, t + 500000);
    pc__trace_wait(sim0, 9, 12, sim1, 3, 11); /* told late: that work is done */
    do_work("waits", sim0, 9, 12, "compute", 0, t + 600000, t + 700000);
    do_work("both", sim0, 9, 13, "compute", 0, t + 800000, t + 900000);
    pc__trace_wait(sim0, 9, 13, sim0, 2, 10);
    for (int i = 0; i < 5000; i++)
        pc__trace_wait(sim0, 1, 1000, sim1, 1, (uint64_t)i);
    assert_ok(pc_trace_stop());
    char *text = whole_trace();
    assert_int_equal(lines_with(text, NULL, "\"ph\":\"s\"", "\"cat\":\"wait\"", NULL), 4);
    assert_int_equal(lines_with(text, NULL, "\"ph\":\"f\"", "\"bp\":\"e\"", NULL), 4);
    assert_int_equal(lines_with(text, from, "\"ph\":\"s\"", "\"id\":2}", "\"pid\":1010,\"tid\":1,", NULL), 1);
    assert_int_equal(lines_with(text, to, "\"ph\":\"f\"", "\"id\":2,", "\"pid\":1011,\"tid\":3,", NULL), 1);
    assert_close(number_in(to, "ts") - number_in(from, "ts"), 300, 0.01);
    assert_line(text, "\"ph\":\"f\"", "\"id\":3,", "\"tid\":9,");
    assert_line(text, "\"ph\":\"s\"", "\"id\":4}", "\"pid\":1010,\"tid\":2,");
    assert_line(text, "\"dropped\":904}");
    free(text);
}

static void any_text(void **state)
{
    (void)state;
    char big[5000], line[1024];
    assert_ok(pc_trace_start(path));
    pc_trace_mark("a \"quoted\" \\ line\nand \t\x01 bell \x7f");
    pc_trace_mark("no UTF-8: \xff\xc0\xaf");
    pc_trace_mark("Grüße, 日本");
    pc_trace_mark(NULL);
    memset(big, 1, sizeof big - 1);
    big[sizeof big - 1] = 0;
    pc_trace_mark(big);
    for (size_t i = 0; i < sizeof big - 1; i += 2)
        memcpy(big + i, "\xc3\xa4", 2);
    big[sizeof big - 2] = 0;
    pc_trace_mark(big + 1); /* cut within a character */
    assert_ok(pc_trace_stop());
    char *text = whole_trace();
    assert_line(text, "a \\\"quoted\\\" \\\\ line\\u000aand \\u0009\\u0001 bell \\u007f");
    assert_line(text, "no UTF-8: \\ufffd\\ufffd\\ufffd\"");
    assert_line(text, "Grüße, 日本");
    assert_int_equal(lines_with(text, line, "\xc3\xa4\"", NULL), 1);
    free(text);
}

static void states(void **state)
{
    (void)state;
    char bad[128];
    snprintf(bad, sizeof bad, "%s/none/x.json", folder);
    assert_fails(pc_trace_stop(), PC_ERR_STATE, "no trace is being written");
    assert_fails(pc_trace_start(NULL), PC_ERR_ARGUMENT, "no path");
    assert_fails(pc_trace_start(""), PC_ERR_ARGUMENT, "no path");
    assert_fails(pc_trace_start(bad), PC_ERR_FILE, "none/x.json");
    assert_fails(pc_trace_start(folder), PC_ERR_FILE, "cannot write");
    if (access("/dev/full", W_OK) == 0)
        assert_fails(pc_trace_start("/dev/full"), PC_ERR_FILE, "/dev/full");
    assert_false(pc__tracing());
    assert_ok(pc_trace_start(path));
    assert_fails(pc_trace_start(bad), PC_ERR_STATE, path);
    assert_true(pc__tracing());
    assert_ok(pc_trace_stop());
    assert_false(pc__tracing());
    free(whole_trace());
}

static void *no_alloc(void *context, size_t bytes, size_t alignment)
{
    (void)context, (void)bytes, (void)alignment;
    return NULL;
}

static void *no_resize(void *context, void *block, size_t bytes)
{
    (void)context, (void)block, (void)bytes;
    return NULL;
}

static void no_free(void *context, void *block)
{
    (void)context, (void)block;
}

/* A trace takes no memory, so that one that the environment asks for leaves pc_allocator_set alone, and keeps the
 * thread's error as it is. */
static void without_memory(void **state)
{
    (void)state;
    static const pc_allocator none = {no_alloc, no_resize, no_free, NULL};
    assert_ok(pc_allocator_set(&none));
    assert_ok(pc_trace_start(path));
    int64_t live = pc_allocator_live();
    pc_fail(PC_ERR_RANGE, "of the program");
    for (int i = 0; i < 1000; i++)
        do_work("a \"name\"", sim0, (uint32_t)i, 1, "compute", 0, pc__now(), pc__now());
    pc__trace_mark("\n", "\t", 300);
    assert_int_equal(pc_error_last()->status, PC_ERR_RANGE);
    assert_int_equal(pc_error_last()->suppressed, 0);
    assert_string_equal(pc_error_last()->message, "of the program");
    pc_error_clear();
    assert_ok(pc_trace_stop());
    assert_int_equal(pc_allocator_live(), live);
    assert_ok(pc_allocator_set(NULL));
    char *text = whole_trace();
    assert_line(text, "\"dropped\":0");
    assert_int_equal(lines_with(text, NULL, "a \\\"name\\\"", "\"cat\":\"work\"", NULL), 1000);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory), cmocka_unit_test(rows_and_bars),       cmocka_unit_test(host_rows),
        cmocka_unit_test(arrows),         cmocka_unit_test(launches_on_the_cpu), cmocka_unit_test(any_text),
        cmocka_unit_test(states),
    };
    return cmocka_run_group_tests_name("device.trace", tests, make_folder, remove_folder);
}

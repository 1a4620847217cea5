/* paracord trace: what a timeline is bound by, known from how it was made; files that are none; every allocation
 * failing. */
#include "root.h"
#include "trace.h"

#include <paracord/memory.h>

/* The summary of the file says this, on both ways out of the command too. */
static void assert_bound(const char *path, const char *verdict, const char *words)
{
    static job_end e;
    char wanted[128];
    run(&e, "trace", "summary", path);
    assert_went_well(&e);
    e.out[strcspn(e.out, "\n")] = ' '; /* one line, or two */
    if (strncmp(e.out, verdict, strlen(verdict)) != 0)
        fail_msg("want %s, got %s", verdict, e.out);
    run(&e, "trace", "summary", "--json", path);
    assert_went_well(&e);
    snprintf(wanted, sizeof wanted, "{\"verdict\": \"%s\"", verdict);
    if (!strstr(e.out, wanted) || !strstr(e.out, words))
        fail_msg("want %s and \"%s\" in %s", wanted, words, e.out);
}

static void launch_bound(void **state)
{
    (void)state;
    pc_timeline_summary s;
    test_path path = launching(root.s);
    assert_bound(path.s, "launch-bound",
                 "compute on sim:0 stood idle 84 % of the time while the host was queuing ops; median kernel 4.00 us, "
                 "median gap 21.0 us: use larger batches or a graph");
    pc_timeline *timeline = summarised(path.s, &s);
    assert_int_equal(s.events, 300);
    assert_close(s.wall, 2500, 1e-6);
    assert_close(s.causes.window, 2479, 1e-6);
    assert_close(s.causes.compute, 400 / 2479.0, 1e-9);
    assert_close(s.causes.launching, 2079 / 2479.0, 1e-9);
    assert_close(s.devices[0].median_queue_wait, 1.5, 1e-9);
    assert_int_equal(s.op_count, 1);
    assert_int_equal(s.ops[0].count, 100);
    assert_close(s.ops[0].total, 400, 1e-6);
    assert_close(s.queuing, 2300, 1e-6);
    forget(timeline, &s);
}

static void copy_bound(void **state)
{
    (void)state;
    pc_timeline_summary s;
    trace_file t = begin_trace(root.s, "copy.json");
    for (int i = 0; i < 10; i++) {
        work(&t, COPY_IN, "copy in", 100.0 * i, 80, 800000);
        work(&t, COMPUTE, "matmul", 100.0 * i + 80, 20, 0);
    }
    end_trace(&t);
    assert_bound(
        t.path.s, "copy-bound",
        "stood idle 80 % of the time while copies ran; 0.008 GB copied at 10 GB/s; computing went on during 0 % "
        "of the copying");
    pc_timeline *timeline = summarised(t.path.s, &s);
    assert_int_equal(s.note_count, 1);
    assert_int_equal(s.notes[0].count, 10);
    assert_int_equal(s.notes[0].bytes, 8000000);
    assert_string_equal(s.notes[0].note, "staged: the source is pageable");
    assert_close(s.ops[0].gigabytes_per_second, 10, 1e-9);
    forget(timeline, &s);
}

static void loader_bound(void **state)
{
    (void)state;
    trace_file t = begin_trace(root.s, "loader.json");
    for (int i = 0; i < 10; i++) {
        host(&t, "loader", "next batch", 100.0 * i, 70);
        host(&t, "op", "matmul", 100.0 * i + 70, 2);
        work(&t, COMPUTE, "matmul", 100.0 * i + 72, 28, 0);
    }
    end_trace(&t);
    assert_bound(t.path.s, "loader-bound", "stood idle 68 % of the time while the host waited for the loader");
    t = begin_trace(root.s, "loader-alone.json");
    host(&t, "loader", "next batch", 0, 60);
    host(&t, "op", "matmul", 60, 40);
    end_trace(&t);
    assert_bound(t.path.s, "loader-bound", "waited for the loader for 60 % of the time; no device worked");
}

static void synchronisation_bound(void **state)
{
    (void)state;
    pc_timeline_summary s;
    trace_file t = begin_trace(root.s, "sync.json");
    for (int i = 0; i < 10; i++) {
        host(&t, "op", "matmul", 100.0 * i, 5);
        host(&t, "wait", "pc_item", 100.0 * i + 6, 40);
        host(&t, "wait", "pc_stream_synchronize", 100.0 * i + 8, 30); /* inside: not counted again */
        work(&t, COMPUTE, "matmul", 100.0 * i + 5, 40, 0);
    }
    end_trace(&t);
    assert_bound(
        t.path.s, "synchronisation-bound",
        "stood idle 57 % of the time because the host waited for it and had queued nothing more; longest in all: "
        "pc_item at train.c:41 (step), 10 times, 400 us: wait less often");
    pc_timeline *timeline = summarised(t.path.s, &s);
    assert_int_equal(s.wait_count, 1);
    assert_close(s.waited, 400, 1e-6);
    assert_close(s.waited_share, 400 / 946.0, 1e-9);
    assert_close(s.causes.synchronising, 540 / 940.0, 1e-9);
    forget(timeline, &s);
}

static void compute_bound_and_host_bound(void **state)
{
    (void)state;
    trace_file t = begin_trace(root.s, "compute.json");
    host(&t, "op", "matmul", 0, 5);
    for (int i = 0; i < 100; i++)
        work(&t, COMPUTE, "matmul", 5 + 100.0 * i, i == 99 ? 100 : 97, 0);
    end_trace(&t);
    assert_bound(t.path.s, "compute-bound", "compute on sim:0 was busy 97 % of the time\"");
    t = begin_trace(root.s, "host.json");
    for (int i = 0; i < 10; i++) {
        host(&t, "op", "matmul", 1000.0 * i, 5);
        work(&t, COMPUTE, "matmul", 1000.0 * i + 5, 10, 0);
    }
    end_trace(&t);
    assert_bound(t.path.s, "host-bound", "the program's own code takes that time");
    t = begin_trace(root.s, "nothing.json");
    host(&t, "op", "matmul", 0, 40);
    end_trace(&t);
    assert_bound(t.path.s, "no-work", "no device worked; the host's ops took 40.0 us in all");
    job_end e;
    run(&e, "trace", "summary", t.path.s);
    assert_non_null(strstr(e.out, "The host did ops for 40.0 us"));
}

static void lanes_overlap_and_own_times(void **state)
{
    (void)state;
    pc_timeline_summary s;
    trace_file t = begin_trace(root.s, "lanes.json");
    work(&t, COMPUTE, "a", 0, 50, 0);
    work(&t, COMPUTE_1, "b", 25, 50, 0);
    work(&t, COPY_IN, "copy in", 50, 50, 100);
    host(&t, "op", "outer", 0, 10);
    host(&t, "wait", "pc_map", 2, 6);
    host(&t, "op", "inner", 8.5, 1);
    end_trace(&t);
    pc_timeline *timeline = summarised(t.path.s, &s);
    assert_int_equal(s.engine_count, 4);
    assert_string_equal(s.engines[0].engine, "compute");
    assert_int_equal(s.engines[0].lane, -1);
    assert_close(s.engines[0].busy, 75, 1e-9);
    assert_close(s.engines[0].share, 0.75, 1e-9);
    assert_int_equal(s.engines[2].lane, 1);
    assert_close(s.engines[2].busy, 50, 1e-9);
    assert_string_equal(s.engines[3].engine, "copy in");
    assert_close(s.devices[0].both, 25, 1e-9);
    assert_close(s.devices[0].copy_overlapped, 0.5, 1e-9);
    assert_close(s.devices[0].compute_overlapped, 1 / 3.0, 1e-9);
    assert_int_equal(s.queuing_count, 2);
    assert_string_equal(s.queuings[0].name, "outer");
    assert_close(s.queuings[0].total, 3, 1e-9); /* 10 without the wait and the op inside */
    forget(timeline, &s);
}

/* Another program's timeline: an object, texts for numbers, no engine rows, kinds of work by their names. */
static void pytorch(void **state)
{
    (void)state;
    pc_timeline_summary s;
    test_path path = trace_of(
        root.s, "torch.json",
        "{\"schemaVersion\": 1, \"deviceProperties\": [{\"name\": \"}]\\\"\"}], \"traceEvents\": [\n"
        "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 0, \"args\": {\"name\": \"python\"}},\n"
        "{\"ph\": \"M\", \"name\": \"process_labels\", \"pid\": 0, \"args\": {\"labels\": \"GPU 0\"}},\n"
        "{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": 0, \"tid\": 7, \"args\": {\"name\": \"stream 7 \"}},\n"
        "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"pid\": 99, \"tid\": 99, \"ts\": "
        "1700000000000000, "
        "\"dur\": 30},\n"
        "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaStreamSynchronize\", \"pid\": 99, \"tid\": 99, "
        "\"ts\": 1700000000000040, \"dur\": 60},\n"
        "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\", \"pid\": 0, \"tid\": 7, \"ts\": 1700000000000050, "
        "\"dur\": 10, \"args\": {\"stream\": 7}},\n"
        "{\"ph\": \"X\", \"cat\": \"gpu_memcpy\", \"name\": \"Memcpy HtoD (Pageable -> Device)\", \"pid\": 0, \"tid\": "
        "7, "
        "\"ts\": 1700000000000060, \"dur\": 20, \"args\": {\"bytes\": 40000}},\n"
        "{\"ph\": \"X\", \"cat\": \"Trace\", \"name\": \"x\", \"pid\": \"Spans\", \"tid\": \"PyTorch Profiler (0)\", "
        "\"ts\": 1700000000000000, \"dur\": 100}\n"
        "], \"traceName\": \"x\"}\n");
    pc_timeline *timeline = summarised(path.s, &s);
    assert_int_equal(s.events, 5);
    assert_false(s.cut);
    assert_int_equal(s.device_count, 1);
    assert_string_equal(s.devices[0].device, "GPU 0");
    assert_close(s.devices[0].compute, 10, 1e-9);
    assert_close(s.devices[0].copy, 20, 1e-9);
    assert_int_equal(s.verdict, PC_TIMELINE_COPY_BOUND);
    assert_int_equal(s.wait_count, 1);
    assert_close(s.waits[0].total, 60, 1e-9);
    forget(timeline, &s);
}

/* Wherever the program was killed, what is there is read. */
static void cut_off_files(void **state)
{
    (void)state;
    size_t n;
    pc_timeline_summary s;
    launching(root.s);
    char *whole = content(root.s, "launch.json", &n);
    int64_t before = 0;
    test_path path = joined(root.s, "cut.json");
    for (size_t end = 1; end < n; end += n / 97) {
        put_bytes(root.s, "cut.json", whole, end);
        pc_timeline *timeline = summarised(path.s, &s);
        assert_true(s.cut && s.events >= before);
        before = s.events;
        forget(timeline, &s);
    }
    assert_in_range(before, 290, 300);
    job_end e;
    run(&e, "trace", "summary", path.s);
    assert_went_well(&e);
    assert_non_null(strstr(e.out, "the file ends in the middle"));
    free(whole);
}

static void senseless_numbers(void **state)
{
    (void)state;
    pc_timeline_summary s;
    test_path path = trace_of(root.s, "huge.json",
                              "[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1e300,\"dur\":1,\"pid\":1,\"tid\":1},"
                              "{\"ph\":\"X\",\"name\":\"b\",\"ts\":1,\"dur\":1e999,\"pid\":1,\"tid\":1},"
                              "{\"ph\":\"X\",\"name\":\"c\",\"ts\":1,\"dur\":-4,\"pid\":1,\"tid\":1},"
                              "{\"ph\":\"X\",\"name\":\"d\",\"ts\":\"1\",\"dur\":4,\"pid\":1,\"tid\":1},"
                              "{\"ph\":\"X\",\"name\":\"e\",\"ts\":-7,\"dur\":1e14,\"pid\":1e300,\"tid\":-1,"
                              "\"args\":{\"bytes\":1e40,\"stream\":1e40,\"ticket\":-3,\"queued_us\":1e77}},"
                              "{\"ph\":\"X\"},{\"ph\":7},{}]");
    pc_timeline *timeline = summarised(path.s, &s);
    assert_int_equal(s.events, 1);
    assert_int_equal(s.skipped, 5);
    assert_close(s.wall, 1e14, 1);
    forget(timeline, &s);
    job_end e;
    run(&e, "trace", "view", path.s);
    assert_went_well(&e);
    assert_true(exists(root.s, "huge.html"));
}

static void what_is_no_timeline(void **state)
{
    (void)state;
    job_end e;
    static const char *const texts[][2] = {{"", "is empty"},
                                           {"  \n", "is empty"},
                                           {"hello", "not JSON"},
                                           {"\x89PNG\r\n", "not JSON"},
                                           {"{}", "no traceEvents"},
                                           {"{\"a\": [1, {\"b\": 2}]}", "no traceEvents"},
                                           {"{\"a\": [1, ", "no traceEvents"},
                                           {"[1, 2]", "no event"},
                                           {"[{\"ph\": nope}]", "not valid JSON"}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        test_path path = trace_of(root.s, "wrong.json", texts[i][0]);
        run(&e, "trace", "summary", path.s);
        assert_refused(&e, 1, "paracord trace summary: ", "wrong.json", texts[i][1]);
        run(&e, "trace", "view", path.s);
        assert_refused(&e, 1, "paracord trace view: ", "wrong.json", texts[i][1]);
        assert_false(exists(root.s, "wrong.html"));
    }
    test_path path = trace_of(root.s, "none.json", "[]");
    assert_bound(path.s, "empty", "no event with a begin and an end");
    run(&e, "trace", "summary", "/nonexistent/x.json");
    assert_refused(&e, 1, "/nonexistent/x.json", "No such file");
    run(&e, "trace", "summary", root.s);
    assert_refused(&e, 1, root.s, "holds no timelines of ranks");
    run(&e, "trace", "view", path.s, "-o", "/nonexistent/x.html");
    assert_refused(&e, 1, "/nonexistent/x.html");
    run(&e, "trace", "view", path.s, "-o", path.s);
    assert_refused(&e, 1, "the timeline itself");
    run(&e, "trace", "view", path.s, "-o", "/nonexistent/x.svg");
    assert_refused(&e, 1, "/nonexistent/x.svg");
    run(&e, "trace", "view", path.s, "--range", "epoch");
    assert_refused(&e, 1, "--range is for pictures");
    run(&e, "trace");
    assert_refused(&e, 2, "ACTION is missing: view, summary");
    run(&e, "trace", "vew");
    assert_refused(&e, 2, "must be view, summary or calls");
    run(&e, "trace", "view");
    assert_refused(&e, 2, "FILE is missing");
}

static int countdown;

static void *failing_alloc(void *context, size_t bytes, size_t alignment)
{
    (void)context;
    void *block = NULL;
    return countdown-- != 0 && posix_memalign(&block, alignment, bytes) == 0 ? block : NULL;
}

static void *failing_resize(void *context, void *block, size_t bytes)
{
    (void)context;
    return countdown-- != 0 ? realloc(block, bytes) : NULL;
}

static void failing_free(void *context, void *block)
{
    (void)context;
    free(block);
}

static bool whole_way(const char *path, const char *page, const char *picture)
{
    pc_timeline_summary summary;
    pc_timeline *timeline = pc_timeline_open(path);
    bool fine = timeline && pc_timeline_summarise(timeline, &summary) == PC_OK;
    if (fine)
        pc_timeline_summary_free(&summary);
    fine = fine && pc_timeline_picture(timeline, picture, "matmul") == PC_OK;
    fine = fine && pc_timeline_page(timeline, page) == PC_OK;
    pc_timeline_free(timeline);
    return fine;
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    const pc_allocator allocator = {failing_alloc, failing_resize, failing_free, NULL};
    test_path page = joined(root.s, "memory.html"), picture = joined(root.s, "memory.svg");
    trace_file t = begin_trace(root.s, "memory.json");
    host(&t, "op", "matmul", 0, 5);
    host(&t, "wait", "pc_item", 6, 5);
    work(&t, COMPUTE, "matmul", 5, 5, 0);
    work(&t, COPY_IN, "copy in", 12, 5, 4);
    fputs("{\"ph\":\"s\",\"id\":1,\"cat\":\"wait\",\"ts\":7,\"pid\":2,\"tid\":101},\n"
          "{\"ph\":\"f\",\"id\":1,\"cat\":\"wait\",\"ts\":12,\"pid\":2,\"tid\":103},\n",
          t.file);
    end_trace(&t);
    int64_t alive = pc_allocator_live();
    assert_int_equal(alive, 0);
    assert_ok(pc_allocator_set(&allocator));
    bool fine = false;
    int n = 0;
    for (; !fine && n < 5000; n++) {
        countdown = n;
        pc_error_clear();
        fine = whole_way(t.path.s, page.s, picture.s);
        if (!fine && pc_error_last()->status != PC_ERR_MEMORY)
            fail_msg("allocation %d failing: %s", n, pc_error_last()->message);
        if (pc_allocator_live() != 0)
            fail_msg("allocation %d failing leaks", n);
        assert_int_equal(access(page.s, F_OK) == 0, fine);
    }
    assert_in_range(n, 50, 4999);
    assert_ok(pc_allocator_set(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_fails_once),
        cmocka_unit_test(launch_bound),
        cmocka_unit_test(copy_bound),
        cmocka_unit_test(loader_bound),
        cmocka_unit_test(synchronisation_bound),
        cmocka_unit_test(compute_bound_and_host_bound),
        cmocka_unit_test(lanes_overlap_and_own_times),
        cmocka_unit_test(pytorch),
        cmocka_unit_test(cut_off_files),
        cmocka_unit_test(senseless_numbers),
        cmocka_unit_test(what_is_no_timeline),
    };
    return cmocka_run_group_tests_name("cli.trace", tests, make_root, drop_root);
}

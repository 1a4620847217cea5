/* The timeline's file: what the hooks are told comes out as rows, bars and arrows; it is whole whatever happens. */
#include "support.h"

#include "base/base.h"
#include "device/trace.h"

#include <fcntl.h>
#include <paracord/memory.h>
#include <paracord/trace.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#if PC_HAVE_CJSON
#include <cjson/cJSON.h>
#endif

static char folder[64] = "/tmp/paracord-trace-XXXXXX", path[96];
static const pc_device sim0 = {PC_SIM, 0}, sim1 = {PC_SIM, 1}, nowhere = {-1, 0};

static char *file_text(const char *name)
{
    FILE *f = fopen(name, "r");
    assert_non_null(f);
    struct stat s;
    assert_int_equal(fstat(fileno(f), &s), 0);
    char *text = malloc((size_t)s.st_size + 1);
    assert_non_null(text);
    text[fread(text, 1, (size_t)s.st_size, f)] = 0;
    fclose(f);
    return text;
}

static bool is_json(const char *text)
{
#if PC_HAVE_CJSON
    const char *end = NULL;
    cJSON *json = cJSON_ParseWithOpts(text, &end, true);
    bool fine = json != NULL;
    cJSON_Delete(json);
    return fine;
#else
    return text[0] == '[' || text[0] == '{';
#endif
}

enum { LINE = 8192 };

/* Copy the next line; false where no whole one is left. Byte by byte: the address sanitizer lets the functions of
 * string.h look at all of a text each time. */
static bool next_line(const char **text, char line[LINE])
{
    size_t n = 0;
    for (; (*text)[n] && (*text)[n] != '\n'; n++) {
        assert_true(n < LINE - 1);
        line[n] = (*text)[n];
    }
    line[n] = 0;
    bool whole = (*text)[n] == '\n';
    *text += n + whole;
    return whole;
}

/* How many whole lines a trace has that are events, all of them JSON and all but the last of a whole file with a comma
 * behind. */
static int events_in(const char *text, bool stopped)
{
    char line[LINE];
    int count = 0;
    bool last = false;
    assert_true(next_line(&text, line));
    assert_string_equal(line, "[");
    while (next_line(&text, line) && strcmp(line, "]") != 0) {
        size_t n = strlen(line);
        assert_false(last);
        last = line[n - 1] != ',';
        line[n - !last] = 0;
        assert_true(is_json(line));
        count++;
    }
    assert_int_equal(last, stopped);
    assert_true(!stopped || (line[0] == ']' && !text[0]));
    return count;
}

/* The text of a trace that was stopped. */
static char *whole_trace(void)
{
    char *text = file_text(path);
    assert_true(events_in(text, true) >= 3);
    return text;
}

/* How many lines hold all of the pieces (up to NULL); the last of them in `found`. */
static int lines_with(const char *text, char found[1024], ...)
{
    char line[LINE];
    int count = 0;
    while (next_line(&text, line)) {
        va_list pieces;
        va_start(pieces, found);
        const char *piece;
        while ((piece = va_arg(pieces, const char *)) && strstr(line, piece))
            ;
        va_end(pieces);
        if (piece)
            continue;
        count++;
        if (found)
            snprintf(found, 1024, "%.1023s", line);
    }
    return count;
}

#define assert_line(text, ...)                                                                                         \
    do {                                                                                                               \
        if (lines_with(text, NULL, __VA_ARGS__, NULL) != 1)                                                            \
            fail_msg("%d lines with %s in\n%.3000s", lines_with(text, NULL, __VA_ARGS__, NULL), #__VA_ARGS__, text);   \
    } while (0)

static double number_in(const char *line, const char *key)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = strstr(line, quoted);
    assert_non_null(at);
    return strtod(at + strlen(quoted), NULL);
}

static void do_work(const char *name, pc_device device, uint32_t stream, uint64_t ticket, const char *engine, int lane,
                    int64_t started, int64_t ended)
{
    pc__trace_work_done(&(pc__trace_work){.name = name,
                                          .device = device,
                                          .stream = stream,
                                          .ticket = ticket,
                                          .engine = engine,
                                          .lane = lane,
                                          .queued = started - 1500,
                                          .started = started,
                                          .ended = ended,
                                          .bytes = 4096,
                                          .site = 41,
                                          .note = "staged: the source is pageable"});
}

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
    PC_TRACE_RANGE("epoch")
    {
        PC_TRACE_RANGE("inner")
        {
            times++;
            break;
        }
        times++;
    }
    pc_trace_mark("graph captured");
    assert_int_equal(times, 2);
    assert_ok(pc_trace_stop());
    PC_TRACE_RANGE("nobody sees it") times++;
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

static int warnings;

static void count_warning(void *context, pc_log_level level, const char *line)
{
    (void)context;
    warnings += level == PC_LOG_WARNING && strstr(line, path);
}

/* The disk is full in the middle: the program goes on, hears of it once, and the lines before are there. */
static void disk_full(void **state)
{
    (void)state;
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 100000;
    signal(SIGXFSZ, SIG_IGN);
    pc_set_log(count_warning, NULL, PC_LOG_WARNING);
    assert_ok(pc_trace_start(path));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (int i = 0; i < 5000; i++)
        pc__trace_mark("one of many", NULL, 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_false(pc__tracing());
    assert_false(pc_failed());
    assert_int_equal(warnings, 1);
    assert_fails(pc_trace_stop(), PC_ERR_FILE, "is not complete");
    pc_set_log(NULL, NULL, PC_LOG_WARNING);
    assert_ok(pc_trace_start(path));
    assert_ok(pc_trace_stop());
    free(whole_trace());
}

enum { THREADS = 4, EVENTS = 1500 };

static atomic_bool keep_on;

static void *record(void *number)
{
    char name[16];
    snprintf(name, sizeof name, "worker %d", (int)(intptr_t)number);
    pthread_setname_np(pthread_self(), name);
    for (int i = 0; i < EVENTS || atomic_load(&keep_on); i++) {
        if (i >= EVENTS && i % 64 == 0)
            usleep(1000); /* files of a size that is soon read */
        int64_t now = pc__now();
        uint32_t stream = (uint32_t)(intptr_t)number;
        do_work("kernel", sim0, stream, (uint64_t)i, "compute", (int)stream, now, now + 10);
        pc__trace_wait(sim0, stream, (uint64_t)i + 1, sim0, (stream + 1) % THREADS, (uint64_t)i);
        PC_TRACE_RANGE("step") pc__trace_mark("here", "note", (pc__site)(i % 100));
    }
    return NULL;
}

static void start_threads(pthread_t thread[THREADS])
{
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, record, (void *)(intptr_t)i), 0);
}

static void join_threads(pthread_t thread[THREADS])
{
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
}

static void many_threads(void **state)
{
    (void)state;
    pthread_t thread[THREADS];
    assert_ok(pc_trace_start(path));
    start_threads(thread);
    join_threads(thread);
    assert_ok(pc_trace_stop());
    char *text = whole_trace(), line[1024];
    for (int i = 0; i < THREADS; i++) {
        char name[32];
        snprintf(name, sizeof name, "\"worker %d\"", i);
        assert_line(text, "thread_name", "\"pid\":1,", name);
    }
    assert_int_equal(lines_with(text, NULL, "\"cat\":\"work\"", NULL), THREADS * EVENTS);
    assert_int_equal(lines_with(text, NULL, "\"step\"", "\"range\"", NULL), THREADS * EVENTS);
    assert_int_equal(lines_with(text, NULL, "\"here\"", NULL), THREADS * EVENTS);
    int drawn = lines_with(text, NULL, "\"ph\":\"s\"", NULL);
    assert_int_equal(lines_with(text, NULL, "\"ph\":\"f\"", NULL), drawn);
    assert_int_equal(lines_with(text, line, "paracord summary", NULL), 1);
    assert_int_equal((int)number_in(line, "events"), THREADS * EVENTS * 4 + 2 * drawn);
    free(text);
}

static void stopped_while_others_record(void **state)
{
    (void)state;
    pthread_t thread[THREADS];
    atomic_store(&keep_on, true);
    start_threads(thread);
    for (int round = 0; round < 20; round++) {
        assert_ok(pc_trace_start(path));
        usleep(3000);
        assert_ok(pc_trace_stop());
        free(whole_trace());
    }
    atomic_store(&keep_on, false);
    join_threads(thread);
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

/* A trace takes no memory, so that one that the environment asks for leaves pc_set_allocator alone, and keeps the
 * thread's error as it is. */
static void without_memory(void **state)
{
    (void)state;
    static const pc_allocator none = {no_alloc, no_resize, no_free, NULL};
    assert_ok(pc_set_allocator(&none));
    assert_ok(pc_trace_start(path));
    int64_t live = pc_live_allocations();
    pc_fail(PC_ERR_RANGE, "of the program");
    for (int i = 0; i < 1000; i++)
        do_work("a \"name\"", sim0, (uint32_t)i, 1, "compute", 0, pc__now(), pc__now());
    pc__trace_mark("\n", "\t", 300);
    assert_int_equal(pc_error_last()->status, PC_ERR_RANGE);
    assert_int_equal(pc_error_last()->suppressed, 0);
    assert_string_equal(pc_error_last()->message, "of the program");
    pc_error_clear();
    assert_ok(pc_trace_stop());
    assert_int_equal(pc_live_allocations(), live);
    assert_ok(pc_set_allocator(NULL));
    char *text = whole_trace();
    assert_line(text, "\"dropped\":0");
    assert_int_equal(lines_with(text, NULL, "a \\\"name\\\"", "\"cat\":\"work\"", NULL), 1000);
    free(text);
}

static int exit_code(pid_t child)
{
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

static void killed(void **state)
{
    (void)state;
    unlink(path);
    pid_t child = fork();
    if (child == 0) {
        if (pc_trace_start(path) != PC_OK)
            _exit(1);
        for (;;)
            do_work("kernel", sim0, 1, 1, "compute", 0, pc__now(), pc__now());
    }
    struct stat s = {0};
    while (s.st_size < 300000 && waitpid(child, NULL, WNOHANG) == 0) {
        usleep(1000);
        (void)!stat(path, &s);
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(exit_code(child), 256 + SIGKILL);
    char *text = file_text(path);
    assert_true(events_in(text, false) > 1000);
    free(text);
}

/* Seldom events come out too, before a tenth of a second has passed often. */
static void written_in_time(void **state)
{
    (void)state;
    assert_ok(pc_trace_start(path));
    usleep(120000);
    pc_trace_mark("late");
    char *text = file_text(path);
    assert_line(text, "\"late\"");
    free(text);
    assert_ok(pc_trace_stop());
}

static void forked(void **state)
{
    (void)state;
    pthread_t thread[THREADS];
    char other[128];
    snprintf(other, sizeof other, "%s/child.json", folder);
    assert_ok(pc_trace_start(path));
    atomic_store(&keep_on, true);
    start_threads(thread); /* fork finds the lock taken now and then */
    for (int round = 0; round < 20; round++) {
        pid_t child = fork();
        if (child == 0) {
            pc_trace_mark("of the child");
            if (pc__tracing() || pc_trace_stop() != PC_ERR_STATE || pc_trace_start(path) == PC_OK)
                _exit(1);
            if (pc_trace_start(other) != PC_OK || pc_trace_stop() != PC_OK)
                _exit(2);
            _exit(0);
        }
        assert_int_equal(exit_code(child), 0);
    }
    atomic_store(&keep_on, false);
    join_threads(thread);
    assert_ok(pc_trace_stop());
    char *text = whole_trace();
    assert_int_equal(lines_with(text, NULL, "of the child", NULL), 0);
    assert_line(text, "paracord summary");
    free(text);
}

/* This program again, with PARACORD_TRACE and its standard error in a file. */
static int run_traced(const char *trace, const char *errors)
{
    pid_t child = fork();
    if (child == 0) {
        int fd = open(errors, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(fd, STDERR_FILENO);
        setenv("PARACORD_TRACE", trace, 1);
        execl("/proc/self/exe", "trace", "traced", NULL);
        _exit(127);
    }
    return exit_code(child);
}

static int be_traced(void)
{
    pthread_t thread[THREADS];
    atomic_store(&keep_on, true);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, record, (void *)(intptr_t)i);
    usleep(20000);
    pc_trace_mark("of the program");
    return pc_failed() ? 1 : 0; /* the threads go on while it ends */
}

static void environment(void **state)
{
    (void)state;
    char errors[128], bad[128];
    snprintf(errors, sizeof errors, "%s/errors", folder);
    snprintf(bad, sizeof bad, "%s/none/x.json", folder);
    assert_int_equal(run_traced(path, errors), 0);
    char *text = file_text(errors);
    assert_string_equal(text, "");
    free(text);
    text = whole_trace();
    assert_line(text, "of the program");
    assert_line(text, "paracord summary");
    free(text);
    assert_int_equal(run_traced(bad, errors), 0);
    text = file_text(errors);
    assert_int_equal(lines_with(text, NULL, "", NULL), 1);
    assert_line(text, "paracord: PARACORD_TRACE: cannot write", "none/x.json", "No such file");
    free(text);
    assert_int_equal(run_traced("", errors), 0);
    text = file_text(errors);
    assert_string_equal(text, "");
    free(text);
}

static int make_folder(void **state)
{
    (void)state;
    if (pc__tracing() && pc_trace_stop() != PC_OK) /* somebody traces the tests */
        return -1;
    snprintf(path, sizeof path, "%s/t.json", mkdtemp(folder) ? folder : "/nowhere");
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    const char *const names[] = {"t.json", "child.json", "errors"};
    for (int i = 0; i < PC__COUNT(names); i++) {
        char name[128];
        snprintf(name, sizeof name, "%s/%s", folder, names[i]);
        unlink(name);
    }
    return rmdir(folder);
}

int main(int count, char **words)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory),
        cmocka_unit_test(rows_and_bars),
        cmocka_unit_test(host_rows),
        cmocka_unit_test(arrows),
        cmocka_unit_test(any_text),
        cmocka_unit_test(states),
        cmocka_unit_test(disk_full),
        cmocka_unit_test(many_threads),
        cmocka_unit_test(stopped_while_others_record),
        cmocka_unit_test(killed),
        cmocka_unit_test(written_in_time),
        cmocka_unit_test(forked),
        cmocka_unit_test(environment),
    };
    if (count > 1 && strcmp(words[1], "traced") == 0)
        return be_traced();
    return cmocka_run_group_tests_name("device.trace", tests, make_folder, remove_folder);
}

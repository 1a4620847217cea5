/* The timeline's file is whole whatever happens: many threads, a full disk, a kill, fork, the end of the program. */
#include "trace_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

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
    pc_log_set(count_warning, NULL, PC_LOG_WARNING);
    assert_ok(pc_trace_start(path));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (int i = 0; i < 5000; i++)
        pc__trace_mark("one of many", NULL, 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_false(pc__tracing());
    assert_false(pc_failed());
    assert_int_equal(warnings, 1);
    assert_fails(pc_trace_stop(), PC_ERR_FILE, "is not complete");
    pc_log_set(NULL, NULL, PC_LOG_WARNING);
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
        PC_TRACE_RANGE("step")
            pc__trace_mark("here", "note", (pc__site)(i % 100));
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

int main(int count, char **words)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(disk_full),   cmocka_unit_test(many_threads),    cmocka_unit_test(stopped_while_others_record),
        cmocka_unit_test(killed),      cmocka_unit_test(written_in_time), cmocka_unit_test(forked),
        cmocka_unit_test(environment),
    };
    if (count > 1 && strcmp(words[1], "traced") == 0)
        return be_traced();
    return cmocka_run_group_tests_name("device.trace_whole", tests, make_folder, remove_folder);
}

/* job.h: the real command on small folders of pictures, for tests: started, waited for, killed, and what it left. */
#ifndef PC_TEST_JOB_H
#define PC_TEST_JOB_H

#include "../train/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <paracord-tools/draw.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

/* What a command is not to have; 0: no limit. */
typedef struct job_limits {
    rlim_t file_bytes, memory_bytes;
} job_limits;

/* How a command ended, and what it printed. */
typedef struct job_end {
    int status; /* exit status, or minus the signal */
    char out[32768], err[32768];
} job_end;

static inline const char *binary(void)
{
    const char *path = getenv("PARACORD_BIN");
    return path ? path : PC_TEST_COMMAND;
}

static inline void apply(const job_limits *limits)
{
    if (limits->file_bytes) {
        signal(SIGXFSZ, SIG_IGN); /* writing on is an error then, as on a full disk */
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){limits->file_bytes, limits->file_bytes});
    }
    if (limits->memory_bytes)
        setrlimit(RLIMIT_AS, &(struct rlimit){limits->memory_bytes, limits->memory_bytes});
}

/* Start it with arguments that NULL ends; it prints to these files, closed here. */
static inline pid_t start(const char *const *arguments, job_limits limits, int out, int err)
{
    const char *all[64] = {binary()};
    for (int i = 0; arguments[i]; i++)
        all[i + 1] = arguments[i];
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGINT, SIG_DFL);
        dup2(out, STDOUT_FILENO);
        dup2(err, STDERR_FILENO);
        apply(&limits);
        execv(all[0], (char *const *)all);
        _exit(127);
    }
    close(out);
    close(err);
    return child;
}

static inline pid_t start_quietly(const char *const *arguments)
{
    return start(arguments, (job_limits){0}, open("/dev/null", O_WRONLY), open("/dev/null", O_WRONLY));
}

/* Exit status, or minus the signal that ended it. */
static inline int wait_for(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static inline void read_back(int fd, char *text, size_t room)
{
    ssize_t n = pread(fd, text, room - 1, 0);
    text[n > 0 ? n : 0] = 0;
    close(fd);
}

static inline int nameless_file(void)
{
    char name[] = "/tmp/paracord-test-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    unlink(name);
    return fd;
}

static inline void run_limited(job_end *e, job_limits limits, const char *const *arguments)
{
    int out = nameless_file(), err = nameless_file();
    e->status = wait_for(start(arguments, limits, dup(out), dup(err)));
    read_back(out, e->out, sizeof e->out);
    read_back(err, e->err, sizeof e->err);
}

/* run(&e, "train", folder, "--epochs", "2") */
#define ARGUMENTS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define run(e, ...) run_limited((e), (job_limits){0}, ARGUMENTS(__VA_ARGS__))

static inline void assert_went_well(const job_end *e)
{
    if (e->status != 0)
        fail_msg("exit status %d; stderr: %s", e->status, e->err);
}

/* It failed with this status and one line on stderr that has all of the words. */
static inline void assert_said(const job_end *e, int status, const char *const *words)
{
    const char *end = strchr(e->err, '\n');
    if (e->status != status || !end || end[1] || strncmp(e->err, "paracord ", 9) != 0)
        fail_msg("want exit status %d and one line, got %d and \"%s\"", status, e->status, e->err);
    for (; *words; words++)
        if (!strstr(e->err, *words))
            fail_msg("no \"%s\" in \"%s\"", *words, e->err);
}
#define assert_refused(e, status, ...) assert_said((e), (status), ARGUMENTS(__VA_ARGS__))

static inline bool exists(const char *folder, const char *name)
{
    return access(joined(folder, name).s, F_OK) == 0;
}

static inline void assert_no_temporaries(const char *folder)
{
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (strstr(entry->d_name, ".tmp"))
            fail_msg("%s is left in %s", entry->d_name, folder);
    closedir(dir);
}

/* A whole file; the caller frees it. */
static inline char *content(const char *folder, const char *name, size_t *n)
{
    FILE *file = fopen(joined(folder, name).s, "rb");
    if (!file)
        fail_msg("there is no %s/%s", folder, name);
    size_t room = (size_t)64 << 20;
    char *bytes = malloc(room);
    assert_non_null(bytes);
    *n = fread(bytes, 1, room - 1, file);
    bytes[*n] = 0;
    fclose(file);
    return bytes;
}

static inline void assert_same_file(const char *a, const char *b, const char *name)
{
    size_t n, m;
    char *x = content(a, name, &n), *y = content(b, name, &m);
    if (n != m || memcmp(x, y, n) != 0)
        fail_msg("%s differs between %s (%zu bytes) and %s (%zu)", name, a, n, b, m);
    free(x);
    free(y);
}

/* Blank the figures that time decides. */
static inline void blank_timings(char *text)
{
    static const char *const keys[] = {"\"seconds\": ", "\"images_per_second\": "};
    for (int k = 0; k < 2; k++)
        for (char *at = text; (at = strstr(at, keys[k]));)
            for (at += strlen(keys[k]); *at && *at != ',' && *at != '}'; at++)
                memmove(at, at + 1, strlen(at)), at--;
}

/* What two runs have left is the same: the network bit for bit, the history but for its timings. */
static inline void assert_same_runs(const char *a, const char *b)
{
    size_t n, m;
    assert_same_file(a, b, "model.h5");
    char *x = content(a, "metrics.jsonl", &n), *y = content(b, "metrics.jsonl", &m);
    blank_timings(x);
    blank_timings(y);
    assert_string_equal(x, y);
    free(x);
    free(y);
    assert_true(exists(a, "report.html") && exists(b, "report.html"));
    assert_no_temporaries(a);
    assert_no_temporaries(b);
}

/* train/ and test/ with cats and dogs. */
static inline void draw_pictures(const char *folder, int train, int test)
{
    assert_ok(
        pc_draw_picture_set(folder, PC_OPTIONS(pc_draw_options, .train = train, .test = test, .size = 32, .seed = 3)));
}

static inline double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline void sleep_for(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}

/* Open MPI leaves memory behind in modules that it has closed, which no suppression can name: whether children are looked at for
 * leaks, as they are at first. */
static inline void leaks_of_children(bool looked_for)
{
    static char usual[512];
    const char *now = getenv("LSAN_OPTIONS");
    if (!looked_for)
        snprintf(usual, sizeof usual, "%s", now ? now : "");
    setenv("LSAN_OPTIONS", looked_for ? usual : "detect_leaks=0", 1);
}

#endif

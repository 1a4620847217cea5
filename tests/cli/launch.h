/* launch.h: this test's own program as the ranks of a job: "$R MODE" in lines of the shell. */
#ifndef PC_TEST_LAUNCH_H
#define PC_TEST_LAUNCH_H

#include "shell.h"

#include "store/store.h"

#include <paracord/dist.h>
#include <paracord/group.h>
#include <signal.h>

static char output[OUTPUT_MAX];

static inline int number_of(const char *name)
{
    const char *text = getenv(name);
    return text ? atoi(text) : -1;
}

/* Until the job is stopped. */
static inline int wait_for_the_end(void)
{
    for (int i = 0; i < 6000; i++)
        usleep(10000);
    return 90;
}

static volatile sig_atomic_t caught;

static inline void note(int number)
{
    caught = number;
}

/* Around a group of tests: a folder of their own to be in. */
static inline int enter_folder(void **state)
{
    static char folder[] = "/tmp/paracord-launch-XXXXXX";
    *state = folder;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static inline int leave_folder(void **state)
{
    return chdir("/") == 0 ? rmdir(*state) : -1;
}

static inline int rank_of_mode(const char *mode)
{
    const int rank = number_of("RANK"), start = number_of("TORCHELASTIC_RESTART_COUNT");
    if (pc_dist_init((pc_dist_options){0}) != PC_OK)
        return 91 + 0 * pc_report(stderr);
    const int multiple = number_of("MULTIPLE");
    if (multiple > 0 && pc_dist_need_multiple(multiple) != PC_OK)
        return 94 + 0 * pc_report(stderr);
    if (pc__store_barrier("all", 20) != PC_OK)
        return 92 + 0 * pc_report(stderr);
    printf("rank %d of %d start %d\n", rank, pc_dist_size(), start);
    fflush(stdout);
    if (multiple > 0 && pc_dist_size() % multiple) {
        (void)pc_fail(PC_ERR_ARGUMENT, "these are %d ranks", pc_dist_size());
        return pc_report(stderr);
    }
    if (!strcmp(mode, "fine"))
        return pc_dist_end() == PC_OK ? 0 : 93;
    if ((!strcmp(mode, "once") && start > 0) || pc_dist_size() <= number_of("FINE_FOR"))
        return pc_dist_end() == PC_OK ? 0 : 93;
    if (!strcmp(mode, "loud")) { /* more than a pipe holds, to a reader that pauses for a second */
        for (int i = 0; rank == 0 && i < 5000; i++)
            printf("%099d\n", i);
        for (int i = 0; i < 100; i++)
            usleep(10000);
        if (pc__store_barrier("still there", 20) != PC_OK)
            return 92 + 0 * pc_report(stderr);
        return pc_dist_end() == PC_OK ? 0 : 93;
    }
    if (!strcmp(mode, "group")) {
        pc_group *world = pc_group_world();
        const bool works = world && pc_group_stream(world, PC_DEVICE_CPU);
        if (!works)
            (void)pc_report(stderr);
        pc_group_free(world);
        return pc_dist_end() != PC_OK ? 93 : works ? 0 : 4;
    }
    if (!strcmp(mode, "catch")) {
        signal(SIGINT, note);
        signal(SIGTERM, note);
        printf("ready\n");
        fflush(stdout);
        while (!caught)
            usleep(1000);
        printf("rank %d caught %d\n", rank, (int)caught);
        return pc_dist_end() == PC_OK ? 0 : 93;
    }
    if (!strcmp(mode, "host") && rank == pc_dist_size() - 1)
        kill(getppid(), SIGKILL);
    if (!strcmp(mode, "host") || !strcmp(mode, "wait") || rank != 1)
        return wait_for_the_end();
    if (!strcmp(mode, "kill") || !strcmp(mode, "once"))
        kill(getpid(), SIGKILL);
    if (!strcmp(mode, "stop"))
        kill(getpid(), SIGSTOP);
    if (!strcmp(mode, "beat")) {
        pc__beat_set(&(pc__beat){.entered = 17, .finished = 16, .bytes = 4096, .name = "all_reduce"});
        exit(4);
    }
    if (!strcmp(mode, "device")) {
        (void)pc_fail(PC_ERR_LOST, "cuda:1 is lost");
        return pc_report(stderr);
    }
    if (!strcmp(mode, "disk")) {
        (void)pc_fail(PC_ERR_FILE, "cannot write here: No space left on device");
        return pc_report(stderr);
    }
    if (!strcmp(mode, "error")) {
        (void)pc_fail(PC_ERR_SHAPE, "the shapes of rank 1 do not fit");
        return pc_report(stderr);
    }
    return 3;
}

/* In main: whether this process is a rank. */
static inline bool is_rank(int argc, char **argv, int *status)
{
    char path[4096] = "";
    if (argc == 2 && getenv("RANK")) {
        *status = rank_of_mode(argv[1]);
        return true;
    }
    (void)!readlink("/proc/self/exe", path, sizeof path - 1);
    setenv("R", path, 1);
    return false;
}

static inline void assert_has(const char *words)
{
    if (!strstr(output, words))
        fail_msg("no \"%s\" in:\n%s", words, output);
}

static inline void assert_lacks(const char *words)
{
    if (strstr(output, words))
        fail_msg("\"%s\" in:\n%s", words, output);
}

/* The line's exit status, at most so many seconds later. */
static inline void assert_status(const char *line, int status)
{
    const int got = shell(output, line);
    if (got != status)
        fail_msg("%s: exit status %d, not %d:\n%s", line, got, status, output);
}

#endif

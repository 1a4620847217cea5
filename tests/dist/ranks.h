/* ranks.h: a job whose ranks are forks of the test. */
#ifndef PC_TEST_RANKS_H
#define PC_TEST_RANKS_H

#include "port.h"
#include "support.h"

#include "store/connect.h"
#include "store/store.h"

#include <paracord/dist.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS_MOST 64

static inline void set_number(const char *name, int number)
{
    char text[32];
    snprintf(text, sizeof text, "%d", number);
    setenv(name, text, 1);
}

/* The variables of a job on this host, whose rank 0 serves the store. */
static inline void set_job(int size, int port)
{
    set_number("WORLD_SIZE", size);
    set_number("LOCAL_WORLD_SIZE", size);
    set_number("MASTER_PORT", port);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("PARACORD_TOKEN", "a token of this test", 1);
}

static inline void set_rank(int rank)
{
    set_number("RANK", rank);
    set_number("LOCAL_RANK", rank);
}

/* In a rank: end with what went wrong where something does. */
#define RANK_CHECK(condition)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "rank %d: %s:%d: %s (%s)\n", pc_dist_rank(), __FILE__, __LINE__, #condition,               \
                    pc_error_last()->message);                                                                         \
            _exit(99);                                                                                                 \
        }                                                                                                              \
    } while (0)
#define RANK_OK(call) RANK_CHECK((call) == PC_OK)
#define RANK_FAILS(call, expected, words)                                                                              \
    do {                                                                                                               \
        pc_error_clear();                                                                                              \
        RANK_CHECK((call) == (expected));                                                                              \
        RANK_CHECK(strstr(pc_error_last()->message, words));                                                           \
        pc_error_clear();                                                                                              \
    } while (0)

static inline pid_t start_rank(int rank, int (*body)(int rank))
{
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        set_rank(rank);
        _exit(body(rank));
    }
    return child;
}

/* 0..255, or 1000 + the signal. */
static inline int end_of(pid_t child)
{
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* All ranks end with 0. */
static inline void run_ranks(int size, int (*body)(int rank))
{
    pid_t children[RANKS_MOST];
    set_job(size, free_port());
    for (int rank = 0; rank < size; rank++)
        children[rank] = start_rank(rank, body);
    int wrong = 0;
    for (int rank = 0; rank < size; rank++)
        wrong += end_of(children[rank]) != 0;
    assert_int_equal(wrong, 0);
}

static inline pc_status join_world(double seconds)
{
    return pc_dist_init((pc_dist_options){.timeout_seconds = seconds});
}

#endif

/* threads.h: ranks that are threads, each on a device of its own: cpu, sim:0, sim:1, ..., or the GPUs that there are. Where
 * PARACORD_TEST_RANKS is "processes" the test itself is one of several ranks that a launcher has started, and all of them
 * go through the same cases together. */
#ifndef PC_TEST_THREADS_H
#define PC_TEST_THREADS_H

#include "device.h"

#include <paracord.h>
#include <paracord/dist.h>
#include <pthread.h>

enum { RANKS_MAX = 8 };

typedef struct rank_work {
    pc_group *group;
    pc_device device;
    int rank, size;
    void *context;
    void (*work)(struct rank_work *r);
    pc_error error; /* of the thread when it ended */
} rank_work;

static inline bool ranks_are_processes(void)
{
    const char *kind = getenv("PARACORD_TEST_RANKS");
    return kind && strcmp(kind, "processes") == 0;
}

/* Of the group of tests: before and behind all of them. */
static pc_group *ranks_world;

static inline int ranks_begin(void **state)
{
    (void)state;
    if (!ranks_are_processes())
        return 0;
    if (pc_dist_init((pc_dist_options){0}) == PC_OK)
        ranks_world = pc_group_world();
    const bool well = ranks_world && pc_group_stream(ranks_world, test_device()); /* what is for all begins with all */
    if (!well)
        (void)pc_report(stderr);
    return well ? 0 : -1;
}

static inline int ranks_end(void **state)
{
    (void)state;
    if (!ranks_are_processes())
        return 0;
    pc_group_free(ranks_world);
    const bool well = pc_dist_end() == PC_OK;
    if (!well)
        (void)pc_report(stderr);
    return well ? 0 : -1;
}

/* How many ranks there can be. */
static inline int ranks_most(void)
{
    const pc_device device = test_device();
    if (ranks_are_processes())
        return pc_dist_size();
    if (device.type == PC_SIM)
        assert_ok(pc_sim_configure((pc_sim_options){.devices = RANKS_MAX}));
    const int gpus = device.type == PC_CUDA ? pc_device_count(PC_CUDA, NULL, 0) : RANKS_MAX;
    return gpus < RANKS_MAX ? gpus : RANKS_MAX;
}

static inline void *rank_main(void *context)
{
    rank_work *r = context;
    r->work(r);
    if (pc_device_synchronize(r->device) != PC_OK && r->error.status == PC_OK)
        r->error = *pc_error_last();
    if (pc_failed() && r->error.status == PC_OK)
        r->error = *pc_error_last();
    pc_error_clear();
    return NULL;
}

/* The first n processes work, and the others wait. What failed here is told here. */
static inline void ranks_run_here(int n, rank_work *ranks, void (*work)(rank_work *), void *context)
{
    const int rank = pc_dist_rank();
    for (int i = 0; i < n; i++)
        ranks[i] = (rank_work){.rank = i};
    pc_group *some;
    assert_ok(pc_group_split(ranks_world, rank < n ? 0 : -1, 0, &some));
    if (some) {
        ranks[rank] = (rank_work){
            .group = some, .device = test_device(), .rank = rank, .size = n, .context = context, .work = work};
        rank_main(&ranks[rank]);
    }
    pc_group_free(some);
}

/* Have `work` done by n ranks at once; what failed is in ranks[i].error. */
static inline void ranks_run(int n, rank_work *ranks, void (*work)(rank_work *), void *context)
{
    pc_group *groups[RANKS_MAX];
    pthread_t threads[RANKS_MAX];
    if (ranks_are_processes()) {
        ranks_run_here(n, ranks, work, context);
        return;
    }
    assert_ok(pc_group_threads(n, groups));
    const int type = test_device().type;
    for (int i = 0; i < n; i++) {
        ranks[i] = (rank_work){.group = groups[i],
                               .device = {(int16_t)type, (int16_t)(type == PC_CPU ? 0 : i)},
                               .rank = i,
                               .size = n,
                               .context = context,
                               .work = work};
        assert_int_equal(pthread_create(&threads[i], NULL, rank_main, &ranks[i]), 0);
    }
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < n; i++)
        pc_group_free(groups[i]);
}

/* The same, and nothing fails. */
static inline void ranks_work(int n, void (*work)(rank_work *), void *context)
{
    rank_work ranks[RANKS_MAX];
    ranks_run(n, ranks, work, context);
    for (int i = 0; i < n; i++)
        if (ranks[i].error.status != PC_OK)
            fail_msg("rank %d of %d: %s", i, n, ranks[i].error.message);
}

/* By 1 to 4 ranks, as far as there are so many. */
static inline void every_number_of_ranks(void (*work)(rank_work *), const void *context)
{
    const int most = ranks_most();
    for (int n = 1; n <= most && n <= 4; n++)
        ranks_work(n, work, (void *)(uintptr_t)context);
}

/* In a rank's thread, where cmocka's checks cannot be: leave the work with the error recorded. */
#define RANK_OK(expression)                                                                                            \
    do {                                                                                                               \
        if ((expression) != PC_OK)                                                                                     \
            return;                                                                                                    \
    } while (0)
#define RANK_TRUE(condition)                                                                                           \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            r->error.status = PC_ERR_STATE;                                                                            \
            snprintf(r->error.message, sizeof r->error.message, "%s:%d: not %s", __FILE__, __LINE__, #condition);      \
            return;                                                                                                    \
        }                                                                                                              \
    } while (0)

#endif

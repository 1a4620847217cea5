/* threads.h: ranks that are threads, each on a device of its own: cpu, sim:0, sim:1, ..., or the GPUs that there are. */
#ifndef PC_TEST_THREADS_H
#define PC_TEST_THREADS_H

#include "device.h"

#include <paracord.h>
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

/* How many ranks there can be. */
static inline int ranks_most(void)
{
    const pc_device device = test_device();
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

/* Have `work` done by n ranks at once; what failed is in ranks[i].error. */
static inline void ranks_run(int n, rank_work *ranks, void (*work)(rank_work *), void *context)
{
    pc_group *groups[RANKS_MAX];
    pthread_t threads[RANKS_MAX];
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

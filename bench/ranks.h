/* ranks.h: work done by several ranks at once, each a thread with a device of its own. */
#ifndef PC_BENCH_RANKS_H
#define PC_BENCH_RANKS_H

#include <paracord.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BENCH_RANKS = 64 };

typedef struct bench_rank {
    int rank, size;
    pc_group *group; /* NULL: the only one */
    pc_device device;
    pc_status (*work)(struct bench_rank *rank);
    void *user;
    pc_status status;
    double result[4]; /* the work's */
} bench_rank;

/* "cuda:0" is one rank, "cuda*4" four threads; where processes were launched each is a rank, and its device is
 * number local rank. */
static inline int bench_ranks_of(const char *text, pc_device devices[BENCH_RANKS])
{
    char name[PC_DEVICE_NAME_MAX];
    const char *times = strchr(text, '*');
    const int n = times ? atoi(times + 1) : 1;
    if (!times)
        devices[0] = pc_device_pick(text);
    for (int i = 0; i < n && times && i < BENCH_RANKS; i++) {
        snprintf(name, sizeof name, "%.*s:%d", (int)(times - text), text, i);
        devices[i] = pc_device_pick(strncmp(text, "cpu", 3) ? name : "cpu");
    }
    return n;
}

static inline void *bench_rank_main(void *context)
{
    bench_rank *r = context;
    r->status = r->work(r);
    if (r->status != PC_OK)
        fprintf(stderr, "rank %d: %s\n", r->rank, pc_error_last()->message);
    pc_error_clear();
    return NULL;
}

/* This process is a rank of those that were launched: cuda is its own GPU's kind. */
static inline int bench_rank_of_world(const char *devices, bench_rank *ranks, pc_status (*work)(bench_rank *rank),
                                      void *user)
{
    char name[PC_DEVICE_NAME_MAX];
    snprintf(name, sizeof name, strncmp(devices, "cpu", 3) ? "%.*s:%d" : "%.*s", (int)strcspn(devices, ":*"), devices,
             pc_dist_local_rank());
    pc_group *world = pc_group_world();
    ranks[0] = (bench_rank){.rank = pc_dist_rank(),
                            .size = pc_dist_size(),
                            .group = world,
                            .device = pc_device_pick(name),
                            .work = work,
                            .user = user};
    bench_rank_main(&ranks[0]);
    pc_group_free(world);
    const bool fine = ranks[0].status == PC_OK && pc_dist_end() == PC_OK;
    return fine ? ranks[0].size : 0;
}

/* `ranks` is room for BENCH_RANKS. How many there were; 0: an error, which is printed. */
static inline int bench_ranks_run(const char *devices, bench_rank *ranks, pc_status (*work)(bench_rank *rank),
                                  void *user)
{
    pc_group *groups[BENCH_RANKS] = {NULL};
    pthread_t threads[BENCH_RANKS];
    pc_device device[BENCH_RANKS];
    const int n = bench_ranks_of(devices, device);
    if (pc_dist_init((pc_dist_options){.timeout_seconds = 0}) != PC_OK)
        return pc_report(stderr), 0;
    if (pc_dist_size() > 1)
        return bench_rank_of_world(devices, ranks, work, user);
    bool fine = n >= 1 && n <= BENCH_RANKS && (n == 1 || pc_group_threads(n, groups) == PC_OK);
    for (int i = 0; i < n && fine; i++) {
        ranks[i] =
            (bench_rank){.rank = i, .size = n, .group = groups[i], .device = device[i], .work = work, .user = user};
        fine = n == 1 || pthread_create(&threads[i], NULL, bench_rank_main, &ranks[i]) == 0;
    }
    if (fine && n == 1)
        bench_rank_main(&ranks[0]);
    for (int i = 0; i < n && n > 1 && fine; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < n && fine; i++)
        fine = ranks[i].status == PC_OK;
    for (int i = 0; i < n && n > 1; i++)
        pc_group_free(groups[i]);
    if (!fine)
        pc_report(stderr);
    return fine ? n : 0;
}

#endif

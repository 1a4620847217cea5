/* pool.h: one caching allocator's inside. */
#ifndef PC__POOL_H
#define PC__POOL_H

#include "device/cache.h"

#define PC__POOL_CLASSES 384

typedef struct pc__pool {
    pthread_mutex_t lock;
    pc__storage *free[PC__POOL_CLASSES];
    pc__storage *in_use; /* newest first */
    pc_memory_stats stats;
} pc__pool;

pc__pool *pc__pool_of(pc_device device);

/* Call visit for each pool. */
void pc__pools_visit(void (*visit)(pc__pool *pool));

/* PC_ERR_MEMORY: `who` asked for `bytes` like that in vain; says what is free, cached, and who holds the most. */
void pc__pool_report(pc__pool *pool, const pc__storage *like, size_t bytes, const char *who);

#endif

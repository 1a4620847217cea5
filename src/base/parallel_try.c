/* parallel_try.c: work on all cores that may fail. Errors are a thread's own, so that of a helper travels by hand. */
#include "base/parallel.h"

#include <pthread.h>

typedef struct trial {
    pc__try_fn part;
    void *context;
    pthread_mutex_t lock;
    int64_t failed; /* the lowest of the parts that failed, and its error */
    pc_error error;
} trial;

static void try_part(void *context, int64_t i)
{
    trial *t = context;
    const pc_status status = t->part(t->context, i);
    if (status == PC_OK)
        return;
    pc_error error = pc__error_take();
    error.status = error.status == PC_OK ? status : error.status;
    pthread_mutex_lock(&t->lock);
    if (i < t->failed)
        t->failed = i, t->error = error;
    pthread_mutex_unlock(&t->lock);
}

pc_status pc__parallel_try(int threads, int64_t n, pc__try_fn part, void *context)
{
    if (threads <= 1) {
        for (int64_t i = 0; i < n; i++)
            PC__TRY(part(context, i));
        return PC_OK;
    }
    const pc_error before = pc__error_take(); /* the calling thread's, which works too */
    trial t = {.part = part, .context = context, .lock = PTHREAD_MUTEX_INITIALIZER, .failed = n};
    pc__parallel(threads, n, try_part, &t);
    pthread_mutex_destroy(&t.lock);
    (void)pc__error_put(&before);
    return pc__error_put(&t.error);
}

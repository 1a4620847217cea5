/* prefetch.c: the loader's thread and its ring of batches. The thread makes them alone: the helpers are computing for
 * the program meanwhile. Only where that is slow (pictures have to be decoded) it takes all cores. */
#include "data/prefetch.h"

#include "base/parallel.h"

#include <signal.h>

/* Make one batch into the slot behind the ready ones. The lock is held before and after, not meanwhile. */
static void make_one(pc__prefetch *p)
{
    pc__made *slot = &p->slots[(p->first + p->count) % p->capacity];
    p->busy = true;
    pthread_mutex_unlock(&p->lock);
    const pc_status status = pc__source_make(p->source, p->source->wide ? pc_threads_get() : 1, slot);
    slot->error = pc__error_take();
    if (status == PC_OK) /* an error that a function left and passed over is not the batch's */
        slot->error = (pc_error){0};
    pthread_mutex_lock(&p->lock);
    p->busy = false;
    p->held |= slot->error.status != PC_OK;
    p->count++;
    pthread_cond_signal(&p->news);
}

static void *work(void *context)
{
    pc__prefetch *p = context;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (!p->stop && (p->held || p->count == p->capacity))
            pthread_cond_wait(&p->room, &p->lock);
        if (p->stop)
            break;
        make_one(p);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Signals are for the program's own threads. */
static void start(pc__prefetch *p)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    p->running = pthread_create(&p->thread, NULL, work, p) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    p->alone = !p->running;
    if (p->running)
        pthread_setname_np(p->thread, "pc-loader");
    else
        pc__log(PC_LOG_WARNING, "the system gives no thread for making batches ahead: they are made one by one");
}

pc_status pc__prefetch_open(pc__prefetch *p, pc__source *source, int capacity)
{
    *p = (pc__prefetch){.source = source, .alone = capacity == 0};
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->room, NULL);
    pthread_cond_init(&p->news, NULL);
    p->slots = pc__calloc((size_t)capacity, sizeof *p->slots);
    if (!p->slots)
        return PC_ERR_MEMORY;
    for (p->capacity = 0; p->capacity < capacity; p->capacity++)
        PC__TRY(pc__made_open(&p->slots[p->capacity], source));
    return PC_OK;
}

static void exchange(pc__made *a, pc__made *b)
{
    const pc__made kept = *a;
    *a = *b;
    *b = kept;
}

pc_status pc__prefetch_take(pc__prefetch *p, pc__made *made)
{
    if (!p->running && !p->alone)
        start(p);
    if (p->alone)
        return pc__source_make(p->source, pc_threads_get(), made);
    pthread_mutex_lock(&p->lock);
    if (p->count == 0)
        p->held = false;
    pthread_cond_signal(&p->room);
    while (p->count == 0)
        pthread_cond_wait(&p->news, &p->lock);
    exchange(made, &p->slots[p->first]);
    p->first = (p->first + 1) % p->capacity;
    p->count--;
    pthread_cond_signal(&p->room);
    pthread_mutex_unlock(&p->lock);
    return pc__error_put(&made->error);
}

void pc__prefetch_seek(pc__prefetch *p, pc__position position)
{
    pthread_mutex_lock(&p->lock);
    p->held = true;
    while (p->busy)
        pthread_cond_wait(&p->news, &p->lock);
    for (; p->count; p->count--) {
        pc__made_drop(&p->slots[p->first]);
        p->first = (p->first + 1) % p->capacity;
    }
    p->source->next = position;
    pthread_mutex_unlock(&p->lock);
}

void pc__prefetch_close(pc__prefetch *p)
{
    if (!p->source)
        return;
    if (p->running) {
        pthread_mutex_lock(&p->lock);
        p->stop = true;
        pthread_cond_signal(&p->room);
        pthread_mutex_unlock(&p->lock);
        pthread_join(p->thread, NULL);
    }
    for (int i = 0; i < p->capacity; i++)
        pc__made_close(&p->slots[i]);
    pc__free(p->slots);
    pthread_cond_destroy(&p->news);
    pthread_cond_destroy(&p->room);
    pthread_mutex_destroy(&p->lock);
}

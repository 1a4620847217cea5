/* parallel.c: a handful of helper threads that wait for work: spinning for some microseconds, since the next piece of a
 * training step comes soon, then asleep. */
#include "base/parallel.h"

#include "base/base.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

/* What one core does in 5 (AVX-512) to 27 (SSE) microseconds, several times what a waiting helper needs to start. */
#define WORK_PER_THREAD 1200000

/* Looks at the door before a helper goes to sleep: about 50 microseconds. */
#define SPINS 2000

static atomic_int limit;
static atomic_int cores;

/* The work at hand. `door` holds its number in the upper half; below it CLOSED, how many helpers may join (15 bits) and
 * how many have (16 bits): joining and closing are one atomic step each, so nobody joins late. */
#define CLOSED 0x80000000u
#define MOST_OF(door) ((int)((door) >> 16 & 0x7fff))
#define JOINED_OF(door) ((int)((door)&0xffff))
static struct {
    atomic_uint_fast64_t door;
    atomic_int sleepers, left;
    atomic_bool busy;
    int64_t n;
    int ranges;
    pc__part_fn part;
    void *context;
} job = {.door = CLOSED};

/* What is to be done next of each of the job's ranges. A thread begins with one by its own number: where all take part, with the
 * same one from call to call, and what it wrote before is in its core's caches. Then it goes on with the others'. */
static struct {
    _Alignas(64) atomic_int_fast64_t next;
} range[PC__THREADS_MAX];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static int helpers; /* threads made so far; under `busy` */

static _Thread_local int own_number;
static _Thread_local int own_range; /* of a helper, the number it was made with */
static _Thread_local bool inside;

void pc_threads_set(int n)
{
    atomic_store(&limit, n > 0 ? PC__MIN(n, PC__THREADS_MAX) : 0);
}

int pc_threads_get(void)
{
    int n = atomic_load_explicit(&limit, memory_order_relaxed);
    if (n)
        return n;
    n = atomic_load_explicit(&cores, memory_order_relaxed);
    if (!n)
        atomic_store(&cores, n = PC__MIN(pc__cpu_count(), PC__THREADS_MAX));
    return n;
}

int pc__threads(int64_t work)
{
    if (work < 2 * (int64_t)WORK_PER_THREAD || inside)
        return 1;
    int64_t pieces = work / WORK_PER_THREAD, most = pc_threads_get();
    return (int)PC__MIN(pieces, most);
}

int pc__thread(void)
{
    return own_number;
}

static inline void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Where the range begins, and the one before it ends. */
static int64_t beginning(int k)
{
    return job.n / job.ranges * k + PC__MIN(job.n % job.ranges, k);
}

static void work_on(void)
{
    inside = true;
    for (int k = 0; k < job.ranges; k++) {
        const int own = (own_range + k) % job.ranges;
        const int64_t end = beginning(own + 1);
        for (int64_t i; atomic_load_explicit(&range[own].next, memory_order_relaxed) < end &&
                        (i = atomic_fetch_add_explicit(&range[own].next, 1, memory_order_relaxed)) < end;)
            job.part(job.context, i);
    }
    inside = false;
}

/* Join the job whose door was seen as `door`; false when it has closed or is full. */
static bool join(uint64_t door)
{
    while (!(door & CLOSED) && JOINED_OF(door) < MOST_OF(door))
        if (atomic_compare_exchange_weak(&job.door, &door, door + 1)) {
            own_number = JOINED_OF(door) + 1;
            return true;
        }
    return false;
}

/* The next door whose number is not that of `seen`. */
static uint64_t await(uint64_t seen)
{
    uint64_t door;
    for (int i = 0; i < SPINS; i++) {
        door = atomic_load(&job.door);
        if (door >> 32 != seen >> 32)
            return door;
        pause_briefly();
    }
    pthread_mutex_lock(&lock);
    atomic_fetch_add(&job.sleepers, 1);
    while ((door = atomic_load(&job.door)) >> 32 == seen >> 32)
        pthread_cond_wait(&wake, &lock);
    atomic_fetch_sub(&job.sleepers, 1);
    pthread_mutex_unlock(&lock);
    return door;
}

static void *help(void *number)
{
    own_range = (int)(intptr_t)number;
    for (uint64_t seen = CLOSED;;) {
        seen = await(seen);
        if (join(seen)) {
            work_on();
            atomic_fetch_add(&job.left, 1);
        }
    }
    return NULL;
}

/* A child of fork has no helpers; it makes its own when it needs them. */
static void forget_helpers(void)
{
    helpers = 0;
    atomic_store(&job.sleepers, 0);
    atomic_store(&job.busy, false);
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&wake, NULL);
}

/* The program's signals are handled in the program's own threads; faults stay with the thread that makes them. */
static void block_signals(sigset_t *before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t set;
    sigfillset(&set);
    for (int i = 0; i < PC__COUNT(faults); i++)
        sigdelset(&set, faults[i]);
    pthread_sigmask(SIG_SETMASK, &set, before);
}

static void make_helpers(int wanted)
{
    static bool told;
    if (helpers >= wanted)
        return;
    if (!told)
        told = pthread_atfork(NULL, NULL, forget_helpers) == 0;
    sigset_t before;
    block_signals(&before);
    for (; helpers < wanted; helpers++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, help, (void *)(intptr_t)(helpers + 1)) != 0)
            break; /* fewer threads do the same work */
        pthread_detach(thread);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void open_door(int most, int64_t n, pc__part_fn part, void *context)
{
    uint64_t number = (atomic_load(&job.door) >> 32) + 1;
    job.n = n;
    job.part = part;
    job.context = context;
    job.ranges = most + 1;
    for (int k = 0; k <= most; k++)
        atomic_store_explicit(&range[k].next, beginning(k), memory_order_relaxed);
    atomic_store(&job.left, 0);
    atomic_store(&job.door, number << 32 | (uint64_t)most << 16);
    if (atomic_load(&job.sleepers)) {
        pthread_mutex_lock(&lock);
        pthread_cond_broadcast(&wake);
        pthread_mutex_unlock(&lock);
    }
}

/* Nobody joins any more; wait for those who did. */
static void close_door(void)
{
    uint64_t door = atomic_fetch_or(&job.door, CLOSED);
    for (int i = 0; atomic_load(&job.left) < JOINED_OF(door); i++)
        if (i < SPINS)
            pause_briefly();
        else
            sched_yield();
}

void pc__parallel(int threads, int64_t n, pc__part_fn part, void *context)
{
    bool alone = threads <= 1 || n <= 1 || inside;
    if (alone || atomic_exchange(&job.busy, true)) {
        int number = own_number;
        own_number = 0;
        for (int64_t i = 0; i < n; i++)
            part(context, i);
        own_number = number;
        return;
    }
    int most = (int)PC__MIN(PC__MIN(threads, PC__THREADS_MAX), n) - 1;
    make_helpers(most);
    open_door(most, n, part, context);
    work_on();
    close_door();
    atomic_store(&job.busy, false);
}

/* parallel.h: work on all cores.
 *
 *     typedef struct sums { const float *x; float *y; } sums;
 *     static void row(void *context, int64_t i) { sums *s = context; ... }
 *     pc__parallel(pc__threads(flops), rows, row, &(sums){x, y});
 *
 * Indices are claimed one by one, a thread's own range of them first, and the calling thread works too: a helper that
 * the system does not run in time is not waited for, because it has claimed nothing. That is why this is no OpenMP
 * region, whose barrier waits for every thread of its team: where other programs (or this one's own loader) want the
 * cores, such barriers cost a time slice each, thirty times the work of a small network.
 *
 * Work is cut by sizes alone, never by the number of threads, so results do not depend on it. */
#ifndef PC__PARALLEL_H
#define PC__PARALLEL_H

#include "base/base.h"

#include <paracord/threads.h>

#define PC__THREADS_MAX 256

/* Threads that pay for `work` (floating-point operations, or bytes times four): 1 below some microseconds of work, then
 * one per such piece, at most the limit. 1 inside a parallel call. */
PC__FOR_LEVELS int pc__threads(int64_t work);

/* Call part(context, i) for every i in 0..n-1 on up to `threads` threads, and return when all are done. With one
 * thread, inside another parallel call, or while another thread is in one, everything runs in the calling thread.
 * `part` must not wait for other parts. */
typedef void (*pc__part_fn)(void *context, int64_t i);
PC__SHARED void pc__parallel(int threads, int64_t n, pc__part_fn part, void *context);

/* The same of parts that may fail. Each is tried once; the error is the calling thread's, of the part with the lowest number
 * among those that failed, so that it does not depend on who was first. With one thread nothing is tried behind a failure. */
typedef pc_status (*pc__try_fn)(void *context, int64_t i);
pc_status pc__parallel_try(int threads, int64_t n, pc__try_fn part, void *context);

/* Number of the calling thread in its parallel call: 0 to threads - 1; 0 outside. For scratch memory per thread. */
PC__FOR_LEVELS int pc__thread(void);

#endif

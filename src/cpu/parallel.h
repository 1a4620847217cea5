/* parallel.h: how many threads a kernel uses, and the loop that uses them:
 *
 *     const int threads = pc__threads(flops);
 *     PC__PARALLEL_FOR(threads, dynamic)
 *     for (int64_t task = 0; task < tasks; task++)
 *         run(task, scratch + pc__thread() * size);
 *
 * Work is cut by sizes alone, never by the number of threads, or so that the cut changes no bit; results do not depend
 * on it. Scratch for all threads is allocated before the loop. Without OpenMP all of it runs on the calling thread. */
#ifndef PC__PARALLEL_H
#define PC__PARALLEL_H

#include <stdint.h>

#ifdef _OPENMP
#include <omp.h>
#define PC__PRAGMA(text) _Pragma(#text)
#define PC__PARALLEL_FOR(threads, how)                                                                                 \
    PC__PRAGMA(omp parallel for num_threads(threads) if ((threads) > 1) schedule(how))
#else
#define PC__PARALLEL_FOR(threads, how) (void)(threads);
#endif

/* Threads that pay for `work` (floating-point operations, or bytes times four): 1 below some 16 (AVX-512) to 90 (SSE)
 * microseconds of work, then one per half of that, at most the limit. 1 inside a parallel region. */
int pc__threads(int64_t work);

/* Limit for the whole process; 0 = one per core of the affinity mask (the default). Any thread. */
void pc__set_threads(int n);

/* The limit in force, at least 1. */
int pc__get_threads(void);

/* Number of the calling thread in its parallel region, 0 outside. */
static inline int pc__thread(void)
{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

#endif

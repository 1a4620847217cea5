/* parallel.h: how many threads a kernel uses. Kernels open their own OpenMP regions:
 *
 *     int threads = pc__threads(flops);
 *     #pragma omp parallel for num_threads(threads) if (threads > 1) schedule(dynamic)
 *
 * Work is cut by sizes alone, never by the number of threads, so results do not depend on it. Compiles without OpenMP:
 * then everything runs on the calling thread. */
#ifndef PC__PARALLEL_H
#define PC__PARALLEL_H

#include <paracord/threads.h>
#include <stdint.h>

#ifdef _OPENMP
#include <omp.h>
#endif

/* Threads that pay for `work` (floating-point operations, or bytes times four): 1 below some 16 to 90 microseconds of work,
 * then one per half of that, at most the limit. 1 inside a parallel region. */
int pc__threads(int64_t work);

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

/* measure.h: what ways of doing the same take on a GPU, by events around a captured graph of several runs of each: as a
 * recorded step would have them. */
#ifndef PC__CUDA_MEASURE_H
#define PC__CUDA_MEASURE_H

#include "cuda/runtime/cuda.h"

typedef struct pc__trial {
    pc_stream *stream;
    const void *context;
    const char *what; /* "measuring a product", for errors */
    /* Queue way i, from 0. *fine comes true; false: it cannot. */
    pc_status (*run)(pc_stream *stream, const void *context, int i, bool *fine);
} pc__trial;

/* microseconds[i] of each of `count` ways: INFINITY for one that cannot, or that no graph takes. Waits for the stream,
 * which is not being captured. */
pc_status pc__cuda_measure(const pc__trial *trial, int count, double *microseconds);

/* Which of them is the fastest, -1 where none can. The first, which the rule would pick, unless another one is faster by
 * more than timing is certain of. */
int pc__cuda_fastest(const double *microseconds, int count);

#endif

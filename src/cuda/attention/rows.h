/* rows.h: who does attention, and its gradients. A problem is a pc__attention_problem. */
#ifndef PC__CUDA_ATTENTION_ROWS_H
#define PC__CUDA_ATTENTION_ROWS_H

#include "cuda/attention/attention.h"
#include "cuda/runtime/rows.h"

extern pc__rows pc__attention_rows, pc__attention_backward_rows;

typedef struct pc__attention_problem {
    pc__cuda_attention a;
    bool backward;
} pc__attention_problem;

/* by_cudnn.c: whether it is cuDNN's, and doing it: true where that was queued. While a recording prepares, plans are made
 * and nothing is queued; while a stream is captured, none are made. */
bool pc__attention_cudnn_supports(const pc_stream *stream, const void *problem);
pc_status pc__attention_cudnn_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace,
                                  bool *done);

#endif

/* score.h: launcher of the op that adds a batch's results up. */
#ifndef PC__CUDA_SCORE_H
#define PC__CUDA_SCORE_H

#include "cuda/runtime/view.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc__cuda_score {
    int dtype;          /* PC__CUDA_F32, F16 or BF16: of the logits */
    const void *logits; /* [n, width] */
    const void *labels; /* [n]: int64, or float32 where `floats` */
    const float *loss;
    double *sums; /* [3] */
    int64_t n, width;
    int64_t ignored; /* the label of rows that count for nothing, of int64 */
    int floats;
} pc__cuda_score;

void pc__cuda_score_add(const pc__cuda_score *score, cudaStream_t queue, int early);

#ifdef __cplusplus
}
#endif
#endif

/* line.h: launchers of what goes along dimensions in order. */
#ifndef PC__CUDA_LINE_H
#define PC__CUDA_LINE_H

#include "cuda/runtime/view.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc__cuda_line {
    int64_t lists, inner, n; /* [lists / inner, n, inner] */
    int64_t chunk, chunks;   /* of a list, which is added up in parts where there is more than one */
    int reversed, dtype;     /* dtype: float or int64 */
    void *sums;              /* [lists][chunks] in the type that is added in, where there is more than one */
    int multiprocessors, early;
    cudaStream_t queue;
} pc__cuda_line;

/* to = the running sums of from */
void pc__cuda_cumsum(const pc__cuda_line *line, const void *from, void *to);

/* to = from, in C order, turned round along the dimensions whose bits are set; elements of `bytes` bytes. */
typedef struct pc__cuda_flip {
    int64_t count, shape[PC__VIEW_DIMS];
    int ndim, multiprocessors, early;
    unsigned dims;
    cudaStream_t queue;
} pc__cuda_flip;
void pc__cuda_flip_all(const pc__cuda_flip *flip, int bytes, const void *from, void *to);

#ifdef __cplusplus
}
#endif
#endif

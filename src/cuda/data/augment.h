/* augment.h: launcher of the augmentation of byte pictures: of a call's, or of the next batch of an epoch. */
#ifndef PC__CUDA_AUGMENT_H
#define PC__CUDA_AUGMENT_H

#include "cuda/runtime/view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What stands beyond the edge, as pc__edge. */
enum pc__cuda_edge { PC__CUDA_NEAREST, PC__CUDA_CONSTANT, PC__CUDA_REFLECT, PC__CUDA_WRAP };

typedef struct pc__cuda_augment {
    const uint8_t *pictures; /* [total, height, width, channels] */
    const double *table;     /* [n, 17]: a pc__augment_row each */
    const int64_t *index;    /* [n], or NULL: picture i */
    float *out;              /* [n, height, width, channels] */
    int64_t n, total;
    /* Of an epoch: table and index have `length` entries, of which the batch takes n from `at` on, or, where that is
     * negative, from *place on, or nothing where that is beyond the last whole batch; *place is set behind the batch.
     * NULL: there is no epoch. */
    int64_t *place;
    int64_t at, length;
    unsigned *counter;  /* 0 before and after */
    const void *labels; /* [total], label_bytes each: 1, 4 or 8 */
    void *y;            /* [n] */
    int label_bytes;
    int height, width, channels, edge;
    float cval, scale;
    double margin;  /* what lies so far beyond the edge has the edge's pixels, whatever the edge */
    int colours;    /* rows may have colours to change and parts to erase */
    int normalises; /* the end is (value - mean) / std, by channel */
    float mean[4], std[4];
    int multiprocessors, early;
    pc__cuda_fault *fault;
} pc__cuda_augment;

void pc__cuda_augment_run(const pc__cuda_augment *augment, cudaStream_t queue);

#ifdef __cplusplus
}
#endif
#endif

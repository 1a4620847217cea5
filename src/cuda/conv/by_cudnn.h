/* by_cudnn.h: what the files about convolutions by cuDNN share. */
#ifndef PC__CUDA_CONV_CUDNN_H
#define PC__CUDA_CONV_CUDNN_H

#include "cuda/conv/way.h"
#include "cuda/conv/cudnn.h"
#include "cuda/conv/rows.h"

#if PC__HAVE_CUDNN

struct pc__conv_way {
    int device; /* -1: the place is free */
    bool measured;
    atomic_bool refused;  /* our kernels do it: */
    const pc__row *own;   /* this row; NULL: the one that the rule picks */
    pc__conv_shape shape; /* of the piece; in the format that was asked for */
    pc__conv_shape made;  /* that the plan is for */
    pc__cudnn_plan plan;
};

/* A plan and what it is for. */
typedef struct pc__conv_candidate {
    int number; /* of the way, as it is kept (choice.h) */
    pc__conv_shape made;
    pc__cudnn_plan plan;
} pc__conv_candidate;

/* measured.c: at most `most` plans in the shape's format, behind the `there` that there are; how many there are then. */
int pc__conv_candidates(cudnnHandle_t handle, const pc__conv_shape *shape, pc__conv_candidate *list, int there,
                        int most);

/* The row of ours that the number is for, or NULL: the rule's, or none of ours. */
const pc__row *pc__conv_row_of(int direction, int number);

/* As the file says, or by measuring, which the file learns: the number, as it is kept. In `plans`, of PC__CONV_WAYS, is what
 * cuDNN has for it, to be freed by the caller, who may keep one. */
pc_status pc__conv_measured(pc_stream *stream, const pc_call *call, const pc__conv_piece *piece,
                            const pc__conv_shape *shape, const char *text, pc__conv_candidate *plans, int *there,
                            int *number);

/* What may do a product: rows of ours, the rule's first, then ways of cuDNN. */
typedef struct pc__conv_list {
    int rows, ways;
    const pc__row *row[PC__CONV_ROWS];
    pc__conv_way way[PC__CONV_WAYS];
} pc__conv_list;

/* measure.c: which is the fastest, a row or, counted on behind these, a way; -1 where nothing could be measured. The
 * rule's row is preferred where others are no more than a little faster. Writes nothing that the piece names. `told`:
 * microseconds of all of them. */
pc_status pc__conv_measure(pc_stream *stream, const pc_call *call, const pc__conv_piece *piece, pc__conv_list *list,
                           int *best, double *told);

/* Bytes of what a piece makes, but for the bias's gradient. */
size_t pc__conv_result_bytes(const pc__conv_piece *piece);

#endif
#endif

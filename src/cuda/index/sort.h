/* sort.h: launcher of the sort of indices by the place they name. */
#ifndef PC__CUDA_SORT_H
#define PC__CUDA_SORT_H

#include "cuda/runtime/view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Lists of indices: entry i of list l is index[(l / inner * count + i) * inner + l % inner], a place from 0 to n - 1. */
typedef struct pc__cuda_lists {
    const int64_t *index;
    int64_t lists, inner, count, n;
    int64_t skip;    /* entries of this place are left out; -1: of none */
    unsigned *start; /* [lists][n + 1] */
    unsigned *order; /* [lists][count]: from start[p] to start[p + 1] the entries of place p, in ascending order */
    void *room[2];   /* by digits: lists * count words of 8 bytes each */
    unsigned *digits, *places; /* and rank.h's counts for tiles of PC__CUDA_RADIX_TILE; [lists][count] */
    size_t beside_bytes;       /* which lists.c brings in the same memory, for what follows */
    void *beside;
    int shared; /* what was sorted is one list, which holds for all */
    int multiprocessors, early;
    pc__cuda_fault *fault; /* has the first one found that names no place; it is in no list */
    cudaStream_t queue;
} pc__cuda_lists;

void pc__cuda_sort_places(const pc__cuda_lists *lists);

/* The blocks that read all of a list, each for places of its own. */
int64_t pc__cuda_sort_blocks(const pc__cuda_lists *lists);

/* The same by digits of the places, of which there are fewer than 2^32 - 1. */
void pc__cuda_sort_places_by_digits(const pc__cuda_lists *lists);

#ifdef __cplusplus
}
#endif
#endif

/* rank.h: launchers of sorts along a dimension, and of searches in what is sorted. */
#ifndef PC__CUDA_RANK_H
#define PC__CUDA_RANK_H

#include "cuda/runtime/view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A block sorts at most so many elements in its own memory. */
#define PC__CUDA_TILE 2048

/* List l of [lists / inner, n, inner]; the first `count` of each list's order are kept. */
typedef struct pc__cuda_ranking {
    int64_t lists, inner, n, count;
    int64_t tile, tiles; /* of a list; a tile is a power of two */
    int descending, dtype;
    void *room[2]; /* where there is more than one tile: pc__cuda_rank_bytes each */
    int multiprocessors, early;
    cudaStream_t queue;
} pc__cuda_ranking;

int64_t pc__cuda_rank_bytes(const pc__cuda_ranking *ranking);
void pc__cuda_rank(const pc__cuda_ranking *ranking, const void *from, void *values, int64_t *places);

/* to[i] = how many of the n elements of `sorted`, of row i / each, are below values[i], or not above where `right` */
typedef struct pc__cuda_search {
    int64_t n, each, count;
    int right, dtype, multiprocessors, early;
    cudaStream_t queue;
} pc__cuda_search;
void pc__cuda_search_sorted(const pc__cuda_search *search, const void *sorted, const void *values, int64_t *to);

#ifdef __cplusplus
}
#endif
#endif

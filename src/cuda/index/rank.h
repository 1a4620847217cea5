/* rank.h: launchers of sorts along a dimension, and of searches in what is sorted. */
#ifndef PC__CUDA_RANK_H
#define PC__CUDA_RANK_H

#include "cuda/runtime/view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A block sorts at most so many elements in its own memory. */
#define PC__CUDA_TILE 2048

/* Tiles of the sort by digits: so many elements of 32-bit keys or less, or of 64-bit keys. */
#define PC__CUDA_RADIX_TILE 4096
#define PC__CUDA_RADIX_TILE_WIDE 2048
#define PC__CUDA_RADIX_DIGITS 256

/* List l of [lists / inner, n, inner]; the first `count` of each list's order are kept. */
typedef struct pc__cuda_ranking {
    int64_t lists, inner, n, count;
    int64_t tile, tiles; /* of a list; a tile is a power of two, and more than one are whole ones or a way's own */
    int64_t packed;      /* rank_short.cu: lists of a block, a power of two */
    int descending, dtype;
    void *room[2];    /* where there is more than one tile */
    unsigned *digits; /* radix.cu: lists * PC__CUDA_RADIX_DIGITS * (tiles + 1) */
    unsigned *bins;   /* select_digits.cu */
    int multiprocessors, early;
    cudaStream_t queue;
} pc__cuda_ranking;

/* rank_short.cu: lists of one tile. */
void pc__cuda_rank_short(const pc__cuda_ranking *ranking, const void *from, void *values, int64_t *places);

/* rank.cu: by merging sorted tiles of PC__CUDA_TILE; a room has so many bytes. */
int64_t pc__cuda_rank_bytes(const pc__cuda_ranking *ranking);
void pc__cuda_rank_long(const pc__cuda_ranking *ranking, const void *from, void *values, int64_t *places);

/* radix.cu: by digits of 8 bits, the lowest first; a room has lists * n items of 8 bytes, 16 for 64-bit keys. */
void pc__cuda_rank_digits(const pc__cuda_ranking *ranking, const void *from, void *values, int64_t *places);

/* radix_lists.cu: likewise, of lists of up to PC__CUDA_RADIX_TILE keys of 32 bits or less. */
void pc__cuda_rank_lists(const pc__cuda_ranking *ranking, const void *from, void *values, int64_t *places);

/* select_lists.cu: of such keys at most half as many as a block sorts behind that, of the same lists, or of longer ones of several
 * tiles of PC__CUDA_RADIX_TILE at most; then a room has lists * tiles * count items of 8 bytes. */
#define PC__CUDA_SELECT_LEFT 512
void pc__cuda_select_lists(const pc__cuda_ranking *ranking, const void *from, void *values, int64_t *places);

/* select_digits.cu: of long lists of such keys any number, where inner is 1. A tile is a block's, of whole PC__CUDA_SELECT_TILE, of
 * which PC__CUDA_SELECT_BLOCKS fit a multiprocessor from compute capability 8.0 on; a room has lists * count items of 8 bytes, which are sorted as by radix.cu, and
 * `bins` for each list PC__CUDA_SELECT_PASSES * PC__CUDA_SELECT_BINS words and then two for each pass, one more, and each tile. */
enum {
    PC__CUDA_SELECT_TILE = 2048,
    PC__CUDA_SELECT_BLOCKS = 5,
    PC__CUDA_SELECT_PASSES = 3, /* at most, of 11 bits each */
    PC__CUDA_SELECT_BINS = 2048
};
void pc__cuda_select_digits(const pc__cuda_ranking *ranking, const void *from, void *values, int64_t *places);

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

/* element.h: launchers of what goes by single elements. */
#ifndef PC__CUDA_ELEMENT_H
#define PC__CUDA_ELEMENT_H

#include "cuda/index/sort.h"
#include "cuda/shared/divisor.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is picked of a tensor where it lies. Element i of the result has coordinates in `size` (0 innermost), the last of them
 * open: times `at` they say which entry of the index is for it, where that is not entry i, and times `from` where in the tensor
 * place 0 of that entry is; places are `along` apart. */
typedef struct pc__cuda_picks {
    const int64_t *index;
    int64_t total, n, along;
    int dims; /* at least 1 */
    int64_t size[PC__VIEW_DIMS], from[PC__VIEW_DIMS], at[PC__VIEW_DIMS];
    pc__cuda_divisor over[PC__VIEW_DIMS]; /* of sizes, where elements are fewer than 2^30 */
    int is_list;                          /* entries are for rows */
    int multiprocessors, early;
    pc__cuda_fault *fault;
    cudaStream_t queue;
} pc__cuda_picks;

/* gather.cu: elements of `bytes` bytes. */
void pc__cuda_gather(const pc__cuda_picks *picks, int bytes, const void *whole, void *part);

/* whole, at the places that the index names, = base (NULL: 0) and the sum of what is for it; nothing else is written. For few
 * entries of a list: each looks at all the others. */
void pc__cuda_scatter_few(const pc__cuda_lists *lists, int dtype, const void *base, const void *part, void *whole);

/* short_lists.cu: all of whole = base (NULL: 0) and the sums, of lists of few entries and places; false: not of these. */
bool pc__cuda_scatter_short(const pc__cuda_lists *lists, int dtype, const void *base, const void *part, void *whole);

/* whole = part at the places that the index names, which are all different within a list; nothing else is written. */
void pc__cuda_scatter_apart(const pc__cuda_lists *lists, int bytes, const void *part, void *whole);

/* All of whole = base (NULL: 0) and the sums, after the sort. */
void pc__cuda_scatter(const pc__cuda_lists *lists, int dtype, const void *base, const void *part, void *whole);

/* to[entry][index[entry]] = 1, the rest of [count, n] is 0 */
void pc__cuda_one_hot(const pc__cuda_lists *lists, int64_t *to);

#ifdef __cplusplus
}
#endif
#endif

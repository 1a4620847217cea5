/* element.h: launchers of what goes by single elements. */
#ifndef PC__CUDA_ELEMENT_H
#define PC__CUDA_ELEMENT_H

#include "cuda/index/sort.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `whole` is [lists / inner, n, inner]; `part` and the index are [lists / inner, count, inner]. */

/* part = whole at the places that the index names; elements of `bytes` bytes. */
void pc__cuda_gather(const pc__cuda_lists *lists, int bytes, const void *whole, void *part);

/* whole, at the places that the index names, = base (NULL: 0) and the sum of what is for it; nothing else is written. For few
 * entries of a list: each looks at all the others. */
void pc__cuda_scatter_few(const pc__cuda_lists *lists, int dtype, const void *base, const void *part, void *whole);

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

/* lists.h: from calls to lists of indices. */
#ifndef PC__CUDA_INDEX_LISTS_H
#define PC__CUDA_INDEX_LISTS_H

#include "cuda/index/sort.h"
#include "cuda/runtime/cuda.h"

/* The sort of a call's index into memory of the call; `lists` has all but start, order and what the device gives. */
pc_status pc__cuda_sort(pc_stream *stream, const pc_call *call, pc__cuda_lists *lists);

#endif

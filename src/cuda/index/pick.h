/* pick.h: picking from tensors that lie in any order. */
#ifndef PC__CUDA_PICK_H
#define PC__CUDA_PICK_H

#include "cuda/runtime/cuda.h"

/* gather, or with `is_list` index_select, whose index has a dimension of its own; element by element. */
pc_status pc__cuda_pick(pc_stream *stream, const pc_call *call, bool is_list);

#endif

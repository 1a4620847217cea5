/* view.c: tensors as kernels see them, and what their host side asks of them. */
#include "cuda/runtime/cuda.h"

_Static_assert(PC__VIEW_DIMS == PC_MAX_DIMS, "kernels see all dimensions");
_Static_assert((int)PC__CUDA_BOOL == (int)PC_BOOL && (int)PC__CUDA_U8 == (int)PC_U8 &&
                   (int)PC__CUDA_I32 == (int)PC_I32 && (int)PC__CUDA_I64 == (int)PC_I64 &&
                   (int)PC__CUDA_F16 == (int)PC_F16 && (int)PC__CUDA_BF16 == (int)PC_BF16 &&
                   (int)PC__CUDA_F32 == (int)PC_F32 && (int)PC__CUDA_F64 == (int)PC_F64,
               "kernels see the same dtypes");

int64_t pc_tensor_count(const pc_tensor *t)
{
    return pc__count(t->ndim, t->shape);
}

pc__view pc__cuda_view(const pc_tensor *t)
{
    pc__view view = {.data = pc__data(t),
                     .dtype = t->dtype,
                     .ndim = t->ndim,
                     .count = pc__count(t->ndim, t->shape),
                     .dense = pc__is_contiguous(t)};
    for (int i = 0; i < t->ndim; i++) {
        view.shape[i] = t->shape[i];
        view.strides[i] = t->strides[i];
    }
    return view;
}

/* dtype.cuh: from a floating dtype to the type that kernels are made for. */
#ifndef PC__CUDA_DTYPE_CUH
#define PC__CUDA_DTYPE_CUH

#include "cuda/runtime/view.h"
#include "cuda/shared/half.cuh"

namespace
{

/* launch(number of the dtype) */
template <class LAUNCH> auto with_number(int dtype, LAUNCH launch)
{
    switch (dtype) {
    case PC__CUDA_F16:
        return launch(pc::f16());
    case PC__CUDA_BF16:
        return launch(pc::bf16());
    case PC__CUDA_F32:
        return launch(float());
    default:
        return launch(double());
    }
}

} // namespace

#endif

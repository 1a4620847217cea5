/* dtype.cuh: from a dtype to the type that kernels are made for. */
#ifndef PC__CUDA_DTYPE_CUH
#define PC__CUDA_DTYPE_CUH

#include "cuda/runtime/view.h"
#include "cuda/shared/half.cuh"

namespace
{

/* launch(number of the floating dtype) */
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

/* Of any dtype; whole numbers wrap. */
template <class LAUNCH> auto with_element(int dtype, LAUNCH launch)
{
    switch (dtype) {
    case PC__CUDA_BOOL:
        return launch(bool());
    case PC__CUDA_U8:
        return launch(uint8_t());
    case PC__CUDA_I32:
        return launch(0u);
    case PC__CUDA_I64:
        return launch(0ull);
    default:
        return with_number(dtype, launch);
    }
}

} // namespace

#endif

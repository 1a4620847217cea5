/* tiles.cu: functions of which one input is dense along another dimension than the output, of the dtypes that networks
 * have. */
#include "cuda/pointwise/elementwise.h"
#include "cuda/shared/functions.cuh"
#include "cuda/pointwise/tiles.cuh"

namespace
{

template <bool NARROW, template <class> class F>
int by_dtype(const pc__cuda_launch *l, int dtype, double number, int along, int turned)
{
    if (dtype == PC__CUDA_F32)
        pc::run_tiles<NARROW>(l, along, turned, pc::function_of<F<float>>(number));
    else if (dtype == PC__CUDA_BF16)
        pc::run_tiles<NARROW>(l, along, turned, pc::function_of<F<pc::bf16>>(number));
    else if (dtype == PC__CUDA_F16)
        pc::run_tiles<NARROW>(l, along, turned, pc::function_of<F<pc::f16>>(number));
    else
        return 0;
    return 1;
}

} // namespace

int pc__cuda_pointwise_tiles(const pc__cuda_launch *l, int function, int dtype, double number, int along, int turned)
{
    switch (function) {
#define CASE(name, narrow)                                                                                             \
    case PC__POINTWISE_##name:                                                                                         \
        return by_dtype<narrow, pc::of_##name>(l, dtype, number, along, turned);
#define FLOATS_CASE(name) CASE(name, true)
#define NUMBERS_CASE(name) CASE(name, true)
#define ORDERED_CASE(name) CASE(name, true)
#define ALL_CASE(name) CASE(name, true)
#define INTEGERS_CASE(name)
#define PC__FUNCTION(name, dtypes, cost, saves, autocast, f, derivative) CASE(name, false) CASE(name##_backward, false)
#define PC__UNARY(name, dtypes, cost, flags, f) CASE(name, false)
#define PC__BINARY(name, dtypes, cost, flags, f) dtypes##_CASE(name)
#define PC__PARAMETRIC(name, cost, f) CASE(name, false)
#include "ops/pointwise.def"
    default:
        return 0;
    }
}

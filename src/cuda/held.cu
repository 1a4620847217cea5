/* held.cu: a list of small calls in one block, one after the other. A barrier behind each makes what it wrote there for
 * all threads before the next one reads. */
#include "cuda/held.h"

#include "cuda/elementwise.h"
#include "cuda/functions.cuh"

namespace
{

template <class F> __device__ __forceinline__ void one(const pc__cuda_held_call &call, const F &f)
{
    pc::line<F> w;
    w.out = call.out;
    for (int k = 0; k < F::inputs; k++)
        w.in[k] = call.in[k];
#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < call.packs; i += pc::THREADS)
        pc::flat_item<F, F::pack>(w, f, i);
#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < call.tail; i += pc::THREADS) {
        const uint32_t at = call.packs * F::pack + i;
        float x[2] = {};
        for (int k = 0; k < F::inputs; k++)
            x[k] = static_cast<const float *>(call.in[k])[at * call.step[k]];
        static_cast<float *>(call.out)[at] = pc::apply(f, x[0], x[1], '\0');
    }
}

__global__ void __launch_bounds__(pc::THREADS, 1) all_held(const __grid_constant__ pc__cuda_held_list list)
{
    pc::wait_for_earlier();
    for (int k = 0; k < list.count; k++) {
        const pc__cuda_held_call &call = list.call[k];
        switch (call.which) {
#define PC__CASE(number, function)                                                                                     \
    case number:                                                                                                       \
        one(call, pc::function<float>());                                                                              \
        break;
            PC__CASE(PC__BINARY_ADD, add_of)
            PC__CASE(PC__BINARY_SUB, sub_of)
            PC__CASE(PC__BINARY_MUL, mul_of)
            PC__CASE(PC__BINARY_DIV, div_of)
            PC__CASE(PC__BINARY_RELU_BACKWARD, relu_back)
            PC__CASE(PC__BINARY_SIGMOID_BACKWARD, sigmoid_back)
            PC__CASE(PC__BINARY_TANH_BACKWARD, tanh_back)
            PC__CASE(PC__UNARY_NEG, neg_of)
            PC__CASE(PC__UNARY_RELU, relu_of)
            PC__CASE(PC__UNARY_EXP, exp_of)
            PC__CASE(PC__UNARY_LOG, log_of)
            PC__CASE(PC__UNARY_SQRT, sqrt_of)
            PC__CASE(PC__UNARY_SIGMOID, sigmoid_of)
            PC__CASE(PC__UNARY_TANH, tanh_of)
            PC__CASE(PC__COPY, same_of)
#undef PC__CASE
        case PC__FILL: {
            pc::fill_of<float> f;
            f.value = call.number;
            one(call, f);
            break;
        }
        default: {
            pc::saxpy_of<float> f;
            f.factor = call.number;
            one(call, f);
        }
        }
        __syncthreads();
    }
}

} // namespace

cudaError_t pc__cuda_held_start(cudaStream_t queue, int early, const pc__cuda_held_list *list)
{
    static_assert(sizeof *list <= 4096, "the arguments of a kernel");
    return pc::start(all_held, 1, pc::THREADS, queue, early, *list);
}

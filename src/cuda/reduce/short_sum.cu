/* short_sum.cu: sums of few elements each, added as sum.cu adds: eight in a tree in the input's type (16-bit numbers in
 * float), those in the wider one, then over the result's threads in a fixed order. */
#include "cuda/reduce/result.cuh"
#include "cuda/reduce/short.cuh"
#include "cuda/shared/sums.cuh"

namespace
{

/* Over a block's threads of each of the results that it has side by side, for the first of them. */
template <class A> __device__ __forceinline__ A sum_of_column(A total, int lanes, int across)
{
    __shared__ A sums[PC__SHORT_LANES];
    sums[threadIdx.x] = total;
    for (int half = lanes / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half * across)
            sums[threadIdx.x] += sums[threadIdx.x + half * across];
    }
    return sums[threadIdx.x]; /* who writes wrote it */
}

/* FOLDS: the elements of a result are not all one step apart. */
template <bool FOLDS, class T, class A, class O>
__global__ void __launch_bounds__(PC__SHORT_LANES)
    short_sums(const __grid_constant__ pc__cuda_short s, const T *__restrict__ in, O *__restrict__ out)
{
    typedef pc::math<T> M;
    const short_part p = short_part_of(s);
    const long long step = s.step * s.lanes;
    const T *x = in + p.first + (FOLDS ? 0 : (p.begin + p.lane) * s.step);
    A total = 0;
    if constexpr (!FOLDS)
        pc::wait_for_earlier();
    for (int at = p.lane; at < p.n; at += SHORT_AT_ONCE * s.lanes) {
        long long place[FOLDS ? SHORT_AT_ONCE : 1];
#pragma unroll
        for (int k = 0; k < (FOLDS ? SHORT_AT_ONCE : 0); k++)
            place[k] = place_of(s, static_cast<unsigned>(p.begin) + at + k * s.lanes);
        if constexpr (FOLDS)
            pc::wait_for_earlier(); /* the places are none of its business */
        M v[SHORT_AT_ONCE];
#pragma unroll
        for (int k = 0; k < SHORT_AT_ONCE; k++) {
            v[k] = at + k * s.lanes < p.n ? M(FOLDS ? x[place[FOLDS ? k : 0]] : *x) : M(0);
            x += FOLDS ? 0 : step;
        }
        total += static_cast<A>(((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7])));
    }
    if constexpr (FOLDS)
        pc::wait_for_earlier(); /* who has no element */
    if (s.across) {
        total = sum_of_column(total, s.lanes, s.across);
    } else {
        total = sum_of_lanes(total, min(s.lanes, WARP));
        if (s.lanes > WARP)
            total = sum_of_lanes(of_warps(total, s.lanes), s.lanes / WARP);
    }
    if (p.writes)
        out[p.result] = result_of<O>(total, s.divisor);
}

template <class T, class A, class O> void launch(const pc__cuda_short *s, const void *in, void *out)
{
    start_short(s->folds ? short_sums<true, T, A, O> : short_sums<false, T, A, O>, s, *s, static_cast<const T *>(in),
                static_cast<O *>(out));
}

template <class T> void launch_real(const pc__cuda_short *s, const void *in, void *out, int to)
{
    if (to == PC__CUDA_F64)
        launch<T, double, double>(s, in, out);
    else if (to == PC__CUDA_F32)
        launch<T, double, float>(s, in, out);
    else
        launch<T, double, T>(s, in, out);
}

} // namespace

void pc__cuda_short_sum(const pc__cuda_short *s, const void *in, int from, void *out, int to)
{
    switch (from) {
    case PC__CUDA_F16:
        return launch_real<pc::f16>(s, in, out, to);
    case PC__CUDA_BF16:
        return launch_real<pc::bf16>(s, in, out, to);
    case PC__CUDA_F32:
        if (to == PC__CUDA_F16)
            return launch<float, double, pc::f16>(s, in, out);
        if (to == PC__CUDA_BF16)
            return launch<float, double, pc::bf16>(s, in, out);
        return launch_real<float>(s, in, out, to);
    case PC__CUDA_F64:
        return launch<double, double, double>(s, in, out);
    default:
        return launch<unsigned long long, unsigned long long, unsigned long long>(s, in, out);
    }
}

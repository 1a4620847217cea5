/* short_max.cu: maxima and minima of few elements each, with their places. */
#include "cuda/reduce/short.cuh"

#include "cuda/reduce/best.cuh"

namespace
{

template <class T, class Order> __device__ __forceinline__ void meet_neighbours(leader<T, Order> &best, int lanes)
{
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
        const pc::math<T> value = __shfl_xor_sync(0xffffffffu, best.value, distance);
        best.meet(value, __shfl_xor_sync(0xffffffffu, best.place, distance));
    }
}

/* Over a block's threads of each of the results that it has side by side, for the first of them. */
template <class T, class Order>
__device__ __forceinline__ void meet_column(leader<T, Order> &best, int lanes, int across)
{
    __shared__ leader<T, Order> bests[PC__SHORT_LANES];
    bests[threadIdx.x] = best;
    for (int half = lanes / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half * across) {
            const leader<T, Order> other = bests[threadIdx.x + half * across];
            best.meet(other.value, other.place);
            bests[threadIdx.x] = best;
        }
    }
}

template <class T, class Order>
__global__ void __launch_bounds__(PC__SHORT_LANES)
    short_extremes(const __grid_constant__ pc__cuda_short s, const T *__restrict__ in, T *__restrict__ out,
                   int64_t *__restrict__ out_places)
{
    const short_part p = short_part_of(s);
    const long long step = s.step * s.lanes;
    const int lane = p.lane < s.n ? p.lane : 0; /* who has none takes the first once more */
    const T *own = in + p.first + lane * s.step, *x = own;
    pc::wait_for_earlier();
    leader<T, Order> best = {*own, static_cast<unsigned>(lane)};
    for (int at = lane; s.n > 1 && at < s.n; at += SHORT_AT_ONCE * s.lanes) {
        T v[SHORT_AT_ONCE];
#pragma unroll
        for (int k = 0; k < SHORT_AT_ONCE; k++) {
            v[k] = *(at + k * s.lanes < s.n ? x : own); /* its own first, compared twice, changes nothing */
            x += step;
        }
#pragma unroll
        for (int k = 0; k < SHORT_AT_ONCE; k++)
            best.see(v[k], at + k * s.lanes);
    }
    if (s.across) {
        meet_column(best, s.lanes, s.across);
    } else {
        meet_neighbours(best, min(s.lanes, WARP));
        if (s.lanes > WARP) {
            best = of_warps(best, s.lanes);
            meet_neighbours(best, s.lanes / WARP);
        }
    }
    if (p.writes) {
        put(out, p.result, best.value);
        out_places[p.result] = best.place;
    }
}

template <class T> void launch(const pc__cuda_short *s, const void *in, void *out, int64_t *places)
{
    start_short(s->least ? short_extremes<T, the_smaller> : short_extremes<T, the_larger>, s, *s,
                static_cast<const T *>(in), static_cast<T *>(out), places);
}

} // namespace

void pc__cuda_short_max(const pc__cuda_short *s, const void *in, int dtype, void *out, int64_t *places)
{
    switch (dtype) {
    case PC__CUDA_BOOL:
    case PC__CUDA_U8:
        return launch<uint8_t>(s, in, out, places);
    case PC__CUDA_I32:
        return launch<int32_t>(s, in, out, places);
    case PC__CUDA_I64:
        return launch<long long>(s, in, out, places);
    case PC__CUDA_F16:
        return launch<pc::f16>(s, in, out, places);
    case PC__CUDA_BF16:
        return launch<pc::bf16>(s, in, out, places);
    case PC__CUDA_F32:
        return launch<float>(s, in, out, places);
    default:
        return launch<double>(s, in, out, places);
    }
}

/* depthwise_weight.cu: weights' gradients of convolutions of each channel alone. A block has some channels, a part of all
 * places and up to TAPS taps, whose sums a thread keeps in registers; parts are added up in order by a second kernel. */
#include "cuda/conv/depthwise.cuh"

namespace
{

enum {
    TAPS = 9,
    PARTS = 512, /* at most: blocks enough for a GPU, where channels are few */
    LEAST = 64,  /* places of a thread row, at least */
};

/* How many parts there are, and places in each. */
inline int parts_of(const pc__cuda_groups *s, long long *places)
{
    const long long pixels = s->n * s->oh * s->ow, least = LEAST * (THREADS / lanes_of(s->c, 4));
    const long long parts = (pixels + least - 1) / least;
    *places = (pixels + (parts < PARTS ? parts : PARTS) - 1) / (parts < PARTS ? parts : PARTS);
    return (int)((pixels + *places - 1) / *places);
}

/* sums[part][channel][tap] */
template <class T, int N>
__global__ void __launch_bounds__(THREADS)
    weight_parts(const __grid_constant__ pc__cuda_groups s, const T *x, const T *y, pc::math<T> *sums, long long places)
{
    typedef pc::math<T> M;
    __shared__ M shared[THREADS * N];
    const int channel = (blockIdx.y * blockDim.x + threadIdx.x) * N, taps = s.kh * s.kw, first = blockIdx.z * TAPS;
    const long long pixels = s.n * s.oh * s.ow, begin = blockIdx.x * places;
    const long long end = begin + places < pixels ? begin + places : pixels;
    const bool mine = channel < s.c;
    M sum[TAPS][N] = {};
    int down[TAPS], right[TAPS];
#pragma unroll
    for (int t = 0; t < TAPS; t++) { /* those behind the last lie beyond any picture */
        down[t] = first + t < taps ? (first + t) / s.kw * s.dh - s.ph : -(1 << 30);
        right[t] = (first + t) % s.kw * s.dw - s.pw;
    }
    pc::wait_for_earlier();
    for (long long pixel = begin + threadIdx.y; mine && pixel < end; pixel += blockDim.y) {
        const place at = place_of(pixel, s.oh, s.ow);
        const vector<T, N> dy = pack_at<T, N>(y + pixel * s.c + channel);
        const T *picture = x + at.picture * s.h * s.w * s.c + channel;
#pragma unroll
        for (int t = 0; t < TAPS; t++) {
            const int row = at.row * s.sh + down[t], column = at.column * s.sw + right[t];
            if ((unsigned)row >= (unsigned)s.h || (unsigned)column >= (unsigned)s.w)
                continue;
            const vector<T, N> value = pack_at<T, N>(picture + (row * s.w + column) * s.c);
#pragma unroll
            for (int i = 0; i < N; i++)
                sum[t][i] += M(value.at[i]) * M(dy.at[i]);
        }
    }
#pragma unroll
    for (int t = 0; t < TAPS; t++) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < N; i++)
            shared[(threadIdx.y * blockDim.x + threadIdx.x) * N + i] = sum[t][i];
        __syncthreads();
        const int thread = threadIdx.y * blockDim.x + threadIdx.x, width = blockDim.x * N;
        const int to = blockIdx.y * width + thread;
        if (thread >= width || to >= s.c || first + t >= taps)
            continue;
        M all = 0;
        for (unsigned r = 0; r < blockDim.y; r++)
            all += shared[r * width + thread];
        sums[((long long)blockIdx.x * s.c + to) * taps + first + t] = all;
    }
}

template <class T>
__global__ void __launch_bounds__(THREADS) add_parts(const pc::math<T> *sums, int parts, long long count, T *weight)
{
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    pc::wait_for_earlier();
    if (i >= count)
        return;
    pc::math<T> all = 0;
    for (int p = 0; p < parts; p++)
        all += sums[p * count + i];
    weight[i] = T(all);
}

template <class T, int N>
void launch_packs(const pc__cuda_groups *s, const void *x, const void *y, void *sums, int parts, long long places)
{
    const int lanes = lanes_of(s->c, N), channels = lanes * N, taps = s->kh * s->kw;
    const dim3 grid(parts, (s->c + channels - 1) / channels, (taps + TAPS - 1) / TAPS);
    (void)pc::start_grid(weight_parts<T, N>, grid, dim3(lanes, THREADS / lanes), 0, s->queue, s->early, *s,
                         (const T *)x, (const T *)y, (pc::math<T> *)sums, places);
}

template <class T> void launch(const pc__cuda_groups *s, const void *x, const void *y, void *weight, void *sums)
{
    constexpr int N = pack_of<T>();
    long long places;
    const int parts = parts_of(s, &places);
    if (s->c % N == 0 && ((uintptr_t)x | (uintptr_t)y) % (N * sizeof(T)) == 0)
        launch_packs<T, N>(s, x, y, sums, parts, places);
    else
        launch_packs<T, 1>(s, x, y, sums, parts, places);
    pc__cuda_groups_add(s, sums, parts, (long long)s->c * s->kh * s->kw, weight);
}

template <class T> void add(const pc__cuda_groups *s, const void *sums, int parts, long long count, void *weight)
{
    (void)pc::start(add_parts<T>, (unsigned)((count + THREADS - 1) / THREADS), THREADS, s->queue, s->early,
                    (const pc::math<T> *)sums, parts, count, (T *)weight);
}

} // namespace

size_t pc__cuda_depthwise_scratch(const pc__cuda_groups *s)
{
    long long places;
    return (size_t)parts_of(s, &places) * (size_t)s->c * (size_t)(s->kh * s->kw) *
           (s->dtype == PC__CUDA_F64 ? sizeof(double) : sizeof(float));
}

void pc__cuda_depthwise_weight(const pc__cuda_groups *s, const void *x, const void *y, void *weight, void *scratch)
{
    with_number(s->dtype, [&](auto number) { launch<decltype(number)>(s, x, y, weight, scratch); });
}

void pc__cuda_groups_add(const pc__cuda_groups *s, const void *sums, int parts, long long count, void *weight)
{
    with_number(s->dtype, [&](auto number) { add<decltype(number)>(s, sums, parts, count, weight); });
}

/* depthwise_weight.cu: weights' gradients of convolutions of each channel alone. A block has some channels, a part of all
 * places and up to TAPS taps, whose sums a thread keeps in registers; parts are added up in order by a second kernel. */
#include "cuda/conv/depthwise_sums.cuh"

namespace
{

enum {
    TAPS = 9,
    PARTS = 512, /* at most: blocks enough for a GPU, where channels are few */
    LEAST = 8,   /* places of a thread row, at least, */
    FEW = 132,   /* but where there are fewer blocks */
    ADDERS = 1024,
};

/* How many parts there are, and places in each. */
inline int parts_of(const pc__cuda_groups *s, long long *places)
{
    const int lanes = lanes_of(s->c, 4), rows = THREADS / lanes, channels = lanes * 4;
    const long long pixels = s->n * s->oh * s->ow,
                    blocks = (long long)((s->c + channels - 1) / channels) * ((s->kh * s->kw + TAPS - 1) / TAPS);
    int least = LEAST;
    while (least > 1 && pixels / (least * rows) * blocks < FEW)
        least /= 2;
    const long long parts = (pixels + least * rows - 1) / (least * rows);
    *places = (pixels + (parts < PARTS ? parts : PARTS) - 1) / (parts < PARTS ? parts : PARTS);
    return (int)((pixels + *places - 1) / *places);
}

/* sums[part][channel][tap] */
template <class T, int N>
__global__ void __launch_bounds__(THREADS)
    weight_parts(const __grid_constant__ pc__cuda_groups s, const T *x, const T *y, pc::math<T> *sums, long long places)
{
    typedef pc::math<T> M;
    __shared__ __align__(16) M shared[taps_at_once(TAPS) * THREADS * N];
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
    leave_sums<M, N, TAPS>(s, sum, shared, first, sums);
}

/* A block has 32 neighbours of the result, a warp of it a share of their parts. */
template <class T>
__global__ void __launch_bounds__(ADDERS) add_parts(const pc::math<T> *sums, int parts, long long count, T *weight)
{
    typedef pc::math<T> M;
    constexpr int AT_ONCE = 8;
    __shared__ M room[ADDERS / 32][32];
    const int down = blockDim.x / 32, lane = threadIdx.x % 32, row = threadIdx.x / 32;
    const int each = (parts + down - 1) / down, end = min(parts, (row + 1) * each);
    const long long i = (long long)blockIdx.x * 32 + lane;
    M all = 0;
    pc::wait_for_earlier();
#pragma unroll 1
    for (int p = row * each; p < end && i < count; p += AT_ONCE) {
        M some[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            some[k] = p + k < end ? sums[(p + k) * count + i] : M(0);
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            all += some[k];
    }
    room[row][lane] = all;
    __syncthreads();
    if (row > 0 || i >= count)
        return;
    all = 0;
#pragma unroll 8
    for (int k = 0; k < down; k++)
        all += room[k][lane];
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
    int parts = parts_of(s, &places);
    const bool aligned = ((uintptr_t)x | (uintptr_t)y) % (N * sizeof(T)) == 0;
    const int tiled = pc__cuda_depthwise_tiles_weight(s, x, y, sums, parts);
    if (tiled > 0)
        parts = tiled;
    else if (aligned && s->c % N == 0)
        launch_packs<T, N>(s, x, y, sums, parts, places);
    else
        launch_packs<T, 1>(s, x, y, sums, parts, places);
    pc__cuda_groups_add(s, sums, parts, (long long)s->c * s->kh * s->kw, weight);
}

template <class T> void add(const pc__cuda_groups *s, const void *sums, int parts, long long count, void *weight)
{
    const int threads = parts > 64 ? ADDERS : ADDERS / 4;
    (void)pc::start(add_parts<T>, (unsigned)((count + 31) / 32), threads, s->queue, s->early, (const pc::math<T> *)sums,
                    parts, count, (T *)weight);
}

} // namespace

size_t pc__cuda_depthwise_scratch(const pc__cuda_groups *s)
{
    long long places;
    if (s->planes)
        return pc__cuda_depthwise_planes_scratch(s);
    return (size_t)parts_of(s, &places) * (size_t)s->c * (size_t)(s->kh * s->kw) *
           (s->dtype == PC__CUDA_F64 ? sizeof(double) : sizeof(float));
}

void pc__cuda_depthwise_weight(const pc__cuda_groups *s, const void *x, const void *y, void *weight, void *scratch)
{
    if (s->planes)
        pc__cuda_depthwise_planes_weight(s, x, y, weight, scratch);
    else
        with_number(s->dtype, [&](auto number) { launch<decltype(number)>(s, x, y, weight, scratch); });
}

void pc__cuda_groups_add(const pc__cuda_groups *s, const void *sums, int parts, long long count, void *weight)
{
    with_number(s->dtype, [&](auto number) { add<decltype(number)>(s, sums, parts, count, weight); });
}

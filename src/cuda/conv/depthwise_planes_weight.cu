/* depthwise_planes_weight.cu: weights' gradients of convolutions of each channel alone of pictures in C order. A block has a channel
 * and a part of its places; where there is one part, its sums are the gradient, else parts are added up in order. */
#include "cuda/conv/depthwise_planes.cuh"

namespace
{

enum {
    BLOCK = 128,
    WARPS = BLOCK / 32,
    TAPS = 9,      /* of a thread, of any windows */
    BLOCKS = 1056, /* eight for each of 132 multiprocessors */
    LEAST = 2,     /* items of a thread, where there are parts */
};

template <class T> struct operands {
    const T *x, *y;
    T *weight;
    pc::math<T> *sums; /* [part][channel][tap] */
    int down;          /* items that a column has */
    int apart;         /* results of an item */
    long long each;    /* items of a part, less than 2^30 */
};

/* The items of a part, as a thread counts them from the first picture that it sees on. */
struct range {
    long long picture;
    unsigned begin, end;
};

template <class T> __device__ __forceinline__ range range_of(const pc__cuda_groups &s, const operands<T> &of)
{
    const long long picture = (long long)of.down * s.ow, all = s.n * picture, begin = blockIdx.y * of.each;
    const unsigned rest = static_cast<unsigned>(begin % picture);
    const long long count = all - begin < of.each ? all - begin : of.each;
    return {begin / picture, rest + threadIdx.x, rest + static_cast<unsigned>(count)};
}

/* Sums of all threads for K taps from `first` on, to the gradient or to the sums of the part. */
template <class T, int K>
__device__ __forceinline__ void leave(const pc__cuda_groups &s, const operands<T> &of, const pc::math<T> (&sum)[K],
                                      int first)
{
    typedef pc::math<T> M;
    __shared__ M room[K][WARPS];
#pragma unroll
    for (int t = 0; t < K; t++) {
        const M all = warp_join<plus>(sum[t]);
        if (threadIdx.x % 32 == 0)
            room[t][threadIdx.x / 32] = all;
    }
    __syncthreads();
    const int taps = s.kh * s.kw, tap = first + threadIdx.x;
    if (threadIdx.x >= K || tap >= taps)
        return;
    M all = 0;
#pragma unroll
    for (int i = 0; i < WARPS; i++)
        all += room[threadIdx.x][i];
    if (gridDim.y == 1)
        of.weight[(long long)blockIdx.x * taps + tap] = T(all);
    else
        of.sums[((long long)blockIdx.y * s.c + blockIdx.x) * taps + tap] = all;
}

template <class T, int K, int S, bool GAPS>
__global__ void __launch_bounds__(BLOCK) strips(const __grid_constant__ pc__cuda_groups s, const operands<T> of)
{
    typedef pc::math<T> M;
    const range items = range_of(s, of);
    const int down = gap_of<GAPS>(s.dh), along = gap_of<GAPS>(s.dw), apart = gap_of<GAPS>(of.apart);
    M sum[K * K] = {};
    pc::wait_for_earlier();
#pragma unroll 1
    for (unsigned item = items.begin; item < items.end; item += BLOCK) {
        const unsigned line = item / s.ow, picture = line / of.down;
        const int column = item - line * s.ow, row = first_row(line - picture * of.down, apart);
        const int top = row * (GAPS ? s.sh : S) - s.ph, left = column * (GAPS ? s.sw : S) - s.pw;
        const long long plane = (items.picture + picture) * s.c + blockIdx.x;
        const T *x = of.x + plane * s.h * s.w, *y = of.y + (plane * s.oh + row) * s.ow + column;
        M slope[DOWN];
        bool there[DOWN]; /* else Inf, of a row that is no result's, times 0 would be NaN */
#pragma unroll
        for (int p = 0; p < DOWN; p++)
            there[p] = row + p * apart < s.oh, slope[p] = there[p] ? M(y[(long long)p * apart * s.ow]) : M(0);
#pragma unroll
        for (int i = 0; i < ROWS<K, S>; i++) {
            M seen[K];
            take_columns<T, K>(s, x, top + i * down, left, along, seen);
#pragma unroll
            for (int p = 0; p < DOWN; p++)
                if (i - p * S >= 0 && i - p * S < K && there[p])
#pragma unroll
                    for (int k = 0; k < K; k++)
                        sum[(i - p * S) * K + k] += seen[k] * slope[p];
        }
    }
    leave<T, K * K>(s, of, sum, 0);
}

/* Any windows: an item is a place, and blocks have up to TAPS taps. */
template <class T>
__global__ void __launch_bounds__(BLOCK) any(const __grid_constant__ pc__cuda_groups s, const operands<T> of)
{
    typedef pc::math<T> M;
    const range items = range_of(s, of);
    const int first = blockIdx.z * TAPS, taps = s.kh * s.kw;
    int down[TAPS], right[TAPS];
    M sum[TAPS] = {};
#pragma unroll
    for (int t = 0; t < TAPS; t++) { /* those behind the last lie beyond any picture */
        down[t] = first + t < taps ? (first + t) / s.kw * s.dh - s.ph : -(1 << 30);
        right[t] = (first + t) % s.kw * s.dw - s.pw;
    }
    pc::wait_for_earlier();
#pragma unroll 1
    for (unsigned item = items.begin; item < items.end; item += BLOCK) {
        const unsigned line = item / s.ow, picture = line / s.oh;
        const int column = item - line * s.ow, row = line - picture * s.oh;
        const long long plane = (items.picture + picture) * s.c + blockIdx.x;
        const T *x = of.x + plane * s.h * s.w;
        const M slope = M(of.y[(plane * s.oh + row) * s.ow + column]);
#pragma unroll
        for (int t = 0; t < TAPS; t++) {
            const int r = row * s.sh + down[t], k = column * s.sw + right[t];
            if ((unsigned)r < (unsigned)s.h && (unsigned)k < (unsigned)s.w)
                sum[t] += M(x[(long long)r * s.w + k]) * slope;
        }
    }
    leave<T, TAPS>(s, of, sum, first);
}

inline int down_of(const pc__cuda_groups *s)
{
    return has_strips(*s) ? strips_down(*s) : s->oh;
}

/* How many parts of a channel's items, and items of each. */
int parts_of(const pc__cuda_groups *s, long long *each)
{
    const long long items = s->n * down_of(s) * s->ow, useful = items / (LEAST * BLOCK), spread = BLOCKS / s->c;
    const long long counted = items / (1 << 30) + 1, wanted = useful < spread ? useful : spread;
    const long long parts = wanted > counted ? wanted : counted;
    *each = (items + parts - 1) / parts;
    return (int)((items + *each - 1) / *each);
}

template <class T> void weight(const pc__cuda_groups *s, const void *x, const void *y, void *to, void *sums)
{
    operands<T> of = {(const T *)x, (const T *)y, (T *)to, (pc::math<T> *)sums, down_of(s), apart_of(*s), 0};
    const int parts = parts_of(s, &of.each), taps = s->kh * s->kw;
    const auto launch = [&](void (*kernel)(pc__cuda_groups, operands<T>), int blocks) {
        (void)pc::start_grid(kernel, dim3(s->c, parts, blocks), dim3(BLOCK), 0, s->queue, s->early, *s, of);
    };
    if (!has_strips(*s))
        launch(any<T>, (taps + TAPS - 1) / TAPS);
    else if constexpr (sizeof(T) < sizeof(double))
        with_strips(*s, [&](auto k, auto stride, auto gaps) {
            launch(strips<T, decltype(k)::value, decltype(stride)::value, decltype(gaps)::value != 0>, 1);
        });
    if (parts > 1)
        pc__cuda_groups_add(s, sums, parts, (long long)s->c * taps, to);
}

} // namespace

size_t pc__cuda_depthwise_planes_scratch(const pc__cuda_groups *s)
{
    long long each;
    const size_t parts = (size_t)parts_of(s, &each), number = s->dtype == PC__CUDA_F64 ? sizeof(double) : sizeof(float);
    return parts > 1 ? parts * (size_t)s->c * (size_t)(s->kh * s->kw) * number : 1;
}

void pc__cuda_depthwise_planes_weight(const pc__cuda_groups *s, const void *x, const void *y, void *to, void *scratch)
{
    with_number(s->dtype, [&](auto n) { weight<decltype(n)>(s, x, y, to, scratch); });
}

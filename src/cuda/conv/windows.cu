/* windows.cu: windows of pictures as rows of matrices, and what goes in and out of their products. */
#include "cuda/conv/windows.h"

#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/half.cuh"
#include "cuda/shared/sums.cuh"

namespace
{

constexpr int THREADS = 256, PACK = 8;

struct alignas(16) pack {
    uint16_t at[PACK];
};

__device__ __forceinline__ long long thread_in_grid()
{
    return static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x;
}

/* n / by; what is left over stays in n. */
__device__ __forceinline__ long long divide(long long &n, int by)
{
    const long long whole = quotient(n, by);
    n -= whole * by;
    return whole;
}

/* Where a tap of the window of a place lies in what is gathered, in places; -1: nowhere. */
__device__ __forceinline__ long long seen_at(const pc__cuda_windows &w, long long place, int tap)
{
    const pc__cuda_groups &s = w.s;
    const int r = tap / s.kw, k = tap - r * s.kw;
    long long rest = place;
    const long long line = divide(rest, w.back ? s.w : s.ow);
    long long row_rest = line;
    const long long picture = divide(row_rest, w.back ? s.h : s.oh);
    int row = static_cast<int>(row_rest), column = static_cast<int>(rest);
    if (!w.back) {
        row = row * s.sh - s.ph + r * s.dh, column = column * s.sw - s.pw + k * s.dw;
    } else {
        const int top = row + s.ph - r * s.dh, left = column + s.pw - k * s.dw;
        row = top / s.sh, column = left / s.sw;
        if (top < 0 || left < 0 || row * s.sh != top || column * s.sw != left)
            return -1;
    }
    const int height = w.back ? s.oh : s.h, width = w.back ? s.ow : s.w;
    if ((unsigned)row >= (unsigned)height || (unsigned)column >= (unsigned)width)
        return -1;
    return (picture * height + row) * width + column;
}

/* A thread for 16 bytes. WHOLE: they lie on 16 bytes in the pictures, too. */
template <bool WHOLE>
__global__ void __launch_bounds__(THREADS)
    gather(const __grid_constant__ pc__cuda_windows w, const uint16_t *from, pack *rows, long long packs)
{
    const long long id = thread_in_grid();
    pc::wait_for_earlier();
    if (id >= packs)
        return;
    long long channel = id;
    long long tap = divide(channel, w.depth / PACK);
    long long place = divide(tap, w.s.kh * w.s.kw);
    const long long group = quotient(place, w.places);
    place -= group * w.places;
    channel *= PACK;
    const long long seen = seen_at(w, place, static_cast<int>(tap));
    pack some = {};
    if (seen >= 0) {
        const uint16_t *x = from + seen * w.s.groups * w.deep + group * w.deep + channel;
        if constexpr (WHOLE) {
            some = *reinterpret_cast<const pack *>(x);
        } else {
#pragma unroll
            for (int i = 0; i < PACK; i++)
                some.at[i] = channel + i < w.deep ? x[i] : 0;
        }
    }
    rows[id] = some;
}

__global__ void __launch_bounds__(THREADS)
    turn_weight(const __grid_constant__ pc__cuda_windows w, const uint16_t *weight, uint16_t *to, long long count)
{
    const long long id = thread_in_grid();
    pc::wait_for_earlier();
    if (id >= count)
        return;
    const int taps = w.s.kh * w.s.kw;
    long long deep = id;
    long long tap = divide(deep, w.depth), wide = divide(tap, taps);
    const long long group = divide(wide, w.width), o = w.back ? deep : wide, c = w.back ? wide : deep;
    const int outs = w.back ? w.deep : w.wide, ins = w.back ? w.wide : w.deep;
    to[id] = deep < w.deep && wide < w.wide ? weight[((group * outs + o) * ins + c) * taps + tap] : 0;
}

__global__ void __launch_bounds__(THREADS)
    split(const __grid_constant__ pc__cuda_windows w, const uint16_t *pictures, uint16_t *matrices, long long count)
{
    const long long id = thread_in_grid();
    pc::wait_for_earlier();
    if (id >= count)
        return;
    long long wide = id;
    long long place = divide(wide, w.width);
    const long long group = quotient(place, w.places);
    place -= group * w.places;
    matrices[id] = wide < w.wide ? pictures[(place * w.s.groups + group) * w.wide + wide] : 0;
}

template <class T>
__global__ void __launch_bounds__(THREADS) merge(const __grid_constant__ pc__cuda_windows w, const float *matrices,
                                                 const T *bias, T *pictures, long long count)
{
    const long long id = thread_in_grid();
    pc::wait_for_earlier();
    if (id >= count)
        return;
    long long wide = id;
    long long group = divide(wide, w.wide);
    const long long place = divide(group, w.s.groups);
    const float value = matrices[(group * w.places + place) * w.width + wide];
    pictures[id] = T(bias ? value + float(bias[group * w.wide + wide]) : value);
}

template <class T>
__global__ void __launch_bounds__(THREADS) finish(const __grid_constant__ pc__cuda_windows w, const float *sums,
                                                  int parts, T *weight, long long count, long long part)
{
    const long long id = thread_in_grid();
    pc::wait_for_earlier();
    if (id >= count)
        return;
    const int taps = w.s.kh * w.s.kw;
    long long tap = id;
    long long deep = divide(tap, taps), wide = divide(deep, w.deep);
    const long long group = divide(wide, w.wide);
    const float *from = sums + ((group * w.width + wide) * taps + tap) * w.depth + deep;
    float all = 0;
    for (int p = 0; p < parts; p++)
        all += from[p * part];
    weight[id] = T(all);
}

unsigned blocks_for(long long threads)
{
    return static_cast<unsigned>((threads + THREADS - 1) / THREADS);
}

} // namespace

void pc__cuda_windows_gather(const pc__cuda_windows *w, const void *from, void *rows)
{
    const long long packs = w->s.groups * w->places * w->s.kh * w->s.kw * (w->depth / PACK);
    const bool whole = w->deep % PACK == 0 && (uintptr_t)from % 16 == 0;
    pc::start(whole ? gather<true> : gather<false>, blocks_for(packs), THREADS, w->s.queue, w->s.early, *w,
              static_cast<const uint16_t *>(from), static_cast<pack *>(rows), packs);
}

void pc__cuda_windows_weight(const pc__cuda_windows *w, const void *weight, void *to)
{
    const long long count = (long long)w->s.groups * w->width * w->s.kh * w->s.kw * w->depth;
    pc::start(turn_weight, blocks_for(count), THREADS, w->s.queue, w->s.early, *w,
              static_cast<const uint16_t *>(weight), static_cast<uint16_t *>(to), count);
}

void pc__cuda_windows_split(const pc__cuda_windows *w, const void *pictures, void *matrices)
{
    const long long count = w->s.groups * w->places * w->width;
    pc::start(split, blocks_for(count), THREADS, w->s.queue, w->s.early, *w, static_cast<const uint16_t *>(pictures),
              static_cast<uint16_t *>(matrices), count);
}

template <class T>
static void merge_as(const pc__cuda_windows *w, const float *matrices, const void *bias, void *pictures)
{
    const long long count = w->s.groups * w->places * w->wide;
    pc::start(merge<T>, blocks_for(count), THREADS, w->s.queue, w->s.early, *w, matrices, static_cast<const T *>(bias),
              static_cast<T *>(pictures), count);
}

void pc__cuda_windows_merge(const pc__cuda_windows *w, const float *matrices, const void *bias, void *pictures)
{
    if (w->s.dtype == PC__CUDA_F16)
        merge_as<pc::f16>(w, matrices, bias, pictures);
    else
        merge_as<pc::bf16>(w, matrices, bias, pictures);
}

template <class T> static void finish_as(const pc__cuda_windows *w, const float *sums, int parts, void *weight)
{
    const long long taps = w->s.kh * w->s.kw, count = w->s.groups * taps * w->wide * w->deep;
    pc::start(finish<T>, blocks_for(count), THREADS, w->s.queue, w->s.early, *w, sums, parts, static_cast<T *>(weight),
              count, w->s.groups * taps * w->width * w->depth);
}

void pc__cuda_windows_finish(const pc__cuda_windows *w, const float *sums, int parts, void *weight)
{
    if (w->s.dtype == PC__CUDA_F16)
        finish_as<pc::f16>(w, sums, parts, weight);
    else
        finish_as<pc::bf16>(w, sums, parts, weight);
}

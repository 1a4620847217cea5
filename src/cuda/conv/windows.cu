/* windows.cu: windows of pictures as rows of matrices, and what goes in and out of their products. */
#include "cuda/conv/windows.h"

#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/dtype.cuh"
#include "cuda/shared/sums.cuh"

namespace
{

constexpr int THREADS = 256;

/* 16 bytes of numbers, which are moved as words of their size. */
template <class W> constexpr int PACK = 16 / sizeof(W);

template <class W> struct alignas(16) pack {
    W at[PACK<W>];
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
template <class W, bool WHOLE>
__global__ void __launch_bounds__(THREADS)
    gather(const __grid_constant__ pc__cuda_windows w, const W *from, pack<W> *rows, long long packs)
{
    const long long id = thread_in_grid();
    pc::wait_for_earlier();
    if (id >= packs)
        return;
    long long channel = id;
    long long tap = divide(channel, w.depth / PACK<W>);
    long long place = divide(tap, w.s.kh * w.s.kw);
    const long long group = quotient(place, w.places);
    place -= group * w.places;
    channel *= PACK<W>;
    const long long seen = seen_at(w, place, static_cast<int>(tap));
    pack<W> some = {};
    if (seen >= 0) {
        const W *x = from + seen * w.s.groups * w.deep + group * w.deep + channel;
        if constexpr (WHOLE) {
            some = *reinterpret_cast<const pack<W> *>(x);
        } else {
#pragma unroll
            for (int i = 0; i < PACK<W>; i++)
                some.at[i] = channel + i < w.deep ? x[i] : 0;
        }
    }
    rows[id] = some;
}

template <class W>
__global__ void __launch_bounds__(THREADS)
    turn_weight(const __grid_constant__ pc__cuda_windows w, const W *weight, W *to, long long count)
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

template <class W>
__global__ void __launch_bounds__(THREADS)
    split(const __grid_constant__ pc__cuda_windows w, const W *pictures, W *matrices, long long count)
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

template <class T> void merge_as(const pc__cuda_windows *w, const float *matrices, const void *bias, void *pictures)
{
    const long long count = w->s.groups * w->places * w->wide;
    pc::start(merge<T>, blocks_for(count), THREADS, w->s.queue, w->s.early, *w, matrices, static_cast<const T *>(bias),
              static_cast<T *>(pictures), count);
}

template <class T> void finish_as(const pc__cuda_windows *w, const float *sums, int parts, void *weight)
{
    const long long taps = w->s.kh * w->s.kw, count = w->s.groups * taps * w->wide * w->deep;
    pc::start(finish<T>, blocks_for(count), THREADS, w->s.queue, w->s.early, *w, sums, parts, static_cast<T *>(weight),
              count, w->s.groups * taps * w->width * w->depth);
}

/* launch(word as wide as a number) */
template <class LAUNCH> void with_word(const pc__cuda_windows *w, LAUNCH launch)
{
    w->s.dtype == PC__CUDA_F32 ? launch(uint32_t()) : launch(uint16_t());
}

} // namespace

void pc__cuda_windows_gather(const pc__cuda_windows *w, const void *from, void *rows)
{
    with_word(w, [&](auto word) {
        typedef decltype(word) W;
        const long long packs = w->s.groups * w->places * w->s.kh * w->s.kw * (w->depth / PACK<W>);
        const bool whole = w->deep % PACK<W> == 0 && (uintptr_t)from % 16 == 0;
        pc::start(whole ? gather<W, true> : gather<W, false>, blocks_for(packs), THREADS, w->s.queue, w->s.early, *w,
                  static_cast<const W *>(from), static_cast<pack<W> *>(rows), packs);
    });
}

void pc__cuda_windows_weight(const pc__cuda_windows *w, const void *weight, void *to)
{
    const long long count = (long long)w->s.groups * w->width * w->s.kh * w->s.kw * w->depth;
    with_word(w, [&](auto word) {
        typedef decltype(word) W;
        pc::start(turn_weight<W>, blocks_for(count), THREADS, w->s.queue, w->s.early, *w,
                  static_cast<const W *>(weight), static_cast<W *>(to), count);
    });
}

void pc__cuda_windows_split(const pc__cuda_windows *w, const void *pictures, void *matrices)
{
    const long long count = w->s.groups * w->places * w->width;
    with_word(w, [&](auto word) {
        typedef decltype(word) W;
        pc::start(split<W>, blocks_for(count), THREADS, w->s.queue, w->s.early, *w, static_cast<const W *>(pictures),
                  static_cast<W *>(matrices), count);
    });
}

void pc__cuda_windows_merge(const pc__cuda_windows *w, const float *matrices, const void *bias, void *pictures)
{
    with_number(w->s.dtype, [&](auto number) {
        if constexpr (sizeof number <= sizeof(float))
            merge_as<decltype(number)>(w, matrices, bias, pictures);
    });
}

void pc__cuda_windows_finish(const pc__cuda_windows *w, const float *sums, int parts, void *weight)
{
    with_number(w->s.dtype, [&](auto number) {
        if constexpr (sizeof number <= sizeof(float))
            finish_as<decltype(number)>(w, sums, parts, weight);
    });
}

/* stage.cu: padding of channels and back. A block brings as many rows as begin and end on 16 bytes on both sides into
 * shared memory and writes them from there; of long rows, or ones that lie elsewhere, a thread writes 16 bytes, and single
 * numbers come out of the first-level cache. */
#include "cuda/conv/stage.h"

#include "cuda/shared/dependent_launch.cuh"

namespace
{

enum { THREADS = 256, BLOCKS_MOST = 132 * 16, GROUP = 8, GROUP_BYTES = 12 << 10 };

template <class T> struct alignas(16) chunk {
    enum { N = 16 / sizeof(T) };
    T v[N];
};

int blocks_for(int64_t threads)
{
    const int64_t blocks = (threads + THREADS - 1) / THREADS;
    return (int)(blocks < BLOCKS_MOST ? blocks : BLOCKS_MOST);
}

/* Index: 32 bits wherever both sides have fewer numbers than that. */
template <class T, class Index>
__global__ void __launch_bounds__(THREADS) pad_rows(const T *in, Index from, T *out, Index to, Index count)
{
    pc::wait_for_earlier();
    for (Index at = (blockIdx.x * (Index)THREADS + threadIdx.x) * chunk<T>::N; at < count;
         at += gridDim.x * (Index)THREADS * chunk<T>::N) {
        Index row = at / to, column = at - row * to;
        chunk<T> c;
#pragma unroll
        for (int i = 0; i < chunk<T>::N; i++) {
            c.v[i] = column < from && at + i < count ? in[row * from + column] : T(0);
            if (++column == to)
                column = 0, row++;
        }
        if (at + chunk<T>::N <= count)
            *reinterpret_cast<chunk<T> *>(out + at) = c;
        else
            for (int i = 0; at + i < count; i++)
                out[at + i] = c.v[i];
    }
}

/* A block has `group` rows, of the last one what is left. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    pad_groups(const T *in, uint32_t from, T *out, uint32_t to, int64_t rows, uint32_t group)
{
    extern __shared__ __align__(16) char shared[];
    constexpr uint32_t N = chunk<T>::N;
    T *numbers = reinterpret_cast<T *>(shared);
    const int64_t first = blockIdx.x * (int64_t)group;
    const uint32_t count = (uint32_t)(rows - first < group ? rows - first : group);
    pc::wait_for_earlier();
    in += first * from;
    out += first * to;
    for (uint32_t i = threadIdx.x * N; i < count * from; i += THREADS * N) {
        if (i + N <= count * from)
            *reinterpret_cast<chunk<T> *>(numbers + i) = *reinterpret_cast<const chunk<T> *>(in + i);
        else
            for (uint32_t k = i; k < count * from; k++)
                numbers[k] = in[k];
    }
    __syncthreads();
    for (uint32_t at = threadIdx.x * N; at < count * to; at += THREADS * N) {
        uint32_t row = at / to, column = at - row * to;
        chunk<T> c;
#pragma unroll
        for (uint32_t i = 0; i < N; i++) {
            c.v[i] = column < from && row < count ? numbers[row * from + column] : T(0);
            if (++column == to)
                column = 0, row++;
        }
        if (at + N <= count * to)
            *reinterpret_cast<chunk<T> *>(out + at) = c;
        else
            for (uint32_t i = 0; at + i < count * to; i++)
                out[at + i] = c.v[i];
    }
}

/* Rows of a block of pad_groups, 0 where it does not do it; fewer where blocks are. */
template <class T> uint32_t group_of(const void *in, int from, int to, int64_t rows)
{
    const int64_t most = GROUP_BYTES / (int64_t)sizeof(T) / (from > to ? from : to) / GROUP * GROUP;
    const int64_t each = (rows / BLOCKS_MOST + GROUP) / GROUP * GROUP;
    return (uintptr_t)in % 16 == 0 && rows / GROUP < INT32_MAX ? (uint32_t)(most < each ? most : each) : 0;
}

template <class T>
void rows_of(cudaStream_t queue, const void *in, int from, void *out, int to, int64_t rows, int early)
{
    const uint32_t group = group_of<T>(in, from, to, rows);
    if (group > 0) {
        (void)pc::start_grid(pad_groups<T>, dim3((unsigned)((rows + group - 1) / group)), dim3(THREADS),
                             (size_t)group * (size_t)from * sizeof(T), queue, early, (const T *)in, (uint32_t)from,
                             (T *)out, (uint32_t)to, rows, group);
        return;
    }
    const int64_t count = rows * to, most = rows * (from > to ? from : to);
    const int blocks = blocks_for((count + chunk<T>::N - 1) / chunk<T>::N);
    if (most < (int64_t)1 << 31)
        (void)pc::start(pad_rows<T, uint32_t>, blocks, THREADS, queue, early, (const T *)in, (uint32_t)from, (T *)out,
                        (uint32_t)to, (uint32_t)count);
    else
        (void)pc::start(pad_rows<T, int64_t>, blocks, THREADS, queue, early, (const T *)in, (int64_t)from, (T *)out,
                        (int64_t)to, count);
}

/* A filter has at most 2^31 numbers. */
template <class T> __global__ void __launch_bounds__(THREADS) pad_filter(pc__cuda_conv_filter f, const T *in, T *out)
{
    const uint32_t taps = (uint32_t)f.to_kh * f.to_kw, count = (uint32_t)f.to_o * taps * f.to_c;
    pc::wait_for_earlier();
    for (uint32_t at = blockIdx.x * THREADS + threadIdx.x; at < count; at += gridDim.x * THREADS) {
        const uint32_t k = at % f.to_c, rest = at / f.to_c, tap = rest % taps, o = rest / taps;
        const uint32_t place = k / f.c, c = k - place * f.c;
        const int row = tap / f.to_kw * f.sh + place / f.sw, column = tap % f.to_kw * f.sw + place % f.sw;
        const bool there = (int)place < f.sh * f.sw && row < f.kh && column < f.kw && (int)o < f.o;
        out[at] = there ? in[o * f.c * f.kh * f.kw + pc__cuda_conv_filter_at(&f, c, row * f.kw + column)] : T(0);
    }
}

template <class T> __global__ void __launch_bounds__(THREADS) cut_filter(pc__cuda_conv_filter f, const T *in, T *out)
{
    const uint32_t taps = (uint32_t)f.kh * f.kw, count = (uint32_t)f.o * f.c * taps;
    pc::wait_for_earlier();
    for (uint32_t at = blockIdx.x * THREADS + threadIdx.x; at < count; at += gridDim.x * THREADS) {
        const uint32_t one = f.c * taps, o = at / one, rest = at - o * one;
        const uint32_t tap = f.last ? rest / f.c : rest % taps, c = f.last ? rest % f.c : rest / taps;
        const uint32_t row = tap / f.kw, column = tap % f.kw, place = row % f.sh * f.sw + column % f.sw;
        out[at] = in[((o * f.to_kh + row / f.sh) * f.to_kw + column / f.sw) * f.to_c + place * f.c + c];
    }
}

} // namespace

void pc__cuda_conv_rows(cudaStream_t queue, const void *in, int from, void *out, int to, int64_t rows, size_t size,
                        int early)
{
    if (size == 2)
        rows_of<uint16_t>(queue, in, from, out, to, rows, early);
    else
        rows_of<uint32_t>(queue, in, from, out, to, rows, early);
}

void pc__cuda_conv_filter_pad(cudaStream_t queue, const pc__cuda_conv_filter *f, const void *ours, void *theirs)
{
    const int blocks = blocks_for((int64_t)f->to_o * f->to_kh * f->to_kw * f->to_c);
    if (f->size == 2)
        (void)pc::start(pad_filter<uint16_t>, blocks, THREADS, queue, f->early, *f, (const uint16_t *)ours,
                        (uint16_t *)theirs);
    else
        (void)pc::start(pad_filter<uint32_t>, blocks, THREADS, queue, f->early, *f, (const uint32_t *)ours,
                        (uint32_t *)theirs);
}

void pc__cuda_conv_filter_cut(cudaStream_t queue, const pc__cuda_conv_filter *f, const void *theirs, void *ours)
{
    const int blocks = blocks_for((int64_t)f->o * f->kh * f->kw * f->c);
    if (f->size == 2)
        (void)pc::start(cut_filter<uint16_t>, blocks, THREADS, queue, f->early, *f, (const uint16_t *)theirs,
                        (uint16_t *)ours);
    else
        (void)pc::start(cut_filter<uint32_t>, blocks, THREADS, queue, f->early, *f, (const uint32_t *)theirs,
                        (uint32_t *)ours);
}

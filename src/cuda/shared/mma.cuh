/* mma.cuh: products of floats by matrix units, which read 11 bits of each factor: a float is the sum of two such
 * halves (but for its last bit or two), and a product that of three of the four products of halves; the one left out is
 * below 2^-22 of it. An infinite factor gives NaN. */
#ifndef PC__CUDA_TENSOR_CUH
#define PC__CUDA_TENSOR_CUH

#include "cuda/shared/half.cuh"
#include "cuda/shared/load.cuh"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define TENSOR_UNITS 1
#else
#define TENSOR_UNITS 0
#endif

namespace
{

/* N floats taken apart. Where the first halves alone are multiplied they keep NaN: the bits of one that a GPU has computed
 * would be those of -0 when rounded. */
template <int N> struct halves {
    unsigned high[N], low[N];

    template <bool EXACT> __device__ inline void take(int i, float x)
    {
        const unsigned half = EXACT || x == x ? 0x1000u : 0u;
        high[i] = (__float_as_uint(x) + half) & 0xffffe000u;
        low[i] = __float_as_uint(x - __uint_as_float(high[i]));
    }
};

#if TENSOR_UNITS
__device__ inline void add_tensor(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* sum[32][8] += a[32][8] b[8][8], spread over the warp, for each half of 16 rows: with g = lane / 4 and t = lane % 4, a
 * thread has a[g][t], a[g + 8][t], a[g][t + 4], a[g + 8][t + 4]; b[t][g], b[t + 4][g]; sum[g][2 t], its neighbour, and
 * the same of g + 8. The halves take turns, since each product waits for the sum before it; so do N of b side by side.
 * Without EXACT only the first halves are multiplied: TF32. */
template <bool EXACT, int N>
__device__ inline void add_products(float (*upper)[4], float (*lower)[4], const halves<4> (&a)[2],
                                    const halves<2> (&b)[N])
{
#pragma unroll
    for (int pass = EXACT ? 0 : 2; pass < 3; pass++)
#pragma unroll
        for (int n = 0; n < N; n++) {
            add_tensor(upper[n], pass == 0 ? a[0].low : a[0].high, pass == 1 ? b[n].low : b[n].high);
            add_tensor(lower[n], pass == 0 ? a[1].low : a[1].high, pass == 1 ? b[n].low : b[n].high);
        }
}

/* sum[16][8] += a[16][16] b[16][8] of 16-bit numbers, spread over the warp: with g = lane / 4 and t = lane % 4 a thread
 * has, two side by side along the 16, a[g][2 t], a[g + 8][2 t], a[g][2 t + 8], a[g + 8][2 t + 8]; b[2 t][g],
 * b[2 t + 8][g]; and sum[g][2 t], its neighbour, and the same of g + 8. */
__device__ inline void add_tensor(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2], pc::bf16)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ inline void add_tensor(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2], pc::f16)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Four squares of 8 x 8 16-bit numbers: lane i points to row i % 8 of square i / 8, 16 bytes; a thread gets of each row
 * lane / 4 the numbers at 2 (lane % 4) and behind it (addresses in shared memory's own space). TURNED: of each column
 * lane / 4, rows 2 (lane % 4) and behind it.
 */
template <bool TURNED> __device__ inline void take_squares(unsigned (&to)[4], unsigned at)
{
    if (TURNED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(at)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(at)
                     : "memory");
}

template <bool TURNED> __device__ inline void take_squares(unsigned (&to)[4], const void *row)
{
    take_squares<TURNED>(to, (unsigned)__cvta_generic_to_shared(row));
}

/* Elements from global to shared memory while the thread goes on; zeros where `there` is false, but `from` is read
 * memory even so. */
template <int BYTES> __device__ inline void send(void *to, const void *from, bool there)
{
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from), "n"(BYTES),
                 "r"(there ? BYTES : 0)
                 : "memory");
}

/* The same, but zeros are stored: `from` may lie anywhere then, and there is less to it than to a size that varies. */
template <int BYTES> __device__ inline void send_or_clear(void *to, const void *from, bool there)
{
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    if (there)
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from), "n"(BYTES) : "memory");
    else
        *(vector<float, BYTES / 4> *)to = {};
}

/* 16 bytes so, past first-level memory: what is ready is read ahead this way (dependent_launch.cuh). */
__device__ inline void send_past(void *to, const void *from, bool there)
{
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(there ? 16 : 0) : "memory");
}

__device__ inline void sent()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Until all but the latest `LATER` groups have arrived. */
template <int LATER> __device__ inline void wait_sent()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(LATER) : "memory");
}
#endif

} // namespace

#endif

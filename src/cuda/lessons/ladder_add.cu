/* ladder_add.cu: c = a + b, from one thread to the speed of memory; and multiply-adds alone, the limit of a product.
 * Read it from the top. */
#include "cuda/lessons/ladder.h"

namespace
{

/* A loop as on a CPU. But here a load takes half a microsecond, and one thread has a few of them under way at best. */
__global__ void one_thread(const float *a, const float *b, float *c, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        c[i] = a[i] + b[i];
}

/* 256 threads side by side: 32 neighbours share one transaction of 128 bytes. One multiprocessor of 132 works. */
__global__ void one_block(const float *a, const float *b, float *c, int64_t n)
{
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        c[i] = a[i] + b[i];
}

/* As many threads as elements: the hardware keeps thousands of them waiting, and runs those whose numbers are there. */
__global__ void a_thread_an_element(const float *a, const float *b, float *c, int64_t n)
{
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}

/* 16 bytes are the most that a thread can load at once. What is left over is done by the last threads. */
__global__ void wide(const float4 *a, const float4 *b, float4 *c, int64_t n)
{
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n / 4) {
        const float4 x = a[i], y = b[i];
        c[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
    } else if (i < n / 4 + n % 4) {
        const int64_t k = n / 4 * 4 + (i - n / 4);
        reinterpret_cast<float *>(c)[k] = reinterpret_cast<const float *>(a)[k] + reinterpret_cast<const float *>(b)[k];
    }
}

constexpr int THREADS = 256;

unsigned blocks_for(int64_t threads)
{
    return unsigned((threads + THREADS - 1) / THREADS);
}

/* 4 chains a thread, and many threads: no instruction waits for the one before it. */
constexpr int CHAINS = 4, CHAIN_THREADS = PC__LADDER_CHAINS / CHAINS;

__global__ void multiply_adds(float *x, int64_t rounds)
{
    float *own = x + int64_t(blockIdx.x) * PC__LADDER_CHAINS + threadIdx.x;
    float v[CHAINS];
    for (int k = 0; k < CHAINS; k++)
        v[k] = own[k * CHAIN_THREADS];
#pragma unroll 16
    for (int64_t r = 0; r < rounds; r++)
        for (int k = 0; k < CHAINS; k++)
            v[k] = v[k] * 0.5f + 0.5f;
    for (int k = 0; k < CHAINS; k++)
        own[k * CHAIN_THREADS] = v[k];
}

bool aligned(const void *a, const void *b, const void *c)
{
    return (reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b) | reinterpret_cast<uintptr_t>(c)) % 16 == 0;
}

} // namespace

void pc__cuda_ladder_add(int rung, const float *a, const float *b, float *c, int64_t n, cudaStream_t queue)
{
    if (rung == PC__CUDA_ADD_THREAD)
        one_thread<<<1, 1, 0, queue>>>(a, b, c, n);
    else if (rung == PC__CUDA_ADD_BLOCK)
        one_block<<<1, THREADS, 0, queue>>>(a, b, c, n);
    else if (rung == PC__CUDA_ADD_WIDE && aligned(a, b, c))
        wide<<<blocks_for(n / 4 + n % 4), THREADS, 0, queue>>>(
            reinterpret_cast<const float4 *>(a), reinterpret_cast<const float4 *>(b), reinterpret_cast<float4 *>(c), n);
    else
        a_thread_an_element<<<blocks_for(n), THREADS, 0, queue>>>(a, b, c, n);
}

void pc__cuda_ladder_fma(float *x, int64_t n, int64_t rounds, cudaStream_t queue)
{
    multiply_adds<<<unsigned(n / PC__LADDER_CHAINS), CHAIN_THREADS, 0, queue>>>(x, rounds);
}

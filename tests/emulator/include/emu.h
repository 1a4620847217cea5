// emu.h: prelude of translated .cu files: CUDA's language on the CPU, blocks one after the other, threads as fibers.
#pragma once
#include <cmath>
#include <math.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <tuple>
#include <vector>
#include <algorithm>
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __grid_constant__
#define __grid_constant__
#undef __shared__
#define __shared__ static
#undef __noinline__
#define __noinline__ __attribute__((noinline))
#define __CUDA_ARCH__ 900
#undef __CUDACC__

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
extern "C" char *emu_dynamic_base;
void emu_sync_block();
void emu_warp_barrier(unsigned mask);
int emu_lane();
void *emu_slots(); // 32 slots of 64 bytes
void emu_submit(cudaStream_t queue, const char *name, dim3 grid, dim3 block, size_t shared, std::function<void()> body);
cudaError_t emu_note(cudaError_t);
void emu_cp_async(unsigned to, const void *from, int bytes, int valid);
void emu_cp_commit();
void emu_cp_wait(int later);
char *emu_shared_of(unsigned at);
unsigned emu_cvta(const void *p);
#define __cvta_generic_to_shared(p) emu_cvta(p)
#define __syncthreads emu_sync_block
inline void emu_fence() {}
#define __threadfence emu_fence
#define __threadfence_block emu_fence
#define __threadfence_system emu_fence
inline void __syncwarp(unsigned mask = 0xffffffffu) { emu_warp_barrier(mask); }

template <class T> inline void emu_gather(unsigned mask, T v, T *out)
{
    static_assert(sizeof(T) <= 64, "slot");
    char *slots = (char *)emu_slots();
    memcpy(slots + 64 * emu_lane(), &v, sizeof v);
    emu_warp_barrier(mask);
    for (int i = 0; i < 32; i++)
        memcpy(&out[i], slots + 64 * i, sizeof v);
    emu_warp_barrier(mask);
}
template <class T> inline T __shfl_sync(unsigned mask, T v, int lane, int width = 32)
{
    T all[32];
    emu_gather(mask, v, all);
    int me = emu_lane();
    return all[me / width * width + lane % width];
}
template <class T> inline T __shfl_xor_sync(unsigned mask, T v, int x, int width = 32)
{
    T all[32];
    emu_gather(mask, v, all);
    int me = emu_lane(), to = me ^ x;
    return to / width == me / width ? all[to] : v;
}
template <class T> inline T __shfl_down_sync(unsigned mask, T v, int d, int width = 32)
{
    T all[32];
    emu_gather(mask, v, all);
    int me = emu_lane();
    return (me % width) + d < width ? all[me + d] : v;
}
template <class T> inline T __shfl_up_sync(unsigned mask, T v, int d, int width = 32)
{
    T all[32];
    emu_gather(mask, v, all);
    int me = emu_lane();
    return (me % width) - d >= 0 ? all[me - d] : v;
}
inline unsigned __ballot_sync(unsigned mask, int p)
{
    int all[32];
    emu_gather(mask, p, all);
    unsigned r = 0;
    for (int i = 0; i < 32; i++)
        if ((mask >> i & 1) && all[i])
            r |= 1u << i;
    return r;
}
inline int __any_sync(unsigned mask, int p) { return __ballot_sync(mask, p) != 0; }
inline int __all_sync(unsigned mask, int p) { return __ballot_sync(mask, p) == mask; }
int __syncthreads_or(int p);
inline unsigned __activemask() { return 0xffffffffu; }

inline unsigned atomicAdd(unsigned *p, unsigned v) { unsigned o = *p; *p += v; return o; }
inline int atomicAdd(int *p, int v) { int o = *p; *p += v; return o; }
inline unsigned long long atomicAdd(unsigned long long *p, unsigned long long v) { auto o = *p; *p += v; return o; }
inline float atomicAdd(float *p, float v) { float o = *p; *p += v; return o; }
inline unsigned atomicInc(unsigned *p, unsigned v) { unsigned o = *p; *p = o >= v ? 0 : o + 1; return o; }
inline int atomicCAS(int *p, int c, int v) { int o = *p; if (o == c) *p = v; return o; }
inline unsigned atomicExch(unsigned *p, unsigned v) { unsigned o = *p; *p = v; return o; }
template <class T> inline T atomicMax(T *p, T v) { T o = *p; if (v > o) *p = v; return o; }
template <class T> inline T __ldg(const T *p) { return *p; }
template <class T> inline T __ldcg(const T *p) { return *p; }
template <class T> inline T __ldcs(const T *p) { return *p; }
template <class T> inline T __ldcv(const T *p) { return *p; }
template <class T, class U> inline void __stcs(T *p, U v) { *p = v; }
template <class T, class U> inline void __stcg(T *p, U v) { *p = v; }

#define EMU_BITS(name, A, B) inline B name(A a) { B b; memcpy(&b, &a, sizeof b); return b; }
EMU_BITS(__float_as_uint, float, unsigned)
EMU_BITS(__float_as_int, float, int)
EMU_BITS(__uint_as_float, unsigned, float)
EMU_BITS(__int_as_float, int, float)
EMU_BITS(__double_as_longlong, double, long long)
EMU_BITS(__longlong_as_double, long long, double)
inline int __double2hiint(double d) { return (int)(__double_as_longlong(d) >> 32); }
inline int __double2loint(double d) { return (int)__double_as_longlong(d); }
inline double __hiloint2double(int h, int l) { return __longlong_as_double((long long)h << 32 | (unsigned)l); }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
double emu_add_down(double a, double b);
inline double __dadd_rd(double a, double b) { return emu_add_down(a, b); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return (unsigned long long)((unsigned __int128)a * b >> 64); }
inline float __expf(float x) { return expf(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline void sincospi(double x, double *s, double *c) { *s = sin(x * 3.14159265358979323846), *c = cos(x * 3.14159265358979323846); }
inline void sincospif(float x, float *s, float *c) { *s = (float)sin(x * 3.14159265358979323846), *c = (float)cos(x * 3.14159265358979323846); }
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline double rsqrt(double x) { return 1 / sqrt(x); }
unsigned __byte_perm(unsigned a, unsigned b, unsigned s);
#define EMU_MINMAX(T) inline T min(T a, T b) { return b < a ? b : a; } inline T max(T a, T b) { return a < b ? b : a; }
EMU_MINMAX(int) EMU_MINMAX(unsigned) EMU_MINMAX(long) EMU_MINMAX(unsigned long) EMU_MINMAX(long long) EMU_MINMAX(unsigned long long)
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
inline unsigned min(unsigned a, int b) { return min(a, (unsigned)b); }
inline long min(int a, long b) { return min((long)a, b); }
inline long min(long a, int b) { return min(a, (long)b); }
inline long max(int a, long b) { return max((long)a, b); }

// PTX
inline float emu_tf32(unsigned x) { return __uint_as_float(x & 0xffffe000u); }
void emu_mma_tf32(float &, float &, float &, float &, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned);
void emu_mma_half(bool bf, float &, float &, float &, float &, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned);
void emu_ldmatrix4(bool turned, unsigned &, unsigned &, unsigned &, unsigned &, unsigned at);
inline float emu_max_nan(float a, float b) { return a != a ? a : b != b ? b : a < b ? b : a; }

// launches
const char *emu_name(const void *kernel);
struct emu_launcher {
    dim3 grid, block;
    size_t shared;
    cudaStream_t queue;
    emu_launcher(dim3 g, dim3 b, size_t s = 0, cudaStream_t q = nullptr) : grid(g), block(b), shared(s), queue(q) {}
    template <class... P, class... A> void run(const char *name, void (*kernel)(P...), A... a)
    {
        std::tuple<std::decay_t<P>...> kept(static_cast<std::decay_t<P>>(a)...);
        emu_submit(queue, name, grid, block, shared, [=]() mutable { std::apply(kernel, kept); });
    }
    template <class F, class... A> void go(const char *name, F f, A... a)
    {
        emu_submit(queue, name, grid, block, shared, [=]() mutable { f(a...); });
    }
};
template <class K> inline cudaError_t emu_func_attributes(cudaFuncAttributes *a, K) { memset(a, 0, sizeof *a); a->binaryVersion = a->ptxVersion = 90; return cudaSuccess; }
inline cudaError_t emu_func_attributes(cudaFuncAttributes *a) { return emu_func_attributes(a, 0); }
#define cudaFuncSetAttribute(...) cudaSuccess
#define cudaFuncGetAttributes(a, ...) emu_func_attributes(a)
namespace pc
{
inline void wait_for_earlier() {}
inline void let_next_start() {}
template <class... P>
cudaError_t start_grid(void (*kernel)(P...), dim3 blocks, dim3 threads, size_t shared, cudaStream_t queue, int early, P... parameters)
{
    emu_launcher(blocks, threads, shared, queue).run(emu_name((const void *)kernel), kernel, parameters...);
    return cudaPeekAtLastError();
}
template <class... P>
cudaError_t start(void (*kernel)(P...), unsigned blocks, unsigned threads, cudaStream_t queue, int early, P... parameters)
{
    return start_grid(kernel, dim3(blocks), dim3(threads), 0, queue, early, parameters...);
}
}

// runtime.cpp: fibers, and a CUDA runtime of one device that does everything at once.
#include "include/emu.h"
#include <deque>
#include <mutex>
#include <random>
#include <unistd.h>
#include <sys/mman.h>
#include <fenv.h>
#undef __shared__
#undef cudaFuncSetAttribute
#undef cudaFuncGetAttributes

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;
alignas(1024) static char dynamic_memory[256 << 10];
char *emu_dynamic_base = dynamic_memory;

enum { READY, BLOCK_WAIT, WARP_WAIT, DONE };
struct Copy { unsigned to; const void *from; int bytes, valid; };
struct Fiber {
    void *sp;
    char *stack;
    int state;
    uint3 tid;
    std::vector<Copy> copies;
    std::vector<size_t> groups;
};
static const size_t STACK = 96 << 10;
static std::vector<Fiber> fibers;
static int count_, alive, at_barrier, current;
static int or_value[2], or_turn;
struct Warp { unsigned arrived, alive; char slots[32][64]; };
static std::vector<Warp> warps;
static void *main_sp;
static std::function<void()> *body_now;
static std::recursive_mutex running;

extern "C" void emu_switch(void **save, void *load);
asm(R"(
.text
.globl emu_switch
.hidden emu_switch
emu_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");

static void back() { emu_switch(&fibers[current].sp, main_sp); }
static void release_block()
{
    for (int i = 0; i < count_; i++)
        if (fibers[i].state == BLOCK_WAIT)
            fibers[i].state = READY;
    at_barrier = 0;
    or_turn ^= 1;
    or_value[or_turn] = 0;
}
static void maybe_release()
{
    if (alive && at_barrier == alive)
        release_block();
}
static void check_warp(Warp &w, int first, unsigned mask)
{
    if ((w.arrived & mask) != (mask & w.alive))
        return;
    for (int i = 0; i < 32; i++)
        if ((mask & w.arrived) >> i & 1)
            fibers[first + i].state = READY;
    w.arrived &= ~mask;
}
static std::vector<unsigned> masks_waiting;
static void entry()
{
    (*body_now)();
    Fiber &f = fibers[current];
    f.state = DONE;
    alive--;
    Warp &w = warps[current / 32];
    w.alive &= ~(1u << current % 32);
    maybe_release();
    back();
    abort();
}
void emu_sync_block()
{
    fibers[current].state = BLOCK_WAIT;
    at_barrier++;
    maybe_release();
    if (fibers[current].state != READY)
        back();
}
int __syncthreads_or(int p)
{
    int turn = or_turn;
    or_value[turn] |= p;
    emu_sync_block();
    return or_value[turn];
}
void emu_warp_barrier(unsigned mask)
{
    Warp &w = warps[current / 32];
    if (!(mask >> current % 32 & 1)) {
        fprintf(stderr, "emu: a lane that is not in its own mask\n");
        abort();
    }
    w.arrived |= 1u << current % 32;
    fibers[current].state = WARP_WAIT;
    check_warp(w, current / 32 * 32, mask);
    if (fibers[current].state != READY)
        back();
}
int emu_lane() { return current % 32; }
void *emu_slots() { return warps[current / 32].slots; }

unsigned emu_cvta(const void *p) { return (unsigned)((const char *)p - emu_dynamic_base) + 0x40000000u; }
char *emu_shared_of(unsigned at) { return emu_dynamic_base + (int)(at - 0x40000000u); }
static void do_copy(const Copy &c)
{
    char *to = emu_shared_of(c.to);
    if ((uintptr_t)to % c.bytes || (c.valid && (uintptr_t)c.from % c.bytes)) {
        fprintf(stderr, "emu: misaligned cp.async of %d bytes\n", c.bytes);
        abort();
    }
    memset(to, 0, c.bytes);
    if (c.valid)
        memcpy(to, c.from, c.valid);
}
void emu_cp_async(unsigned to, const void *from, int bytes, int valid) { fibers[current].copies.push_back({to, from, bytes, valid}); }
void emu_cp_commit() { Fiber &f = fibers[current]; f.groups.push_back(f.copies.size()); }
void emu_cp_wait(int later)
{
    Fiber &f = fibers[current];
    if ((int)f.groups.size() <= later)
        return;
    size_t n = f.groups.size() - later, upto = f.groups[n - 1];
    for (size_t i = 0; i < upto; i++)
        do_copy(f.copies[i]);
    f.copies.erase(f.copies.begin(), f.copies.begin() + upto);
    f.groups.erase(f.groups.begin(), f.groups.begin() + n);
    for (auto &g : f.groups)
        g -= upto;
}
unsigned __byte_perm(unsigned a, unsigned b, unsigned s)
{
    unsigned long long all = (unsigned long long)b << 32 | a;
    unsigned r = 0;
    for (int i = 0; i < 4; i++) {
        unsigned k = s >> 4 * i & 15, byte = all >> 8 * (k & 7) & 255;
        if (k & 8)
            byte = byte & 128 ? 255 : 0;
        r |= byte << 8 * i;
    }
    return r;
}
double emu_add_down(double a, double b)
{
    int before = fegetround();
    fesetround(FE_DOWNWARD);
    volatile double x = a, y = b;
    volatile double r = x + y;
    fesetround(before);
    return r;
}
void emu_mma_tf32(float &c0, float &c1, float &c2, float &c3, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1)
{
    struct R { unsigned a[4], b[2]; } mine = {{a0, a1, a2, a3}, {b0, b1}}, all[32];
    emu_gather(0xffffffffu, mine, all);
    int lane = emu_lane(), g = lane / 4, t = lane % 4;
    float *c[4] = {&c0, &c1, &c2, &c3};
    for (int i = 0; i < 4; i++) {
        int row = g + i / 2 * 8, col = 2 * t + i % 2;
        double s = *c[i];
        for (int k = 0; k < 8; k++)
            s += (double)emu_tf32(all[row % 8 * 4 + k % 4].a[row / 8 + k / 4 * 2]) * emu_tf32(all[col * 4 + k % 4].b[k / 4]);
        *c[i] = (float)s;
    }
}
static float half_of(bool bf, unsigned pair, int which)
{
    unsigned short bits = pair >> 16 * which;
    if (bf)
        return __uint_as_float((unsigned)bits << 16);
    return __half2float(__ushort_as_half(bits));
}
void emu_mma_half(bool bf, float &c0, float &c1, float &c2, float &c3, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1)
{
    struct R { unsigned a[4], b[2]; } mine = {{a0, a1, a2, a3}, {b0, b1}}, all[32];
    emu_gather(0xffffffffu, mine, all);
    int lane = emu_lane(), g = lane / 4, t = lane % 4;
    float *c[4] = {&c0, &c1, &c2, &c3};
    for (int i = 0; i < 4; i++) {
        int row = g + i / 2 * 8, col = 2 * t + i % 2;
        double s = *c[i];
        for (int k = 0; k < 16; k++)
            s += (double)half_of(bf, all[row % 8 * 4 + k % 8 / 2].a[row / 8 + k / 8 * 2], k % 2) *
                 half_of(bf, all[col * 4 + k % 8 / 2].b[k / 8], k % 2);
        *c[i] = (float)s;
    }
}
void emu_ldmatrix4(bool turned, unsigned &r0, unsigned &r1, unsigned &r2, unsigned &r3, unsigned at)
{
    unsigned all[32];
    emu_gather(0xffffffffu, at, all);
    int lane = emu_lane();
    unsigned *r[4] = {&r0, &r1, &r2, &r3};
    for (int m = 0; m < 4; m++) {
        unsigned short v[2];
        for (int i = 0; i < 2; i++) {
            int row = turned ? lane % 4 * 2 + i : lane / 4, col = turned ? lane / 4 : lane % 4 * 2 + i;
            if (all[m * 8 + row] % 16)
                fprintf(stderr, "emu: misaligned ldmatrix\n"), abort();
            memcpy(&v[i], emu_shared_of(all[m * 8 + row]) + 2 * col, 2);
        }
        *r[m] = v[0] | (unsigned)v[1] << 16;
    }
    emu_warp_barrier(0xffffffffu);
}

static int order_of() { static int o = getenv("EMU_ORDER") ? atoi(getenv("EMU_ORDER")) : 0; return o; }
static void prepare(int n)
{
    if ((int)fibers.size() < n) {
        size_t before = fibers.size();
        fibers.resize(n);
        for (size_t i = before; i < fibers.size(); i++)
            fibers[i].stack = (char *)mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    warps.resize((n + 31) / 32);
    count_ = alive = n;
    at_barrier = 0;
    for (int i = 0; i < n; i++) {
        Fiber &f = fibers[i];
        f.state = READY;
        f.tid = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
        f.copies.clear(), f.groups.clear();
        void **sp = (void **)(f.stack + STACK - 64);
        *--sp = nullptr;         // the return address of entry
        *--sp = (void *)entry;
        for (int k = 0; k < 6; k++)
            *--sp = nullptr;
        f.sp = sp;
        if (i % 32 == 0)
            warps[i / 32].arrived = warps[i / 32].alive = 0;
        warps[i / 32].alive |= 1u << i % 32;
    }
}
static void run_block(const char *name, int n)
{
    prepare(n);
    static std::mt19937 dice(1);
    std::vector<int> turn(n);
    for (int i = 0; i < n; i++)
        turn[i] = order_of() == 1 ? n - 1 - i : i;
    while (alive > 0) {
        bool any = false;
        if (order_of() == 2)
            std::shuffle(turn.begin(), turn.end(), dice);
        for (int k = 0; k < n; k++) {
            int i = turn[k];
            if (fibers[i].state != READY)
                continue;
            any = true;
            current = i;
            threadIdx = fibers[i].tid;
            emu_switch(&main_sp, fibers[i].sp);
        }
        if (!any) {
            // lanes that wait for some that are gone
            for (size_t w = 0; w < warps.size(); w++)
                if (warps[w].arrived)
                    check_warp(warps[w], (int)w * 32, warps[w].arrived | 0), any = true;
            if (any) { fprintf(stderr, "emu: warp barrier without all of its mask in %s\n", name); abort(); }
            fprintf(stderr, "emu: deadlock in %s: %d of %d threads alive, %d at the barrier\n", name, alive, n, at_barrier);
            abort();
        }
    }
}
extern "C" char __start_emu_shared[] __attribute__((weak)), __stop_emu_shared[] __attribute__((weak));
static void run_grid(const char *name, dim3 grid, dim3 block, size_t shared, std::function<void()> &body)
{
    std::lock_guard<std::recursive_mutex> hold(running);
    static int log = getenv("EMU_LOG") ? atoi(getenv("EMU_LOG")) : 0;
    if (log)
        fprintf(stderr, "emu: %u x %u blocks of %u x %u x %u, %zu B: %s\n", grid.x, grid.y, block.x, block.y, block.z, shared, name);
    gridDim = grid, blockDim = block;
    body_now = &body;
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                blockIdx = {x, y, z};
                if (order_of() == 1)
                    blockIdx = {grid.x - 1 - x, grid.y - 1 - y, grid.z - 1 - z};
                memset(dynamic_memory, 0xff, shared); // NaN
                run_block(name, (int)(block.x * block.y * block.z));
            }
}

#include <dlfcn.h>
#include <map>
const char *emu_name(const void *kernel)
{
    static std::map<const void *, std::string> names;
    std::string &s = names[kernel];
    if (s.empty()) {
        Dl_info i;
        char text[40];
        dladdr(kernel, &i);
        snprintf(text, sizeof text, "+%zx", (size_t)((char *)kernel - (char *)i.dli_fbase));
        s = text;
    }
    return s.c_str();
}
// --- the runtime ---
struct CUgraph_st { std::vector<std::function<void()>> work; };
struct CUstream_st { CUgraph_st *capture = nullptr; };
struct CUevent_st { double at = 0; };
struct CUgraphExec_st { std::vector<std::function<void()>> work; };
static CUstream_st the_default;
static thread_local cudaError_t last;
static int sms() { static int n = getenv("EMU_SMS") ? atoi(getenv("EMU_SMS")) : 132; return n; }
static cudaError_t said(cudaError_t e) { if (e != cudaSuccess) last = e; return e; }
static double now()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
static void submit(cudaStream_t q, std::function<void()> f)
{
    if (q && q->capture)
        q->capture->work.push_back(std::move(f));
    else
        f();
}
void emu_submit(cudaStream_t queue, const char *name, dim3 grid, dim3 block, size_t shared, std::function<void()> body)
{
    unsigned long n = (unsigned long)block.x * block.y * block.z;
    if (!grid.x || !grid.y || !grid.z || !n || n > 1024 || grid.y > 65535 || grid.z > 65535 || shared > (227u << 10)) {
        fprintf(stderr, "emu: bad launch of %s: %u x %u x %u blocks of %lu, %zu B\n", name, grid.x, grid.y, grid.z, n, shared);
        said(cudaErrorInvalidConfiguration);
        return;
    }
    submit(queue, [=]() mutable { run_grid(name, grid, block, shared, body); });
}
extern "C" {
cudaError_t cudaGetLastError(void) { cudaError_t e = last; last = cudaSuccess; return e; }
cudaError_t cudaPeekAtLastError(void) { return last; }
const char *cudaGetErrorString(cudaError_t e) { return e == cudaSuccess ? "no error" : "emulated error"; }
const char *cudaGetErrorName(cudaError_t e) { return e == cudaSuccess ? "cudaSuccess" : "cudaErrorEmulated"; }
cudaError_t cudaMalloc(void **p, size_t n)
{
    *p = n > ((size_t)8 << 30) ? nullptr : aligned_alloc(512, (n + 511) / 512 * 512);
    if (*p) memset(*p, 0xff, n < (1 << 24) ? n : 1 << 24);
    return said(*p ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaFree(void *p) { free(p); return cudaSuccess; }
cudaError_t cudaHostAlloc(void **p, size_t n, unsigned) { return cudaMalloc(p, n); }
cudaError_t cudaFreeHost(void *p) { free(p); return cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t *f, size_t *t) { *f = *t = (size_t)8 << 30; return cudaSuccess; }
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, cudaMemcpyKind, cudaStream_t q) { submit(q, [=] { memcpy(to, from, n); }); return cudaSuccess; }
cudaError_t cudaMemcpyPeerAsync(void *to, int, const void *from, int, size_t n, cudaStream_t q) { submit(q, [=] { memcpy(to, from, n); }); return cudaSuccess; }
cudaError_t cudaMemsetAsync(void *to, int v, size_t n, cudaStream_t q) { submit(q, [=] { memset(to, v, n); }); return cudaSuccess; }
cudaError_t cudaLaunchHostFunc(cudaStream_t q, cudaHostFn_t f, void *c) { submit(q, [=] { f(c); }); return cudaSuccess; }
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *, const void *, void **) { return said(cudaErrorNotSupported); }
cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *a, const void *) { memset(a, 0, sizeof *a); a->binaryVersion = a->ptxVersion = 90; a->maxThreadsPerBlock = 1024; return cudaSuccess; }
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, const void *, int, size_t, unsigned) { *n = 2; return cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int) { memset(p, 0, sizeof *p); strcpy(p->name, "Emulated"); p->totalGlobalMem = (size_t)8 << 30; p->major = 9; p->multiProcessorCount = sms(); p->warpSize = 32; p->maxThreadsPerBlock = 1024; return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int *n) { *n = 1; return cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDevice(int *d) { *d = 0; return cudaSuccess; }
cudaError_t cudaDriverGetVersion(int *v) { *v = 13000; return cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int *v) { *v = 13000; return cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int *v, cudaDeviceAttr a, int)
{
    *v = a == cudaDevAttrComputeCapabilityMajor ? 9 : a == cudaDevAttrComputeCapabilityMinor ? 0 : a == cudaDevAttrMultiProcessorCount ? sms() : 1;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *l, int *g) { *l = 0, *g = -5; return cudaSuccess; }
cudaError_t cudaDeviceCanAccessPeer(int *c, int, int) { *c = 0; return cudaSuccess; }
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned) { *s = new CUstream_st; return cudaSuccess; }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *s, unsigned, int) { *s = new CUstream_st; return cudaSuccess; }
cudaError_t cudaStreamDestroy(cudaStream_t s) { delete s; return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize(void) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode) { s->capture = new CUgraph_st; return cudaSuccess; }
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g) { *g = s->capture; s->capture = nullptr; return cudaSuccess; }
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *e, cudaGraph_t g, unsigned long long) { *e = new CUgraphExec_st{g->work}; if (getenv("EMU_LOG")) fprintf(stderr, "emu: a graph of %zu\n", g->work.size()); return cudaSuccess; }
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t q) { for (auto &f : e->work) submit(q, f); return cudaSuccess; }
cudaError_t cudaGraphDestroy(cudaGraph_t g) { delete g; return cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t e) { delete e; return cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t *e) { *e = new CUevent_st; return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned) { *e = new CUevent_st; return cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t e) { delete e; return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t) { e->at = now(); return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b) { *ms = (float)((b->at - a->at) * 1e3); return cudaSuccess; }
}

/* wrong.cu: kernels with one error each, which the emulated device must find, and right ones that differ from them in
 * little: test.emulator NAME runs one. What the device ends says so on stderr; what only comes out wrong says so here.
 */
#include <cstdio>
#include <cstring>

namespace
{

constexpr int N = 128;

__device__ inline void copy_four(void *to, const void *from, int there = 16)
{
    unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(there) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
}

__device__ inline void wait_for_copies()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(0) : "memory");
}

/* data turned round: out[i] = in[N - 1 - i]. */
template <bool BARRIER> __global__ void turn(const float *in, float *out)
{
    extern __shared__ float shared[];
    shared[threadIdx.x] = in[threadIdx.x];
    if (BARRIER)
        __syncthreads();
    out[threadIdx.x] = shared[N - 1 - threadIdx.x];
}

/* What stands in front of a kernel that may start early: writes what that one reads, or where it writes. */
template <bool IN> __global__ void fill(const float *in, float *out)
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
    (IN ? const_cast<float *>(in) : out)[threadIdx.x] = IN ? threadIdx.x : 0;
}

template <bool AHEAD> __global__ void turn_ahead(const float *in, float *out)
{
    float value = 0;
    if (AHEAD)
        value = __ldcg(in + N - 1 - threadIdx.x);
    asm volatile("griddepcontrol.wait;" ::: "memory");
    if (!AHEAD)
        value = __ldcg(in + N - 1 - threadIdx.x);
    out[threadIdx.x] = value;
}

template <bool WAIT> __global__ void turn_by_copies(const float *in, float *out)
{
    extern __shared__ __align__(16) float shared[];
    if (threadIdx.x < N / 4)
        copy_four(shared + 4 * threadIdx.x, in + 4 * threadIdx.x);
    if (WAIT)
        wait_for_copies();
    __syncthreads();
    out[threadIdx.x] = shared[N - 1 - threadIdx.x];
}

__global__ void misaligned_copy(const float *in, float *out)
{
    extern __shared__ __align__(16) float shared[];
    copy_four(shared + 4 * threadIdx.x + 1, in);
    wait_for_copies();
    out[threadIdx.x] = shared[0];
}

/* Four bytes, but twelve that are not there lie behind them. */
__global__ void copy_at_the_end(const float *in, float *out)
{
    extern __shared__ __align__(16) float shared[];
    copy_four(shared + 4 * threadIdx.x, out + N, sizeof *out);
    wait_for_copies();
    out[threadIdx.x] = in[threadIdx.x] + shared[4 * threadIdx.x];
}

__global__ void misaligned_load(const float *in, float *out)
{
    const float4 four = *reinterpret_cast<const float4 *>(in + threadIdx.x);
    out[threadIdx.x] = four.x;
}

__global__ void outside_of_mask(const float *in, float *out)
{
    float value = in[threadIdx.x];
    out[threadIdx.x] = value + __shfl_xor_sync(0xffffu, value, 1);
}

__global__ void two_masks(const float *in, float *out)
{
    float value = in[threadIdx.x];
    out[threadIdx.x] = value + __shfl_xor_sync(threadIdx.x % 32 < 16 ? 0xffffffffu : 0xfffffffeu, value, 1);
}

__global__ void some_at_the_warp(const float *in, float *out)
{
    if (threadIdx.x % 32 == 0)
        __syncthreads();
    out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, in[threadIdx.x], 1);
}

template <int AT> __global__ void write_shared(const float *in, float *out)
{
    extern __shared__ float shared[];
    shared[static_cast<int>(threadIdx.x) + AT] = in[threadIdx.x];
    out[threadIdx.x] = in[threadIdx.x];
}

/* Of memory that has one number more than there are threads. */
template <int AT> __global__ void write_memory(const float *in, float *out)
{
    out[static_cast<int>(threadIdx.x) + AT] = in[threadIdx.x];
}

__global__ void outside_of_array(const float *in, float *out)
{
    __shared__ float held[N - 1];
    held[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = held[0];
}

__device__ __noinline__ float deep(const float *in, int depth)
{
    volatile float room[256];
    room[depth % 256] = in[0];
    return depth ? deep(in, depth - 1) + room[depth % 256] : room[0];
}

__global__ void deep_stack(const float *in, float *out)
{
    out[threadIdx.x] = deep(in, 1000);
}

struct row {
    const char *name;
    void (*kernel)(const float *, float *);
    size_t shared;
    bool freed;                            /* `in`, before the kernel reads it */
    void (*front)(const float *, float *); /* in front of it in a recording, in which it may start early; or NULL */
};
const row rows[] = {
    {"right", turn<true>, N * sizeof(float)},
    {"right_copies", turn_by_copies<true>, N * sizeof(float)},
    {"no_barrier", turn<false>, N * sizeof(float)},
    {"no_wait", turn_by_copies<false>, N * sizeof(float)},
    {"misaligned_copy", misaligned_copy, (4 * N + 4) * sizeof(float)},
    {"copy_at_the_end", copy_at_the_end, 4 * N * sizeof(float)},
    {"misaligned_load", misaligned_load, 0},
    {"outside_of_mask", outside_of_mask, 0},
    {"two_masks", two_masks, 0},
    {"some_at_the_warp", some_at_the_warp, 0},
    {"behind_shared", write_shared<1>, N * sizeof(float) + 2},
    {"far_behind_shared", write_shared<1 << 12>, N * sizeof(float)},
    {"before_shared", write_shared<-1>, N * sizeof(float)},
    {"outside_of_array", outside_of_array, 0},
    {"deep_stack", deep_stack, 0},
    {"behind_memory", write_memory<8>, 0},
    {"just_behind_memory", write_memory<2>, 0},
    {"before_memory", write_memory<-1>, 0},
    {"freed_memory", write_memory<0>, 0, true},
    {"right_ahead", turn_ahead<true>, 0, false, fill<false>},
    {"right_behind", turn_ahead<false>, 0, false, fill<true>},
    {"ahead_of_a_write", turn_ahead<true>, 0, false, fill<true>},
    {"ahead_of_old_memory", turn_by_copies<true>, N * sizeof(float), false, fill<false>},
};

template <class... P> void start_early(void (*kernel)(P...), size_t shared, cudaStream_t queue, P... parameters)
{
    cudaLaunchAttribute overlap = {};
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    cudaLaunchConfig_t how = {};
    how.gridDim = dim3(1);
    how.blockDim = dim3(N);
    how.dynamicSmemBytes = shared;
    how.stream = queue;
    how.attrs = &overlap;
    how.numAttrs = 1;
    void *list[] = {&parameters...};
    (void)pc__cuda_start(&how, reinterpret_cast<const void *>(kernel), list);
}

void run_recorded(const row &r, const float *in, float *out)
{
    cudaStream_t queue;
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    cudaStreamCreateWithFlags(&queue, 0);
    cudaStreamBeginCapture(queue, cudaStreamCaptureModeRelaxed);
    start_early(r.front, 0, queue, in, out);
    start_early(r.kernel, r.shared, queue, in, out);
    cudaStreamEndCapture(queue, &graph);
    cudaGraphInstantiate(&ready, graph, 0);
    cudaGraphLaunch(ready, queue);
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(queue);
}

int run(const row &r)
{
    void *in, *out;
    float numbers[N], turned[N];
    for (int i = 0; i < N; i++)
        numbers[i] = static_cast<float>(i);
    if (cudaMalloc(&in, 2 * sizeof numbers) != cudaSuccess ||
        cudaMalloc(&out, sizeof numbers + sizeof *numbers) != cudaSuccess)
        return 1;
    if (r.front != fill<true>) /* which writes the same */
        cudaMemcpyAsync(in, numbers, sizeof numbers, cudaMemcpyHostToDevice, nullptr);
    if (r.freed)
        cudaFree(in);
    void (*kernel)(const float *, float *) = r.kernel;
    if (r.front)
        run_recorded(r, static_cast<const float *>(in), static_cast<float *>(out));
    else
        kernel<<<1, N, r.shared, nullptr>>>(static_cast<const float *>(in), static_cast<float *>(out));
    cudaMemcpyAsync(turned, out, sizeof turned, cudaMemcpyDeviceToHost, nullptr);
    bool right = cudaGetLastError() == cudaSuccess;
    for (int i = 0; i < N; i++)
        right = right && turned[i] == numbers[N - 1 - i];
    if (!r.freed)
        cudaFree(in);
    cudaFree(out);
    puts(right ? "turned" : "not turned");
    return 0;
}

} // namespace

int main(int count, char **words)
{
    for (const row &r : rows)
        if (count == 2 && strcmp(r.name, words[1]) == 0)
            return run(r);
    fprintf(stderr, "test.emulator NAME: there is no such kernel\n");
    return 2;
}

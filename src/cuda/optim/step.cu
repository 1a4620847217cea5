/* step.cu: the list of parameters is an argument of the kernel, so a step is one launch without memory of its own. A
 * block finds its parameter from where each one's blocks start; where all pointers lie on 16 bytes a thread takes as
 * much at once. In torch.optim's order of operations. */
#include "cuda/optim/step.h"

#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/half.cuh"
#include "cuda/shared/list.cuh"
#include "cuda/shared/real.cuh"
#include "cuda/shared/mma.cuh"
#include "ops/power.h"

#define THREADS 256

namespace
{

/* What the kernels see of pc__cuda_step, with the block where each parameter starts. */
template <class T> struct update {
    int count;
    bool first, nesterov, f16; /* copies are float16, not bfloat16 */
    T lr, momentum, decay, b1, b2, c1, c2, epsilon, size, inverse_root2;
    int64_t *counter;
    int ready_counter;
    unsigned *readers;
    const float *guard;
    double rate, beta1, beta2; /* for the counter's number */
    uint32_t ready[PC__STEP_WORDS], ready_g[PC__STEP_WORDS];
    pc__cuda_parameter of[PC__STEP_MOST];
    unsigned starts[PC__STEP_MOST];
};

/* What changes from step to step. */
template <class T> struct moment {
    bool first;
    T size, inverse_root2;
};

template <class T> struct sgd {
    static __device__ inline void at(const update<T> &, int64_t step, moment<T> &now)
    {
        if (threadIdx.x == 0)
            now.first = step == 1;
    }

    static __device__ inline void apply(const update<T> &u, const moment<T> &now, bool slots, T &p, T g, T &v, T &)
    {
        T d = g + u.decay * p;
        if (slots) {
            v = now.first ? d : u.momentum * v + d;
            d = u.nesterov ? d + u.momentum * v : v;
        }
        p -= u.lr * d;
    }
};

template <class T> struct adam {
    /* Two warps work side by side. */
    static __device__ inline void at(const update<T> &u, int64_t step, moment<T> &now)
    {
        if (threadIdx.x == 0)
            now.size = (T)(u.rate / (1 - pc__power(u.beta1, step)));
        if (threadIdx.x == 32)
            now.inverse_root2 = (T)(1 / sqrt(1 - pc__power(u.beta2, step)));
    }

    static __device__ inline void apply(const update<T> &u, const moment<T> &now, bool, T &p, T g, T &m, T &v)
    {
        const T d = g + u.decay * p;
        m = u.b1 * m + u.c1 * d;
        v = u.b2 * v + u.c2 * d * d;
        p -= now.size * m / (root_of(v) * now.inverse_root2 + u.epsilon);
    }
};

template <class T, int W> struct alignas(W * sizeof(T)) pack {
    T at[W];
};

template <class H, class T, int W> __device__ inline void put_as(void *to, int64_t i, const pack<T, W> &p)
{
    pack<H, W> narrow;
#pragma unroll
    for (int j = 0; j < W; j++)
        narrow.at[j] = H(static_cast<float>(p.at[j]));
    static_cast<pack<H, W> *>(to)[i] = narrow;
}

/* Without matrix units nothing brings memory either. */
template <class V> __device__ inline void send_one(V *to, const void *from, int64_t i)
{
#if TENSOR_UNITS
    send_past(to, (const V *)from + i, true);
#else
    *to = ((const V *)from)[i];
#endif
}

/* What threads have of a block's elements on their way, each its own: shared memory, for registers would be spilled. */
template <class V, int COUNT> struct under_way {
    V p[COUNT], g[COUNT], s1[COUNT], s2[COUNT];

    __device__ inline void send(const pc__cuda_parameter &q, int at, int64_t i, bool parameter, bool gradient)
    {
        if (parameter)
            send_one(&p[at], q.p, i);
        if (parameter && q.s1)
            send_one(&s1[at], q.s1, i);
        if (parameter && q.s2)
            send_one(&s2[at], q.s2, i);
        if (gradient)
            send_one(&g[at], q.g, i);
    }
};

/* W elements of a parameter, its gradient and slots. */
template <class T, int W> struct packs {
    pack<T, W> p, g, s1, s2;

    template <int COUNT>
    __device__ inline void take(const under_way<pack<T, W>, COUNT> &from, const pc__cuda_parameter &q, int at)
    {
        p = from.p[at];
        g = from.g[at];
        s1 = s2 = {};
        if (q.s1)
            s1 = from.s1[at];
        if (q.s2)
            s2 = from.s2[at];
    }

    __device__ inline void load(const pc__cuda_parameter &q, int64_t i)
    {
        typedef pack<T, W> vector;
        p = ((const vector *)q.p)[i];
        g = ((const vector *)q.g)[i];
        s1 = s2 = {};
        if (q.s1)
            s1 = ((const vector *)q.s1)[i];
        if (q.s2)
            s2 = ((const vector *)q.s2)[i];
    }

    template <class Rule>
    __device__ inline void update_by(const update<T> &u, const moment<T> &now, const pc__cuda_parameter &q, int64_t i)
    {
        typedef pack<T, W> vector;
#pragma unroll
        for (int j = 0; j < W; j++)
            Rule::apply(u, now, q.s1 != nullptr, p.at[j], g.at[j], s1.at[j], s2.at[j]);
        ((vector *)q.p)[i] = p;
        if (q.s1)
            ((vector *)q.s1)[i] = s1;
        if (q.s2)
            ((vector *)q.s2)[i] = s2;
        if constexpr (sizeof(T) == sizeof(float)) { /* autocast leaves float64 as it is */
            if (q.copy && u.f16)
                put_as<pc::f16>(q.copy, i, p);
            else if (q.copy)
                put_as<pc::bf16>(q.copy, i, p);
        }
    }
};

/* What a block works on: so many elements of a parameter, from `from` on. */
struct piece {
    const pc__cuda_parameter &q;
    int64_t from;
    int count;
    bool whole; /* in packs */
    bool ready, ready_g;
};

template <class T, int W> __device__ __forceinline__ piece piece_of(const update<T> &u)
{
    const int part = pc::part_of(u.starts, u.count);
    const pc__cuda_parameter &q = u.of[part];
    const int64_t from = (int64_t)(blockIdx.x - u.starts[part]) * PC__STEP_PIECE;
    const int count = (int)(q.count - from < PC__STEP_PIECE ? q.count - from : PC__STEP_PIECE);
    const bool whole =
        ((uintptr_t)q.p | (uintptr_t)q.g | (uintptr_t)q.s1 | (uintptr_t)q.s2) % 16 == 0 && count % W == 0;
    const bool ready = u.ready[part / 32] >> part % 32 & 1, ready_g = u.ready_g[part / 32] >> part % 32 & 1;
    return {q, from, count, whole, ready, ready_g};
}

/* All that a block reads is on its way before the first is waited for: its parameter's elements cross the powers of a
 * counted step, and where they are ready the end of the kernel in front. atomicInc, which also puts the count back to
 * 0: the compiler adds up a warp's atomicAdd and so waits for it on the spot. */
template <class Rule, class T>
__global__ void __launch_bounds__(THREADS, sizeof(T) == sizeof(float) ? 6 : 1)
    step_kernel(const __grid_constant__ update<T> u)
{
    constexpr int W = 16 / sizeof(T), EACH = PC__STEP_PIECE / (THREADS * W);
    __shared__ under_way<pack<T, W>, PC__STEP_PIECE / W> packed;
    __shared__ moment<T> counted;
    const piece b = piece_of<T, W>(u);
    const auto send = [&](bool parameter, bool gradient) {
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const int i = k * THREADS + threadIdx.x;
            if (b.whole && i < b.count / W)
                packed.send(b.q, i, b.from / W + i, parameter, gradient);
        }
    };
    send(b.ready, b.ready_g);
    float found = 0;
    int64_t step = 0;
#pragma unroll 1
    for (int turn = 0; turn < 2; turn++) /* the powers in front of the wait where the step's number is there */
        if (turn == u.ready_counter) {
            pc::wait_for_earlier();
            found = u.guard ? *u.guard : 0;
            send(!b.ready, !b.ready_g);
        } else if (u.counter) {
            step = pc::ahead(u.counter) + 1;
            Rule::at(u, step, counted);
        }
    moment<T> now = {u.first, u.size, u.inverse_root2};
    unsigned readers = 0;
    if (u.counter && found == 0) {
        __syncthreads();
        now = counted;
        if (u.readers && threadIdx.x == 0)
            readers = atomicInc(u.readers, gridDim.x - 1);
    }
#if TENSOR_UNITS
    sent();
    wait_sent<0>();
#endif
    if (found != 0)
        return;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const int i = k * THREADS + threadIdx.x;
        if (!b.whole || i >= b.count / W)
            continue;
        packs<T, W> mine;
        mine.take(packed, b.q, i);
        mine.template update_by<Rule>(u, now, b.q, b.from / W + i);
    }
#pragma unroll 1
    for (int i = threadIdx.x; !b.whole && i < b.count; i += THREADS) {
        packs<T, 1> one;
        one.load(b.q, b.from + i);
        one.template update_by<Rule>(u, now, b.q, b.from + i);
    }
    if (u.readers && threadIdx.x == 0 && readers == gridDim.x - 1) /* who read it last raises it */
        *u.counter = step;
}

template <template <class> class Rule, class T> void launch(cudaStream_t queue, const pc__cuda_step *s)
{
    static_assert(sizeof(update<T>) <= 4096, "the arguments of a kernel");
    update<T> u = {s->count,
                   s->first != 0,
                   s->nesterov != 0,
                   s->copies == PC__CUDA_F16,
                   (T)s->lr,
                   (T)s->momentum,
                   (T)s->decay,
                   (T)s->beta1,
                   (T)s->beta2,
                   (T)(1 - s->beta1),
                   (T)(1 - s->beta2),
                   (T)s->epsilon,
                   (T)s->step_size,
                   (T)s->inverse_root2,
                   s->counter,
                   s->ready_counter,
                   s->readers,
                   s->guard,
                   s->lr,
                   s->beta1,
                   s->beta2};
    unsigned blocks = 0;
    for (int i = 0; i < PC__STEP_WORDS; i++) {
        u.ready[i] = s->ready[i];
        u.ready_g[i] = s->ready_g[i];
    }
    for (int i = 0; i < s->count; i++) {
        u.of[i] = s->of[i];
        u.starts[i] = blocks;
        blocks += (unsigned)((s->of[i].count + PC__STEP_PIECE - 1) / PC__STEP_PIECE);
    }
    (void)pc::start(step_kernel<Rule<T>, T>, blocks ? blocks : 1, THREADS, queue, s->early, u);
}

} // namespace

void pc__cuda_sgd(cudaStream_t queue, const pc__cuda_step *step)
{
    step->dtype == PC__CUDA_F32 ? launch<sgd, float>(queue, step) : launch<sgd, double>(queue, step);
}

void pc__cuda_adam(cudaStream_t queue, const pc__cuda_step *step)
{
    step->dtype == PC__CUDA_F32 ? launch<adam, float>(queue, step) : launch<adam, double>(queue, step);
}

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
    bool nesterov, decoupled, f16; /* copies are float16, not bfloat16 */
    T momentum, b1, b2, c1, c2, epsilon, bound;
    int64_t number, *counter;
    int ready_numbers;
    unsigned *readers;
    const float *guard;
    const double *factor, *rate;
    double lr, beta1, beta2; /* for what is computed in front of the loops */
    double lr_scale[PC__STEP_GROUPS], decay[PC__STEP_GROUPS];
    uint32_t ready[PC__STEP_WORDS], ready_g[PC__STEP_WORDS];
    pc__cuda_parameter of[PC__STEP_MOST];
    unsigned starts[PC__STEP_MOST];
    uint8_t group[PC__STEP_MOST];
};

/* What changes from step to step and from group to group. */
template <class T> struct moment {
    bool first;
    T lr, decay;           /* the decay that is added to the gradient */
    T keep;                /* what a decay of the weight's own leaves of it */
    T size, inverse_root2; /* adam: lr / (1 - beta1^t), 1 / sqrt(1 - beta2^t) */
    T factor;              /* of gradients */
};

/* By two warps side by side. */
template <class Rule, class T> __device__ inline void count(const update<T> &u, int group, int64_t step, moment<T> &now)
{
    if (threadIdx.x == 0) {
        const double lr = (u.rate ? pc::ahead(u.rate) : u.lr) * u.lr_scale[group], decay = u.decay[group];
        now.first = step == 1;
        now.lr = (T)lr;
        now.decay = (T)(u.decoupled ? 0 : decay);
        now.keep = (T)(u.decoupled ? 1 - lr * decay : 1);
        now.size = Rule::counts ? (T)(lr / (1 - pc__power(u.beta1, step))) : T(0);
    }
    if (Rule::counts && threadIdx.x == 32)
        now.inverse_root2 = (T)(1 / sqrt(1 - pc__power(u.beta2, step)));
}

/* No decay is no term: an infinite weight times 0 is no number. */
template <class T> __device__ inline T decayed(const moment<T> &now, T p, T g)
{
    return now.decay != 0 ? g + now.decay * p : g;
}

/* Each updates a number of a parameter by its gradient; s1 and s2: which slots there are. */
template <class T> struct sgd {
    static constexpr bool counts = false;
    static __device__ inline void apply(const update<T> &u, const moment<T> &now, bool s1, bool, T &p, T g, T &v, T &)
    {
        T d = decayed(now, p, g);
        if (s1) {
            v = now.first ? d : u.momentum * v + d;
            d = u.nesterov ? d + u.momentum * v : v;
        }
        p -= now.lr * d;
    }
};

template <class T> struct adam {
    static constexpr bool counts = true;
    static __device__ inline void apply(const update<T> &u, const moment<T> &now, bool, bool, T &p, T g, T &m, T &v)
    {
        const T d = decayed(now, p, g);
        m = u.b1 * m + u.c1 * d;
        v = u.b2 * v + u.c2 * d * d;
        p = now.keep * p - now.size * m / (root_of(v) * now.inverse_root2 + u.epsilon);
    }
};

template <class T> struct rmsprop {
    static constexpr bool counts = false;
    static __device__ inline void apply(const update<T> &u, const moment<T> &now, bool, bool s2, T &p, T g, T &s, T &v)
    {
        T d = decayed(now, p, g);
        s = u.b2 * s + u.c2 * d * d;
        d = d / (root_of(s) + u.epsilon);
        if (s2)
            d = v = u.momentum * v + d;
        p -= now.lr * d;
    }
};

template <class T> struct lion {
    static constexpr bool counts = false;
    static __device__ inline void apply(const update<T> &u, const moment<T> &now, bool, bool, T &p, T g, T &m, T &)
    {
        const T d = u.b1 * m + u.c1 * g;
        m = u.b2 * m + u.c2 * g;
        p = now.keep * p - (d > 0 ? now.lr : d < 0 ? -now.lr : d); /* NaN stays */
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

    template <class Rule, bool CLIPS>
    __device__ inline void update_by(const update<T> &u, const moment<T> &now, const pc__cuda_parameter &q, int64_t i)
    {
        typedef pack<T, W> vector;
#pragma unroll
        for (int j = 0; j < W; j++) {
            T d = g.at[j];
            if (CLIPS) {
                d *= now.factor;
                d = d < -u.bound ? -u.bound : d > u.bound ? u.bound : d; /* NaN stays */
            }
            Rule::apply(u, now, q.s1 != nullptr, q.s2 != nullptr, p.at[j], d, s1.at[j], s2.at[j]);
        }
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
    int group;
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
    return {q, from, count, whole, ready, ready_g, u.group[part]};
}

/* WHOLE: of packs alone, in a kernel of its own, for what single elements need is spilled in the other one.
 *
 * All that a block reads is on its way before the first is waited for: its parameter's elements cross the powers of a
 * counted step, and where they are ready the end of the kernel in front. atomicInc, which also puts the count back to
 * 0: the compiler adds up a warp's atomicAdd and so waits for it on the spot. */
template <class Rule, class T, bool CLIPS, bool WHOLE>
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
            if ((WHOLE || b.whole) && i < b.count / W)
                packed.send(b.q, i, b.from / W + i, parameter, gradient);
        }
    };
    send(b.ready, b.ready_g);
    float found = 0;
    int64_t step = u.number;
#pragma unroll 1
    for (int turn = 0; turn < 2; turn++) /* the powers in front of the wait where the step's number is there */
        if (turn == u.ready_numbers) {
            pc::wait_for_earlier();
            found = u.guard ? *u.guard : 0;
            if (CLIPS && threadIdx.x == 0)
                counted.factor = u.factor ? (T)*u.factor : T(1);
            send(!b.ready, !b.ready_g);
        } else {
            if (u.counter)
                step = pc::ahead(u.counter) + 1;
            count<Rule>(u, b.group, step, counted);
        }
    __syncthreads();
    const moment<T> &now = counted; /* shared memory, for registers would be spilled */
    unsigned readers = 0;
    if (u.readers && found == 0 && threadIdx.x == 0)
        readers = atomicInc(u.readers, gridDim.x - 1);
#if TENSOR_UNITS
    sent();
    wait_sent<0>();
#endif
    if (found != 0)
        return;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const int i = k * THREADS + threadIdx.x;
        if (!(WHOLE || b.whole) || i >= b.count / W)
            continue;
        packs<T, W> mine;
        mine.take(packed, b.q, i);
        mine.template update_by<Rule, CLIPS>(u, now, b.q, b.from / W + i);
    }
#pragma unroll 1
    for (int i = threadIdx.x; !WHOLE && !b.whole && i < b.count; i += THREADS) {
        packs<T, 1> one;
        one.load(b.q, b.from + i);
        one.template update_by<Rule, CLIPS>(u, now, b.q, b.from + i);
    }
    if (u.readers && threadIdx.x == 0 && readers == gridDim.x - 1) /* who read it last raises it */
        *u.counter = step;
}

bool is_whole(const pc__cuda_parameter &q, int pack)
{
    return ((uintptr_t)q.p | (uintptr_t)q.g | (uintptr_t)q.s1 | (uintptr_t)q.s2) % 16 == 0 && q.count % pack == 0;
}

template <class Rule, class T, bool CLIPS> auto kernel_for(bool whole)
{
    return whole ? step_kernel<Rule, T, CLIPS, true> : step_kernel<Rule, T, CLIPS, false>;
}

template <template <class> class Rule, class T> void launch(cudaStream_t queue, const pc__cuda_step *s)
{
    static_assert(sizeof(update<T>) <= 4096, "the arguments of a kernel");
    const pc__step_attributes *a = s->a;
    update<T> u = {};
    u.count = s->count;
    u.nesterov = a->nesterov != 0, u.decoupled = a->decoupled, u.f16 = s->copies == PC__CUDA_F16;
    u.momentum = (T)a->momentum, u.epsilon = (T)a->epsilon;
    u.b1 = (T)a->beta1, u.b2 = (T)a->beta2, u.c1 = (T)(1 - a->beta1), u.c2 = (T)(1 - a->beta2);
    u.bound = (T)(a->clip_value > 0 ? a->clip_value : INFINITY);
    u.number = s->number, u.counter = s->counter, u.ready_numbers = s->ready_numbers, u.readers = s->readers;
    u.guard = s->guard, u.factor = s->factor, u.rate = s->rate;
    u.lr = a->lr, u.beta1 = a->beta1, u.beta2 = a->beta2;
    for (int i = 0; i < a->groups; i++) {
        u.lr_scale[i] = a->group[i].lr_scale;
        u.decay[i] = a->group[i].weight_decay;
    }
    unsigned blocks = 0;
    for (int i = 0; i < PC__STEP_WORDS; i++) {
        u.ready[i] = s->ready[i];
        u.ready_g[i] = s->ready_g[i];
    }
    bool whole = true;
    for (int i = 0; i < s->count; i++) {
        whole = whole && is_whole(s->of[i], 16 / sizeof(T));
        u.of[i] = s->of[i];
        u.group[i] = s->group[i];
        u.starts[i] = blocks;
        blocks += (unsigned)((s->of[i].count + PC__STEP_PIECE - 1) / PC__STEP_PIECE);
    }
    const bool clips = s->factor || a->clip_value > 0;
    (void)pc::start(clips ? kernel_for<Rule<T>, T, true>(whole) : kernel_for<Rule<T>, T, false>(whole),
                    blocks ? blocks : 1, THREADS, queue, s->early, u);
}

template <template <class> class Rule> void by_dtype(cudaStream_t queue, const pc__cuda_step *step)
{
    step->dtype == PC__CUDA_F32 ? launch<Rule, float>(queue, step) : launch<Rule, double>(queue, step);
}

} // namespace

void pc__cuda_sgd(cudaStream_t queue, const pc__cuda_step *step)
{
    by_dtype<sgd>(queue, step);
}

void pc__cuda_adam(cudaStream_t queue, const pc__cuda_step *step)
{
    by_dtype<adam>(queue, step);
}

void pc__cuda_rmsprop(cudaStream_t queue, const pc__cuda_step *step)
{
    by_dtype<rmsprop>(queue, step);
}

void pc__cuda_lion(cudaStream_t queue, const pc__cuda_step *step)
{
    by_dtype<lion>(queue, step);
}

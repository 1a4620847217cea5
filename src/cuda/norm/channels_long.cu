/* channels_long.cu: batch_norm of planes and its gradient in one kernel where a block's registers do not hold what its
 * statistics are of: it reads that twice, the second time mostly from caches, and no kernel waits for another. */
#include "cuda/norm/channels_few.cuh"

#include <type_traits>

namespace
{

constexpr int THREADS = 512, BLOCKS = 2 /* a multiprocessor's */, WARPS = THREADS / 32;

/* What threads of a block have of its numbers at a time: V neighbours N times each, of all numbers one behind the other; or, LINES, a warp
 * some of a plane, in which nobody divides. */
template <int V_, int N_, bool LINES_> struct taking {
    static constexpr int V = V_, N = N_;
    static constexpr bool LINES = LINES_;
};
typedef taking<1, 8, true> by_lines;

/* How planes are cut for warps: into so many pieces, each of so many numbers, the last one of what is left. */
struct pieces {
    pc__cuda_divisor each; /* of a plane */
    unsigned length, turns;
};

template <class A, class M> pieces pieces_of(const cut<M> &all)
{
    constexpr unsigned LONGEST = 32 * A::N, BLOCK = THREADS * A::V * A::N;
    const unsigned each = (all.inner + LONGEST - 1) / LONGEST, length = ((all.inner + each - 1) / each + 31) / 32 * 32;
    const unsigned long long units = (unsigned long long)all.count / all.inner * each;
    const unsigned turns = A::LINES ? (unsigned)((units + WARPS - 1) / WARPS) : (all.count - 1) / BLOCK + 1;
    return {pc__cuda_divisor_of(each), length, turns};
}

/* Where a thread's numbers of a turn lie, of every V the first one, and how many of these there are: the first ones. */
template <class A> struct turn {
    unsigned long long at[A::N];
    int there;
};

template <class A, class M>
__device__ __forceinline__ turn<A> turn_of(const pc__cuda_channels &c, const cut<M> &all, const share &s,
                                           const pieces &p, unsigned number)
{
    turn<A> t;
    t.there = 0;
    if constexpr (A::LINES) {
        const unsigned unit = number * WARPS + threadIdx.x / 32, batch = pc::over(unit, p.each),
                       begin = (unit - batch * p.each.by) * p.length, lane = threadIdx.x % 32;
        const unsigned end = batch * all.slab.by < all.count ? min(begin + p.length, all.inner) : 0;
        const unsigned long long first =
            static_cast<unsigned long long>(s.batch + (end ? batch : 0)) * all.stride + s.within;
#pragma unroll
        for (int k = 0; k < A::N; k++) {
            const unsigned i = begin + k * 32 + lane;
            t.at[k] = first + (i < end ? i : 0);
            t.there += i < end;
        }
    } else {
#pragma unroll
        for (int k = 0; k < A::N; k++) {
            const unsigned i = ((number * A::N + k) * THREADS + threadIdx.x) * A::V;
            t.at[k] = spot_of<true>(c, all, s, i < all.count ? i : 0).at;
            t.there += i < all.count;
        }
    }
    return t;
}

/* Every thread gets the moments of all. */
template <class M> __device__ __forceinline__ moments<M> of_block(moments<M> value, moments<M> *room)
{
    value = over_warp<false>(value);
    if (threadIdx.x % 32 == 0)
        room[threadIdx.x / 32] = value;
    __syncthreads();
    const int lane = threadIdx.x % 32;
    return of_lane(over_warp<false>(lane < THREADS / 32 ? room[lane] : moments<M>{}), 0);
}

template <class T, class A>
__global__ void __launch_bounds__(THREADS, BLOCKS) forward(pc__cuda_channels c, cut<pc::math<T>> all, pieces p)
{
    typedef pc::math<T> M;
    constexpr int V = A::V, N = A::N;
    __shared__ moments<M> room[THREADS / 32];
    const share s = share_of(c, all);
    moments<M> sum = {};
    pc::wait_for_earlier();
    const affine<M> by = affine_of<T>(c, all, s.channel);
#pragma unroll 1
    for (unsigned number = 0; number < p.turns; number++) {
        const turn<A> t = turn_of<A>(c, all, s, p, number);
        vector<T, V> in[N];
        M own = 0, squares = 0;
#pragma unroll
        for (int k = 0; k < N; k++)
            in[k] = raw_at<T, V>(c.x, t.at[k]);
#pragma unroll
        for (int k = 0; k < N * V; k++)
            own += k / V < t.there ? M(in[k / V].at[k % V]) : M(0);
        const M count = M(t.there * V), mean = t.there ? own / count : M(0);
#pragma unroll
        for (int k = 0; k < N * V; k++) {
            const M off = M(in[k / V].at[k % V]) - mean;
            squares += k / V < t.there ? off * off : M(0);
        }
        sum = joined(sum, moments<M>{count, mean, squares});
    }
    sum = of_block(sum, room);
    const M mean = sum.first, variance = mean_of(sum.second, all),
            slope = inverse_root_of(variance + all.eps) * by.weight;
    if (threadIdx.x == 0) {
        static_cast<M *>(c.found_mean)[blockIdx.x] = mean;
        static_cast<M *>(c.found_variance)[blockIdx.x] = variance;
    }
    const auto put_all = [&](auto bare) {
#pragma unroll 1
        for (unsigned number = 0; number < p.turns; number++) {
            const turn<A> t = turn_of<A>(c, all, s, p, number);
            vector<T, V> in[N], rest[N] = {};
#pragma unroll
            for (int k = 0; k < N; k++) {
                in[k] = raw_at<T, V>(c.x, t.at[k]);
                if (!bare.value && c.rest)
                    rest[k] = raw_at<T, V>(c.rest, t.at[k]);
            }
#pragma unroll
            for (int k = 0; k < N; k++) {
                vector<T, V> y;
#pragma unroll
                for (int j = 0; j < V; j++) {
                    const M value = normalised(M(in[k].at[j]) - mean, slope, by.bias);
                    y.at[j] = bare.value ? T(value) : finished<T>(c, value, M(rest[k].at[j]));
                }
                if (k < t.there)
                    *reinterpret_cast<vector<T, V> *>(static_cast<T *>(c.out) + t.at[k]) = y;
            }
        }
    };
    if (c.rest || c.relu)
        put_all(std::false_type());
    else
        put_all(std::true_type());
}

template <class T, class A>
__global__ void __launch_bounds__(THREADS, BLOCKS) backward(pc__cuda_channels c, cut<pc::math<T>> all, pieces p)
{
    typedef pc::math<T> M;
    constexpr int V = A::V, N = A::N;
    __shared__ pair<M> room[THREADS / 32];
    const share s = share_of(c, all);
    pair<M> sum = {};
    pc::wait_for_earlier();
    const affine<M> by = affine_of<T>(c, all, s.channel);
    const M mean = parameters<T, 1>(c.mean, blockIdx.x, 0).at[0],
            rstd = inverse_root_of(parameters<T, 1>(c.variance, blockIdx.x, 0).at[0] + all.eps),
            slope = rstd * by.weight;
    /* use(where, distances from the mean, gradients) for each of a turn's vectors. */
    const auto each = [&](unsigned number, auto &&use) {
        const turn<A> t = turn_of<A>(c, all, s, p, number);
        vector<T, V> in[N], dy[N];
#pragma unroll
        for (int k = 0; k < N; k++)
            in[k] = raw_at<T, V>(c.x, t.at[k]), dy[k] = raw_at<T, V>(c.dy, t.at[k]);
#pragma unroll
        for (int k = 0; k < N; k++) {
            M off[V], g[V];
#pragma unroll
            for (int j = 0; j < V; j++) {
                off[j] = M(in[k].at[j]) - mean, g[j] = M(dy[k].at[j]);
                if (c.relu)
                    g[j] = masked(c, g[j], normalised(off[j], slope, by.bias));
            }
            if (k < t.there)
                use(t.at[k], off, g);
        }
    };
#pragma unroll 1
    for (unsigned number = 0; number < p.turns; number++)
        each(number, [&](unsigned long long, const M(&off)[V], const M(&g)[V]) {
#pragma unroll
            for (int j = 0; j < V; j++)
                sum = sum + pair<M>{g[j], g[j] * off[j]};
        });
    sum = over_block(sum, room);
    if (threadIdx.x == 0) {
        const unsigned i = pc::over(s.channel, all.spread);
        put_gradient<T>(c.dweight, i, sum.second * rstd);
        put_gradient<T>(c.dbias, i, sum.first);
    }
    if (!c.out)
        return;
    const M first_part = c.stored ? M(0) : slope * mean_of(sum.first, all),
            second_part = c.stored ? M(0) : rstd * rstd * (slope * mean_of(sum.second, all));
#pragma unroll 1
    for (unsigned number = 0; number < p.turns; number++)
        each(number, [&](unsigned long long at, const M(&off)[V], const M(&g)[V]) {
            vector<T, V> dx;
#pragma unroll
            for (int j = 0; j < V; j++)
                dx.at[j] = T(g[j] * slope - first_part - off[j] * second_part);
            *reinterpret_cast<vector<T, V> *>(static_cast<T *>(c.out) + at) = dx;
        });
}

template <class T, class A> void launch(const pc__cuda_channels &c)
{
    const auto all = cut_of<pc::math<T>>(c);
    (void)pc::start(c.backward ? backward<T, A> : forward<T, A>, (unsigned)c.channels, THREADS, c.queue, c.early, c,
                    all, pieces_of<A>(all));
}

} // namespace

void pc__cuda_channel_long(const pc__cuda_channels *c)
{
    enum { SHORT = 64 /* numbers of a plane, of which a warp would have few */ };
    with_number(c->dtype, [&](auto number) {
        typedef decltype(number) T;
        if (pc__cuda_channel_planes_are_whole(c, sizeof(T)))
            launch<T, taking<16 / sizeof(T), 4, false>>(*c);
        else if (c->inner >= SHORT)
            launch<T, by_lines>(*c);
        else
            launch<T, taking<1, 8, false>>(*c);
    });
}

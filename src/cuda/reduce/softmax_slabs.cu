/* softmax_slabs.cu: softmax and its kin along the middle of [outer][n][inner], where n times inner is small: rows of a few
 * elements, or columns that have few neighbours. Straight from memory a warp's access would touch a line for every row or
 * two. So a block brings a run of whole slabs [n][inner], which is one piece of memory, into shared memory, 16 bytes an access, and
 * takes the results back the same way; between, `lanes` threads have a column, one where it is short. */
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/reduce/softmax.cuh"

namespace
{

constexpr int THREADS = 128, AT_ONCE = 4;

struct sizes {
    long long outer;
    int n, inner, slabs; /* slabs: of a block */
    int rooms;           /* bring a's and b's place in shared memory; the last may be the results' */
    int own_room;        /* results have one, else they replace a's */
};

/* `count` elements of memory and their place in shared memory, which lies alike between two boundaries of 16 bytes: single
 * elements in front of the first and behind the last, packs between. */
template <class T> struct span {
    static constexpr int W = 16 / sizeof(T);
    T *held;
    int count, head, packs;

    __device__ __forceinline__ span(const T *at, int elements, uint4 *room) : count(elements)
    {
        const int before = static_cast<int>(reinterpret_cast<uintptr_t>(at) % 16 / sizeof(T));
        held = reinterpret_cast<T *>(room) + before;
        head = min(count, before ? W - before : 0);
        packs = (count - head) / W;
    }

    __device__ __forceinline__ int singles() const
    {
        return count - packs * W;
    }

    /* Where single element k is: those in front come first. */
    __device__ __forceinline__ int single(int k) const
    {
        return k < head ? k : k + packs * W;
    }

    __device__ __forceinline__ uint4 *body() const
    {
        return reinterpret_cast<uint4 *>(held + head);
    }
};

/* All loads of a thread are on their way before the first is waited for, but where a block has more than it should. */
template <class T, bool BOTH>
__device__ __forceinline__ void bring(const T *a, const span<T> &to_a, const T *b, const span<T> &to_b)
{
    const int me = threadIdx.x;
    const uint4 *from_a = reinterpret_cast<const uint4 *>(a + to_a.head),
                *from_b = reinterpret_cast<const uint4 *>(b + to_b.head);
    if (me < to_a.singles())
        to_a.held[to_a.single(me)] = a[to_a.single(me)];
    if (BOTH && me < to_b.singles())
        to_b.held[to_b.single(me)] = b[to_b.single(me)];
    const int most = BOTH ? max(to_a.packs, to_b.packs) : to_a.packs;
    for (int i = me; i < most; i += AT_ONCE * THREADS) {
        uint4 x[AT_ONCE], y[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const int k = i + u * THREADS;
            if (k < to_a.packs)
                x[u] = from_a[k];
            if (BOTH && k < to_b.packs)
                y[u] = from_b[k];
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const int k = i + u * THREADS;
            if (k < to_a.packs)
                to_a.body()[k] = x[u];
            if (BOTH && k < to_b.packs)
                to_b.body()[k] = y[u];
        }
    }
}

template <class T> __device__ __forceinline__ void take_back(const span<T> &from, T *out)
{
    const int me = threadIdx.x;
    uint4 *to = reinterpret_cast<uint4 *>(out + from.head);
    if (me < from.singles())
        out[from.single(me)] = from.held[from.single(me)];
#pragma unroll 1
    for (int i = me; i < from.packs; i += AT_ONCE * THREADS) {
        uint4 x[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
            if (i + u * THREADS < from.packs)
                x[u] = from.body()[i + u * THREADS];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
            if (i + u * THREADS < from.packs)
                to[i + u * THREADS] = x[u];
    }
}

/* Over the LANES threads of a column; `here` are the warp's threads that have one. */
template <class Join, int LANES, class M> __device__ __forceinline__ M joined(M value, unsigned here)
{
#pragma unroll
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        value = Join()(value, __shfl_xor_sync(here, value, distance));
    return value;
}

/* How many of its N elements each thread of a column has, whatever the column. */
template <int N, int LANES> constexpr int always = LANES == 1 ? N - 1 : N / 2;

/* A column whose elements are `step` apart in shared memory, from this thread's first on: it has every LANESth. What the
 * column has no more is read in its place, and left out: a load under no condition costs one instruction. */
template <class T, int OP, int N, int LANES>
__device__ __forceinline__ void column(const T *a, const T *b, T *out, int left, int step, unsigned here)
{
    typedef pc::math<T> M;
    constexpr bool BOTH = traits<OP>::backward;
    M x[N], y[N], most = M(-CUDART_INF), sum = 0;
#pragma unroll
    for (int k = 0; k < N; k++) {
        const bool there = k < always<N, LANES> || k * LANES < left;
        const int at = there ? k * step : 0;
        x[k] = M(a[at]);
        y[k] = BOTH ? M(b[at]) : M(0);
        x[k] = there ? x[k] : BOTH ? M(0) : M(-CUDART_INF);
        y[k] = there ? y[k] : M(0);
    }
    if (!BOTH) {
#pragma unroll
        for (int k = 0; k < N; k++)
            most = larger()(most, x[k]);
        most = joined<larger, LANES>(most, here);
    }
#pragma unroll
    for (int k = 0; k < N; k++) {
        const M term = summand<T, OP>(x[k], y[k], most);
        sum += term;
        if (OP == PC__SOFTMAX)
            y[k] = term;
    }
    sum = finished<M, OP>(joined<plus, LANES>(sum, here));
#pragma unroll
    for (int k = 0; k < N; k++)
        if (k < always<N, LANES> || k * LANES < left)
            out[k * step] = T(element<T, OP>(x[k], y[k], y[k], most, sum));
}

/* Room in shared memory for so many elements, wherever they begin. */
template <class T> __host__ __device__ constexpr int room(int elements)
{
    return (static_cast<int>(sizeof(T)) * elements + 15) / 16 + 1;
}

template <class T, int OP, int N, int LANES>
__global__ void __launch_bounds__(THREADS)
    slabs_kernel(const T *__restrict__ a, const T *__restrict__ b, T *__restrict__ out, sizes s)
{
    extern __shared__ uint4 memory[];
    constexpr int TOGETHER = THREADS / LANES;
    const int slab = s.n * s.inner, space = room<T>(s.slabs * slab);
    const long long first = static_cast<long long>(blockIdx.x) * s.slabs;
    const int here = static_cast<int>(min(s.outer - first, static_cast<long long>(s.slabs)));
    a += first * slab, b += first * slab, out += first * slab;
    const span<T> held_a(a, here * slab, memory), held_b(b, here * slab, memory + space),
        held_out(out, here * slab, memory + (s.own_room ? s.rooms - 1 : 0) * space);
    pc::wait_for_earlier();
    bring<T, traits<OP>::backward>(a, held_a, b, held_b);
    __syncthreads();
    /* column id is id % inner of slab id / inner; the next one of this thread is TOGETHER further on */
    const int lane = threadIdx.x % LANES, columns = here * s.inner, step = LANES * s.inner;
    int id = threadIdx.x / LANES, across = 0, down = id, more_across = 0, more_down = TOGETHER;
    if (s.inner > 1) {
        down = id / s.inner, across = id - down * s.inner;
        more_down = TOGETHER / s.inner, more_across = TOGETHER - more_down * s.inner;
    }
    for (int turn = 0; turn < columns; turn += TOGETHER, id += TOGETHER) {
        const unsigned mask = LANES > 1 ? __ballot_sync(0xffffffffu, id < columns) : 0;
        const int at = down * slab + across + lane * s.inner;
        if (id < columns)
            column<T, OP, N, LANES>(held_a.held + at, held_b.held + at, held_out.held + at, s.n - lane, step, mask);
        down += more_down, across += more_across;
        if (across >= s.inner)
            across -= s.inner, down++;
    }
    __syncthreads();
    take_back(held_out, out);
}

/* Runs of up to PC__SLAB_BYTES, whose columns keep all threads busy, and shorter ones where a large GPU would have fewer
 * than two blocks for each multiprocessor. */
int slabs_of(long long outer, int slab_bytes, int inner, int together)
{
    enum { BLOCKS = 264 };
    const long long share = (outer + BLOCKS - 1) / BLOCKS;
    const int cap = PC__SLAB_BYTES / slab_bytes, fill = together > inner ? together / inner : 1;
    if (cap <= fill)
        return cap;
    const int most = share < fill ? fill : share < cap ? static_cast<int>(share) : cap;
    return most / fill * fill;
}

template <class T, int OP, int N, int LANES> void launch_slabs(const pc__cuda_softmax_columns *c)
{
    const int n = static_cast<int>(c->n), inner = static_cast<int>(c->inner), size = static_cast<int>(sizeof(T));
    const int slabs = slabs_of(c->outer, n * inner * size, inner, THREADS / LANES);
    const int own_room = (reinterpret_cast<uintptr_t>(c->a) ^ reinterpret_cast<uintptr_t>(c->out)) % 16 != 0;
    const sizes s = {c->outer, n, inner, slabs, 1 + traits<OP>::backward + own_room, own_room};
    const size_t shared = static_cast<size_t>(s.rooms) * room<T>(slabs * n * inner) * sizeof(uint4);
    (void)pc::start_grid(slabs_kernel<T, OP, N, LANES>, dim3(static_cast<unsigned>((c->outer + slabs - 1) / slabs)),
                         dim3(THREADS), shared, c->queue, c->early, static_cast<const T *>(c->a),
                         static_cast<const T *>(c->b), static_cast<T *>(c->out), s);
}

/* A thread has N elements, or one less where it has a column alone. */
template <class T, int OP> void launch(const pc__cuda_softmax_columns *c)
{
    if (c->n <= 2)
        launch_slabs<T, OP, 2, 1>(c);
    else if (c->n <= 4)
        launch_slabs<T, OP, 4, 1>(c);
    else if (c->n <= 6)
        launch_slabs<T, OP, 6, 1>(c);
    else if (c->n <= 8)
        launch_slabs<T, OP, 8, 1>(c);
    else if (c->n <= 16)
        launch_slabs<T, OP, 8, 2>(c);
    else if (c->n <= 32)
        launch_slabs<T, OP, 8, 4>(c);
    else if (c->n <= 64)
        launch_slabs<T, OP, 8, 8>(c);
    else
        launch_slabs<T, OP, 8, 16>(c);
}

} // namespace

void pc__cuda_softmax_slabs(const pc__cuda_softmax_columns *c, enum pc__cuda_softmax_op op)
{
    with_kind(c->dtype, op, [&](auto kind) { launch<typename decltype(kind)::number, kind.op>(c); });
}

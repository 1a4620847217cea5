/* rows_backward.cu: gradients of layer_norm and rms_norm for rows that are kept in registers. Blocks go through rows and keep
 * sums of them, for the gradients of weight and bias, so that all is read once; the next row is on its way meanwhile. */
#include "cuda/norm/rows_backward.cuh"
#include "cuda/shared/dependent_launch.cuh"

#define MULTIPROCESSORS 132
#define RESIDENT 1024 /* threads of a multiprocessor by the registers of rows of more packs than ONE_BLOCK */
/* Numbers of blocks' sums that take longer, written and read, than one more turn of all blocks. */
#define MUCH (1ll << 19)
#define FEW 2 /* turns of one block that take less time than a second kernel, which adds blocks' sums */

namespace
{

/* Of a multiprocessor at once: what is under way to them covers how long memory takes. */
template <class T, int LANES, int N>
constexpr int blocks_of = LANES > ONE_BLOCK || N > 1 || sizeof(T) == 8 ? 1
                          : sizeof(T) == 2                             ? 3
                                                                       : 4;

/* Sums with products are fma by name: a compiler's own choice would differ between dtypes of the gradient. But g w is rounded
 * both times, so that nothing is left of it where a row is one number.
 * With x' = (x - mean) rstd: dx = rstd (g w - mean(g w) - x' mean(g w x')). */
template <class T, class G, int LANES, int N, int W>
__global__ void __launch_bounds__(threads_of<LANES>, blocks_of<T, LANES, N>) held(pc__cuda_norm_rows r)
{
    typedef pc::math<T> M;
    constexpr int groups = threads_of<LANES> / LANES;
    __shared__ pair<M> between[2][threads_of<LANES> / 32];
    __shared__ M room[groups > 1 ? LANES * N * W : 1];
    const int lanes = lanes_of<LANES>(), lane = threadIdx.x % LANES, group = threadIdx.x / LANES, n = (int)r.n;
    const long long step = (long long)gridDim.x * groups;
    long long row = (long long)blockIdx.x * groups + group;
    numbers<M, W> dweight[N] = {}, dbias[N] = {};
    weights<M, LANES, N, W> weight;
    loaded<T, G, N, W> next;
    pc::wait_for_earlier();
    load<T, G, LANES, N, W>(next, r, row, lane);
#pragma unroll
    for (int i = 0; i < N; i++)
        weight.keep(i, (i * lanes + lane) * W < n ? parameters<T, W>(r.weight, (i * lanes + lane) * W, 1)
                                                  : numbers<M, W>{});
    const int turns = (int)((r.rows + step - 1) / step);
#pragma unroll 1
    for (int turn = 0; turn < turns; turn++, row += step) {
        const loaded<T, G, N, W> now = next;
        const bool there = row < r.rows;
        const M mean = now.mean, rstd = now.rstd;
        if (turn + 1 < turns)
            load<T, G, LANES, N, W>(next, r, row + step, lane);
        M first = 0, second = 0;
#pragma unroll
        for (int i = 0; i < N; i++) {
            const numbers<M, W> x = taken<T, W>(now.x[i]), g = taken<G, W>(now.g[i]), w = weight.of(i);
#pragma unroll
            for (int j = 0; j < W; j++) {
                const M off = (x.at[j] - mean) * rstd, gw = g.at[j] * w.at[j];
                first += gw;
                second = fma(gw, off, second);
                dweight[i].at[j] = fma(g.at[j], off, dweight[i].at[j]);
                dbias[i].at[j] += g.at[j];
            }
        }
        sum_both<LANES>(first, second, between[turn % 2]);
        first = r.centered ? first / M(n) : M(0), second /= M(n);
#pragma unroll
        for (int i = 0; i < N; i++) {
            if (!r.dx || !there || (i * lanes + lane) * W >= n)
                continue;
            const numbers<M, W> x = taken<T, W>(now.x[i]), g = taken<G, W>(now.g[i]), w = weight.of(i);
            numbers<M, W> dx;
#pragma unroll
            for (int j = 0; j < W; j++)
                dx.at[j] = rstd * fma((mean - x.at[j]) * rstd, second, g.at[j] * w.at[j] - first);
            put<T, W>(r.dx, row * n + (i * lanes + lane) * W, dx);
        }
    }
    if (!r.sums)
        return;
    const long long rows = r.rows - (long long)blockIdx.x * groups;
    join_groups<LANES, N, W>(dweight, room, group, lane, rows);
    join_groups<LANES, N, W>(dbias, room, group, lane, rows);
    if (group == 0)
        leave_sums<T, LANES>(r, dweight, dbias, lane);
}

/* Blocks for `all` turns of one, of which `most` are there at once: those that need as many turns as any number up to it
 * would, so that there are few sums. */
int64_t blocks_for(int64_t all, int64_t most, int64_t n)
{
    const int64_t turns = (all + most - 1) / most;
    if (all <= FEW)
        return all > 0;
    if (turns == 1 && all > MULTIPROCESSORS && all * n > MUCH)
        return (all + 1) / 2;
    return (all + turns - 1) / turns;
}

template <class T, class G, int LANES, int N, int W> int64_t run(const pc__cuda_norm_rows &r, bool launch)
{
    const int64_t groups = threads_of<LANES> / LANES, all = (r.rows + groups - 1) / groups;
    int threads = threads_of<LANES>, together = blocks_of<T, LANES, N> == 4 ? 4 : 3;
    if (LANES > ONE_BLOCK) {
        threads = (int)((r.n + N * W * 32 - 1) / (N * W * 32) * 32);
        together = LANES / threads;
    }
    const int64_t blocks = blocks_for(all, (int64_t)together * MULTIPROCESSORS, r.n);
    if (launch && blocks)
        (void)pc::start(held<T, G, LANES, N, W>, (unsigned)blocks, (unsigned)threads, r.queue, r.early, r);
    return blocks > 1 ? blocks : 1;
}

template <class T, class G> int64_t run_singles(const pc__cuda_norm_rows &r, bool launch)
{
    if (r.n <= 32)
        return run<T, G, 32, 1, 1>(r, launch);
    if (r.n <= 256)
        return run<T, G, 32, 8, 1>(r, launch);
    if (r.n <= 512 && r.rows <= FEW)
        return run<T, G, 256, 2, 1>(r, launch);
    if (r.n <= 1024)
        return run<T, G, 128, 8, 1>(r, launch);
    if (r.n <= 4096)
        return run<T, G, 512, 8, 1>(r, launch);
    if constexpr (sizeof(T) == 2) {
        if (r.pairs && r.n <= 8 * RESIDENT)
            return run<T, G, RESIDENT, 4, 2>(r, launch);
    }
    return 0;
}

template <class T, class G> int64_t run_whole(const pc__cuda_norm_rows &r, bool launch)
{
    constexpr int W = 16 / sizeof(T);
    const int64_t packs = r.n / W;
    if (packs <= 32)
        return run<T, G, 32, 1, W>(r, launch);
    if (packs <= 64)
        return run<T, G, 64, 1, W>(r, launch);
    if (packs <= 128)
        return run<T, G, 128, 1, W>(r, launch);
    if (packs <= 256)
        return run<T, G, 256, 1, W>(r, launch);
    if (packs <= RESIDENT)
        return run<T, G, RESIDENT, 1, W>(r, launch);
    if constexpr (sizeof(T) == 4) {
        if (packs <= 2 * RESIDENT)
            return run<T, G, RESIDENT, 2, W>(r, launch);
    }
    return 0;
}

int64_t run_any(const pc__cuda_norm_rows *r, bool launch)
{
    int64_t blocks = 0;
    with_both(*r, [&](auto x, auto y) {
        typedef decltype(x) T;
        typedef decltype(y) G;
        blocks = r->whole ? run_whole<T, G>(*r, launch) : run_singles<T, G>(*r, launch);
    });
    return blocks;
}

} // namespace

bool pc__cuda_norm_held_backward(const pc__cuda_norm_rows *r)
{
    return pc__cuda_norm_warps_backward(r) || run_any(r, true) > 0;
}

int64_t pc__cuda_norm_held_blocks(const pc__cuda_norm_rows *r)
{
    const int64_t blocks = pc__cuda_norm_warps_blocks(r);
    return blocks ? blocks : run_any(r, false);
}

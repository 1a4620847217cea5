/* channels_few_backward.cu: batch_norm and group_norm of few numbers, backward (channels_few.cuh). */
#include "cuda/norm/channels_few.cuh"

namespace
{

/* The gradients of weight and bias are the block's where it has all numbers of one; then its weight is one, too, and sums
 * without it are enough. */
template <class T, int EACH, int THREADS, bool PLANE, int V>
__global__ void __launch_bounds__(THREADS) backward(pc__cuda_channels c, cut<pc::math<T>> all)
{
    typedef pc::math<T> M;
    __shared__ pair<M> room[THREADS / 32];
    const share s = share_of(c, all);
    vector<T, V> in[EACH / V], dy[EACH / V];
    M off[EACH], g[EACH];
    affine<M> by[PLANE ? 1 : EACH];
    unsigned long long at[PLANE ? EACH / V : 1];
    pair<M> sum = {};
    pc::wait_for_earlier();
    const bool each = PLANE || c.dweight.at || c.dbias.at;
    const affine<M> only = affine_of<T>(c, all, s.channel);
    const M mean = parameters<T, 1>(c.mean, blockIdx.x, 0).at[0],
            variance = parameters<T, 1>(c.variance, blockIdx.x, 0).at[0];
#pragma unroll
    for (int k = 0; k < EACH; k += V) {
        if (is_over<V, THREADS>(k, all))
            break;
        const unsigned i = number_of<V, THREADS>(k);
        const spot own = spot_of<PLANE>(c, all, s, i < all.count ? i : 0);
        in[k / V] = raw_at<T, V>(c.x, own.at);
        dy[k / V] = raw_at<T, V>(c.dy, own.at);
        at[PLANE ? k / V : 0] = own.at;
        if constexpr (!PLANE) {
            by[k] = each || all.channels == 1 ? only : affine_of<T>(c, all, own.channel);
        }
    }
    const M rstd = inverse_root_of(variance + all.eps);
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        if (is_over<V, THREADS>(k, all))
            break;
        const bool there = number_of<V, THREADS>(k) < all.count;
        off[k] = there ? M(in[k / V].at[k % V]) - mean : M(0);
        g[k] = there ? M(dy[k / V].at[k % V]) : M(0);
    }
    if (c.relu) {
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            if (is_over<V, THREADS>(k, all))
                break;
            const affine<M> &own = PLANE ? only : by[PLANE ? 0 : k];
            g[k] = masked(c, g[k], normalised(off[k], rstd * own.weight, own.bias));
        }
    }
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        if (is_over<V, THREADS>(k, all))
            break;
        if (!each)
            g[k] *= by[PLANE ? 0 : k].weight;
        sum = sum + pair<M>{g[k], g[k] * off[k]};
    }
    sum = sum_of_all<THREADS>(sum, room);
    if (each && threadIdx.x == 0) {
        const unsigned i = pc::over(s.channel, all.spread);
        put_gradient<T>(c.dweight, i, sum.second * rstd);
        put_gradient<T>(c.dbias, i, sum.first);
    }
    if (!c.out)
        return;
    const M slope = each ? rstd * only.weight : rstd; /* of dx by what is summed up */
    const M first = c.stored ? M(0) : slope * mean_of(sum.first, all),
            second = c.stored ? M(0) : rstd * rstd * (slope * mean_of(sum.second, all));
#pragma unroll
    for (int k = 0; k < EACH; k += V) {
        if (is_over<V, THREADS>(k, all))
            break;
        const unsigned i = number_of<V, THREADS>(k);
        const unsigned long long to = PLANE ? at[PLANE ? k / V : 0] : spot_of<PLANE>(c, all, s, i).at;
        vector<T, V> dx;
#pragma unroll
        for (int j = k; j < k + V; j++)
            dx.at[j - k] = T(g[j] * slope - first - off[j] * second);
        if (i < all.count)
            *reinterpret_cast<vector<T, V> *>(static_cast<T *>(c.out) + to) = dx;
    }
}

struct backward_of_few {
    template <class T, int EACH, int THREADS, bool PLANE, int V> static auto of()
    {
        return backward<T, EACH, THREADS, PLANE, V>;
    }
};

} // namespace

void pc__cuda_channel_few_backward(const pc__cuda_channels *c)
{
    start_few<backward_of_few>(c);
}

/* channels_few.cu: batch_norm and group_norm of few numbers, forward (channels_few.cuh). */
#include "cuda/norm/channels_few.cuh"

#include <type_traits>

namespace
{

template <class T, int EACH, int THREADS, bool PLANE, int V>
__global__ void __launch_bounds__(THREADS) forward(pc__cuda_channels c, cut<pc::math<T>> all)
{
    typedef pc::math<T> M;
    __shared__ M room[2][THREADS / 32];
    const share s = share_of(c, all);
    vector<T, V> in[EACH / V];
    M x[EACH];
    affine<M> by[PLANE ? 1 : EACH];
    unsigned long long at[PLANE ? EACH / V : 1]; /* else found once more: it would take the registers */
    M sum = 0;
    pc::wait_for_earlier();
    const affine<M> only = affine_of<T>(c, all, s.channel);
#pragma unroll
    for (int k = 0; k < EACH; k += V) {
        if (is_over<V, THREADS>(k, all))
            break;
        const unsigned i = number_of<V, THREADS>(k);
        const spot own = spot_of<PLANE>(c, all, s, i < all.count ? i : 0);
        in[k / V] = raw_at<T, V>(c.x, own.at);
        at[PLANE ? k / V : 0] = own.at;
        if constexpr (!PLANE) {
            by[k] = all.channels == 1 ? only : affine_of<T>(c, all, own.channel);
        }
    }
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        if (is_over<V, THREADS>(k, all))
            break;
        x[k] = number_of<V, THREADS>(k) < all.count ? M(in[k / V].at[k % V]) : M(0);
        sum += x[k];
    }
    const M mean = mean_of(sum_of_all<THREADS>(sum, room[0]), all);
    sum = 0;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        if (is_over<V, THREADS>(k, all))
            break;
        x[k] -= mean;
        sum += number_of<V, THREADS>(k) < all.count ? x[k] * x[k] : M(0);
    }
    const M variance = mean_of(sum_of_all<THREADS>(sum, room[1]), all), rstd = inverse_root_of(variance + all.eps);
    if (threadIdx.x == 0) {
        static_cast<M *>(c.found_mean)[blockIdx.x] = mean;
        static_cast<M *>(c.found_variance)[blockIdx.x] = variance;
    }
    const auto put_all = [&](auto bare) {
#pragma unroll
        for (int k = 0; k < EACH; k += V) {
            if (is_over<V, THREADS>(k, all))
                break;
            const unsigned i = number_of<V, THREADS>(k);
            const unsigned long long to = PLANE ? at[PLANE ? k / V : 0] : spot_of<PLANE>(c, all, s, i).at;
            vector<T, V> y, rest = {};
            if (!bare.value && c.rest && i < all.count)
                rest = raw_at<T, V>(c.rest, to);
            const affine<M> &own = PLANE ? only : by[PLANE ? 0 : k];
#pragma unroll
            for (int j = 0; j < V; j++) {
                const M value = normalised(x[k + j], rstd * own.weight, own.bias);
                y.at[j] = bare.value ? T(value) : finished<T>(c, value, M(rest.at[j]));
            }
            if (i < all.count)
                *reinterpret_cast<vector<T, V> *>(static_cast<T *>(c.out) + to) = y;
        }
    };
    if (c.rest || c.relu)
        put_all(std::false_type());
    else
        put_all(std::true_type());
}

struct forward_of_few {
    template <class T, int EACH, int THREADS, bool PLANE, int V> static auto of()
    {
        return forward<T, EACH, THREADS, PLANE, V>;
    }
};

} // namespace

void pc__cuda_channel_few(const pc__cuda_channels *c)
{
    start_few<forward_of_few>(c);
}

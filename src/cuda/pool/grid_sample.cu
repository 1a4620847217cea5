/* grid_sample.cu: pictures read at places of one's own. Neighbouring threads have neighbouring elements of the result, each of some
 * planes, for which it finds the place once. */
#include "cuda/pool/grid_sample.cuh"

namespace
{

constexpr int PLANES = 8; /* of a thread */

template <class T>
__global__ void __launch_bounds__(THREADS)
    read(const __grid_constant__ pc__cuda_grid g, const T *__restrict__ x, T *__restrict__ y)
{
    const int64_t size = g.spec.size[0] * g.spec.size[1] * g.inner, groups = (g.planes + PLANES - 1) / PLANES;
    const int64_t all = g.n * groups * g.places * g.inner, own = thread_of_all();
    pc::wait_for_earlier();
    if (own >= all)
        return;
    const int64_t place = quotient(own, g.inner), group = quotient(place, g.places), n = quotient(group, groups);
    const int64_t c = own - place * g.inner, j = place - group * g.places, first = (group - n * groups) * PLANES;
    const corners<T> around(g, n * g.places + j);
    const int kinds = g.spec.nearest ? 1 : 4;
    const int64_t planes = min(g.planes - first, static_cast<int64_t>(PLANES)), begin = n * g.planes + first;
    const T *from = x + begin * size + c;
    T *to = y + (begin * g.places + j) * g.inner + c;
    int64_t at[4];
    T weight[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        at[k] = k < kinds && around.there(k) ? around.at(k, g.spec.size[1]) * g.inner : -1;
        weight[k] = around.weight(k);
    }
    for (int64_t p = 0; p < planes; p++) {
        T sum = 0;
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (at[k] >= 0)
                sum += from[p * size + at[k]] * weight[k];
        to[p * g.places * g.inner] = sum;
    }
}

template <class T> void run(const pc__cuda_grid *g, const void *x, void *y)
{
    const int64_t groups = (g->planes + PLANES - 1) / PLANES;
    (void)pc::start(read<T>, blocks_for(g->n * groups * g->places * g->inner), THREADS, g->queue, g->early, *g,
                    static_cast<const T *>(x), static_cast<T *>(y));
}

} // namespace

void pc__cuda_grid_read(const pc__cuda_grid *g, const void *x, void *y)
{
    g->dtype == PC__CUDA_F64 ? run<double>(g, x, y) : run<float>(g, x, y);
}

/* grid_sample_backward.cu: the gradients of pictures read at places of one's own. That at x gathers: the entries of each place of it
 * are sorted, and added up in order by one thread for some planes. That at the grid is a sum over channels, of a thread or of a warp. */
#include "cuda/pool/grid_sample.cuh"

namespace
{

constexpr int PLANES = 4;               /* of a thread */
constexpr int64_t FEW_PLACES = 1 << 14; /* that leave a GPU idle where they have a thread each */

template <class T>
__global__ void __launch_bounds__(THREADS) list_entries(const __grid_constant__ pc__cuda_grid g, int kinds,
                                                        int64_t *__restrict__ index, T *__restrict__ weight)
{
    const int64_t own = thread_of_all();
    pc::wait_for_earlier();
    if (own >= g.n * g.places)
        return;
    const corners<T> around(g, own);
    for (int k = 0; k < kinds; k++) {
        index[own * kinds + k] = around.there(k) ? around.at(k, g.spec.size[1]) : g.spec.size[0] * g.spec.size[1];
        weight[own * kinds + k] = around.weight(k);
    }
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    add_entries(const __grid_constant__ pc__cuda_grid g, int kinds, const unsigned *__restrict__ start,
                const unsigned *__restrict__ order, const T *__restrict__ weight, const T *__restrict__ dy,
                T *__restrict__ dx)
{
    const int64_t size = g.spec.size[0] * g.spec.size[1], groups = (g.planes + PLANES - 1) / PLANES;
    const int64_t own = thread_of_all(), of_plane = g.places * g.inner, entries = g.places * kinds;
    pc::wait_for_earlier();
    if (own >= g.n * groups * size * g.inner)
        return;
    const int64_t place = quotient(own, g.inner), group = quotient(place, size), n = quotient(group, groups);
    const int64_t c = own - place * g.inner, i = place - group * size, first = (group - n * groups) * PLANES;
    const int64_t begin = n * g.planes + first;
    const int planes = static_cast<int>(min(g.planes - first, static_cast<int64_t>(PLANES)));
    const unsigned *of_picture = order + n * entries, *range = start + n * (size + 2) + i;
    const T *by = weight + n * entries, *from = dy + begin * of_plane + c;
    T sum[PLANES] = {};
    for (unsigned k = range[0], end = range[1]; k < end; k++) {
        const unsigned entry = of_picture[k];
        const T *row = from + (entry / static_cast<unsigned>(kinds)) * g.inner;
#pragma unroll
        for (int p = 0; p < PLANES; p++)
            if (p < planes)
                sum[p] += row[p * of_plane] * by[entry];
    }
#pragma unroll
    for (int p = 0; p < PLANES; p++)
        if (p < planes)
            dx[((begin + p) * size + i) * g.inner + c] = sum[p];
}

/* `lanes` neighbours for each place, 1 or 32. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    slopes(const __grid_constant__ pc__cuda_grid g, int lanes, const T *__restrict__ x, const T *__restrict__ dy,
           T *__restrict__ dgrid)
{
    const int64_t size = g.spec.size[0] * g.spec.size[1], all = g.n * g.places, own = thread_of_all() / lanes;
    const int64_t place = min(own, all - 1), n = quotient(place, g.places), j = place - n * g.places;
    const int lane = threadIdx.x % lanes;
    pc::wait_for_earlier();
    const corners<T> around(g, place);
    T product[4] = {};
    for (int64_t channel = lane; channel < g.planes * g.inner; channel += lanes) {
        const int64_t p = quotient(channel, g.inner), c = channel - p * g.inner, plane = n * g.planes + p;
        const T gradient = dy[(plane * g.places + j) * g.inner + c];
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (around.there(k))
                product[k] += gradient * x[(plane * size + around.at(k, g.spec.size[1])) * g.inner + c];
    }
#pragma unroll
    for (int k = 0; k < 4; k++)
        product[k] = sum_of_lanes(product[k], lanes);
    if (own >= all || lane > 0)
        return;
    const T across = around.across.part, down = around.down.part;
    dgrid[2 * own] = ((product[1] - product[0]) * (1 - down) + (product[3] - product[2]) * down) * around.x.slope;
    dgrid[2 * own + 1] =
        ((product[2] - product[0]) * (1 - across) + (product[3] - product[1]) * across) * around.y.slope;
}

template <class T> void run_list(const pc__cuda_grid *g, int kinds, int64_t *index, void *weight)
{
    (void)pc::start(list_entries<T>, blocks_for(g->n * g->places), THREADS, g->queue, g->early, *g, kinds, index,
                    static_cast<T *>(weight));
}

template <class T>
void run_add(const pc__cuda_grid *g, int kinds, const unsigned *start, const unsigned *order, const void *weight,
             const void *dy, void *dx)
{
    const int64_t groups = (g->planes + PLANES - 1) / PLANES;
    const int64_t threads = g->n * groups * g->spec.size[0] * g->spec.size[1] * g->inner;
    (void)pc::start(add_entries<T>, blocks_for(threads), THREADS, g->queue, g->early, *g, kinds, start, order,
                    static_cast<const T *>(weight), static_cast<const T *>(dy), static_cast<T *>(dx));
}

template <class T> void run_slopes(const pc__cuda_grid *g, const void *x, const void *dy, void *dgrid)
{
    const int64_t all = g->n * g->places;
    const int lanes = g->inner > 1 || all < FEW_PLACES ? 32 : 1;
    (void)pc::start(slopes<T>, blocks_for(all * lanes), THREADS, g->queue, g->early, *g, lanes,
                    static_cast<const T *>(x), static_cast<const T *>(dy), static_cast<T *>(dgrid));
}

} // namespace

void pc__cuda_grid_list(const pc__cuda_grid *g, int kinds, int64_t *index, void *weight)
{
    g->dtype == PC__CUDA_F64 ? run_list<double>(g, kinds, index, weight) : run_list<float>(g, kinds, index, weight);
}

void pc__cuda_grid_add(const pc__cuda_grid *g, int kinds, const unsigned *start, const unsigned *order,
                       const void *weight, const void *dy, void *dx)
{
    g->dtype == PC__CUDA_F64 ? run_add<double>(g, kinds, start, order, weight, dy, dx)
                             : run_add<float>(g, kinds, start, order, weight, dy, dx);
}

void pc__cuda_grid_slopes(const pc__cuda_grid *g, const void *x, const void *dy, void *dgrid)
{
    g->dtype == PC__CUDA_F64 ? run_slopes<double>(g, x, dy, dgrid) : run_slopes<float>(g, x, dy, dgrid);
}

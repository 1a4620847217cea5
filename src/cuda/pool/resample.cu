/* resample.cu: pictures of another size. A thread for each element of the result, which gathers what it is made of, in the
 * order of memory, forward and backward: nothing is added by several threads. */
#include "cuda/pool/resample.h"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/sums.cuh"

#define THREADS 256
#define HELD 4 /* weights of columns that a thread keeps for all rows */

namespace
{

/* What place i of a result is made of along an axis. */
template <bool BACKWARD> struct sources {
    const pc__axis &axis;
    long long i;
    pc__taps taps;

    __device__ sources(const pc__axis &of, long long place) : axis(of), i(place)
    {
        if (BACKWARD) {
            const pc__outputs s = pc__outputs_of(&of, place);
            taps.first = s.first;
            taps.count = s.end - s.first;
        } else {
            taps = pc__taps_of(&of, place);
        }
    }

    __device__ double weight(long long k) const
    {
        if (!BACKWARD)
            return taps.weight[k > 0];
        const pc__taps of_output = pc__taps_of(&axis, taps.first + k);
        return pc__weight_in(&of_output, i);
    }
};

template <class T, bool BACKWARD>
__global__ void __launch_bounds__(THREADS)
    resample(const __grid_constant__ pc__cuda_resample s, const T *__restrict__ from, T *__restrict__ to)
{
    const pc__axis &down = s.spec.axis[0], &across = s.spec.axis[1];
    const long long rows = BACKWARD ? down.in : down.out, columns = BACKWARD ? across.in : across.out;
    const long long h = BACKWARD ? down.out : down.in, w = BACKWARD ? across.out : across.in;
    const long long at = (long long)blockIdx.x * THREADS + threadIdx.x;
    pc::wait_for_earlier();
    if (at >= s.count)
        return;
    const long long pixel = quotient(at, s.inner), line = quotient(pixel, columns), image = quotient(line, rows);
    const sources<BACKWARD> y(down, line - image * rows), x(across, pixel - line * columns);
    const T *corner = from + ((image * h + y.taps.first) * w + x.taps.first) * s.inner + (at - pixel * s.inner);
    T held[HELD], sum = 0;
#pragma unroll
    for (int c = 0; c < HELD; c++)
        held[c] = c < x.taps.count ? (T)x.weight(c) : T(0);
    for (long long r = 0; r < y.taps.count; r++) {
        const T *row = corner + r * w * s.inner;
        T line = 0;
#pragma unroll
        for (int c = 0; c < HELD; c++)
            if (c < x.taps.count)
                line += held[c] * row[c * s.inner];
        for (long long c = HELD; c < x.taps.count; c++)
            line += (T)x.weight(c) * row[c * s.inner];
        sum += (T)y.weight(r) * line;
    }
    to[at] = sum;
}

template <class T> void run(cudaStream_t queue, const pc__cuda_resample *s, const void *from, void *to)
{
    const unsigned blocks = (unsigned)((s->count + THREADS - 1) / THREADS);
    (void)pc::start(s->backward ? resample<T, true> : resample<T, false>, blocks, THREADS, queue, s->early, *s,
                    (const T *)from, (T *)to);
}

} // namespace

void pc__cuda_resample_all(cudaStream_t queue, const pc__cuda_resample *s, const void *from, void *to)
{
    s->dtype == PC__CUDA_F64 ? run<double>(queue, s, from, to) : run<float>(queue, s, from, to);
}

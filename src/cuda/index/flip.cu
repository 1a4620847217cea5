/* flip.cu: elements in the opposite order along some dimensions. */
#include "cuda/index/line.h"
#include "cuda/shared/dependent_launch.cuh"

namespace
{

constexpr int THREADS = 256;

/* A thread for each element of the result, in memory order. I: what counts them. */
template <class T, class I>
__global__ void __launch_bounds__(THREADS) flip(const __grid_constant__ pc__cuda_flip p, const T *from, T *to)
{
    pc::wait_for_earlier();
    const I count = static_cast<I>(p.count), step = static_cast<I>(gridDim.x) * THREADS;
    for (I at = static_cast<I>(blockIdx.x) * THREADS + threadIdx.x; at < count; at += step) {
        I rest = at, stride = 1, source = 0;
        for (int d = p.ndim - 1; d >= 0; d--) {
            const I n = static_cast<I>(p.shape[d]), outer = rest / n, own = rest - outer * n;
            source += (p.dims >> d & 1 ? n - 1 - own : own) * stride;
            stride *= n;
            rest = outer;
        }
        to[at] = from[source];
    }
}

template <class T> void run(const pc__cuda_flip *p, const void *from, void *to)
{
    const int64_t most = static_cast<int64_t>(p->multiprocessors) * 64, all = (p->count + THREADS - 1) / THREADS;
    const unsigned blocks = static_cast<unsigned>(all < most ? all : most);
    pc::start(p->count < int64_t(1) << 31 ? flip<T, uint32_t> : flip<T, uint64_t>, blocks, THREADS, p->queue, p->early,
              *p, static_cast<const T *>(from), static_cast<T *>(to));
}

} // namespace

void pc__cuda_flip_all(const pc__cuda_flip *p, int bytes, const void *from, void *to)
{
    switch (bytes) {
    case 8:
        return run<uint64_t>(p, from, to);
    case 4:
        return run<uint32_t>(p, from, to);
    case 2:
        return run<uint16_t>(p, from, to);
    default:
        return run<uint8_t>(p, from, to);
    }
}

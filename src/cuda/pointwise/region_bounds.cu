/* region_bounds.cu: regions that are clamps, a lower and an upper bound of one input: steps that are read from the arguments take
 * longer than memory does. */
#include "cuda/pointwise/region.h"
#include "cuda/shared/functions.cuh"

namespace
{

/* maximum and then minimum (ops/pointwise.def): what is compared is in float, what is taken is rounded. */
template <class T> struct bounds_of : pc::shape_of<T, 1, T> {
    float low, high;
    __device__ T operator()(T x) const
    {
        const T least = T(low), most = T(high);
        const bool kept = !(pc::math<T>(x) <= low);
        const float y = kept ? float(x) : float(least);
        return !(y >= high) ? T(y) : most;
    }
};

/* In the input's dtype, and of a number. */
bool is_bound(const pc__cuda_region &r, int i)
{
    return r.region.step[i].dtype == r.in_dtype[0] && r.region.number[i] == r.region.number[i];
}

template <class T> void launch(const pc__cuda_region &r)
{
    bounds_of<T> f;
    cudaError_t status = cudaSuccess; /* CUDA's last as well */
    pc__cuda_launch l = {};
    f.low = r.region.number[0], f.high = r.region.number[1];
    l.walk.data[0] = (char *)r.out[0], l.walk.data[1] = (char *)r.in[0];
    l.walk.count = (uint32_t)(r.region.count / bounds_of<T>::pack);
    l.walk.tail = (uint32_t)(r.region.count % bounds_of<T>::pack);
    l.multiprocessors = r.multiprocessors;
    l.early = r.early, l.queue = r.queue, l.status = &status;
    pc::run_flat(&l, f);
}

} // namespace

bool pc__cuda_region_bounds(const pc__cuda_region *r)
{
    if (!pc__cuda_region_is_clamp(&r->region) || r->out_dtype[0] != r->in_dtype[0] || !is_bound(*r, 0) ||
        !is_bound(*r, 1) || ((uintptr_t)r->in[0] | (uintptr_t)r->out[0]) % 16 != 0)
        return false;
    if (r->in_dtype[0] == PC__CUDA_F32)
        launch<float>(*r);
    else
        r->in_dtype[0] == PC__CUDA_F16 ? launch<pc::f16>(*r) : launch<pc::bf16>(*r);
    return true;
}

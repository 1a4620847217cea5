/* radix.cu: sorts along a dimension by digits of the keys. The first pass reads the tensor, the last one writes the results. */
#include "cuda/index/radix_tensor.cuh"

namespace
{

template <class T> struct ranked {
    static void run(const pc__cuda_ranking *p, const void *from, void *values, int64_t *places)
    {
        typedef typename word_of<sizeof(T)>::type U;
        constexpr unsigned LAST_SHIFT = 8 * (sizeof(T) - 1);
        const from_tensor<T> tensor = {static_cast<const T *>(from), p->n, p->inner, p->descending != 0};
        const to_tensors<U> results = {
            static_cast<const U *>(from), static_cast<U *>(values), places, p->n, p->inner, p->count};
        const digit_lists lists = {p->lists, p->n, p->digits, p->early, p->queue};
        if constexpr (sizeof(T) == 1)
            sort_by(lists, 0, tensor, results);
        else
            sort_by_all<item<T>>(lists, LAST_SHIFT, tensor, results, p->room);
    }
};

} // namespace

void pc__cuda_rank_digits(const pc__cuda_ranking *p, const void *from, void *values, int64_t *places)
{
    by_key<ranked>(p->dtype, p, from, values, places);
}

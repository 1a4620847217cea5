/* score.cuh: a batch's part of the sums over batches, with the host's bits: the loss times n is exact, and the batches
 * come one after the other. */
#ifndef PC__CUDA_SCORE_CUH
#define PC__CUDA_SCORE_CUH

namespace
{

/* `before`: what the sums were. n: of rows that count. */
__device__ inline void add_score(double *sums, double2 before, float loss, long long n, long long right)
{
    sums[0] = __dadd_rn(before.x, __dmul_rn(static_cast<double>(loss), static_cast<double>(n)));
    sums[1] = before.y + static_cast<double>(right);
}

} // namespace

#endif

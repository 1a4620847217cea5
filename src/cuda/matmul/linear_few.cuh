/* linear_few.cuh: what the kernels of layers of few outputs share: four neighbours of a row at once, and how the rows
 * of x are shared out for their sums. */
#ifndef PC__CUDA_LINEAR_FEW_CUH
#define PC__CUDA_LINEAR_FEW_CUH

#include "cuda/matmul/linear.h"
#include "cuda/shared/load.cuh"

namespace
{

constexpr int LANES = 32;

/* Sums over the rows of x, 64 at most: row r is number r / ROW_GROUPS of group r % ROW_GROUPS; a group is added up in
 * its order, then the groups in theirs. */
constexpr int ROW_GROUPS = 4, TERMS = 16, ROWS_MOST = ROW_GROUPS * TERMS;

/* Four neighbours, of which `there` exist: where they are WIDE, all or none. */
template <bool WIDE, class T> __device__ inline vector<T, 4> read(const T *from, int there)
{
    vector<T, 4> q = {};
    if (WIDE && there > 0)
        q = *reinterpret_cast<const vector<T, 4> *>(from);
#pragma unroll
    for (int j = 0; j < 4; j++)
        if (!WIDE && j < there)
            q.at[j] = from[j];
    return q;
}

/* A lane's part of the product of two rows, of which it has fours. */
template <int FOURS, class T>
__device__ __forceinline__ float own_dot(const vector<T, 4> (&a)[FOURS], const vector<T, 4> (&b)[FOURS])
{
    float sum = 0;
#pragma unroll
    for (int i = 0; i < FOURS; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            sum = fmaf(a[i].at[j], b[i].at[j], sum);
    return sum;
}

template <bool WIDE, class T> __device__ inline void write(T *to, const float (&sum)[4], int there)
{
    vector<T, 4> q;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        q.at[j] = T(sum[j]);
        if (!WIDE && j < there)
            to[j] = q.at[j];
    }
    if (WIDE && there > 0)
        *reinterpret_cast<vector<T, 4> *>(to) = q;
}

/* Whether rows can be read and written four elements at once. */
template <class T> bool is_wide(const pc__cuda_linear *l)
{
    uintptr_t places = 0;
    for (const void *rows : {l->x, l->weight, static_cast<const void *>(l->dx)})
        places |= reinterpret_cast<uintptr_t>(rows);
    return (l->k | l->x_row) % 4 == 0 && places % (4 * sizeof(T)) == 0 &&
           reinterpret_cast<uintptr_t>(l->dweight) % (4 * sizeof(float)) == 0;
}

} // namespace

#endif

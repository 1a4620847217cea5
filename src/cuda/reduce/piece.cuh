/* piece.cuh: which piece of which row a thread is to look at, where rows are cut into `parts` and a piece has `lanes`
 * threads. */
#ifndef PC__CUDA_PIECE_CUH
#define PC__CUDA_PIECE_CUH

#include "cuda/reduce/reduce.h"
#include "cuda/shared/sums.cuh"

namespace
{

struct piece {
    int64_t id, row, begin; /* begin: in the row */
    unsigned count;
    bool there; /* else it is somebody else's once more */
};

__device__ __forceinline__ piece piece_of(const pc__cuda_reduction &r)
{
    const int shift = __ffs(r.lanes) - 1; /* a division takes as long as some rows */
    const int64_t id = static_cast<int64_t>(blockIdx.x) * (blockDim.x >> shift) + (threadIdx.x >> shift);
    const int64_t last = r.outer * r.parts - 1, mine = min(id, last),
                  row = r.parts == 1 ? mine : quotient(mine, r.parts);
    const int64_t begin = (mine - row * r.parts) * r.piece;
    return {id, row, begin, static_cast<unsigned>(min(r.piece, r.reduced - begin)), id <= last};
}

} // namespace

#endif

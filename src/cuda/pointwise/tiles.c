/* tiles.c: whether a walk is one for tiles (tiles.cuh). */
#include "cuda/pointwise/each.h"

/* Short sides are not worth tiles. */
int pc__cuda_turned(const pc__cuda_launch *launch, int *turned)
{
    enum { SIDE = 16 };
    const pc__cuda_walk *w = &launch->walk;
    int along = -1;
    if (launch->packed || w->strides[0][w->ndim - 1] != 1 || w->shape[w->ndim - 1] < SIDE)
        return -1;
    for (int k = 1; k <= launch->inputs; k++) {
        if (w->strides[k][w->ndim - 1] < 2)
            continue;
        if (along >= 0) /* two of them */
            return -1;
        for (int d = 0; d < w->ndim - 1; d++)
            if (w->strides[k][d] == 1 && w->shape[d] >= SIDE)
                along = d, *turned = k;
        if (along < 0)
            return -1;
    }
    return along;
}

/* channels_last.h: pictures in the other memory order. */
#ifndef PC_TEST_CHANNELS_LAST_H
#define PC_TEST_CHANNELS_LAST_H

#include <paracord/ops.h>

/* [n][c][h][w] as they are, but in memory [n][h][w][c]. */
static inline pc_tensor *as_channels_last(pc_tensor *t)
{
    return pc_permute(pc_contiguous(pc_permute(t, PC_SHAPE(0, 2, 3, 1))), PC_SHAPE(0, 3, 1, 2));
}

#endif

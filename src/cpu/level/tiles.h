/* tiles.h: loops by tiles of two dimensions, for operands whose memory the loop's last dimension does not follow. */
#ifndef PC__TILES_H
#define PC__TILES_H

#include "cpu/level/loop.h"

typedef struct pc__tiles {
    const pc__loop *loop;
    bool flat;             /* each tile is one run */
    int across;            /* the dimension beside the last one */
    int64_t rows, columns; /* of a tile: elements of `across` and of the last dimension */
    int64_t pieces[PC_MAX_DIMS], count;
    int64_t together; /* tiles of a part */
} pc__tiles;

#define pc__tiles_make PC__K(tiles_make)
#define pc__tiles_run PC__K(tiles_run)

/* False where the loop does as well without. */
bool pc__tiles_make(pc__tiles *tiles, const pc__loop *loop);
void pc__tiles_run(const pc__tiles *tiles, pc__run_fn run, int threads);

#endif

/* tiles.h: loops by tiles of two or three dimensions, for operands whose memory the loop's last dimension does not follow,
 * and for last dimensions too short to be a run. */
#ifndef PC__TILES_H
#define PC__TILES_H

#include "cpu/level/loop.h"

typedef struct pc__tiles {
    const pc__loop *loop;
    int across, middle; /* dimensions of a tile beside the last one: rows, and what makes runs longer; or -1 */
    int outer;          /* instead of these: a dimension whose blocks, of all dimensions behind it, make a run; or -1 */
    int64_t rows, middles, columns; /* of a tile: elements of `across`, `middle` and the last dimension, or 1 */
    int64_t outers, block;          /* elements of `outer`, or 1, and of a block */
    int64_t pieces[PC_MAX_DIMS], count;
    int64_t together; /* tiles of a part */
} pc__tiles;

#define pc__tiles_make PC__K(tiles_make)
#define pc__tiles_run PC__K(tiles_run)

/* False where the loop does as well without. */
bool pc__tiles_make(pc__tiles *tiles, const pc__loop *loop);
void pc__tiles_run(const pc__tiles *tiles, pc__run_fn run, int threads);

#endif

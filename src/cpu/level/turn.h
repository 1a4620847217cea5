/* turn.h: the transposition of a small matrix, by blocks in vector registers. */
#ifndef PC__TURN_H
#define PC__TURN_H

#include "cpu/level/level.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* to[c][r] = from[r][c] for elements of 1, 2, 4 or 8 bytes; rows lie to_row and from_row bytes apart. */
#define pc__turn PC__K(turn)
void pc__turn(char *to, int64_t to_row, const char *from, int64_t from_row, int64_t rows, int64_t columns,
              size_t bytes);

#endif

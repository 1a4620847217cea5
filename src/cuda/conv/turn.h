/* turn.h: y, argmax and dy that lie in planes, turned to channels last once for all gradients of a call. */
#ifndef PC__CUDA_CONV_TURN_H
#define PC__CUDA_CONV_TURN_H

#include "cuda/conv/rows.h"

/* Bytes that it takes in front of the rows' own scratch memory; 0 where all of the pieces' rows read planes. */
size_t pc__conv_turned_bytes(const pc__conv_piece *pieces, const pc__row *const *rows, int count);

/* Where it takes any: the pieces read channels last from now on. */
pc_status pc__conv_turn(pc_stream *stream, const pc_call *call, pc__conv_piece *pieces, int count, void *memory);

#endif

/* choose.h: who does attention where choices are measured. */
#ifndef PC__CUDA_ATTENTION_CHOOSE_H
#define PC__CUDA_ATTENTION_CHOOSE_H

#include "cuda/attention/rows.h"

/* *row: the fastest for such a call, NULL: the rule's. All rows that can do it are timed when such a shape first comes,
 * but for the way by float32, whose own call inside chooses for itself. */
pc_status pc__attention_choose(pc_stream *stream, const pc_call *call, const pc__attention_problem *p,
                               const pc__row **row);

#endif

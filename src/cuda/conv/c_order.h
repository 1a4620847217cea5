/* c_order.h: convolutions whose weights lie channels last. */
#ifndef PC__CUDA_CONV_C_ORDER_H
#define PC__CUDA_CONV_C_ORDER_H

#include "cuda/runtime/cuda.h"

/* The call by `kernel`, conv2d or its backward, which sees weights in C order in scratch memory of this level, and works in
 * the next one's. Backward, `needs` says which gradients of x, weight and bias; forward NULL. */
pc_status pc__conv_in_c_order(pc_stream *stream, const pc_call *call, const bool *needs, pc__kernel kernel);

/* The same of pictures in C order: turned to channels last, for a call forward or back. */
pc_status pc__conv_in_channels_last(pc_stream *stream, const pc_call *call, pc__kernel kernel);

#endif

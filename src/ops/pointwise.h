/* pointwise.h: the functions of pointwise.def by number. Kernels include it too. */
#ifndef PC__OP_POINTWISE_H
#define PC__OP_POINTWISE_H

enum pc__pointwise {
#define PC__FUNCTION(name, dtypes, cost, saves, autocast, f, derivative)                                               \
    PC__POINTWISE_##name, PC__POINTWISE_##name##_backward,
#define PC__UNARY(name, dtypes, cost, flags, f) PC__POINTWISE_##name,
#define PC__BINARY(name, dtypes, cost, flags, f) PC__POINTWISE_##name,
#define PC__PARAMETRIC(name, cost, f) PC__POINTWISE_##name,
#include "ops/pointwise.def"
    PC__POINTWISE_COUNT
};

#endif

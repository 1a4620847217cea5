/* convolve.c: the three ops of convolutions with taps apart or channels in groups: which kernels do them. */
#include "cpu/level/convolve.h"

#include "cpu/level/depthwise.h"
#include "cpu/level/halves.h"
#include "cpu/level/kernels.h"
#include "ops/convolve.h"
#include "tensor/half.h"

static pc__grouped geometry(const pc__convolve_attributes *a, pc_dtype dtype, int64_t n, int64_t c, int64_t o)
{
    return (pc__grouped){.n = n,
                         .h = a->size[0],
                         .w = a->size[1],
                         .c = c,
                         .o = o,
                         .kh = a->kernel[0],
                         .kw = a->kernel[1],
                         .oh = pc__convolve_out(a, 0),
                         .ow = pc__convolve_out(a, 1),
                         .sh = a->stride[0],
                         .sw = a->stride[1],
                         .ph = a->padding[0],
                         .pw = a->padding[1],
                         .dh = a->dilation[0],
                         .dw = a->dilation[1],
                         .groups = a->groups,
                         .half = pc__is_half(dtype),
                         .is_f16 = dtype == PC_F16,
                         .x_planes = a->planes,
                         .y_planes = a->planes};
}

static bool planar(const pc__convolve_attributes *a, const pc__grouped *s)
{
    return a->planes || pc__convolve_is_planar(a, s->c / s->groups, s->o / s->groups, false);
}

/* Channels alone that kernels take as 16-bit numbers, forward or back to the pictures: one filter each, and back a stride of 1. */
static bool alone_in_halves(const pc__convolve_attributes *a, const pc__grouped *s, bool back)
{
    if (planar(a, s))
        return pc__depthwise_turns(s, back);
    return DEPTHWISE_HALVES && pc__is_depthwise(s) && s->o == s->c && s->c >= PC__HALVES &&
           !(back && (s->sh > 1 || s->sw > 1));
}

/* Planes of groups are faster from numbers that became float32 at once; many channels in a group have tiles of pairs. */
static bool goes_in_floats(const pc__convolve_attributes *a, const pc__grouped *s, bool in_halves)
{
    return s->half && !in_halves && (planar(a, s) || pc__is_depthwise(s));
}

#define OF_TYPE(name, t) ((t)->dtype == PC_F64 ? PC__K(name##_f64) : PC__K(name##_f32))
#define PICK(name, s, t)                                                                                               \
    (planar(call->attributes, s) ? OF_TYPE(planes##name, t)                                                            \
     : pc__is_depthwise(s)       ? OF_TYPE(depthwise##name, t)                                                         \
                                 : OF_TYPE(grouped##name, t))

PC__KERNEL(convolve)
{
    const pc_tensor *x = call->in[0], *w = call->in[1];
    const pc__grouped s = geometry(call->attributes, (pc_dtype)x->dtype, x->shape[0], x->shape[1], w->shape[0]);
    if (goes_in_floats(call->attributes, &s, alone_in_halves(call->attributes, &s, false)))
        return PC__K(in_floats)(stream, call, PC__K(op_convolve));
    return PICK(, &s, x)(&s, pc__data(x), pc__data(w), call->n_in > 2 ? pc__data(call->in[2]) : NULL,
                         pc__data(call->out[0]));
}

PC__KERNEL(convolve_input)
{
    const pc__convolve_attributes *a = call->attributes;
    const pc_tensor *y = call->in[0], *w = call->in[1];
    const pc__grouped s = geometry(a, (pc_dtype)y->dtype, y->shape[0], w->shape[1] * a->groups, y->shape[1]);
    if (goes_in_floats(call->attributes, &s, alone_in_halves(a, &s, true)))
        return PC__K(in_floats)(stream, call, PC__K(op_convolve_input));
    return PICK(_input, &s, y)(&s, pc__data(w), pc__data(y), pc__data(call->out[0]));
}

PC__KERNEL(convolve_weight)
{
    const pc_tensor *x = call->in[0], *y = call->in[1];
    const pc__grouped s = geometry(call->attributes, (pc_dtype)x->dtype, x->shape[0], x->shape[1], y->shape[1]);
    if (goes_in_floats(call->attributes, &s, false))
        return PC__K(in_floats)(stream, call, PC__K(op_convolve_weight));
    return PICK(_weight, &s, x)(&s, pc__data(x), pc__data(y), pc__data(call->out[0]));
}

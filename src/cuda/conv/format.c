/* format.c: operands of a convolution from our format to cuDNN's and back. */
#include "cuda/conv/format.h"

#include "cuda/conv/stage.h"
#include "cuda/pointwise/each.h"

pc_tensor *pc__conv_as_tensor(pc__conv_plain *t, int dtype, const void *data, int ndim, const int64_t *shape,
                              const int64_t *strides)
{
    *t =
        (pc__conv_plain){.storage = {.data = (void *)data}, .tensor = {.dtype = (uint8_t)dtype, .ndim = (uint8_t)ndim}};
    t->tensor.storage = &t->storage;
    for (int i = 0; i < ndim; i++) {
        t->tensor.shape[i] = shape[i];
        t->tensor.strides[i] = strides[i];
    }
    return &t->tensor;
}

pc__conv_pictures pc__conv_inputs(const pc__conv_piece *p, const pc__conv_shape *made)
{
    const bool folded = made->format == PC__CONV_FOLDED;
    return (pc__conv_pictures){
        made->format,          p->s.dtype,          p->s.c, made->c, p->s.x_planes, p->s.n, (int64_t)p->s.h * p->s.w,
        folded ? &p->s : NULL, folded ? made : NULL};
}

pc__conv_pictures pc__conv_results(const pc__conv_piece *p, const pc__conv_shape *made)
{
    return (pc__conv_pictures){
        made->format, p->s.dtype, p->s.o, made->o, p->s.planes, p->s.n, (int64_t)p->s.oh * p->s.ow, NULL, NULL};
}

size_t pc__conv_pictures_room(const pc__conv_pictures *of)
{
    if (of->to)
        return pc__cuda_whole((size_t)of->n * (size_t)of->to->h * (size_t)of->to->w * (size_t)of->made *
                              pc_dtype_size((pc_dtype)of->dtype));
    const bool same = of->format == PC__CONV_PLANES ? of->planes || of->c == 1 || of->area == 1 : of->c == of->made;
    return same ? 0
                : pc__cuda_whole((size_t)of->n * (size_t)of->area * (size_t)of->made *
                                 pc_dtype_size((pc_dtype)of->dtype));
}

static void fold(pc_stream *stream, const pc__conv_pictures *of, const void *from, void *to)
{
    const pc__cuda_conv *s = of->s;
    const pc__cuda_conv_folding f = {.n = s->n,
                                     .h = s->h,
                                     .w = s->w,
                                     .c = s->c,
                                     .sh = s->sh,
                                     .sw = s->sw,
                                     .ph = s->ph,
                                     .pw = s->pw,
                                     .to_h = of->to->h,
                                     .to_w = of->to->w,
                                     .to_c = of->to->c,
                                     .early = pc__cuda_early(stream),
                                     .size = pc_dtype_size((pc_dtype)of->dtype)};
    pc__cuda_conv_fold(pc__cuda_queue(stream), &f, from, to);
}

pc_status pc__conv_turn_pictures(pc_stream *stream, const pc_call *call, const pc__conv_pictures *of, const void *from,
                                 void *to, bool back)
{
    const int64_t shape[3] = {of->n, of->area, of->c}, picture = of->area * of->c;
    const int64_t ours[3] = {picture, of->c, 1}, theirs[3] = {picture, 1, of->area};
    pc__conv_plain a, b;
    if (of->to) {
        fold(stream, of, from, to);
        return PC_OK;
    }
    if (of->format == PC__CONV_PLANES)
        return pc__cuda_copy_tensor(stream, call, pc__conv_as_tensor(&b, of->dtype, to, 3, shape, back ? ours : theirs),
                                    pc__conv_as_tensor(&a, of->dtype, from, 3, shape, back ? theirs : ours));
    pc__cuda_conv_rows(pc__cuda_queue(stream), from, back ? of->made : of->c, to, back ? of->c : of->made,
                       of->n * of->area, pc_dtype_size((pc_dtype)of->dtype), pc__cuda_early(stream));
    return PC_OK;
}

size_t pc__conv_weight_room(const pc__cuda_conv *s, const pc__conv_shape *made)
{
    const bool theirs_last = made->format != PC__CONV_PLANES;
    const bool same_order = theirs_last == s->weight_last || s->c == 1 || s->kh * s->kw == 1;
    const size_t numbers = (size_t)made->o * (size_t)made->c * (size_t)made->kh * (size_t)made->kw;
    return same_order && s->c == made->c && s->o == made->o && made->format != PC__CONV_FOLDED
               ? 0
               : pc__cuda_whole(numbers * pc_dtype_size((pc_dtype)s->dtype));
}

pc_status pc__conv_turn_weight(pc_stream *stream, const pc_call *call, const pc__cuda_conv *s,
                               const pc__conv_shape *made, const void *from, void *to, bool back)
{
    const int64_t c = s->c, kh = s->kh, kw = s->kw, shape[4] = {s->o, kh, kw, c};
    const int64_t flat[4] = {c * kh * kw, kw, 1, kh * kw}, last[4] = {c * kh * kw, kw * c, c, 1};
    const int64_t *ours = s->weight_last ? last : flat, *theirs = made->format == PC__CONV_PLANES ? flat : last;
    const bool folded = made->format == PC__CONV_FOLDED;
    const pc__cuda_conv_filter filter = {.o = s->o,
                                         .c = s->c,
                                         .kh = s->kh,
                                         .kw = s->kw,
                                         .to_o = made->o,
                                         .to_c = made->c,
                                         .to_kh = made->kh,
                                         .to_kw = made->kw,
                                         .sh = folded ? s->sh : 1,
                                         .sw = folded ? s->sw : 1,
                                         .last = s->weight_last,
                                         .early = pc__cuda_early(stream),
                                         .size = pc_dtype_size((pc_dtype)s->dtype)};
    pc__conv_plain a, b;
    if (made->format != PC__CONV_PADDED && !folded)
        return pc__cuda_copy_tensor(stream, call, pc__conv_as_tensor(&b, s->dtype, to, 4, shape, back ? ours : theirs),
                                    pc__conv_as_tensor(&a, s->dtype, from, 4, shape, back ? theirs : ours));
    (back ? pc__cuda_conv_filter_cut : pc__cuda_conv_filter_pad)(pc__cuda_queue(stream), &filter, from, to);
    return PC_OK;
}

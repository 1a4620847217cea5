/* geometry.c: a convolution's call in numbers, and what follows from them alone. */
#include "cuda/conv/cudnn.h"
#include "cuda/conv/direct.h"
#include "cuda/conv/rows.h"
#include "ops/conv2d.h"
#include "ops/table.h"

static int out_size(int64_t n, int64_t kernel, int64_t stride, int64_t padding)
{
    return (int)(n + 2 * padding < kernel ? 0 : (n + 2 * padding - kernel) / stride + 1);
}

/* Kernels count rows, columns and channels in 32 bits, one picture's elements too. */
static pc_status geometry(const pc_stream *stream, const pc_call *call, pc__cuda_conv *s)
{
    const pc__conv2d_attributes *a = call->attributes;
    const pc_fn_conv2d_options *spec = &a->spec;
    const pc_tensor *x = call->in[0], *w = call->in[1];
    const int64_t oh = out_size(x->shape[2], w->shape[2], spec->stride[0], spec->padding[0]);
    const int64_t ow = out_size(x->shape[3], w->shape[3], spec->stride[1], spec->padding[1]);
    const double picture = (double)x->shape[1] * (double)x->shape[2] * (double)x->shape[3];
    const double result = (double)w->shape[0] * (double)oh * (double)ow;
    const double kernel = (double)w->shape[1] * (double)w->shape[2] * (double)w->shape[3] * (double)w->shape[0];
    if (picture > INT32_MAX || result > INT32_MAX || kernel > INT32_MAX)
        return pc__fail(PC_ERR_SHAPE, "conv2d: a picture of shape %s or a weight of shape %s is too large for cuda",
                        PC__SHAPE_OF(x), PC__SHAPE_OF(w));
    *s = (pc__cuda_conv){.dtype = x->dtype,
                         .activation = (int)spec->activation,
                         .planes = a->planes,
                         .x_planes = x->shape[1] > 1 && x->strides[1] != 1,
                         .weight_last = !pc__is_contiguous(w),
                         .multiprocessors = pc__cuda_multiprocessors(stream),
                         .block_room = pc__cuda_block_room_of(stream),
                         .tf32 = pc_matmul_precision_get() == PC_PRECISION_TF32,
                         .n = x->shape[0],
                         .h = (int)x->shape[2],
                         .w = (int)x->shape[3],
                         .c = (int)x->shape[1],
                         .o = (int)w->shape[0],
                         .kh = (int)w->shape[2],
                         .kw = (int)w->shape[3],
                         .sh = spec->stride[0],
                         .sw = spec->stride[1],
                         .ph = spec->padding[0],
                         .pw = spec->padding[1],
                         .oh = (int)oh,
                         .ow = (int)ow,
                         .pool = PC__MAX(spec->pool, 1),
                         .dh = 1,
                         .dw = 1,
                         .groups = 1};
    s->yh = s->oh / s->pool;
    s->yw = s->ow / s->pool;
    return PC_OK;
}

/* With what is to be known of the stream. */
pc_status pc__conv_geometry(const pc_stream *stream, const pc_call *call, pc__cuda_conv *s)
{
    PC__TRY(geometry(stream, call, s));
    s->early = pc__cuda_early(stream);
    s->ready_x = pc__cuda_ready(stream, call->in[0]);
    s->ready_weight = pc__cuda_ready(stream, call->in[1]);
    return PC_OK;
}

pc__conv_shape pc__conv_shape_of(const pc__conv_piece *p)
{
    const pc__cuda_conv *s = &p->s;
    pc__conv_shape shape;
    memset(&shape, 0, sizeof shape);
    shape.n = s->n, shape.h = s->h, shape.w = s->w, shape.c = s->c;
    shape.o = s->o, shape.kh = s->kh, shape.kw = s->kw, shape.oh = s->oh, shape.ow = s->ow;
    shape.sh = s->sh, shape.sw = s->sw, shape.ph = s->ph, shape.pw = s->pw;
    shape.direction = p->direction;
    shape.dtype = s->dtype;
    shape.tf32 = s->tf32 && s->dtype == PC_F32;
    shape.relu = s->activation == PC_ACTIVATION_RELU;
    if (pc__conv_is_grouped(p))
        shape.dh = p->dilation[0], shape.dw = p->dilation[1], shape.groups = p->groups;
    shape.planes = s->planes && (s->x_planes || s->c == 1);
    shape.bias = p->direction == PC__CONV_FORWARD ? p->bias != NULL : p->dbias != NULL;
    return shape;
}

/* Nothing in it that cuDNN lacks. */
static bool is_cudnns(const pc__conv2d_attributes *a)
{
    return a->spec.pool <= 1 && !a->planes &&
           (a->spec.activation == PC_ACTIVATION_NONE || a->spec.activation == PC_ACTIVATION_RELU);
}

/* A gradient is cuDNN's where the layer is in front of no pooling and its result in our order; else all are ours. */
static bool has_cudnns_gradient(const pc_stream *stream, const pc__conv_piece *alone)
{
    pc__conv_piece p = *alone;
    bool any = false;
    for (p.direction = PC__CONV_INPUT; p.direction <= PC__CONV_WEIGHTS; p.direction++) {
        const pc__conv_shape shape = pc__conv_shape_of(&p);
        any = any || (!pc__conv_is_small(stream, &p) && pc__conv_rule(&shape, true) >= 0);
    }
    return any && !pc__cudnn_missing();
}

bool pc__conv_is_worth_apart(const pc_stream *stream, const pc__conv_piece *piece, pc_choice choice)
{
    pc__conv_piece p = *piece;
    p.direction = PC__CONV_FORWARD;
    const pc__conv_shape shape = pc__conv_shape_of(&p);
    bool native = true;
    for (; p.direction < PC__CONV_DIRECTIONS; p.direction++)
        native = native && pc__conv_own_row(stream, &p);
    p.direction = PC__CONV_WEIGHTS;
    const pc__conv_shape weights = pc__conv_shape_of(&p);
    return choice == PC_CHOICE_CUDNN || pc__conv_is_worth_more_calls(&shape, native) ||
           pc__conv_is_much_of_cudnns(&weights, native);
}

/* A call forward that may have tensors without memory; false where the call itself will say why it cannot be. */
static bool may_be(const pc_call *call, const pc_stream *stream, pc__conv_piece *p)
{
    static const _Alignas(16) char anywhere[16];
    pc_error before = pc__error_take();
    *p = (pc__conv_piece){.direction = PC__CONV_FORWARD, .x = anywhere, .dy = anywhere};
    const bool fits = geometry(stream, call, &p->s) == PC_OK;
    (void)pc__error_take();
    (void)pc__error_put(&before);
    return fits;
}

/* Our kernels pool on the way and know every activation; cuDNN's have ReLU alone, and where they are the faster ones by
 * far the rest as calls of its own costs less. A pooling behind one of theirs is still the same call's (by_cudnn.c): that
 * keeps neither the result in front of it nor where each maximum was in whole numbers, and goes back in one pass. */
bool pc__cuda_conv2d_is_faster_apart(const pc_call *call)
{
    const pc_stream stream = {.device = call->in[0]->storage->device};
    pc__conv_piece p;
    if (call->op->index != PC__OP_conv2d || is_cudnns(call->attributes) || !may_be(call, &stream, &p))
        return false;
    const pc_choice choice = pc__conv_choice_for(&stream, &p);
    if (choice == PC_CHOICE_OWN)
        return false;
    const pc__conv_shape shape = pc__conv_shape_of(&p);
    if (choice != PC_CHOICE_CUDNN && pc__conv_is_few(&shape))
        return !pc__cuda_conv_direct_forward_fits(&p.s); /* large windows; without them they do */
    pc__conv_piece alone = p;
    alone.s.pool = 1;
    if (choice != PC_CHOICE_CUDNN && pc__conv_is_small(&stream, &alone))
        return (p.s.pool > 1 && pc__conv_is_deep(&shape)) || has_cudnns_gradient(&stream, &alone);
    if (choice != PC_CHOICE_CUDNN && p.s.dtype == PC_F32 && p.s.pool == 1 && has_cudnns_gradient(&stream, &alone))
        return true;
    const bool pools_itself = p.s.pool > 1 && !p.s.planes && choice != PC_CHOICE_MEASURED;
    return !pools_itself && pc__conv_is_worth_apart(&stream, &p, choice) && !pc__cudnn_missing();
}

bool pc__cuda_keeps_planes(const pc_call *call)
{
    const pc_stream stream = {.device = call->in[0]->storage->device};
    const pc__conv2d_attributes *a = call->attributes;
    const bool bare = call->n_in == 2 && a->spec.activation == PC_ACTIVATION_NONE;
    pc__conv_piece p;
    if (call->op->index != PC__OP_conv2d || !may_be(call, &stream, &p))
        return false;
    const pc_choice choice = pc__conv_choice_for(&stream, &p);
    const pc__conv_shape shape = pc__conv_shape_of(&p);
    const bool keeps =
        (bare && pc__conv_keeps_planes(&shape)) || (choice == PC_CHOICE_MEASURED && pc__conv_is_for_transforms(&shape));
    return choice != PC_CHOICE_OWN && keeps && !pc__cudnn_missing();
}

bool pc__cuda_reads_planes(const pc_call *call)
{
    const pc_stream stream = {.device = call->in[0]->storage->device};
    pc__conv_piece p;
    if (!may_be(call, &stream, &p) || !pc__conv_planes_row(&stream, &p) ||
        pc__conv_choice_for(&stream, &p) == PC_CHOICE_CUDNN)
        return false;
    p.direction = PC__CONV_WEIGHTS; /* whose gradient would turn the picture else, as deep as scratch memory goes */
    return pc__conv_planes_row(&stream, &p) != NULL;
}

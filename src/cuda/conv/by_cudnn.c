/* by_cudnn.c: one product of a convolution by cuDNN, with what our kernels do on the way and cuDNN does not: operands in
 * its format and back, pooling, the way back through that and a ReLU, the bias's gradient. */
#include "cuda/conv/by_cudnn.h"

#if PC__HAVE_CUDNN

#include "cuda/conv/format.h"
#include "cuda/conv/pooled.h"
#include "cuda/conv/stage.h"
#include "cuda/matmul/gemm.h"

#include <paracord/ops.h>

size_t pc__conv_result_bytes(const pc__conv_piece *p)
{
    const pc__cuda_conv *s = &p->s;
    const int64_t weight = (int64_t)s->o * s->c / PC__MAX(p->groups, 1) * s->kh * s->kw;
    return pc__conv_number(p) * (size_t)(p->direction == PC__CONV_FORWARD   ? pc__conv_pixels(s) * s->o
                                         : p->direction == PC__CONV_WEIGHTS ? weight
                                                                            : s->n * s->h * s->w * s->c);
}

/* The weight of a group is that of fewer channels. */
static pc__cuda_conv filters(const pc__conv_piece *p)
{
    pc__cuda_conv s = p->s;
    s.c /= PC__MAX(p->groups, 1);
    return s;
}

static pc__conv_shape made_filters(const pc__conv_way *way)
{
    pc__conv_shape made = way->made;
    made.c /= PC__MAX(made.groups, 1);
    return made;
}

static size_t weight_room(const pc__conv_piece *p, const pc__conv_way *way)
{
    const pc__cuda_conv s = filters(p);
    const pc__conv_shape made = made_filters(way);
    return pc__conv_weight_room(&s, &made);
}

static pc_status turn_weight(pc_stream *stream, const pc_call *call, const pc__conv_piece *p, const pc__conv_way *way,
                             const void *from, void *to, bool back)
{
    const pc__cuda_conv s = filters(p);
    const pc__conv_shape made = made_filters(way);
    return pc__conv_turn_weight(stream, call, &s, &made, from, to, back);
}

static pc_status execute(pc_stream *stream, pc__conv_way *way, const pc__cudnn_operands *operands, bool *done)
{
    char words[256] = "";
    const cudnnStatus_t status = pc__conv_cudnn_run(stream->device.index, pc__cuda_queue(stream), &way->plan,
                                                    &way->made, operands, words, sizeof words);
    *done = status == CUDNN_STATUS_SUCCESS;
    if (*done)
        return PC_OK;
    if (status >= CUDNN_STATUS_INTERNAL_ERROR)
        return pc__fail_cause(PC_ERR_BACKEND, words,
                              "conv2d: cuDNN failed with status %d; PARACORD_CHOICE=own does without", (int)status);
    atomic_store(&way->refused, true); /* nothing was queued */
    pc__log(PC_LOG_WARNING, "conv2d: cuDNN refuses what it planned (status %d, %.160s): our kernels do it", (int)status,
            words);
    return PC_OK;
}

/* What a forward plan for the bare product leaves. */
static void follow(pc_stream *stream, const pc__conv_piece *p)
{
    const pc__cuda_conv *s = &p->s;
    const pc__cuda_gemm g = {.dtype = s->dtype,
                             .activation = s->activation,
                             .m = pc__conv_pixels(s),
                             .n = s->o,
                             .batch = 1,
                             .bias = p->bias,
                             .c = p->result};
    pc__cuda_gemm_finish(pc__cuda_queue(stream), &g);
}

/* --- all of a product --- */

/* What lies where in the scratch memory: bytes, each a multiple of 256, in this order. `between`: the gradient in front of
 * what follows the product, or the result that is to be pooled. */
typedef struct rooms {
    size_t between, x, weight, bias, y, workspace;
} rooms;

static rooms rooms_of(const pc__conv_piece *p, const pc__conv_way *way)
{
    const pc__conv_shape *made = &way->made;
    const pc__conv_pictures x = pc__conv_inputs(p, made), y = pc__conv_results(p, made);
    const bool bias = p->direction == PC__CONV_FORWARD && p->bias && made->bias && made->o != p->s.o;
    const bool pools = p->direction == PC__CONV_FORWARD && p->s.pool > 1;
    return (rooms){.between = pools ? pc__cuda_whole(pc__conv_result_bytes(p)) : pc__conv_through_scratch(p),
                   .x = pc__conv_pictures_room(&x),
                   .weight = weight_room(p, way),
                   .bias = bias ? pc__cuda_whole((size_t)made->o * pc__conv_number(p)) : 0,
                   .y = pc__conv_pictures_room(&y),
                   .workspace = pc__cuda_whole((size_t)way->plan.workspace)};
}

size_t pc__conv_cudnn_scratch(const pc__conv_piece *p, const pc__conv_way *way)
{
    const rooms r = rooms_of(p, way);
    return r.between + r.x + r.weight + r.bias + r.y + r.workspace;
}

size_t pc__conv_staged_bytes(const pc__conv_piece *p, const pc__conv_way *way)
{
    const pc__conv_pictures y = pc__conv_results(p, &way->made);
    return pc__conv_pictures_room(&y);
}

pc_status pc__conv_stage(pc_stream *stream, const pc_call *call, const pc__conv_piece *p, const pc__conv_way *way,
                         void *to)
{
    const pc__conv_pictures y = pc__conv_results(p, &way->made);
    return pc__conv_turn_pictures(stream, call, &y, p->dy, to, false);
}

/* Operands into their rooms, as far as they have some; *o then says where all are. */
static pc_status bring(pc_stream *stream, const pc_call *call, const pc__conv_piece *p, const pc__conv_way *way,
                       const rooms *r, char *at, pc__cudnn_operands *o)
{
    const pc__conv_pictures x = pc__conv_inputs(p, &way->made), y = pc__conv_results(p, &way->made);
    char *const weight = at + r->x, *const bias = weight + r->weight, *const dy = bias + r->bias;
    char *const own[PC__CONV_DIRECTIONS] = {r->y ? dy : NULL, r->x ? at : NULL, r->weight ? weight : NULL};
    *o = (pc__cudnn_operands){.x = p->x,
                              .weight = p->weight,
                              .dy = p->staged_dy ? p->staged_dy : p->dy,
                              .bias = p->bias,
                              .result = own[p->direction] ? own[p->direction] : p->result,
                              .workspace = r->workspace ? dy + r->y : NULL};
    if (r->x && p->direction != PC__CONV_INPUT) {
        PC__TRY(pc__conv_turn_pictures(stream, call, &x, p->x, at, false));
        o->x = at;
    }
    if (r->weight && p->direction != PC__CONV_WEIGHTS) {
        PC__TRY(turn_weight(stream, call, p, way, p->weight, weight, false));
        o->weight = weight;
    }
    if (r->bias) {
        pc__cuda_conv_rows(pc__cuda_queue(stream), p->bias, p->s.o, bias, way->made.o, 1, pc__conv_number(p),
                           pc__cuda_early(stream));
        o->bias = bias;
    }
    if (r->y && p->direction != PC__CONV_FORWARD && !p->staged_dy) {
        PC__TRY(pc__conv_turn_pictures(stream, call, &y, p->dy, dy, false));
        o->dy = dy;
    }
    return PC_OK;
}

/* The result from its room to where it belongs. */
static pc_status take_back(pc_stream *stream, const pc_call *call, const pc__conv_piece *p, const pc__conv_way *way,
                           const pc__cudnn_operands *o)
{
    const pc__conv_pictures x = pc__conv_inputs(p, &way->made), y = pc__conv_results(p, &way->made);
    if (o->result == p->result)
        return PC_OK;
    if (p->direction == PC__CONV_WEIGHTS)
        return turn_weight(stream, call, p, way, o->result, p->result, true);
    return pc__conv_turn_pictures(stream, call, p->direction == PC__CONV_FORWARD ? &y : &x, o->result, p->result, true);
}

/* In front of a pooling: other activations follow that. */
static pc__cuda_conv with_relu_alone(const pc__cuda_conv *s)
{
    pc__cuda_conv bare = pc__conv_alone(s);
    bare.activation = s->activation == PC_ACTIVATION_RELU ? PC_ACTIVATION_RELU : PC_ACTIVATION_NONE;
    return bare;
}

pc_status pc__conv_cudnn(pc_stream *stream, const pc_call *call, const pc__conv_piece *p, pc__conv_way *way,
                         void *scratch, bool *done)
{
    const rooms r = rooms_of(p, way);
    const bool pools = p->direction == PC__CONV_FORWARD && p->s.pool > 1;
    pc__conv_piece bare = *p;
    pc__cudnn_operands o;
    *done = false;
    if (pools)
        bare.s = with_relu_alone(&p->s), bare.result = scratch;
    else if (r.between)
        PC__TRY(pc__conv_through(stream, call, &bare, scratch));
    PC__TRY(bring(stream, call, &bare, way, &r, (char *)scratch + r.between, &o));
    PC__TRY(execute(stream, way, &o, done));
    if (!*done)
        return PC_OK;
    PC__TRY(take_back(stream, call, &bare, way, &o));
    if (way->plan.bare)
        follow(stream, &bare);
    if (pools)
        pc__cuda_conv_pool(pc__cuda_queue(stream), &p->s, bare.result, p->s.oh, p->s.ow, NULL, p->result, p->places);
    if (p->direction == PC__CONV_WEIGHTS && bare.dbias)
        PC__TRY(pc__conv_add_up(stream, call, &bare, bare.dy));
    return pc__cuda_launched(call);
}

#else

size_t pc__conv_staged_bytes(const pc__conv_piece *p, const pc__conv_way *way)
{
    (void)p, (void)way;
    return 0;
}

pc_status pc__conv_stage(pc_stream *stream, const pc_call *call, const pc__conv_piece *p, const pc__conv_way *way,
                         void *to)
{
    (void)stream, (void)call, (void)p, (void)way, (void)to;
    return PC_OK;
}

size_t pc__conv_cudnn_scratch(const pc__conv_piece *p, const pc__conv_way *way)
{
    (void)p, (void)way;
    return 0;
}

pc_status pc__conv_cudnn(pc_stream *stream, const pc_call *call, const pc__conv_piece *p, pc__conv_way *way,
                         void *scratch, bool *done)
{
    (void)stream, (void)call, (void)p, (void)way, (void)scratch;
    *done = false;
    return PC_OK;
}

#endif

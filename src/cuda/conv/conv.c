/* conv.c: the fused convolution and its gradients. */
#include "cuda/conv/conv.h"
#include "cuda/conv/half.h"
#include "cuda/conv/way.h"
#include "cuda/conv/cudnn.h"

#include "cuda/runtime/cuda.h"
#include "ops/conv2d.h"
#include "ops/table.h"

static void *data_or_null(const pc_tensor *t)
{
    return pc__count(t->ndim, t->shape) ? pc__data(t) : NULL;
}

size_t pc__conv_own_scratch(const pc__conv_piece *p)
{
    if (p->direction == PC__CONV_FORWARD)
        return pc__cuda_conv_scratch(&p->s);
    if (pc__is_half((pc_dtype)p->s.dtype))
        return pc__cuda_conv_half_backward_scratch(&p->s, p->direction == PC__CONV_INPUT,
                                                   p->direction == PC__CONV_WEIGHTS);
    return p->direction == PC__CONV_INPUT ? pc__cuda_conv_input_scratch(&p->s) : pc__cuda_conv_weights_scratch(&p->s);
}

void pc__conv_own(cudaStream_t queue, const pc__conv_piece *p, void *scratch)
{
    const pc__cuda_conv *s = &p->s;
    void *const dx = p->direction == PC__CONV_INPUT ? p->result : NULL, *const dweight = dx ? NULL : p->result;
    if (p->direction == PC__CONV_FORWARD)
        pc__cuda_conv_forward(queue, s, p->x, p->weight, p->bias, p->result, p->places, scratch);
    else if (pc__is_half((pc_dtype)s->dtype))
        pc__cuda_conv_half_backward(queue, s, p->x, p->weight, p->y, p->argmax, p->dy, dx, dweight, p->dbias, scratch);
    else if (dx)
        pc__cuda_conv_input(queue, s, p->weight, p->y, p->argmax, p->dy, dx, scratch);
    else
        pc__cuda_conv_weights(queue, s, p->x, p->y, p->argmax, p->dy, dweight, p->dbias, scratch);
}

/* Scratch memory for cuDNN's ways; NULL without an error where there is too little for them. */
static void *try_scratch(pc_stream *stream, size_t bytes)
{
    pc_error before = pc__error_take();
    void *scratch = pc__cuda_scratch(stream, bytes);
    if (!scratch)
        (void)pc__error_take();
    (void)pc__error_put(&before);
    return scratch;
}

/* Both gradients by cuDNN share the way through the ReLU, and dy in another format. `front` is their room. */
static pc_status share(pc_stream *stream, const pc_call *call, pc__conv_piece *pieces, pc__conv_way *const *ways,
                       char *front)
{
    const size_t unrelu = pieces[0].s.activation == PC_RELU ? pc__conv_unrelu_scratch(&pieces[0]) : 0;
    if (unrelu) {
        PC__TRY(pc__conv_unrelu(stream, call, &pieces[0], front));
        pieces[1].dy = pieces[0].dy, pieces[1].s.activation = PC_NONE;
    }
    if (pc__conv_same_format(ways[0], ways[1]) && pc__conv_staged_bytes(&pieces[0], ways[0])) {
        PC__TRY(pc__conv_stage(stream, call, &pieces[0], ways[0], front + unrelu));
        pieces[0].staged_dy = pieces[1].staged_dy = front + unrelu;
    }
    return PC_OK;
}

static size_t front_of(const pc__conv_piece *pieces, pc__conv_way *const *ways)
{
    return (pieces[0].s.activation == PC_RELU ? pc__conv_unrelu_scratch(&pieces[0]) : 0) +
           pc__conv_staged_bytes(&pieces[0], ways[0]);
}

static const char *note_of(int made)
{
    static const char *const notes[1 << PC__CONV_DIRECTIONS] = {
        [1 << PC__CONV_FORWARD] = "by cuDNN",
        [1 << PC__CONV_INPUT] = "the input's gradient by cuDNN",
        [1 << PC__CONV_WEIGHTS] = "the weights' gradient by cuDNN",
        [1 << PC__CONV_INPUT | 1 << PC__CONV_WEIGHTS] = "both gradients by cuDNN"};
    return notes[made];
}

/* Those pieces that have a way of cuDNN's. *made: bits by direction; what is not among them is left to our kernels,
 * all of it where there is too little memory. */
static pc_status by_cudnn(pc_stream *stream, const pc_call *call, const pc__conv_piece *given,
                          pc__conv_way *const *ways, int count, int *made)
{
    pc__conv_piece pieces[2];
    const bool shared = count == 2 && ways[0] && ways[1];
    const size_t front = shared ? front_of(given, ways) : 0;
    size_t most = 0;
    *made = 0;
    for (int i = 0; i < count; i++) {
        pieces[i] = given[i];
        most = ways[i] ? PC__MAX(most, pc__conv_cudnn_scratch(&given[i], ways[i])) : most;
    }
    char *scratch = try_scratch(stream, front + most);
    if (!scratch)
        return PC_OK;
    if (shared)
        PC__TRY(share(stream, call, pieces, ways, scratch));
    for (int i = 0; i < count; i++) {
        bool done = false;
        if (ways[i])
            PC__TRY(pc__conv_cudnn(stream, call, &pieces[i], ways[i], scratch + front, &done));
        *made |= done << pieces[i].direction;
    }
    ((pc__cuda_stream *)stream->implementation)->note = note_of(*made);
    return pc__cuda_launched(call);
}

pc_status pc__cuda_op_conv2d(pc_stream *stream, const pc_call *call)
{
    pc__conv_piece p = {.direction = PC__CONV_FORWARD};
    pc__conv_way *way;
    int made = 0;
    PC__TRY(pc__conv_geometry(stream, call, &p.s));
    if (pc__count(call->out[0]->ndim, call->out[0]->shape) == 0)
        return PC_OK;
    p.x = pc__data(call->in[0]), p.weight = pc__data(call->in[1]);
    p.bias = call->n_in > 2 ? pc__data(call->in[2]) : NULL;
    p.result = pc__data(call->out[0]), p.places = data_or_null(call->out[1]);
    PC__TRY(pc__conv_choose(stream, call, &p, &way));
    if (way)
        PC__TRY(by_cudnn(stream, call, &p, &way, 1, &made));
    if (made)
        return PC_OK;
    if (!pc__conv_native(stream, &p))
        return pc__cuda_in_floats(stream, call, pc__cuda_op_conv2d);
    void *scratch = pc__cuda_scratch(stream, pc__conv_own_scratch(&p));
    if (!scratch)
        return PC_ERR_MEMORY;
    pc__conv_own(pc__cuda_queue(stream), &p, scratch);
    return pc__cuda_launched(call);
}

/* Both gradients by our kernels; those of 16-bit numbers share what they turn. */
static pc_status own_backward(pc_stream *stream, const pc_call *call, const pc__conv_piece *input,
                              const pc__conv_piece *weights)
{
    const cudaStream_t queue = pc__cuda_queue(stream);
    const pc__conv_piece *any = input ? input : weights;
    const bool half = pc__is_half((pc_dtype)any->s.dtype);
    const size_t for_half = half ? pc__cuda_conv_half_backward_scratch(&any->s, input, weights) : 0;
    const size_t for_input = input && !half ? pc__conv_own_scratch(input) : 0;
    const size_t for_weights = weights && !half ? pc__conv_own_scratch(weights) : 0;
    void *scratch = pc__cuda_scratch(stream, PC__MAX(PC__MAX(for_weights, for_input), for_half));
    if (!scratch)
        return PC_ERR_MEMORY;
    if (half)
        pc__cuda_conv_half_backward(queue, &any->s, any->x, any->weight, any->y, any->argmax, any->dy,
                                    input ? input->result : NULL, weights ? weights->result : NULL,
                                    weights ? weights->dbias : NULL, scratch);
    if (weights && !half)
        pc__conv_own(queue, weights, scratch);
    if (input && !half)
        pc__conv_own(queue, input, scratch);
    return pc__cuda_launched(call);
}

/* The gradients that are wanted, each a piece. Returns their number. */
static int pieces_of(const pc_call *call, const pc__cuda_conv *s, pc__conv_piece *pieces)
{
    const pc__conv2d_attributes *a = call->attributes;
    const pc__conv_piece all = {.s = *s,
                                .x = pc__data(call->in[0]),
                                .weight = pc__data(call->in[1]),
                                .y = pc__data(call->in[2]),
                                .argmax = data_or_null(call->in[3]),
                                .dy = pc__data(call->in[4])};
    void *const dx = a->needs[0] ? data_or_null(call->out[0]) : NULL;
    void *const dweight = a->needs[1] ? data_or_null(call->out[1]) : NULL;
    void *const dbias = a->needs[2] ? data_or_null(call->out[2]) : NULL;
    int count = 0;
    if (dweight || dbias) {
        pieces[count] = all;
        pieces[count].direction = PC__CONV_WEIGHTS;
        pieces[count].result = dweight, pieces[count++].dbias = dbias;
    }
    if (dx) {
        pieces[count] = all;
        pieces[count].direction = PC__CONV_INPUT;
        pieces[count++].result = dx;
    }
    return count;
}

pc_status pc__cuda_op_conv2d_backward(pc_stream *stream, const pc_call *call)
{
    pc__cuda_conv s;
    pc__conv_piece pieces[2], *rest[PC__CONV_DIRECTIONS] = {NULL};
    pc__conv_way *ways[2] = {NULL, NULL};
    int made = 0;
    PC__TRY(pc__conv_geometry(stream, call, &s));
    const int count = pieces_of(call, &s, pieces);
    for (int i = 0; i < count; i++)
        PC__TRY(pc__conv_choose(stream, call, &pieces[i], &ways[i]));
    if (ways[0] || ways[1])
        PC__TRY(by_cudnn(stream, call, pieces, ways, count, &made));
    for (int i = 0; i < count; i++)
        if (!(made >> pieces[i].direction & 1)) {
            if (!pc__conv_native(stream, &pieces[i]))
                return pc__cuda_in_floats(stream, call, pc__cuda_op_conv2d_backward);
            rest[pieces[i].direction] = &pieces[i];
        }
    if (!rest[PC__CONV_INPUT] && !rest[PC__CONV_WEIGHTS])
        return PC_OK;
    return own_backward(stream, call, rest[PC__CONV_INPUT], rest[PC__CONV_WEIGHTS]);
}

/* cuDNN's plans are made before anything is captured. */
pc_status pc__cuda_prepare(pc_stream *stream, const pc_call *call)
{
    const int op = call->op->index;
    const bool forward = op == PC__OP_conv2d;
    pc__conv_piece pieces[2] = {{.direction = PC__CONV_FORWARD}};
    pc__conv_way *way;
    pc__cuda_conv s;
    int count = 1;
    if (!forward && op != PC__OP_conv2d_backward)
        return PC_OK;
    PC__TRY(pc__cuda_enter(stream->device.index));
    PC__TRY(pc__conv_geometry(stream, call, &s));
    if (forward) {
        pieces[0].s = s;
        pieces[0].x = pc__data(call->in[0]), pieces[0].weight = pc__data(call->in[1]);
        pieces[0].bias = call->n_in > 2 ? pc__data(call->in[2]) : NULL;
        pieces[0].result = data_or_null(call->out[0]);
    } else
        count = pieces_of(call, &s, pieces);
    for (int i = 0; i < count; i++)
        PC__TRY(pc__conv_choose(stream, call, &pieces[i], &way));
    return PC_OK;
}

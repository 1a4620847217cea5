/* norms_add.c: normalisations of float32 that also make the sum which they normalise, and gradients of them that add the
 * gradient which came around the layer, and leave the sum in 16 bits as well. Residual networks have both at each layer:
 * x + f(norm(x)). The numbers are those of the single calls. */
#include "plan/epilogue.h"

#include "ops/norm.h"

enum { INPUTS = 6 }; /* of a normalisation's call and more */

/* A call that is being made. */
typedef struct made {
    pc_call call;
    pc_tensor *in[INPUTS], tensor[INPUTS];
    int number[INPUTS + PC__OUT_MAX], taken;
    pc__layer_norm_attributes attributes;
} made;

pc_tensor pc__seen_as(const pc_tensor *old, const pc_tensor *t)
{
    pc_tensor seen = *old;
    seen.dtype = t->dtype;
    seen.storage = t->storage;
    seen.offset = t->offset;
    return seen;
}

bool pc__is_between(const pc__epilogues *s, int from, int to, const pc_stream *of, const int *number, int count,
                    bool reads)
{
    for (int i = from; i < to; i++) {
        const pc__plan_node *node = pc__node(s, i);
        if (node->gone)
            continue;
        if (node->kind == PC__NODE_FUNCTION ||
            (node->kind == PC__NODE_WAIT && (node->stream == of || node->other == of)))
            return true;
        for (int k = 0; k < pc__node_uses(node); k++)
            for (int n = 0; n < count; n++)
                if (node->number[k] == number[n] && (pc__node_writes(node, k) || (reads && n == 0)))
                    return true;
    }
    return false;
}

/* In C order on 16 bytes, whatever it holds. */
static bool lies_well(const pc_tensor *t)
{
    return pc__is_contiguous(t) && t->offset % 8 == 0 && !t->storage->foreign;
}

static bool fills(const pc_tensor *a, const pc_tensor *b)
{
    return pc__count(a->ndim, a->shape) == pc__count(b->ndim, b->shape) && lies_well(a) && lies_well(b);
}

/* float32 a + b, of one shape, for the rows of `like`. */
static bool is_sum(const pc__epilogues *s, int i, const pc_stream *stream, const pc_tensor *like)
{
    if (i < 0 || !pc__node_is(s, i, PC__OP_add) || pc__node(s, i)->stream != stream || pc__node(s, i)->call->n_in != 2)
        return false;
    const pc_tensor *a = pc__node(s, i)->call->in[0], *b = pc__node(s, i)->call->in[1], *y = pc__result(s, i);
    return a->dtype == PC_F32 && b->dtype == PC_F32 && y->dtype == PC_F32 && pc__same_shape(a, b) && fills(a, y) &&
           fills(b, y) && fills(y, like);
}

/* float32 and that dtype's 16 bits, on the stream. */
static bool is_cast(const pc__epilogues *s, int i, const pc_stream *stream, pc_dtype half, bool down)
{
    if (i < 0 || !pc__is_half(half) || !pc__node_is(s, i, PC__OP_cast) || pc__node(s, i)->stream != stream)
        return false;
    const pc_tensor *from = pc__node(s, i)->call->in[0], *to = pc__result(s, i);
    return (down ? from : to)->dtype == PC_F32 && (down ? to : from)->dtype == half && fills(from, to);
}

static made made_of(const pc__plan_node *node)
{
    made m = {.call = *node->call, .attributes = *(const pc__layer_norm_attributes *)node->call->attributes};
    memcpy(m.in, node->call->in, (size_t)m.call.n_in * sizeof *m.in);
    memcpy(m.number, node->number, (size_t)(m.call.n_in + m.call.n_out) * sizeof *m.number);
    return m;
}

/* One input more, in the shape of the one that it is like. */
static void add_input(made *m, const pc_tensor *t, int number, const pc_tensor *like)
{
    m->tensor[m->taken] = pc__seen_as(like, t);
    memmove(m->number + m->call.n_in + 1, m->number + m->call.n_in, (size_t)m->call.n_out * sizeof *m->number);
    m->number[m->call.n_in] = number;
    m->in[m->call.n_in++] = &m->tensor[m->taken++];
    m->attributes.adds = true;
}

/* Operand k, inputs first, is another tensor. */
static void put(made *m, int k, const pc_tensor *t, int number)
{
    pc_tensor *seen = &m->tensor[m->taken++];
    *seen = pc__seen_as(pc__call_tensor(&m->call, k), t);
    m->number[k] = number;
    if (k < m->call.n_in)
        m->in[k] = seen;
    else
        m->call.out[k - m->call.n_in] = seen;
}

static void add_output(made *m, const pc_tensor *t, int number, const pc_tensor *like)
{
    pc_tensor *seen = &m->tensor[m->taken++];
    *seen = pc__seen_as(like, t);
    m->number[m->call.n_in + m->call.n_out] = number;
    m->call.out[m->call.n_out++] = seen;
}

static bool become(pc__epilogues *s, int i, made *m)
{
    m->call.in = m->in;
    m->call.attributes = &m->attributes;
    return pc__node_become(pc__node(s, i), &m->call, m->number, pc__node(s, i)->kernel);
}

static bool parameters_lie_well(const pc_call *call, int first)
{
    for (int i = first; i < call->n_in; i++)
        if (!lies_well(call->in[i]))
            return false;
    return true;
}

/* --- forward --- */

/* Operand k of the sum as the normalisation reads it: in y's dtype; the cast that it comes from, -1: none, -2: not so. */
static int source_of(const pc__epilogues *s, int sum, int k, pc_dtype dtype)
{
    const int number = pc__node(s, sum)->number[k], cast = s->uses.writer[number];
    if (dtype == PC_F32)
        return -1;
    return pc__is_temporary(s, number) && is_cast(s, cast, pc__node(s, sum)->stream, dtype, false) &&
                   pc__is_only_for(s, number, &sum, 1)
               ? cast
               : -2;
}

static void make_sum(pc__epilogues *s, int i)
{
    const pc__plan_node *norm = pc__node(s, i);
    const pc_tensor *x = norm->call->in[0], *y = norm->call->out[0];
    const pc__layer_norm_attributes *a = norm->call->attributes;
    const int total = norm->number[0], sum = s->uses.writer[total];
    if (x->dtype != PC_F32 || a->adds || !pc__norm_adds(a->n, false) || !pc__is_temporary(s, total) || sum > i ||
        !is_sum(s, sum, norm->stream, x) || !lies_well(y) || !parameters_lie_well(norm->call, 1))
        return;
    int k = 1, cast = source_of(s, sum, 1, (pc_dtype)y->dtype);
    if (cast == -2)
        k = 0, cast = source_of(s, sum, 0, (pc_dtype)y->dtype);
    if (cast == -2)
        return;
    const pc__plan_node *adds = pc__node(s, sum);
    const pc_tensor *added = cast < 0 ? adds->call->in[k] : pc__node(s, cast)->call->in[0];
    const int number = cast < 0 ? adds->number[k] : pc__node(s, cast)->number[0], other = adds->number[1 - k];
    if (pc__is_between(s, sum + 1, i, norm->stream, (int[]){total, number, other}, 3, true) ||
        (cast >= 0 && pc__is_between(s, cast + 1, sum, norm->stream, &number, 1, false)))
        return;
    made m = made_of(norm);
    put(&m, 0, adds->call->in[1 - k], other);
    add_input(&m, added, number, x);
    add_output(&m, adds->call->out[0], total, x);
    if (!become(s, i, &m))
        return;
    pc__node(s, sum)->gone = PC__PASS_NORMS;
    if (cast >= 0)
        pc__node(s, cast)->gone = PC__PASS_NORMS;
}

/* --- backward --- */

/* The node that is alone in reading it, or -1. */
static int reader_of(const pc__epilogues *s, int number)
{
    int found = -1;
    for (int i = s->uses.first[number]; i < s->uses.first[number + 1]; i++) {
        const int reader = s->uses.reader[i];
        if (pc__node(s, reader)->gone || reader == found)
            continue;
        if (found >= 0)
            return -1;
        found = reader;
    }
    return found;
}

/* The cast to that dtype among the readers, or -1. */
static int cast_of(const pc__epilogues *s, int number, const pc_stream *stream, pc_dtype half)
{
    for (int i = s->uses.first[number]; i < s->uses.first[number + 1]; i++) {
        const int reader = s->uses.reader[i];
        if (is_cast(s, reader, stream, half, true) && pc__is_temporary(s, pc__result_number(s, reader)))
            return reader;
    }
    return -1;
}

static void add_gradient(pc__epilogues *s, int i)
{
    const pc__plan_node *gradient = pc__node(s, i);
    const pc_call *call = gradient->call;
    const pc__layer_norm_attributes *a = call->attributes;
    const int own = gradient->number[call->n_in];
    const pc_tensor *dy = call->in[0], *x = call->in[1], *dx = call->out[0];
    if (x->dtype != PC_F32 || a->adds || call->n_out != 3 || !a->needs[0] || !pc__norm_adds(a->n, true) ||
        !pc__is_temporary(s, own) || !fills(dx, x) || !fills(dy, x) || !parameters_lie_well(call, 3))
        return;
    made m = made_of(gradient);
    int sum = reader_of(s, own), total = own;
    if (sum > i && is_sum(s, sum, gradient->stream, dx)) {
        const pc__plan_node *adds = pc__node(s, sum);
        const int k = adds->number[0] == own, other = adds->number[k];
        total = pc__result_number(s, sum);
        if (other != own && total != own && pc__is_temporary(s, total) && s->uses.writer[other] < i &&
            !pc__is_between(s, i + 1, sum, gradient->stream, (int[]){total, other}, 2, true)) {
            put(&m, call->n_in, adds->call->out[0], total);
            add_input(&m, adds->call->in[k], other, dx);
        } else
            sum = -1, total = own;
    } else
        sum = -1;
    const int cast = cast_of(s, total, gradient->stream, (pc_dtype)dy->dtype);
    if (cast >= 0)
        add_output(&m, pc__result(s, cast), pc__result_number(s, cast), dx);
    if ((sum < 0 && cast < 0) || !become(s, i, &m))
        return;
    if (sum >= 0)
        pc__node(s, sum)->gone = PC__PASS_NORMS;
    if (cast >= 0)
        pc__node(s, cast)->gone = PC__PASS_NORMS;
}

void pc__norms_add(pc__epilogues *s)
{
    for (int i = 0; i < s->plan->count; i++) {
        if (pc__node_is(s, i, PC__OP_layer_norm) || pc__node_is(s, i, PC__OP_rms_norm))
            make_sum(s, i);
        if (pc__node_is(s, i, PC__OP_layer_norm_backward))
            add_gradient(s, i);
    }
}

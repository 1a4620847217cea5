/* norms.c: the pass that has normalisations of float32 write 16 bits where all that reads their result is a cast to them,
 * and their gradients read 16 bits where a cast made float32 of these: what autocast puts around each. The numbers are the
 * same, for kernels compute in float32 and round once. Then they take over additions (norms_add.c). */
#include "plan/epilogue.h"

/* Between float32 and 16 bits, of numbers that lie in C order on both sides. */
static bool is_cast(const pc__epilogues *s, int i, bool down)
{
    if (i < 0 || !pc__node_is(s, i, PC__OP_cast))
        return false;
    const pc_tensor *in = pc__node(s, i)->call->in[0], *out = pc__result(s, i);
    const pc_tensor *wide = down ? in : out, *half = down ? out : in;
    return wide->dtype == PC_F32 && pc__is_half((pc_dtype)half->dtype) && pc__is_contiguous(in) &&
           pc__is_contiguous(out) && pc__is_temporary(s, pc__node(s, i)->number[0]) &&
           pc__is_temporary(s, pc__result_number(s, i));
}

/* The node's call with operand k, inputs first, in another tensor; the cast that made or read it is gone. */
static void put(pc__epilogues *s, int i, int k, const pc_tensor *t, int number, int cast)
{
    enum { MOST = 8 }; /* operands of a normalisation's calls are fewer */
    pc__plan_node *node = pc__node(s, i);
    pc_call call = *node->call;
    pc_tensor *in[MOST], made = pc__seen_as(pc__call_tensor(&call, k), t);
    int numbers[MOST];
    if (call.n_in + call.n_out > MOST)
        return;
    memcpy(in, call.in, (size_t)call.n_in * sizeof *in);
    memcpy(numbers, node->number, (size_t)(call.n_in + call.n_out) * sizeof *numbers);
    call.in = in;
    numbers[k] = number;
    if (k < call.n_in)
        in[k] = &made;
    else
        call.out[k - call.n_in] = &made;
    if (pc__node_become(node, &call, numbers, node->kernel))
        pc__node(s, cast)->gone = PC__PASS_NORMS;
}

static bool fills(const pc_tensor *a, const pc_tensor *b)
{
    return pc__is_contiguous(a) && pc__count(a->ndim, a->shape) == pc__count(b->ndim, b->shape);
}

static void write_half(pc__epilogues *s, int i)
{
    pc__plan_node *norm = pc__node(s, i);
    const int number = pc__result_number(s, i), first = s->uses.first[number];
    const int cast = s->uses.first[number + 1] == first + 1 ? s->uses.reader[first] : -1;
    const pc_tensor *y = pc__result(s, i);
    if (y->dtype != PC_F32 || !is_cast(s, cast, true) || pc__node(s, cast)->stream != norm->stream ||
        !pc__is_only_for(s, number, &cast, 1) || !fills(y, pc__result(s, cast)))
        return;
    put(s, i, norm->call->n_in, pc__result(s, cast), pc__result_number(s, cast), cast);
}

static void read_half(pc__epilogues *s, int i)
{
    pc__plan_node *gradient = pc__node(s, i);
    const int number = gradient->number[0], cast = s->uses.writer[number];
    const pc_tensor *dy = gradient->call->in[0], *x = gradient->call->in[1];
    if (x->dtype != PC_F32 || dy->dtype != PC_F32 || !is_cast(s, cast, false) ||
        pc__node(s, cast)->stream != gradient->stream || !pc__is_only_for(s, number, &i, 1) ||
        !fills(dy, pc__result(s, cast)))
        return;
    put(s, i, 0, pc__node(s, cast)->call->in[0], pc__node(s, cast)->number[0], cast);
}

static void go_by_halves(pc__epilogues *s)
{
    for (int i = 0; i < s->plan->count; i++) {
        if (pc__node_is(s, i, PC__OP_layer_norm) || pc__node_is(s, i, PC__OP_rms_norm))
            write_half(s, i);
        if (pc__node_is(s, i, PC__OP_layer_norm_backward))
            read_half(s, i);
    }
}

/* Each knows who uses what as it finds the plan. */
void pc__pass_norms(pc__plan *plan, const pc__backend *backend)
{
    static void (*const parts[])(pc__epilogues * s) = {pc__norm_steps, go_by_halves, pc__norms_add};
    pc__epilogues s = {.plan = plan, .backend = backend};
    for (int i = 0; i < (backend->norms_to_half ? PC__COUNT(parts) : 1); i++) {
        if (!pc__epilogues_find(&s))
            return;
        parts[i](&s);
        pc__plan_uses_free(&s.uses);
    }
}

/* gelu.c: the pass that has linear layers of 16 bits do the gelu_tanh behind them, with what is in front of it as a second
 * result, which its gradient reads. Products on matrix units write both while they multiply. The product is not rounded in
 * between. The gradient stays a call of its own: products that make it are slower by more than it takes.
 *
 * Small layers do either gelu, of any dtype that their kernels know, where nobody else reads what is in front of it. */
#include "plan/epilogue.h"

#include "ops/linear.h"

enum { EIGHTS = 8 /* a row is whole accesses of matrix units' kernels */ };

/* [rows][columns], in C order, which it fills. */
static bool is_result(const pc_tensor *t)
{
    return t->ndim == 2 && pc__is_contiguous(t) && t->offset == 0 && t->shape[0] > 0 && t->shape[1] > 0;
}

/* Of 16 bits, whose rows are those of matrix units. */
static bool is_result_of_eights(const pc_tensor *t)
{
    return is_result(t) && pc__is_half((pc_dtype)t->dtype) && t->shape[1] % EIGHTS == 0;
}

static bool is_like(const pc_tensor *a, const pc_tensor *b)
{
    return a->dtype == b->dtype && a->offset == 0 && pc__is_contiguous(a) &&
           pc__count(a->ndim, a->shape) == pc__count(b->ndim, b->shape);
}

/* The first node of that op that reads what node i makes, as its first input, behind it on its stream; -1: none. */
static int reader_of(const pc__epilogues *s, int i, int op)
{
    const int number = pc__result_number(s, i);
    for (int k = s->uses.first[number]; k < s->uses.first[number + 1]; k++) {
        const int reader = s->uses.reader[k];
        if (reader > i && pc__node_is(s, reader, op) && pc__node(s, reader)->number[0] == number &&
            pc__node(s, reader)->stream == pc__node(s, i)->stream &&
            is_like(pc__node(s, reader)->call->in[0], pc__result(s, i)) &&
            is_like(pc__result(s, reader), pc__result(s, i)) && pc__is_temporary(s, pc__result_number(s, reader)))
            return reader;
    }
    return -1;
}

/* Whether the reader's result can be there where node i is. */
static bool can_move(const pc__epilogues *s, int i, int reader)
{
    return !pc__is_between(s, i + 1, reader, pc__node(s, i)->stream,
                           (int[]){pc__result_number(s, reader), pc__result_number(s, i)}, 2, true);
}

static bool is_large(const pc_call *layer)
{
    const pc_tensor *x = layer->in[0], *w = layer->in[1];
    return !pc__linear_is_small(x->shape[0], w->shape[0], x->shape[1]) ||
           pc__linear_has_good_products((pc_dtype)x->dtype, w->shape[0], x->shape[1]);
}

/* The layer makes what `gelu` makes, with what is in front of it as a second result or without. */
static void take(pc__epilogues *s, int i, int gelu, pc_activation_kind activation, bool with_front)
{
    const pc__plan_node *layer = pc__node(s, i);
    const int own = pc__result_number(s, i), n = layer->call->n_in;
    pc__linear_attributes attributes = *(const pc__linear_attributes *)layer->call->attributes;
    pc_tensor behind = pc__seen_as(layer->call->out[0], pc__result(s, gelu));
    pc_call call = *layer->call;
    int number[5];
    memcpy(number, layer->number, (size_t)n * sizeof *number);
    number[n] = pc__result_number(s, gelu), number[n + 1] = own;
    attributes.activation = activation;
    call.attributes = &attributes;
    call.n_out = with_front ? 2 : 1, call.out[1] = with_front ? call.out[0] : NULL, call.out[0] = &behind;
    if (pc__node_become(pc__node(s, i), &call, number, layer->kernel))
        pc__node(s, gelu)->gone = PC__PASS_GELU;
}

/* The gradient reads what is in front; where none does, nobody would read the second result. */
static void with_front(pc__epilogues *s, int i)
{
    const int own = pc__result_number(s, i), gelu = is_result_of_eights(pc__result(s, i)) && pc__is_temporary(s, own)
                                                        ? reader_of(s, i, PC__OP_gelu_tanh)
                                                        : -1;
    if (gelu >= 0 && !pc__is_only_for(s, own, &gelu, 1) && can_move(s, i, gelu))
        take(s, i, gelu, PC_ACTIVATION_GELU_TANH, true);
}

static void alone(pc__epilogues *s, int i)
{
    static const struct {
        int op;
        pc_activation_kind kind;
    } forms[] = {{PC__OP_gelu, PC_ACTIVATION_GELU}, {PC__OP_gelu_tanh, PC_ACTIVATION_GELU_TANH}};
    const pc_tensor *y = pc__result(s, i);
    for (int f = 0; f < PC__COUNT(forms) && is_result(y) && y->dtype != PC_F64; f++) {
        const int gelu = reader_of(s, i, forms[f].op);
        if (gelu < 0 || !pc__is_only_for(s, pc__result_number(s, i), &gelu, 1) || !can_move(s, i, gelu))
            continue;
        take(s, i, gelu, forms[f].kind, false);
        return;
    }
}

static void forward(pc__epilogues *s, int i)
{
    const pc_call *layer = pc__node(s, i)->call;
    if (((const pc__linear_attributes *)layer->attributes)->activation != PC_ACTIVATION_NONE)
        return;
    if (is_large(layer))
        with_front(s, i);
    else
        alone(s, i);
}

void pc__pass_gelu(pc__plan *plan, const pc__backend *backend)
{
    pc__epilogues s = {.plan = plan, .backend = backend};
    if (backend->type != PC_CUDA || !pc__epilogues_find(&s))
        return;
    for (int i = 0; i < plan->count; i++) {
        if (pc__node_is(&s, i, PC__OP_linear))
            forward(&s, i);
    }
    pc__plan_uses_free(&s.uses);
}

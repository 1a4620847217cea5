/* pitches.c: the pass that sets rows of 16-bit temporaries apart whose lengths are no whole eights, as logits of odd
 * vocabularies are, so that each begins on 16 bytes, which products on matrix units ask for; else these copy. Only such
 * go as all who use them know of pitches: products, and the loss of labels. What lies behind a row is the writer's:
 * the gradient of the loss has zeros there, so products may add it up (matmul.h), together with a shadow's rows, behind
 * the last of which there are zeros too (shadow.c). */
#include "plan/plan.h"

#include "ops/linear.h"
#include "ops/matmul.h"
#include "ops/table.h"

enum { EIGHTS = 8, FEW = 16 /* columns, for which matrix units do not count */ };

typedef struct rows {
    int64_t columns; /* of the matrix that all uses see there; 0: none yet */
    bool no;         /* some use asks for dense memory */
    bool zeros;      /* its writer leaves zeros behind rows */
    bool multiplied; /* a product reads or writes it */
    bool added_up;   /* and one of these reads it */
} rows;

typedef struct search {
    pc__plan *plan;
    rows *of; /* by storage */
} search;

static bool is_op(const pc__plan_node *node, int op)
{
    return !node->gone && node->kind == PC__NODE_CALL && node->call->op->index == op;
}

/* The length of rows that fill the storage, side by side, in the matrix or its transpose; 0: it has none. */
static int64_t columns_of(const pc_tensor *t)
{
    const int across = t->ndim == 2 && t->strides[1] == 1 ? 1 : 0;
    const int64_t columns = t->ndim == 2 ? t->shape[across] : 0;
    return columns > 0 && t->offset == 0 && t->strides[across] == 1 && t->strides[1 - across] == columns &&
                   t->shape[1 - across] > 1 &&
                   (size_t)pc__count(2, t->shape) * pc_dtype_size((pc_dtype)t->dtype) == t->storage->bytes
               ? columns
               : 0;
}

static int64_t whole(int64_t n)
{
    return (n + EIGHTS - 1) / EIGHTS * EIGHTS;
}

/* A layer that is done as a product. */
static bool is_product(const pc_call *linear)
{
    const pc_tensor *x = linear->in[0], *w = linear->in[1];
    return ((const pc__linear_attributes *)linear->attributes)->activation == PC_ACTIVATION_NONE &&
           (!pc__linear_is_small(x->shape[0], w->shape[0], x->shape[1]) ||
            pc__linear_has_good_products((pc_dtype)x->dtype, w->shape[0], x->shape[1]));
}

static bool is_matrices(const pc_call *matmul)
{
    return matmul->in[0]->ndim == 2 && matmul->in[1]->ndim == 2;
}

/* Whether the call takes operand i, inputs first, in rows of a pitch. */
static bool takes(const pc__plan_node *node, int i)
{
    const bool result = node->kind == PC__NODE_CALL && i == node->call->n_in;
    return (is_op(node, PC__OP_linear) && result && is_product(node->call)) ||
           (is_op(node, PC__OP_matmul) && is_matrices(node->call)) || (is_op(node, PC__OP_cross_entropy) && i == 0) ||
           (is_op(node, PC__OP_cross_entropy_backward) && (i == 0 || result));
}

static void see_use(const search *s, const pc__plan_node *node, int i)
{
    rows *r = &s->of[node->number[i]];
    const pc__plan_storage *storage = &s->plan->storage[node->number[i]];
    if (r->no || storage->place != PC__PLACE_TEMPORARY || storage->writes != 1 || !takes(node, i)) {
        r->no = true;
        return;
    }
    const pc_tensor *t = pc__call_tensor(node->call, i);
    const int64_t columns = columns_of(t);
    r->no = !pc__is_half((pc_dtype)t->dtype) || columns <= FEW || columns % EIGHTS == 0 ||
            (r->columns && r->columns != columns);
    r->columns = columns;
    const bool written = pc__node_writes(node, i),
               product = !is_op(node, PC__OP_cross_entropy) && !is_op(node, PC__OP_cross_entropy_backward);
    r->zeros |= written && !product;
    r->multiplied |= product;
    r->added_up |= product && !written;
}

/* The logits and their gradient go together, since one kernel walks both. */
static bool part_pairs(const search *s)
{
    bool changed = false;
    for (int i = 0; i < s->plan->count; i++) {
        const pc__plan_node *node = &s->plan->node[i];
        if (!is_op(node, PC__OP_cross_entropy_backward))
            continue;
        rows *x = &s->of[node->number[0]], *dx = &s->of[node->number[node->call->n_in]];
        changed |= x->no != dx->no;
        x->no = dx->no = x->no || dx->no;
    }
    return changed;
}

static void decide(const search *s)
{
    for (int k = 0; k < s->plan->storages; k++) {
        rows *r = &s->of[k];
        r->no |= !r->columns || (r->added_up && !r->zeros) || !r->multiplied;
    }
    while (part_pairs(s))
        ;
}

static void set_apart(const search *s)
{
    for (int k = 0; k < s->plan->storages; k++) {
        pc__plan_storage *storage = &s->plan->storage[k];
        const rows *r = &s->of[k];
        if (!r->no) /* nobody else sees the storage */
            storage->bytes = storage->storage->bytes =
                storage->storage->bytes / (size_t)r->columns * (size_t)whole(r->columns);
    }
    for (int i = 0; i < s->plan->count; i++) {
        const pc__plan_node *node = &s->plan->node[i];
        for (int k = 0; k < (node->gone ? 0 : pc__node_uses(node)); k++) {
            if (s->of[node->number[k]].no)
                continue;
            pc_tensor *t = pc__call_tensor(node->call, k);
            t->strides[t->strides[1] == 1 ? 0 : 1] = whole(s->of[node->number[k]].columns);
        }
    }
}

/* Behind the operand's last row and column there are zeros. */
static bool goes_on(const search *s, const pc__plan_node *node, int i)
{
    const pc_tensor *t = pc__call_tensor(node->call, i);
    const rows *r = &s->of[node->number[i]];
    const int across = t->strides[1] == 1 ? 1 : 0;
    const int64_t others = t->shape[1 - across], columns = t->shape[across];
    if (!r->no)
        return r->zeros && others % EIGHTS == 0;
    return s->plan->storage[node->number[i]].place == PC__PLACE_SHADOW && t->offset == 0 && columns % EIGHTS == 0 &&
           t->strides[across] == 1 && t->strides[1 - across] == columns &&
           (size_t)(whole(others) * columns) * pc_dtype_size((pc_dtype)t->dtype) <= t->storage->bytes;
}

/* Say so to a product; without memory it copies. */
static void say(const search *s, pc__plan_node *node)
{
    const pc__linear_attributes *layer = node->call->attributes;
    const bool linear = is_op(node, PC__OP_linear);
    bool first = !linear && goes_on(s, node, 0), second = goes_on(s, node, 1);
    pc__linear_attributes l = linear ? *layer : (pc__linear_attributes){.activation = PC_ACTIVATION_NONE};
    pc__matmul_attributes m = {0};
    pc_call call = *node->call;
    if (!linear && call.attributes)
        m = *(const pc__matmul_attributes *)call.attributes;
    if (!first && !second)
        return;
    m.zeros[0] = first, m.zeros[1] = second;
    l.zeros = second;
    call.attributes = linear ? (const void *)&l : &m;
    call.attribute_bytes = linear ? sizeof l : sizeof m;
    (void)pc__node_become(node, &call, node->number, node->kernel);
}

static bool has_pitch(const search *s, const pc__plan_node *node)
{
    for (int i = 0; i < pc__node_uses(node); i++)
        if (!s->of[node->number[i]].no)
            return true;
    return false;
}

void pc__pass_pitches(pc__plan *plan, const pc__backend *backend)
{
    search s = {.plan = plan, .of = pc__calloc((size_t)plan->storages + 1, sizeof *s.of)};
    if (!s.of || backend->type != PC_CUDA) {
        if (!s.of)
            pc_error_clear(); /* the plan is right without the pass */
        pc__free(s.of);
        return;
    }
    for (int i = 0; i < plan->count; i++)
        for (int k = 0; k < (plan->node[i].gone ? 0 : pc__node_uses(&plan->node[i])); k++)
            see_use(&s, &plan->node[i], k);
    decide(&s);
    set_apart(&s);
    for (int i = 0; i < plan->count; i++) {
        pc__plan_node *node = &plan->node[i];
        if ((is_op(node, PC__OP_linear) || is_op(node, PC__OP_matmul)) && has_pitch(&s, node))
            say(&s, node);
    }
    pc__free(s.of);
}

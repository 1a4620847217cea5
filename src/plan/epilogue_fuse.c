/* epilogue_fuse.c: one call of a product and its steps, and one of their gradients. */
#include "plan/epilogue.h"

#include "ops/activation.h"
#include "ops/conv2d.h"
#include "ops/linear.h"
#include "ops/pool2d.h"
#include "tensor/freeze.h"

enum { OPERANDS = 5 };

/* A call in the making: its attributes and operands are here until it is copied. */
typedef struct draft {
    pc_call call;
    union {
        pc__conv2d_attributes conv2d;
        pc__linear_attributes linear;
    } attributes;
    pc_tensor *in[OPERANDS];
} draft;

static void add_steps(const pc__epilogues *s, const pc__epilogue *e, draft *d)
{
    pc__conv2d_attributes *a = &d->attributes.conv2d;
    pc_activation_kind *activation = pc__is_convolution(s, e) ? &a->spec.activation : &d->attributes.linear.activation;
    if (pc__epilogue_has(e, PC__STEP_ACTIVATION))
        *activation = pc__activation_by_op(pc__node(s, e->step[PC__STEP_ACTIVATION])->call->op);
    if (!pc__is_convolution(s, e))
        return;
    a->planes = pc__epilogue_has(e, PC__STEP_C_ORDER);
    if (pc__epilogue_has(e, PC__STEP_POOL)) {
        const pc__pool2d_attributes *pool = pc__node(s, e->step[PC__STEP_POOL])->call->attributes;
        a->spec.pool = pool->spec.kernel[0];
        a->wants_argmax = e->backward >= 0;
    }
}

/* As node i is, with the attributes that it will have. */
static void begin(const pc__epilogues *s, const pc__epilogue *e, int i, draft *d)
{
    d->call = *pc__node(s, i)->call;
    memcpy(&d->attributes, d->call.attributes, d->call.attribute_bytes);
    memcpy(d->in, d->call.in, (size_t)d->call.n_in * sizeof *d->in);
    d->call.attributes = &d->attributes;
    d->call.in = d->in;
    add_steps(s, e, d);
}

bool pc__epilogue_is_taken(const pc__epilogues *s, const pc__epilogue *e)
{
    draft d;
    begin(s, e, e->product, &d);
    const pc__settings before = pc__settings_set(pc__node(s, e->product)->settings);
    const bool apart = s->backend->is_faster_apart && s->backend->is_faster_apart(&d.call);
    (void)pc__settings_set(before);
    return !apart;
}

/* `t`, in the shape of `old` where that is only another view of the same memory. */
static pc_tensor in_place_of(const pc_tensor *old, const pc_tensor *t)
{
    pc_tensor made = *t;
    if (!pc__same_shape(old, t) && pc__is_contiguous(t) && pc__is_contiguous(old) &&
        pc__count(t->ndim, t->shape) == pc__count(old->ndim, old->shape)) {
        made = *old;
        made.storage = t->storage;
        made.offset = t->offset;
    }
    return made;
}

/* What the call becomes, in front of any change; NULL: no memory. */
static pc_call *with_steps(const pc__epilogues *s, const pc__epilogue *e, pc_tensor *result, pc_tensor *argmax)
{
    draft d;
    begin(s, e, e->product, &d);
    *result = in_place_of(d.call.out[0], pc__result(s, e->step[e->last]));
    d.call.out[0] = result;
    if (argmax) { /* where in its window each maximum is, a byte of each */
        *argmax = *d.call.out[1];
        argmax->shape[0] = pc__count(result->ndim, result->shape);
        argmax->strides[0] = 1;
        d.call.out[1] = argmax;
    }
    return pc__call_copy(&d.call);
}

static pc_call *gradient_of(const pc__epilogues *s, const pc__epilogue *e, pc_tensor *result, pc_tensor *argmax)
{
    draft d;
    begin(s, e, e->backward, &d);
    pc_tensor dy = in_place_of(d.in[pc__operand_dy(s, e)], e->dy);
    d.in[pc__operand_y(s, e)] = result;
    if (argmax)
        d.in[3] = argmax;
    if (e->copy < 0)
        d.in[pc__operand_dy(s, e)] = &dy;
    return pc__call_copy(&d.call);
}

static pc_call *copy_of(const pc__epilogues *s, const pc__epilogue *e)
{
    pc_call call = *pc__node(s, e->copy)->call;
    pc_tensor dy = *e->dy, *in[] = {&dy};
    call.in = in;
    return pc__call_copy(&call);
}

static void put(pc__plan_node *node, pc_call *call)
{
    pc__free(node->call);
    node->call = call;
}

/* The steps, and what was on the way of the gradient, are gone. */
static void take_out(pc__epilogues *s, const pc__epilogue *e)
{
    for (pc__epilogue_step kind = PC__STEP_ACTIVATION; kind <= e->last; kind++)
        if (e->step[kind] >= 0)
            pc__node(s, e->step[kind])->gone = PC__PASS_EPILOGUES;
    for (int i = 0; i < e->undone_count; i++)
        if (e->undone[i] != e->copy)
            pc__node(s, e->undone[i])->gone = PC__PASS_EPILOGUES;
}

static void put_all(pc__epilogues *s, const pc__epilogue *e, pc_call *product, pc_call *backward, pc_call *copy)
{
    pc__plan_node *node = pc__node(s, e->product);
    const int y = pc__operand_y(s, e), dy = pc__operand_dy(s, e);
    node->number[node->call->n_in] = pc__result_number(s, e->step[e->last]);
    if (backward) {
        pc__node(s, e->backward)->number[y] = node->number[node->call->n_in];
        if (!copy)
            pc__node(s, e->backward)->number[dy] = e->dy_number;
        put(pc__node(s, e->backward), backward);
    }
    if (copy) {
        pc__node(s, e->copy)->number[0] = e->dy_number;
        put(pc__node(s, e->copy), copy);
    }
    put(node, product);
    take_out(s, e);
}

void pc__epilogue_fuse(pc__epilogues *s, const pc__epilogue *e)
{
    const bool trained = e->backward >= 0, pools = trained && pc__epilogue_has(e, PC__STEP_POOL);
    pc_tensor result, argmax;
    pc_call *product = with_steps(s, e, &result, pools ? &argmax : NULL);
    pc_call *backward = trained ? gradient_of(s, e, &result, pools ? &argmax : NULL) : NULL;
    pc_call *copy = e->copy >= 0 ? copy_of(s, e) : NULL;
    if (!product || (trained && !backward) || (e->copy >= 0 && !copy)) {
        pc__free(product);
        pc__free(backward);
        pc__free(copy);
        pc_error_clear();
        return;
    }
    if (pools) { /* which had no elements until now */
        pc__plan_storage *storage = &s->plan->storage[pc__node(s, e->product)->number[product->n_in + 1]];
        storage->bytes = storage->storage->bytes = (size_t)argmax.shape[0];
    }
    put_all(s, e, product, backward, copy);
}

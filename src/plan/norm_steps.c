/* norm_steps.c: normalisations of channels that add what is added to their result, and cut it off at 0, on the way out; and
 * their gradients, which find out again where the result was above 0. The numbers are those of single calls. */
#include "plan/epilogue.h"

#include "ops/norm.h"

#include <math.h>

enum { OPERANDS = 10 /* of a normalisation's calls, and one more */ };

/* A call in the making, as a node is at first. */
typedef struct draft {
    pc_call call;
    pc__channel_norm_attributes attributes;
    pc_tensor *in[OPERANDS], result;
    int numbers[OPERANDS];
} draft;

static void begin(const pc__epilogues *s, int i, draft *d)
{
    const pc__plan_node *node = pc__node(s, i);
    d->call = *node->call;
    d->attributes = *(const pc__channel_norm_attributes *)d->call.attributes;
    memcpy(d->in, d->call.in, (size_t)d->call.n_in * sizeof *d->in);
    memcpy(d->numbers, node->number, (size_t)(d->call.n_in + d->call.n_out) * sizeof *d->numbers);
    d->call.attributes = &d->attributes;
    d->call.in = d->in;
}

static bool has_room(const pc__epilogues *s, int i)
{
    return pc__node(s, i)->call->n_in + pc__node(s, i)->call->n_out < OPERANDS;
}

/* One more input, behind the others. */
static void add_input(draft *d, pc_tensor *t, int number)
{
    memmove(&d->numbers[d->call.n_in + 1], &d->numbers[d->call.n_in], (size_t)d->call.n_out * sizeof *d->numbers);
    d->numbers[d->call.n_in] = number;
    d->in[d->call.n_in++] = t;
}

static bool is_norm(const pc__epilogues *s, int i)
{
    return pc__node_is(s, i, PC__OP_batch_norm) || pc__node_is(s, i, PC__OP_stored_norm) ||
           pc__node_is(s, i, PC__OP_group_norm);
}

static const pc__channel_norm_attributes *attributes_of(const pc__epilogues *s, int i)
{
    return pc__node(s, i)->call->attributes;
}

static bool lies_as(const pc_tensor *a, const pc_tensor *b)
{
    return a->dtype == b->dtype && pc__same_places(a, b);
}

/* The one node that reads what node `from` makes, where it is that op, on the same stream, and makes something new in the
 * same places; else -1. */
static int only_reader(const pc__epilogues *s, int from, int op)
{
    const int number = pc__result_number(s, from), first = s->uses.first[number];
    const int reader = s->uses.first[number + 1] == first + 1 ? s->uses.reader[first] : -1;
    const pc_tensor *y = pc__result(s, from);
    if (reader < 0 || !pc__node_is(s, reader, op) || pc__node(s, reader)->stream != pc__node(s, from)->stream ||
        !pc__is_only_for(s, number, &reader, 1) || !lies_as(y, pc__result(s, reader)) ||
        s->plan->storage[pc__result_number(s, reader)].writes != 1)
        return -1;
    const pc_call *call = pc__node(s, reader)->call;
    const int at = pc__node(s, reader)->number[0] == number ? 0 : 1;
    return lies_as(call->in[at], y) && call->in[at]->offset == y->offset ? reader : -1;
}

/* Whether node `to` may find other numbers in the storage than node `from`. Memory of the program has other names, and
 * host functions write what they like, but for what nobody has seen. */
static bool may_change(const pc__epilogues *s, int number, int from, int to)
{
    const pc__plan_storage *storage = &s->plan->storage[number];
    if (storage->storage->foreign)
        return true;
    for (int n = from + 1; n < to; n++) {
        const pc__plan_node *node = pc__node(s, n);
        if (!node->gone && node->kind == PC__NODE_FUNCTION && storage->place != PC__PLACE_TEMPORARY)
            return true;
        for (int k = 0; !node->gone && k < pc__node_uses(node); k++)
            if (node->number[k] == number && pc__node_writes(node, k))
                return true;
    }
    return false;
}

/* Whether what a node reads is there in front of node i already. */
static bool is_there(const pc__epilogues *s, int number, int i)
{
    const int writes = s->plan->storage[number].writes, writer = s->uses.writer[number];
    return writes == 0 || (writes == 1 && writer < i && pc__node(s, writer)->stream == pc__node(s, i)->stream);
}

/* The operand of an addition that is not what node i makes, or -1: a number is none. */
static int other_operand(const pc__epilogues *s, int i, int add)
{
    const pc__plan_node *node = pc__node(s, add);
    const int other = node->number[0] == pc__result_number(s, i);
    return node->call->n_in == 2 && node->number[!other] == pc__result_number(s, i) &&
                   node->number[other] != pc__result_number(s, i) && lies_as(node->call->in[other], pc__result(s, i)) &&
                   is_there(s, node->number[other], i) && !may_change(s, node->number[other], i, add)
               ? other
               : -1;
}

static void write_steps(pc__epilogues *s, int i)
{
    draft d;
    const pc__channel_norm_attributes *a = attributes_of(s, i);
    int add = a->rest || a->relu ? -1 : only_reader(s, i, PC__OP_add);
    const int other = add < 0 ? -1 : other_operand(s, i, add);
    add = other < 0 ? -1 : add;
    const int before = add < 0 ? i : add, plain = a->relu ? -1 : only_reader(s, before, PC__OP_relu);
    const int relu = plain >= 0 || a->relu ? plain : only_reader(s, before, PC__OP_relu6);
    const int last = relu < 0 ? add : relu;
    if (last < 0 || !has_room(s, i))
        return;
    begin(s, i, &d);
    d.result = *pc__result(s, last);
    d.call.out[0] = &d.result;
    d.numbers[d.call.n_in] = pc__result_number(s, last);
    d.attributes.relu = relu >= 0;
    d.attributes.most = relu >= 0 && relu != plain ? 6 : INFINITY;
    if ((d.attributes.rest = add >= 0))
        add_input(&d, pc__node(s, add)->call->in[other], pc__node(s, add)->number[other]);
    if (!pc__node_become(pc__node(s, i), &d.call, d.numbers, pc__node(s, i)->kernel))
        return;
    if (add >= 0)
        pc__node(s, add)->gone = PC__PASS_NORMS;
    if (relu >= 0)
        pc__node(s, relu)->gone = PC__PASS_NORMS;
}

/* The normalisation whose gradient node i is, or -1: it read the same x, and found or read the same mean. */
static int norm_of(const pc__epilogues *s, int i)
{
    const int *number = pc__node(s, i)->number;
    for (int k = i - 1; k >= 0; k--) {
        const pc__plan_node *node = pc__node(s, k);
        if (is_norm(s, k) && node->number[0] == number[1] &&
            node->number[attributes_of(s, k)->stored ? 1 : node->call->n_in + 1] == number[2])
            return node->stream == pc__node(s, i)->stream ? k : -1;
    }
    return -1;
}

static void read_relu(pc__epilogues *s, int i)
{
    draft d;
    const pc__plan_node *gradient = pc__node(s, i);
    const int relu = s->uses.writer[gradient->number[0]], norm = norm_of(s, i);
    if (attributes_of(s, i)->relu || !has_room(s, i) || norm < 0 || !attributes_of(s, norm)->relu ||
        attributes_of(s, norm)->rest || relu < 0 ||
        !pc__node_is(s, relu, attributes_of(s, norm)->most == 6 ? PC__OP_relu6_backward : PC__OP_relu_backward) ||
        pc__node(s, relu)->stream != gradient->stream || pc__node(s, relu)->number[1] != pc__result_number(s, norm) ||
        !pc__is_only_for(s, gradient->number[0], &i, 1) ||
        !lies_as(pc__node(s, relu)->call->in[0], gradient->call->in[0]) ||
        may_change(s, pc__node(s, relu)->number[0], relu, i))
        return;
    for (int k = 1; k < gradient->call->n_in; k++) /* the result is found again from these, and the bias */
        if (may_change(s, gradient->number[k], norm, i))
            return;
    const pc__channel_norm_attributes *a = attributes_of(s, norm);
    const int bias = (a->stored ? 3 : 1) + a->has_weight;
    if (a->has_bias && may_change(s, pc__node(s, norm)->number[bias], norm, i))
        return;
    begin(s, i, &d);
    d.in[0] = pc__node(s, relu)->call->in[0];
    d.numbers[0] = pc__node(s, relu)->number[0];
    d.attributes.relu = true;
    d.attributes.most = a->most;
    d.attributes.has_bias = a->has_bias;
    if (a->has_bias)
        add_input(&d, pc__node(s, norm)->call->in[bias], pc__node(s, norm)->number[bias]);
    if (pc__node_become(pc__node(s, i), &d.call, d.numbers, gradient->kernel))
        pc__node(s, relu)->gone = PC__PASS_NORMS;
}

void pc__norm_steps(pc__epilogues *s)
{
    for (int i = 0; i < s->plan->count; i++)
        if (is_norm(s, i))
            write_steps(s, i);
    for (int i = 0; i < s->plan->count; i++)
        if (pc__node_is(s, i, PC__OP_channel_norm_backward))
            read_relu(s, i);
}

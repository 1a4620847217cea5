/* zero_use.c: weights in front of the calls that use them (stage 3). What is gathered when follows from the order of the calls
 * alone, so all ranks gather the same. */
#include "parallel/zero_whole.h"

#include "ops/table.h"

enum { STAY = 2 /* a call may use two buckets; beside those that are gathered ahead */ };

/* All but those that were used last, and those that the call at hand uses. */
static void keep_few(pc_zero *z, int more)
{
    for (;;) {
        int there = more, b = -1, kind = 0;
        for (int i = 0; i < z->reducer.buckets.count * PC__WHOLE_KINDS; i++) {
            const pc__weights *w = &z->weights[i / PC__WHOLE_KINDS];
            const int k = i % PC__WHOLE_KINDS;
            if (!w->whole[k] || (k == PC__WHOLE_OWN && z->gathered))
                continue;
            there++;
            if (w->touched[k] < z->clock && (b < 0 || w->touched[k] < z->weights[b].touched[kind]))
                b = i / PC__WHOLE_KINDS, kind = k;
        }
        if (there <= STAY + z->ahead || b < 0)
            return;
        pc__whole_let_go(z, b, kind);
    }
}

/* Those that come after bucket b on the way: networks go from the last bucket to the first, and back. */
static pc_status look_ahead(pc_zero *z, int b, int kind)
{
    for (int i = 1; i <= z->ahead; i++) {
        const int next = z->reducer.walking ? b + i : b - i;
        if (next < 0 || next >= z->reducer.buckets.count || z->weights[next].whole[kind])
            continue;
        keep_few(z, 1);
        z->weights[next].touched[kind] = z->clock;
        z->weights[next].ahead[kind] = true;
        PC__TRY(pc__whole_bring(z, next, kind));
    }
    return PC_OK;
}

static int kind_of(const pc_zero *z, const pc_tensor *t)
{
    return t == z->reducer.parameter[t->watch->number] ? PC__WHOLE_OWN : PC__WHOLE_HALF;
}

/* The next one is gathered where a call comes to this one. */
static pc_status use(pc_zero *z, int b, int kind)
{
    const bool comes = !z->weights[b].whole[kind] || z->weights[b].ahead[kind];
    if (!z->weights[b].whole[kind])
        keep_few(z, 1);
    z->weights[b].ahead[kind] = false;
    PC__TRY(pc__whole_bring(z, b, kind));
    return comes ? look_ahead(z, b, kind) : PC_OK;
}

pc_status pc__zero_used(pc__leaf_set *set, pc_tensor *const *tensors, int n, bool write)
{
    pc_zero *z = (pc_zero *)set;
    if (z->busy)
        return PC_OK;
    if (write && !z->gathered)
        return pc__fail(PC_ERR_STATE, "a parameter is to be written, but %s", PC__ZERO_ELSEWHERE);
    pc__zero_see_launches(z);
    z->clock++;
    for (int i = 0; i < n; i++)
        if (tensors[i]->watch && tensors[i]->watch->set == set)
            z->weights[z->reducer.buckets.of[tensors[i]->watch->number]].touched[kind_of(z, tensors[i])] = z->clock;
    for (int i = 0; i < n; i++) {
        if (!tensors[i]->watch || tensors[i]->watch->set != set)
            continue;
        const int b = z->reducer.buckets.of[tensors[i]->watch->number], kind = kind_of(z, tensors[i]);
        if (z->gathered && kind == PC__WHOLE_OWN)
            continue;
        PC__TRY(use(z, b, kind));
    }
    return PC_OK;
}

static pc_status infer_twin(pc_call *call, pc__meta *out)
{
    pc__meta_of(out, call->in[1]);
    return PC_OK;
}

/* A cast whose result was gathered. */
static const pc__op twin_op = {"gathered", PC__OP_view, 1, PC__VIEW, infer_twin, pc__grad_cast};

/* Those that nobody else has any more go. */
static void sweep(pc_zero *z)
{
    int left = 0;
    for (int i = 0; i < z->twin_count; i++) {
        if (atomic_load(&z->twin[i].tensor->references) > 1)
            z->twin[left++] = z->twin[i];
        else
            pc_tensor_free(z->twin[i].tensor);
    }
    z->twin_count = left;
}

static pc_tensor *make_twin(pc_zero *z, pc_tensor *leaf, int b)
{
    pc_tensor *in[] = {leaf,
                       pc__bucket_view(&z->reducer.buckets, leaf->watch->number, z->weights[b].whole[PC__WHOLE_HALF])};
    pc_call call = {.op = &twin_op, .in = in, .n_in = 2, .n_out = 1};
    z->busy = true;
    const bool made = in[1] && pc_dispatch(&call) == PC_OK;
    z->busy = false;
    pc_tensor_free(in[1]);
    if (!made)
        return NULL;
    call.out[0]->watch = leaf->watch;
    z->twin[z->twin_count++] = (pc__twin){pc_tensor_retain(call.out[0]), leaf->watch->number};
    return call.out[0];
}

pc_tensor *pc__zero_half(pc__leaf_set *set, pc_tensor *leaf, pc_dtype dtype)
{
    pc_zero *z = (pc_zero *)set;
    const int b = z->reducer.buckets.of[leaf->watch->number];
    if (z->gathered)
        return pc__as_dtype(leaf, dtype);
    if (z->twin_count >= z->reducer.count || z->half != dtype)
        sweep(z);
    if (z->half != dtype && z->twin_count)
        return pc__as_dtype(leaf, dtype);
    for (int i = 0; z->half != dtype && i < z->reducer.buckets.count; i++)
        pc__whole_let_go(z, i, PC__WHOLE_HALF);
    z->half = dtype;
    pc_tensor stand = {.dtype = (uint8_t)dtype, .watch = leaf->watch}, *list[] = {&stand};
    if (pc__grow((void **)&z->twin, &z->twin_room, z->twin_count, sizeof *z->twin) != PC_OK ||
        pc__zero_used(set, list, 1, false) != PC_OK)
        return NULL;
    return make_twin(z, leaf, b);
}

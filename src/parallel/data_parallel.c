/* data_parallel.c: one network on several devices of the process. Work is queued on all of them by the calling thread; they
 * do it at the same time. */
#include "autograd/leaf_watch.h"
#include "device/failure.h"
#include "device/graph.h"
#include "nn/module.h"

#include <paracord/autograd.h>
#include <paracord/data_parallel.h>
#include <paracord/no_grad.h>
#include <paracord/ops.h>

/* What a tensor held: the numbers of its storage, a reference, and where they were written. */
typedef struct contents {
    pc__storage *storage; /* NULL: nothing is known */
    unsigned version;
    uint64_t recording; /* 0: outside */
} contents;

/* A parameter of another replica, whose gradient goes to the first one's. */
typedef struct copy {
    pc__leaf_watch watch;
    pc_tensor *own, *first;        /* a reference each */
    contents own_held, first_held; /* behind the last copy */
    bool stale;
} copy;

typedef struct replica {
    pc__leaf_set set; /* first: what a walk sees */
    pc_module *module;
    pc_device device;
    copy *copies; /* of parameters and buffers */
    int count, room;
} replica;

struct pc_data_parallel {
    replica *replica;
    int count;
};

static pc_status begin(pc__leaf_set *set)
{
    replica *r = (replica *)set;
    for (int i = 0; i < r->count; i++)
        r->copies[i].watch.awaited = 0;
    return PC_OK;
}

static pc_status ready(pc__leaf_set *set, pc__leaf_watch *watch)
{
    const copy *c = &((replica *)set)->copies[watch->number];
    pc_status status = PC_OK;
    if (!c->own->grad)
        return PC_OK;
    if (pc_requires_grad(c->first)) /* it may have been frozen since it was used */
        PC_SCOPE {
            pc_tensor *moved = pc_to(c->own->grad, pc_tensor_device(c->first), (pc_dtype)c->own->dtype, true);
            status = moved ? pc__leaf_adds(c->first, moved, true) : pc_error_last()->status;
        }
    pc_zero_grad(c->own);
    return status;
}

static pc_status end(pc__leaf_set *set)
{
    (void)set;
    return PC_OK;
}

static pc_status take(void *context, const char *name, pc__named *tensor)
{
    replica *r = context;
    (void)name;
    PC__TRY(pc__grow((void **)&r->copies, &r->room, r->count, sizeof *r->copies));
    r->copies[r->count++] = (copy){.own = pc_tensor_retain(tensor->object)};
    return PC_OK;
}

typedef struct pairing {
    replica *r;
    int next;
} pairing;

static pc_status pair(void *context, const char *name, pc__named *tensor)
{
    pairing *p = context;
    pc_tensor *first = tensor->object;
    if (p->next == p->r->count || !pc__same_shape(p->r->copies[p->next].own, first) ||
        p->r->copies[p->next].own->dtype != first->dtype)
        return pc__fail(PC_ERR_ARGUMENT, "pc_data_parallel_new: a replica has nothing like %s, %s %s, of the first one",
                        name, pc_dtype_name((pc_dtype)first->dtype), PC__SHAPE_OF(first));
    p->r->copies[p->next++].first = pc_tensor_retain(first);
    return PC_OK;
}

static pc_status device_of(pc_module *module, pc_device *device)
{
    pc_parameter one;
    const int count = pc_module_parameter_list(module, &one, 1);
    if (count < 0)
        return pc_error_last()->status;
    if (!count)
        return pc__fail(PC_ERR_ARGUMENT, "pc_data_parallel_new: a replica has no parameters");
    *device = pc_tensor_device(one.tensor);
    return PC_OK;
}

/* The first has nothing to pair. */
static pc_status prepare(pc_data_parallel *p, int i)
{
    replica *r = &p->replica[i];
    PC__NEED(r->module);
    PC__TRY(device_of(r->module, &r->device));
    r->set = (pc__leaf_set){.begin = begin, .ready = ready, .end = end};
    if (!i)
        return PC_OK;
    pairing all = {.r = r};
    PC__TRY(pc__module_each_state(r->module, take, r));
    PC__TRY(pc__module_visit_state(p->replica[0].module, pair, &all));
    if (all.next < r->count)
        return pc__fail(PC_ERR_ARGUMENT, "pc_data_parallel_new: replica %d has more tensors than the first", i);
    for (int k = 0; k < r->count; k++) {
        copy *c = &r->copies[k];
        c->watch = (pc__leaf_watch){.set = &r->set, .number = k};
        if (pc_requires_grad(c->own))
            c->own->watch = &c->watch;
    }
    return PC_OK;
}

pc_data_parallel *pc_data_parallel_new(pc_module *const *replicas, int count)
{
    PC__NEED_OR(NULL, replicas);
    if (count < 1)
        return pc__null(PC_ERR_ARGUMENT, "pc_data_parallel_new: %d replicas; there is one at least", count);
    pc_data_parallel *p = pc__calloc(1, sizeof *p);
    if (p)
        p->replica = pc__calloc((size_t)count, sizeof *p->replica);
    pc_status status = p && p->replica ? PC_OK : PC_ERR_MEMORY;
    for (int i = 0; i < count && status == PC_OK; i++) {
        p->count = i + 1;
        p->replica[i].module = replicas[i];
        status = prepare(p, i);
    }
    if (status == PC_OK)
        return p;
    pc_data_parallel_free(p);
    return NULL;
}

static void free_copies(replica *r)
{
    for (int i = 0; i < r->count; i++) {
        copy *c = &r->copies[i];
        if (c->own->watch == &c->watch)
            c->own->watch = NULL;
        pc_tensor_free(c->own);
        pc_tensor_free(c->first);
        pc__storage_drop(c->own_held.storage);
        pc__storage_drop(c->first_held.storage);
    }
    pc__free(r->copies);
}

void pc_data_parallel_free(pc_data_parallel *parallel)
{
    if (!parallel)
        return;
    for (int i = 0; i < parallel->count; i++)
        free_copies(&parallel->replica[i]);
    pc__free(parallel->replica);
    pc__free(parallel);
}

static contents contents_of(const pc_tensor *t)
{
    const pc_graph *graph = pc__graph_here(t->storage->device);
    return (contents){t->storage, atomic_load(&t->storage->version), graph ? graph->number : 0};
}

static bool holds_still(const contents *then, const pc_tensor *t)
{
    const contents now = contents_of(t);
    return now.storage == then->storage && now.version == then->version && now.recording == then->recording &&
           !pc__storage_is_open(t->storage) && !(pc__ever_failed() && pc__storage_failure(t->storage));
}

static void note(contents *held, const pc_tensor *t)
{
    pc__storage *before = held->storage;
    pc__storage_retain(t->storage);
    *held = contents_of(t);
    pc__storage_drop(before);
}

/* It collects gradients where the first one does now. */
static pc_status look_at(copy *c)
{
    const bool trained = pc_requires_grad(c->first);
    PC__TRY(pc_require_grad(c->own, trained));
    if (trained)
        c->own->watch = &c->watch;
    c->stale = !holds_still(&c->own_held, c->own) || !holds_still(&c->first_held, c->first);
    return PC_OK;
}

/* What is the same already is not written: an earlier forward pass may wait for its backward pass, which needs the numbers
 * that it saw. Some may lie in one storage, so all are looked at in front of the first copy and behind the last. */
static pc_status renew_all(const replica *r)
{
    for (int k = 0; k < r->count; k++)
        PC__TRY(look_at(&r->copies[k]));
    for (int k = 0; k < r->count; k++)
        if (r->copies[k].stale)
            PC__TRY(pc_copy(r->copies[k].own, r->copies[k].first));
    for (int k = 0; k < r->count; k++) {
        note(&r->copies[k].own_held, r->copies[k].own);
        note(&r->copies[k].first_held, r->copies[k].first);
    }
    return PC_OK;
}

static pc_status renew(const pc_data_parallel *p, int i)
{
    const replica *r = &p->replica[i];
    pc_status status = PC_OK;
    pc__module_set_modes(r->module, p->replica[0].module);
    PC_NO_GRAD {
        status = renew_all(r);
    }
    return status;
}

/* Piece i of `size` samples through replica i, back on the first device. */
static pc_tensor *run_piece(const pc_data_parallel *p, pc_tensor *x, int i, int64_t size)
{
    const int64_t end = PC__MIN((i + 1) * size, pc_tensor_size(x, 0));
    pc_tensor *piece = pc_slice(x, 0, i * size, end, 1);
    if (i && renew(p, i) != PC_OK)
        return NULL;
    pc_tensor *y = pc_forward(p->replica[i].module, pc_to(piece, p->replica[i].device, pc_tensor_dtype(x), true));
    return pc_to(y, p->replica[0].device, pc_tensor_dtype(y), true);
}

pc_tensor *pc_data_parallel_forward(pc_data_parallel *parallel, pc_tensor *x)
{
    PC__NEED_OR(NULL, parallel);
    PC__NEED_OR(NULL, x);
    if (!pc_tensor_ndim(x))
        return pc__null(PC_ERR_SHAPE, "pc_data_parallel_forward: x has no dimension to cut; the first is the batch");
    const int64_t n = pc_tensor_size(x, 0), size = PC__MAX((n + parallel->count - 1) / parallel->count, 1);
    const int pieces = (int)PC__MAX((n + size - 1) / size, 1);
    pc_tensor *result = NULL, **made = pc__calloc((size_t)pieces, sizeof(pc_tensor *));
    if (!made)
        return NULL;
    PC_SCOPE {
        bool fine = true;
        for (int i = 0; i < pieces && fine; i++)
            fine = (made[i] = run_piece(parallel, x, i, size)) != NULL;
        result = fine ? pc_keep(pieces > 1 ? pc_cat(made, pieces, 0) : made[0]) : NULL;
    }
    pc__free(made);
    return result;
}

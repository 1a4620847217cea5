/* tape.c: making and dropping records. */
#include "autograd/tape.h"

#include "ops/table.h"
#include "tensor/node.h"

static atomic_uint_fast64_t last_sequence;

static void *take(char **at, size_t bytes)
{
    void *here = *at;
    *at += (bytes + 15) & ~(size_t)15;
    return here;
}

/* One block holds the record and its arrays. */
static pc__node *node_new(const pc_call *call)
{
    size_t n = (size_t)call->n_in;
    size_t bytes = sizeof(pc__node) + n * (sizeof(pc__edge) + sizeof(pc__saved) + sizeof(pc__meta)) +
                   call->attribute_bytes + 16 * 5;
    char *at = pc__alloc(bytes);
    if (!at)
        return NULL;
    pc__node *node = take(&at, sizeof *node);
    memset(node, 0, sizeof *node);
    node->edges = take(&at, n * sizeof *node->edges);
    node->saved_in = take(&at, n * sizeof *node->saved_in);
    node->in_meta = take(&at, n * sizeof *node->in_meta);
    node->attributes = take(&at, call->attribute_bytes);
    memset(node->edges, 0, n * sizeof *node->edges);
    memset(node->saved_in, 0, n * sizeof *node->saved_in);
    if (call->attribute_bytes)
        memcpy(node->attributes, call->attributes, call->attribute_bytes);
    atomic_init(&node->references, 1);
    node->sequence = atomic_fetch_add_explicit(&last_sequence, 1, memory_order_relaxed) + 1;
    node->op = call->op;
    node->n_in = call->n_in;
    node->n_out = call->n_out;
    node->device = call->out[0]->storage->device;
    return node;
}

static unsigned version_of(const pc_tensor *t)
{
    return atomic_load_explicit(&t->storage->version, memory_order_relaxed);
}

static bool saves_input(const pc_call *call, int i)
{
    if (call->op->flags & PC__SAVE_CROSS && i < 2 && call->n_in > 1 && call->in[1 - i]->requires_grad)
        return true;
    return i < 8 && (call->op->flags & ((unsigned)PC__SAVE_IN0 << i));
}

static void save_inputs(pc__node *node, const pc_call *call)
{
    for (int i = 0; i < call->n_in; i++) {
        pc_tensor *t = call->in[i];
        pc__meta_of(&node->in_meta[i], t);
        node->in_meta[i].view_of = NULL;
        if (saves_input(call, i))
            node->saved_in[i] = (pc__saved){pc_tensor_retain(t), version_of(t)};
        if (!t->requires_grad)
            continue;
        if (t->node) {
            atomic_fetch_add_explicit(&t->node->references, 1, memory_order_relaxed);
            node->edges[i] = (pc__edge){.node = t->node, .output = t->output};
        } else {
            node->edges[i].leaf = pc_tensor_retain(t);
        }
    }
}

/* Outputs are saved as aliases without history: the record must not own what owns the record. */
static pc_status save_outputs(pc__node *node, const pc_call *call)
{
    for (int i = 0; i < call->n_out; i++) {
        pc__meta meta;
        pc__meta_of(&meta, call->out[i]);
        node->out_meta[i] = meta;
        node->out_meta[i].view_of = NULL;
        if (!(call->op->flags & (PC__SAVE_OUT0 << i)))
            continue;
        node->saved_out[i].tensor = pc__tensor_unscoped(&meta, node->device);
        node->saved_out[i].version = version_of(call->out[i]);
        if (!node->saved_out[i].tensor)
            return PC_ERR_MEMORY;
    }
    return PC_OK;
}

pc_status pc__tape_record(const pc_call *call)
{
    if (call->op->gradient == pc__no_gradient)
        return PC_OK;
    pc__node *node = node_new(call);
    if (!node)
        return PC_ERR_MEMORY;
    save_inputs(node, call);
    pc_status status = save_outputs(node, call);
    for (int i = 0; i < call->n_out && status == PC_OK; i++) {
        pc_tensor *t = call->out[i];
        if (!pc__is_float(t->dtype))
            continue;
        t->requires_grad = true;
        t->output = (uint8_t)i;
        t->node = node;
        atomic_fetch_add_explicit(&node->references, 1, memory_order_relaxed);
    }
    pc__node_drop(node);
    return status;
}

void pc__node_share(pc__node *node)
{
    if (node)
        node->shared = true;
}

void pc__node_clear(pc__node *node)
{
    for (int i = 0; i < node->n_out; i++) {
        pc_tensor_free(node->pending[i]);
        node->pending[i] = NULL;
    }
}

void pc__node_release(pc__node *node)
{
    node->released = true;
    for (int i = 0; i < node->n_in; i++) {
        pc_tensor_free(node->saved_in[i].tensor);
        pc_tensor_free(node->edges[i].leaf);
        pc__node_drop(node->edges[i].node);
        node->saved_in[i].tensor = NULL;
        node->edges[i] = (pc__edge){0};
    }
    for (int i = 0; i < node->n_out; i++) {
        pc_tensor_free(node->saved_out[i].tensor);
        node->saved_out[i].tensor = NULL;
    }
    pc__node_clear(node);
}

/* Dead records wait in a list, so that a chain of a million calls is dropped in a loop and not in a recursion. */
static _Thread_local pc__node *dead;
static _Thread_local bool burying;

void pc__node_drop(pc__node *node)
{
    if (!node || atomic_fetch_sub_explicit(&node->references, 1, memory_order_acq_rel) != 1)
        return;
    node->next_dead = dead;
    dead = node;
    if (burying)
        return;
    burying = true;
    while (dead) {
        pc__node *next = dead;
        dead = next->next_dead;
        pc__node_release(next);
        pc__free(next);
    }
    burying = false;
}

const char *pc__node_name(const pc__node *node)
{
    return node->op->name;
}

/* leaf_casts.c: gradients of parameters that were cast. A forward pass casts its parameters first, so the walk comes to
 * those casts last, one behind the other: what they have to turn into float32 is one kernel. */
#include "autograd/tape.h"

#include "ops/cast_many.h"
#include "ops/table.h"

static bool is_leaf_cast(const pc__node *node)
{
    return node->op->gradient == pc__grad_cast && node->edges[0].leaf;
}

/* True where a gradient of 16 bits comes to a leaf of float32. */
static bool is_widened(const pc__node *node)
{
    const pc_tensor *g = node->pending[0];
    return g && pc__is_half((pc_dtype)g->dtype) && pc__is_contiguous(g) && node->edges[0].leaf->dtype == PC_F32;
}

static bool are_alike(const pc__node *a, const pc__node *b)
{
    return a->pending[0]->dtype == b->pending[0]->dtype && pc_device_equal(a->device, b->device);
}

/* Put the gradients that go with the first one to the front of the list; how many there are. */
static int gather(pc__node *const *nodes, int count, pc__node **list)
{
    int n = 0;
    for (int i = 0; i < count; i++)
        if (is_widened(nodes[i]) && (n == 0 || are_alike(nodes[i], list[0])))
            list[n++] = nodes[i];
    return n;
}

static pc_status widen(pc__node *const *nodes, int n, pc_tensor **tensors)
{
    for (int i = 0; i < n; i++)
        tensors[n + i] = nodes[i]->pending[0];
    pc_status status = PC_OK;
    PC_SCOPE {
        status = pc__cast_many(tensors, n, PC_F32);
        for (int i = 0; i < n && status == PC_OK; i++) {
            nodes[i]->pending[0] = pc_tensor_retain(tensors[i]);
            pc_tensor_free(tensors[n + i]);
        }
    }
    return status;
}

pc_status pc__tape_leaf_casts(pc__node *const *nodes, int count, int *run)
{
    for (*run = 0; *run < count && is_leaf_cast(nodes[*run]); ++*run) {
    }
    if (*run < 2)
        return PC_OK;
    const size_t room = (size_t)*run;
    pc__node **list = pc__alloc(room * sizeof *list);
    pc_tensor **tensors = pc__alloc(2 * room * sizeof *tensors);
    const int n = list && tensors ? gather(nodes, *run, list) : 0;
    pc_status status = !list || !tensors ? PC_ERR_MEMORY : n > 1 ? widen(list, n, tensors) : PC_OK;
    pc__free(tensors);
    pc__free(list);
    return status;
}

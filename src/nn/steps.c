/* steps.c: a network's layers one by one. */
#include "nn/steps.h"

#include "nn/graph.h"
#include "nn/layers.h"

int pc__step_count(const pc_module *net)
{
    const pc__graph_layer *g = pc__layer(net, &pc__graph_class);
    int count = 0;
    if (g)
        return g->count;
    for (int i = 0; i < pc_module_child_count(net); i++)
        count += pc__is_chain(pc_module_child(net, i)) ? pc__step_count(pc_module_child(net, i)) : 1;
    return count;
}

/* *x is what the last one gave. */
static pc_status in_order(pc_module *net, pc_tensor **x, pc__step_fn step, void *context)
{
    for (int i = 0; i < pc_module_child_count(net); i++) {
        pc_module *child = pc_module_child(net, i);
        if (pc__is_chain(child)) {
            PC__TRY(in_order(child, x, step, context));
            continue;
        }
        pc_tensor *y = pc_forward(child, *x);
        PC__TRY(y ? step(context, child, *x, y) : pc_error_last()->status);
        *x = y;
    }
    return PC_OK;
}

static pc_status call(pc_module *net, const pc__graph_node *node, pc_tensor **values, pc_tensor **in, int number,
                      pc__step_fn step, void *context)
{
    const pc__graph_layer *g = pc_module_data(net);
    pc_module *child = pc_module_child(net, node->child);
    for (int k = 0; k < node->count; k++)
        in[k] = values[1 + g->edges[node->first + k]];
    pc_tensor *y = node->count == 1 ? pc_forward(child, in[0]) : g->join(child, in, node->count);
    values[1 + number] = y;
    return y ? step(context, child, in[0], y) : pc_error_last()->status;
}

pc_status pc__each_step(pc_module *net, pc_tensor *x, pc__step_fn step, void *context)
{
    const pc__graph_layer *g = pc__layer(net, &pc__graph_class);
    if (!g)
        return in_order(net, &x, step, context);
    pc_tensor **values = pc__calloc((size_t)g->count + 1, sizeof *values); /* the input is number -1 */
    pc_tensor **in = pc__calloc((size_t)g->edge_count + 1, sizeof *in);
    pc_status status = values && in ? PC_OK : PC_ERR_MEMORY;
    if (values)
        values[0] = x;
    for (int i = 0; i < g->count && status == PC_OK; i++)
        status = call(net, &g->nodes[i], values, in, i, step, context);
    pc__free(values);
    pc__free(in);
    return status;
}

/* graph.c: children run as a graph. Runs of nodes that nothing joins or leaves are run as a Sequential runs its layers,
 * with the same fusions; a result goes when the last node has taken it. */
#include "nn/graph.h"

#include "nn/layers.h"
#include "ops/table.h"

/* A forward pass under way: the result of every node that is still wanted, each with one owner. */
typedef struct passing {
    const pc__graph_layer *graph;
    pc_tensor **values;
    int *left; /* how often a result will still be taken */
} passing;

static int source(const pc__graph_layer *g, int node, int i)
{
    return g->edges[g->nodes[node].first + i];
}

/* Does node i + 1 do nothing but go on with what node i gave, which nobody else takes? */
static bool goes_on(const pc__graph_layer *g, int i)
{
    return i + 1 < g->count && g->nodes[i + 1].count == 1 && source(g, i + 1, 0) == i && g->uses[i] == 1;
}

static pc_tensor *value_of(const passing *p, int node, pc_tensor *x)
{
    return node == PC__GRAPH_INPUT ? x : p->values[node];
}

static void done_with(passing *p, int node)
{
    if (node == PC__GRAPH_INPUT || --p->left[node] > 0)
        return;
    pc_tensor_free(p->values[node]);
    p->values[node] = NULL;
}

static pc_tensor *run_join(const pc_module *module, const passing *p, int node, pc_tensor *x)
{
    const pc__graph_node *at = &p->graph->nodes[node];
    pc_tensor **in = pc__calloc((size_t)at->count, sizeof *in);
    if (!in)
        return NULL;
    for (int i = 0; i < at->count; i++)
        in[i] = value_of(p, source(p->graph, node, i), x);
    pc_tensor *y = p->graph->join(pc_module_child(module, at->child), in, at->count);
    pc__free(in);
    return y;
}

/* From node `first` on as far as the graph is a chain; *last is the node whose result this is, with an owner for it. */
static pc_tensor *run(const pc_module *module, const passing *p, int first, pc_tensor *x, int *steps, int *last)
{
    const pc__graph_layer *g = p->graph;
    int count = 0;
    *last = first;
    for (int i = first; count == 0 || goes_on(g, i - 1); i++) {
        steps[count++] = g->nodes[i].child;
        *last = i;
    }
    pc_tensor *y = NULL;
    PC_SCOPE {
        pc__chain chain = {module, steps, count};
        int at = 0;
        if (g->nodes[first].count > 1)
            y = run_join(module, p, first, x), at = 1;
        else
            y = value_of(p, source(g, first, 0), x);
        while (y && at < count)
            y = pc__chain_run(&chain, at, y, &at);
        if (y)
            (void)pc_tensor_retain(y);
    }
    return y;
}

static pc_tensor *run_all(const pc_module *module, passing *p, pc_tensor *x, int *steps)
{
    const pc__graph_layer *g = p->graph;
    for (int i = 0, last; i < g->count; i = last + 1) {
        pc_tensor *y = run(module, p, i, x, steps, &last);
        if (!y)
            return NULL;
        p->values[last] = y;
        for (int k = 0; k < g->nodes[i].count; k++)
            done_with(p, source(g, i, k));
        if (!p->left[last]) /* nobody wants it */
            p->left[last] = 1, done_with(p, last);
    }
    return pc__share(value_of(p, g->output, x));
}

static pc_tensor *forward(pc_module *module, pc_tensor *x)
{
    const pc__graph_layer *g = pc_module_data(module);
    passing p = {.graph = g,
                 .values = pc__calloc((size_t)g->count + 1, sizeof *p.values),
                 .left = pc__calloc((size_t)g->count + 1, sizeof *p.left)};
    int *steps = pc__calloc((size_t)g->count + 1, sizeof *steps);
    pc_tensor *y = NULL;
    if (p.values && p.left && steps) {
        memcpy(p.left, g->uses, (size_t)g->count * sizeof *p.left);
        y = run_all(module, &p, x, steps);
    }
    for (int i = 0; p.values && i < g->count; i++)
        pc_tensor_free(p.values[i]);
    pc__free(p.values);
    pc__free(p.left);
    pc__free(steps);
    return y;
}

static void destroy(pc_module *module)
{
    pc__graph_layer *g = pc_module_data(module);
    pc__free(g->nodes);
    pc__free(g->edges);
    pc__free(g->uses);
}

const pc_module_class pc__graph_class = {.name = "Graph", .forward = forward, .destroy = destroy};

static void *copy(const void *from, size_t bytes)
{
    void *to = pc__alloc(bytes);
    if (to && bytes)
        memcpy(to, from, bytes);
    return to;
}

pc_module *pc__graph_module_new(const pc__graph_node *nodes, int count, const int *edges, int edge_count, int output,
                                pc__join_fn join)
{
    pc_module *module = pc_module_new(&pc__graph_class, sizeof(pc__graph_layer));
    if (!module)
        return NULL;
    pc__graph_layer *g = pc_module_data(module);
    *g = (pc__graph_layer){.nodes = copy(nodes, (size_t)count * sizeof *nodes),
                           .edges = copy(edges, (size_t)edge_count * sizeof *edges),
                           .count = count,
                           .edge_count = edge_count,
                           .output = output,
                           .uses = pc__calloc((size_t)count + 1, sizeof *g->uses),
                           .join = join};
    if (!g->nodes || !g->edges || !g->uses) {
        pc_module_free(module);
        return NULL;
    }
    for (int i = 0; i < edge_count; i++)
        if (edges[i] >= 0)
            g->uses[edges[i]]++;
    if (output >= 0)
        g->uses[output]++;
    return module;
}

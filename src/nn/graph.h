/* graph.h: a module that runs its children as a graph: joins and branches, and a child more than once. */
#ifndef PC__NN_GRAPH_H
#define PC__NN_GRAPH_H

#include "nn/module.h"

#define PC__GRAPH_INPUT -1 /* in place of a node's number: what goes into the graph */

/* What a child does with several inputs. The result is an owner of its own, as that of pc_module_class.forward. */
typedef pc_tensor *(*pc__join_fn)(pc_module *module, pc_tensor *const *in, int count);

typedef struct pc__graph_node {
    int child;
    int first, count; /* of edges: the nodes that it takes from, all before it */
} pc__graph_node;

typedef struct pc__graph_layer {
    pc__graph_node *nodes;
    int *edges;
    int count, edge_count, output;
    int *uses; /* of each node's result, the output's own among them */
    pc__join_fn join;
} pc__graph_layer;

extern const pc_module_class pc__graph_class;

/* A graph of `count` nodes; `output` is what comes out. Children are added afterwards, in the order that the nodes'
 * numbers mean. Nodes and edges are copied. `join` is called for nodes with several inputs. NULL when out of memory. */
pc_module *pc__graph_module_new(const pc__graph_node *nodes, int count, const int *edges, int edge_count, int output,
                                pc__join_fn join);

#endif

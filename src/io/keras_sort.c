/* keras_sort.c: the layers of a graph in the order that Keras gives them when it reads the file: it takes weights by
 * that order, not by name. Its rule (keras/src/ops/function.py, map_graph): by how far a layer is from the output, the
 * farthest first; among those as far, in the order in which a walk from the output backwards meets them. */
#include "io/keras.h"

typedef struct walk {
    const pc__keras_model *model;
    int *stack, *next; /* nodes under way, and which of their inputs comes next */
    int *order;        /* nodes, each behind those that it takes from */
    int *met;          /* of each layer: when it was met, -1: never */
    bool *seen;        /* of each node */
    int depth, ordered, layers;
} walk;

static void meet(walk *w, int node)
{
    int layer = w->model->nodes[node].layer;
    w->seen[node] = true;
    if (w->met[layer] < 0)
        w->met[layer] = w->layers++;
    w->stack[w->depth] = node;
    w->next[w->depth++] = 0;
}

static void walk_back(walk *w)
{
    const pc__keras_model *m = w->model;
    meet(w, m->output);
    while (w->depth) {
        const pc__keras_node *at = &m->nodes[w->stack[w->depth - 1]];
        int *next = &w->next[w->depth - 1];
        if (*next == at->count) {
            w->order[w->ordered++] = w->stack[--w->depth];
            continue;
        }
        int from = m->edges[at->first + (*next)++];
        if (from >= 0 && !w->seen[from])
            meet(w, from);
    }
}

/* How far each layer is from the output. */
static void measure(const walk *w, int *node_far, int *layer_far)
{
    const pc__keras_model *m = w->model;
    for (int i = w->ordered; i--;) {
        const pc__keras_node *at = &m->nodes[w->order[i]];
        int far = PC__MAX(node_far[w->order[i]], layer_far[at->layer]);
        node_far[w->order[i]] = layer_far[at->layer] = far;
        for (int k = 0; k < at->count; k++) {
            int from = m->edges[at->first + k];
            if (from >= 0)
                node_far[from] = PC__MAX(node_far[from], far + 1);
        }
    }
}

static bool comes_before(const walk *w, const int *far, int a, int b)
{
    return far[a] != far[b] ? far[a] > far[b] : w->met[a] < w->met[b];
}

/* Layers that the output does not need go. `place`: of each old layer its new number, -1: none. */
static pc_status sort_layers(pc__keras_model *m, const walk *w, const int *far, int *place)
{
    int *list = pc__calloc((size_t)m->layer_count + 1, sizeof *list), count = 0;
    pc__keras_layer *sorted = pc__calloc((size_t)m->layer_count + 1, sizeof *sorted);
    if (!list || !sorted) {
        pc__free(list);
        pc__free(sorted);
        return PC_ERR_MEMORY;
    }
    for (int l = 0; l < m->layer_count; l++) {
        place[l] = -1;
        if (w->met[l] < 0) {
            pc__keras_layer_free(&m->layers[l]);
            continue;
        }
        int at = count++;
        for (; at && comes_before(w, far, l, list[at - 1]); at--)
            list[at] = list[at - 1];
        list[at] = l;
    }
    for (int i = 0; i < count; i++) {
        place[list[i]] = i;
        sorted[i] = m->layers[list[i]];
    }
    pc__free(list);
    pc__free(m->layers);
    m->layers = sorted;
    m->layer_count = count;
    m->layer_capacity = count;
    return PC_OK;
}

static pc_status sort_nodes(pc__keras_model *m, const walk *w, const int *place)
{
    pc__keras_node *sorted = pc__calloc((size_t)w->ordered + 1, sizeof *sorted);
    int *number = pc__calloc((size_t)m->node_count + 1, sizeof *number);
    if (sorted && number) {
        for (int i = 0; i < w->ordered; i++) {
            sorted[i] = m->nodes[w->order[i]];
            sorted[i].layer = place[sorted[i].layer];
            number[w->order[i]] = i;
        }
        for (int i = 0; i < w->ordered; i++)
            for (int k = 0; k < sorted[i].count; k++) {
                int *edge = &m->edges[sorted[i].first + k];
                *edge = *edge < 0 ? *edge : number[*edge];
            }
        m->output = number[m->output];
        pc__free(m->nodes);
        m->nodes = sorted;
        m->node_count = m->node_capacity = w->ordered;
    }
    pc__free(number);
    if (m->nodes == sorted)
        return PC_OK;
    pc__free(sorted);
    return PC_ERR_MEMORY;
}

pc_status pc__keras_sort(pc__keras_model *model)
{
    size_t nodes = (size_t)model->node_count + 1, layers = (size_t)model->layer_count + 1;
    if (pc__keras_is_chain(model) || model->output < 0)
        return PC_OK;
    walk w = {.model = model,
              .stack = pc__calloc(nodes, sizeof *w.stack),
              .next = pc__calloc(nodes, sizeof *w.next),
              .order = pc__calloc(nodes, sizeof *w.order),
              .met = pc__calloc(layers, sizeof *w.met),
              .seen = pc__calloc(nodes, sizeof *w.seen)};
    int *node_far = pc__calloc(nodes, sizeof *node_far), *far = pc__calloc(layers, sizeof *far),
        *place = pc__calloc(layers, sizeof *place);
    pc_status status = PC_ERR_MEMORY;
    if (w.stack && w.next && w.order && w.met && w.seen && node_far && far && place) {
        memset(w.met, -1, layers * sizeof *w.met);
        walk_back(&w);
        measure(&w, node_far, far);
        status = sort_layers(model, &w, far, place);
        if (status == PC_OK)
            status = sort_nodes(model, &w, place);
    }
    void *const all[] = {w.stack, w.next, w.order, w.met, w.seen, node_far, far, place};
    for (int i = 0; i < PC__COUNT(all); i++)
        pc__free(all[i]);
    return status;
}

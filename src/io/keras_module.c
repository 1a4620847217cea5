/* keras_module.c: modules from Keras's description: our own layers (nn.h) where these do the same, else what
 * keras_function.h has; a Sequential of them, or a graph. */
#include "io/keras_module.h"

#include "io/keras_function.h"
#include "io/keras_order.h"
#include "nn/graph.h"
#include "ops/activation.h"

#include <paracord/autograd.h>

typedef struct builder {
    const char *path;
    const pc__keras_model *model;
    int *uses;      /* how often each node's result is taken, the model's output counted */
    int *calls;     /* how often each layer is called */
    bool *planes;   /* Flatten nodes that run in our order: the dense layer behind them is put in that order too */
    int last, head; /* nodes: the model's output; the one whose sigmoid or softmax is the file's head, or -1 */
    pc__keras_layer bare; /* the head's layer without it */
    bool *cut;            /* nodes that prepare the picture, and are left out */
} builder;

static pc__keras_flow flow_of(const builder *b, int node)
{
    pc__keras_flow flow = {.rank = node < 0 ? b->model->input_rank : b->model->nodes[node].rank};
    memcpy(flow.shape, node < 0 ? b->model->input_shape : b->model->nodes[node].shape, sizeof flow.shape);
    return flow;
}

static int input_of(const builder *b, int node)
{
    return b->model->edges[b->model->nodes[node].first];
}

static const pc__keras_layer *layer_of(const builder *b, int node)
{
    return node == b->head ? &b->bare : &b->model->layers[b->model->nodes[node].layer];
}

static pc_module *refuse(const builder *b, const pc__keras_layer *layer, const char *why)
{
    return pc__null(PC_ERR_UNSUPPORTED, "%s: layer \"%.60s\" %s", b->path, layer->name, why);
}

/* As one of ours, which have no numbers in them. */
static bool ours(const pc__keras_layer *layer, pc_activation_kind *to)
{
    for (*to = PC_ACTIVATION_NONE; pc__activation_row_of(*to); ++*to)
        if (pc__keras_activation_of(*to) == layer->activation)
            return layer->slope == 0 && layer->limit == 0 && layer->threshold == 0;
    *to = PC_ACTIVATION_NONE;
    return false;
}

/* Padding on each side that does what "same" asks for, and one more below or to the right where it comes out uneven;
 * false when the size that it depends on is open. With stride 1 it depends on none. */
static bool same_padding(const pc__keras_layer *l, pc__keras_flow in, int padding[2], int extra[2])
{
    for (int i = 0; i < 2; i++) {
        padding[i] = extra[i] = 0;
        if (!l->same)
            continue;
        if (in.shape[i] < 1 && l->stride[i] > 1)
            return false;
        pc__same zeros = pc__keras_same(PC__MAX(in.shape[i], 1), l->window[i], 1, l->stride[i]);
        padding[i] = (int)zeros.before;
        extra[i] = (int)(zeros.behind - zeros.before);
    }
    return true;
}

static pc_module *conv2d(builder *b, const pc__keras_layer *l, pc__keras_flow in)
{
    pc_fn_conv2d_options spec = {.stride = {l->stride[0], l->stride[1]}};
    int extra[2];
    bool plain = l->groups <= 1 && l->dilation[0] <= 1 && l->dilation[1] <= 1;
    if (!ours(l, &spec.activation) || !plain || !same_padding(l, in, spec.padding, extra) || l->window[0] > 1024 ||
        l->window[1] > 1024)
        return pc__keras_function_new(l);
    int64_t channels = l->weights[0].shape[2];
    pc_module *module = pc__conv2d_layer_new(channels, l->units, l->window, &spec, !l->use_bias, PC_INIT_GLOROT);
    (void)b;
    if (pc__order_conv(module, l, true) != PC_OK) {
        pc_module_free(module);
        return NULL;
    }
    memcpy(((pc__conv2d_layer *)pc_module_data(module))->extra, extra, sizeof extra);
    return module;
}

/* What a node's input is a flattened picture of, in our order: height, width, channels; all 0: nothing. */
static void flattened(const builder *b, int node, int64_t before[3])
{
    memset(before, 0, 3 * sizeof *before);
    for (int at = input_of(b, node); at >= 0 && b->model->nodes[at].count == 1; at = input_of(b, at)) {
        if (b->planes[at]) {
            memcpy(before, flow_of(b, input_of(b, at)).shape, 3 * sizeof *before);
            return;
        }
        if (layer_of(b, at)->kind != PC__KERAS_DROPOUT && layer_of(b, at)->kind != PC__KERAS_ACTIVATION)
            return;
    }
}

static pc_module *dense(const builder *b, const pc__keras_layer *l, int node, pc__keras_flow in)
{
    pc_linear_options options = {.no_bias = !l->use_bias, .init = PC_INIT_GLOROT};
    int64_t before[3];
    if (!ours(l, &options.activation) || in.rank > 2)
        return pc__keras_function_new(l);
    flattened(b, node, before);
    pc_module *module = pc_linear_new(l->weights[0].shape[0], l->units, options);
    if (pc__order_dense(module, l, before, true) == PC_OK)
        return module;
    pc_module_free(module);
    return NULL;
}

static pc_module *pool(const builder *b, const pc__keras_layer *l, pc__keras_flow in)
{
    pc_fn_pool2d_options spec = {.kernel = {l->window[0], l->window[1]}, .stride = {l->stride[0], l->stride[1]}};
    bool average = l->kind == PC__KERAS_AVG_POOL2D;
    int extra[2];
    if (!same_padding(l, in, spec.padding, extra))
        return refuse(b, l, "has the padding \"same\", which needs a picture size that the file leaves open");
    pc_module *module = pc__pool2d_layer_new(average ? &pc__avg_pool2d_class : &pc__max_pool2d_class, &spec);
    if (module) {
        pc__pool2d_layer *layer = pc_module_data(module);
        memcpy(layer->extra, extra, sizeof extra);
        layer->exclude_padding = average && l->same;
    }
    return module;
}

static pc_module *activation(const pc__keras_layer *l)
{
    pc_activation_kind kind;
    return ours(l, &kind) ? pc_activation(kind) : pc__keras_function_new(l);
}

static pc_module *plain(builder *b, int node)
{
    const pc__keras_layer *l = layer_of(b, node);
    pc__keras_flow in = flow_of(b, input_of(b, node));
    switch (l->kind) {
    case PC__KERAS_CONV2D:
        return conv2d(b, l, in);
    case PC__KERAS_DENSE:
        return dense(b, l, node, in);
    case PC__KERAS_MAX_POOL2D:
    case PC__KERAS_AVG_POOL2D:
        return pool(b, l, in);
    case PC__KERAS_FLATTEN:
        return b->planes[node] ? pc_flatten() : pc__keras_function_new(l);
    case PC__KERAS_DROPOUT:
        return pc_dropout(l->rate);
    case PC__KERAS_ACTIVATION:
        return activation(l);
    default:
        return pc__keras_function_new(l);
    }
}

/* trainable: false */
static pc_module *build(builder *b, int node)
{
    pc_module *module = plain(b, node);
    pc_status status = PC_OK;
    for (int i = 0; module && layer_of(b, node)->frozen && i < module->parameter_count && status == PC_OK; i++)
        status = pc_require_grad(module->parameters[i].object, false);
    if (status == PC_OK)
        return module;
    pc_module_free(module);
    return NULL;
}

/* ---- the model's ends */

/* The final sigmoid or softmax goes: losses take logits. */
static void behead(builder *b, pc_keras_head *head)
{
    const pc__keras_layer *l = b->last >= 0 ? layer_of(b, b->last) : NULL;
    *head = PC_KERAS_LOGITS;
    b->head = -1;
    if (!l || b->uses[b->last] != 1 || b->calls[b->model->nodes[b->last].layer] != 1)
        return;
    bool carries = l->kind == PC__KERAS_DENSE || l->kind == PC__KERAS_ACTIVATION;
    if (!carries || (l->activation != PC__KERAS_SIGMOID && l->activation != PC__KERAS_SOFTMAX))
        return;
    *head = l->activation == PC__KERAS_SIGMOID ? PC_KERAS_SIGMOID : PC_KERAS_SOFTMAX;
    b->bare = *l;
    b->bare.activation = PC__KERAS_LINEAR;
    b->head = b->last;
    if (l->kind == PC__KERAS_ACTIVATION)
        b->last = input_of(b, b->last);
}

/* Which Flatten's result goes to one dense layer alone, through nothing that minds the order. */
static void find_planes(builder *b)
{
    const pc__keras_model *m = b->model;
    for (int i = 0; i < m->node_count; i++) {
        pc__keras_flow in = flow_of(b, input_of(b, i));
        bool fits = layer_of(b, i)->kind == PC__KERAS_FLATTEN && in.rank == 3 && b->calls[m->nodes[i].layer] == 1 &&
                    in.shape[0] > 0 && in.shape[1] > 0 && in.shape[2] > 0;
        int at = i;
        for (bool moved = true; fits && moved;) {
            moved = false;
            for (int k = at + 1; k < m->node_count && !moved; k++)
                if (m->nodes[k].count == 1 && input_of(b, k) == at)
                    at = k, moved = true;
            pc_activation_kind kind;
            const pc__keras_layer *l = layer_of(b, at);
            bool passes = l->kind == PC__KERAS_DROPOUT || (l->kind == PC__KERAS_ACTIVATION && ours(l, &kind));
            fits = moved && b->uses[input_of(b, at)] == 1 && b->calls[m->nodes[at].layer] == 1 &&
                   (passes || (l->kind == PC__KERAS_DENSE && ours(l, &kind)));
            if (fits && !passes) {
                b->planes[i] = true;
                break;
            }
        }
    }
}

/* ---- putting it together */

static pc_module *chain(builder *b, int from)
{
    int count = 0;
    pc_module **children = pc__calloc((size_t)b->model->node_count, sizeof *children), *module = NULL;
    if (!children)
        return NULL;
    bool good = true;
    for (int i = from; i <= b->last && good; i++) {
        children[count] = build(b, i);
        good = children[count] != NULL;
        count += good;
    }
    if (good && count)
        module = pc_sequential_new(children, count);
    for (int i = 0; i < count && !good; i++)
        pc_module_free(children[i]);
    pc__free(children);
    return module;
}

/* A child's name is its layer's, where that is one. */
static pc_status add_child(pc_module *module, const pc__keras_layer *layer, int number, pc_module *child)
{
    char name[PC__NAME_MAX];
    bool fits = layer->name[0] && strlen(layer->name) < sizeof name && !strchr(layer->name, '.');
    for (int i = 0; i < module->child_count && fits; i++)
        fits = strcmp(module->children[i].name, layer->name) != 0;
    if (fits)
        snprintf(name, sizeof name, "%.*s", (int)sizeof name - 1, layer->name);
    else
        snprintf(name, sizeof name, "layer-%d", number);
    return pc_module_add_child(module, name, child);
}

/* Numbers of the nodes that the graph has; -1 for those that are cut away. */
typedef struct graph_plan {
    pc__graph_node *nodes;
    int *edges, *number, *child; /* child: of each layer */
    int count, edge_count, children;
} graph_plan;

static bool is_cut(const builder *b, int node)
{
    return b->cut[node] || (node == b->head && node != b->last);
}

static void plan_graph(const builder *b, graph_plan *p)
{
    const pc__keras_model *m = b->model;
    for (int l = 0; l < m->layer_count; l++)
        p->child[l] = -1;
    for (int i = 0; i < m->node_count; i++)
        if (!is_cut(b, i))
            p->child[m->nodes[i].layer] = 0;
    for (int l = 0; l < m->layer_count; l++)
        if (p->child[l] == 0)
            p->child[l] = p->children++;
    for (int i = 0; i < m->node_count; i++) {
        p->number[i] = PC__GRAPH_INPUT;
        if (is_cut(b, i))
            continue;
        p->number[i] = p->count;
        p->nodes[p->count++] = (pc__graph_node){p->child[m->nodes[i].layer], p->edge_count, m->nodes[i].count};
        for (int k = 0; k < m->nodes[i].count; k++) {
            int from = m->edges[m->nodes[i].first + k];
            p->edges[p->edge_count++] = from < 0 ? PC__GRAPH_INPUT : p->number[from];
        }
    }
}

/* Children in the order of the layers, so that parameters come in Keras's order. */
static pc_status add_children(builder *b, const graph_plan *p, pc_module *module)
{
    const pc__keras_model *m = b->model;
    for (int l = 0; l < m->layer_count; l++) {
        int node = 0;
        while (p->child[l] >= 0 && m->nodes[node].layer != l)
            node++;
        if (p->child[l] >= 0)
            PC__TRY(add_child(module, &m->layers[l], l, build(b, node)));
    }
    return PC_OK;
}

static pc_module *graph(builder *b)
{
    const pc__keras_model *m = b->model;
    size_t nodes = (size_t)m->node_count + 1, layers = (size_t)m->layer_count + 1;
    graph_plan p = {.nodes = pc__calloc(nodes, sizeof *p.nodes),
                    .edges = pc__calloc((size_t)m->edge_count + 1, sizeof *p.edges),
                    .number = pc__calloc(nodes, sizeof *p.number),
                    .child = pc__calloc(layers, sizeof *p.child)};
    pc_module *module = NULL;
    if (p.nodes && p.edges && p.number && p.child) {
        plan_graph(b, &p);
        int output = b->last < 0 ? PC__GRAPH_INPUT : p.number[b->last];
        module = pc__graph_module_new(p.nodes, p.count, p.edges, p.edge_count, output, pc__keras_function_join);
    }
    if (module && add_children(b, &p, module) != PC_OK) {
        pc_module_free(module);
        module = NULL;
    }
    pc__free(p.nodes);
    pc__free(p.edges);
    pc__free(p.number);
    pc__free(p.child);
    return module;
}

static pc_module *build_all(builder *b, pc_keras_head *head, bool whole, pc__keras_front *front)
{
    const pc__keras_model *m = b->model;
    for (int i = 0; i < m->edge_count; i++)
        if (m->edges[i] >= 0)
            b->uses[m->edges[i]]++;
    for (int i = 0; i < m->node_count; i++)
        b->calls[m->nodes[i].layer]++;
    b->uses[m->output]++;
    behead(b, head);
    find_planes(b);
    if (pc__keras_front_find(m, b->last, whole, b->cut, front) != PC_OK)
        return NULL;
    if (b->last < 0)
        return pc__null(PC_ERR_FORMAT, "%s: the model has no layers", b->path);
    return pc__keras_is_chain(m) ? chain(b, front->cut) : graph(b);
}

pc_module *pc__module_from_keras(const pc__keras_model *model, const char *path, pc_keras_head *head, bool whole,
                                 pc__keras_front *front)
{
    *head = PC_KERAS_LOGITS;
    *front = (pc__keras_front){.cut = 0};
    if (!model->node_count)
        return pc__null(PC_ERR_FORMAT, "%s: the model has no layers", path);
    builder b = {.path = path,
                 .model = model,
                 .last = model->output,
                 .head = -1,
                 .uses = pc__calloc((size_t)model->node_count, sizeof *b.uses),
                 .calls = pc__calloc((size_t)model->layer_count, sizeof *b.calls),
                 .planes = pc__calloc((size_t)model->node_count, sizeof *b.planes),
                 .cut = pc__calloc((size_t)model->node_count, sizeof *b.cut)};
    pc_module *module = b.uses && b.calls && b.planes && b.cut ? build_all(&b, head, whole, front) : NULL;
    pc__free(b.uses);
    pc__free(b.calls);
    pc__free(b.planes);
    pc__free(b.cut);
    return module;
}

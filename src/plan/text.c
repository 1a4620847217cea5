/* text.c: a plan in words: a line for each node, those that passes took out among them, and what memory it needs. */
#include "plan/plan.h"

#include "device/workspace.h"
#include "ops/number.h"
#include "ops/region_of.h"

#include <paracord/tensor.h>

static void add_name(pc__text *text, const pc__plan *plan, int number)
{
    static const char letter[] = {[PC__PLACE_BEFORE] = 'x',
                                  [PC__PLACE_KEPT] = 'k',
                                  [PC__PLACE_SHADOW] = 's',
                                  [PC__PLACE_TEMPORARY] = 't',
                                  [PC__PLACE_NONE] = 'x'};
    pc__text_add(text, " %c%d", letter[plan->storage[number].place], number);
}

static void add_names(pc__text *text, const pc__plan *plan, const pc__plan_node *node, bool written)
{
    for (int i = 0; i < pc__node_uses(node); i++)
        if (pc__node_writes(node, i) == written)
            add_name(text, plan, node->number[i]);
}

static void add_what(pc__text *text, const pc__plan *plan, const pc__plan_node *node)
{
    if (node->kind == PC__NODE_WAIT) {
        pc__text_add(text, "wait for stream %u", node->other_id);
        return;
    }
    pc__text_add(text, "%s", node->kind == PC__NODE_CALL ? node->call->op->name : node->work.name);
    if (node->kind == PC__NODE_FUNCTION)
        return;
    const pc__number *number = node->kind == PC__NODE_CALL ? pc__number_of(node->call) : NULL;
    if (number && number->first)
        pc__text_add(text, " %g", number->value);
    add_names(text, plan, node, false);
    if (!number && node->kind == PC__NODE_CALL)
        number = pc__parameter_of(node->call);
    if (number && !number->first)
        pc__text_add(text, " %g", number->value);
    pc__text_add(text, " ->");
    add_names(text, plan, node, true);
    if (node->kind == PC__NODE_COPY)
        pc__text_add(text, ", %zu bytes", node->bytes);
    else if (pc__node_uses(node)) {
        const pc_tensor *t = pc__call_tensor(node->call, node->call->n_out ? node->call->n_in : 0);
        pc__text_add(text, ", %s %s", pc_dtype_name((pc_dtype)t->dtype), PC__SHAPE_OF(t));
        if (t->ndim == 2 && t->strides[1] == 1 && t->strides[0] > t->shape[1])
            pc__text_add(text, " in rows of %lld", (long long)t->strides[0]);
        if (node->kind == PC__NODE_CALL)
            pc__region_add_steps(text, node->call);
    }
}

static void add_node(pc__text *text, const pc__plan *plan, int i)
{
    const pc__plan_node *node = &plan->node[i];
    char site[PC__SITE_TEXT];
    pc__text_add(text, node->gone ? "%5d  -  " : "%5d     ", i + 1);
    add_what(text, plan, node);
    if (node->gone)
        pc__text_add(text, "; taken out: %s", pc__pass_name(node->gone));
    else if (node->note)
        pc__text_add(text, "; %s", node->note);
    if (node->early)
        pc__text_add(text, "; begun early");
    if (node->aside)
        pc__text_add(text, "; aside, run %d", node->aside);
    if (node->meets)
        pc__text_add(text, "; behind run %d", node->meets);
    pc__text_add(text, "  (%s)\n", pc__site_text(node->work.site, site));
}

static size_t bytes_of(const pc__plan *plan, pc__plan_place place)
{
    size_t bytes = 0;
    for (int i = 0; i < plan->storages; i++)
        if (plan->storage[i].place == place && plan->storage[i].used)
            bytes += plan->storage[i].bytes;
    return bytes;
}

static int count_gone(const pc__plan *plan, pc__pass pass)
{
    int n = 0;
    for (int i = 0; i < plan->count; i++)
        n += plan->node[i].gone == pass;
    return n;
}

static void add_counts(pc__text *text, const pc__plan *plan)
{
    static const char *const names[PC__PASSES] = {
        [PC__PASS_DUPLICATES] = "duplicates", [PC__PASS_DEAD] = "dead",
        [PC__PASS_SHADOWS] = "into shadows",  [PC__PASS_EPILOGUES] = "into epilogues",
        [PC__PASS_GELU] = "with gelu",        [PC__PASS_NORMS] = "into norms",
        [PC__PASS_COPIES] = "copies",         [PC__PASS_PLACES] = "into places",
        [PC__PASS_REGIONS] = "into regions",  [PC__PASS_CASTS] = "into lists of casts",
        [PC__PASS_LOSSES] = "losses"};
    const char *between = "taken out:";
    pc__text_add(text, "  %d nodes recorded, %d run; ", plan->count, count_gone(plan, PC__PASS_NONE));
    for (int i = 0; i < PC__PASSES; i++)
        if (names[i]) {
            pc__text_add(text, "%s %d %s", between, count_gone(plan, (pc__pass)i), names[i]);
            between = ",";
        }
    pc__text_add(text, "\n");
}

static void add_plan(pc__text *text, const pc_graph *graph, const pc__plan *plan)
{
    add_counts(text, plan);
    pc__text_add(
        text,
        "  memory: temporaries (t) of %zu bytes in %zu, kept (k) %zu bytes, shadows (s) %zu, used from before (x) "
        "%zu, workspaces %zu\n",
        bytes_of(plan, PC__PLACE_TEMPORARY), graph->arena ? graph->arena->bytes : (size_t)0,
        bytes_of(plan, PC__PLACE_KEPT), bytes_of(plan, PC__PLACE_SHADOW), bytes_of(plan, PC__PLACE_BEFORE),
        pc__graph_workspaces(graph));
    for (int i = 0; i < plan->count; i++)
        add_node(text, plan, i);
}

char *pc__plan_text(const pc_graph *graph)
{
    pc__text text = {0};
    char device[PC_DEVICE_NAME_MAX];
    pc__text_add(&text, "plan of recording %llu on %s\n", (unsigned long long)graph->number,
                 pc_device_name(graph->device, device));
    if (graph->plan && graph->plan->storage)
        add_plan(&text, graph, graph->plan);
    if (text.failed)
        pc__text_free(&text);
    return text.data;
}

char *pc_graph_text(const pc_graph *graph)
{
    PC__NEED_OR(NULL, graph);
    return pc__plan_text(graph);
}

int64_t pc_graph_memory(const pc_graph *graph)
{
    PC__NEED_OR(0, graph);
    const pc__plan *plan = graph->plan;
    if (!plan || !plan->storage)
        return 0;
    return (int64_t)(bytes_of(plan, PC__PLACE_KEPT) +
                     bytes_of(plan, PC__PLACE_SHADOW) + /* without a cache temporaries have blocks of their own */
                     (graph->arena ? graph->arena->bytes : bytes_of(plan, PC__PLACE_TEMPORARY)) +
                     pc__graph_workspaces(graph));
}

/* list.c: work is appended to a plan as it is recorded. */
#include "plan/plan.h"

#include "ops/again.h"
#include "tensor/freeze.h"

int pc__node_uses(const pc__plan_node *node)
{
    return node->kind == PC__NODE_CALL ? node->call->n_in + node->call->n_out : node->kind == PC__NODE_COPY ? 2 : 0;
}

pc__storage *pc__node_storage(const pc__plan_node *node, int i)
{
    return node->kind == PC__NODE_CALL ? pc__call_tensor(node->call, i)->storage
           : i                         ? node->to.storage
                                       : node->from.storage;
}

bool pc__node_writes(const pc__plan_node *node, int i)
{
    return node->kind == PC__NODE_CALL ? pc__call_writes(node->call, i) : i == 1;
}

bool pc__node_renews(const pc__plan_node *node, int i)
{
    if (node->kind == PC__NODE_COPY)
        return i == 1 && node->to.offset == 0 && node->bytes == node->to.storage->bytes;
    return pc__call_renews(node->call, i);
}

void pc__node_rename(const pc__plan *plan, pc__plan_node *node, int i, int number)
{
    node->number[i] = number;
    if (node->kind == PC__NODE_CALL)
        pc__call_tensor(node->call, i)->storage = plan->storage[number].storage;
    else
        *(i ? &node->to.storage : &node->from.storage) = plan->storage[number].storage;
}

void pc__plan_node_drop(pc__plan_node *node)
{
    pc__free(node->call);
    pc__free(node->number);
}

bool pc__node_become(pc__plan_node *node, const pc_call *call, const int *number, pc__kernel kernel)
{
    const size_t bytes = (size_t)(call->n_in + call->n_out) * sizeof *number;
    pc_call *made = pc__call_copy(call);
    int *numbers = pc__alloc(bytes);
    if (!made || !numbers) {
        pc__free(made);
        pc__free(numbers);
        pc_error_clear(); /* the plan is right as it is */
        return false;
    }
    memcpy(numbers, number, bytes);
    pc__plan_node_drop(node);
    node->call = made;
    node->number = numbers;
    node->kernel = kernel;
    node->work.name = call->op->name;
    return true;
}

void pc__plan_free(pc__plan *plan)
{
    if (!plan)
        return;
    for (int i = 0; i < plan->count; i++)
        pc__plan_node_drop(&plan->node[i]);
    for (int i = 0; i < plan->storages; i++)
        if (plan->storage[i].place == PC__PLACE_TEMPORARY)
            pc__storage_drop(plan->storage[i].storage);
    for (int i = 0; i < plan->shadows; i++)
        pc__shadow_let_go(plan->shadow[i].of);
    pc__free(plan->shadow);
    pc__free(plan->storage);
    pc__free(plan->node);
    pc__free(plan);
}

static pc_status number_storages(const pc_graph *graph, pc__plan_node *node)
{
    const int n = pc__node_uses(node);
    node->number = n ? pc__alloc((size_t)n * sizeof *node->number) : NULL;
    if (n && !node->number)
        return PC_ERR_MEMORY;
    for (int i = 0; i < n; i++)
        node->number[i] = pc__graph_use_of(graph, pc__node_storage(node, i))->number;
    return PC_OK;
}

static pc_status append(pc_graph *graph, pc__plan_node *node)
{
    pc__plan *plan = graph->plan = graph->plan ? graph->plan : pc__calloc(1, sizeof *plan);
    if (!plan)
        return PC_ERR_MEMORY;
    PC__TRY(pc__grow((void **)&plan->node, &plan->room, plan->count, sizeof *plan->node));
    PC__TRY(number_storages(graph, node));
    plan->node[plan->count++] = *node;
    return PC_OK;
}

/* The node's ticket is a place in its stream's queue. */
static pc_status take_place(pc_stream *stream, const pc__work *work)
{
    return stream->backend->immediate ? PC_OK : stream->backend->host_call(stream, NULL, NULL, work);
}

static pc_status add(pc_stream *stream, pc__plan_node *node)
{
    node->stream = stream;
    pc_status status = append(pc__graph_of(stream), node);
    if (status != PC_OK) {
        pc__plan_node_drop(node);
        return status;
    }
    return take_place(stream, &node->work);
}

pc_status pc__plan_call(pc_stream *stream, pc__kernel kernel, const pc_call *call, const pc__work *work)
{
    pc__plan_node node = {.kind = PC__NODE_CALL,
                          .work = *work,
                          .kernel = kernel,
                          .call = pc__call_copy(call),
                          .again = pc__again_number(),
                          .settings = {pc_matmul_precision_get(), pc_choice_get()}};
    return node.call ? add(stream, &node) : PC_ERR_MEMORY;
}

int pc__plan_count(const pc_graph *graph)
{
    return graph->plan ? graph->plan->count : 0;
}

const pc_call *pc__plan_call_at(const pc_graph *graph, int i)
{
    const pc__plan_node *node = &graph->plan->node[i];
    return node->kind == PC__NODE_CALL ? node->call : NULL;
}

pc_status pc__plan_copy(pc_stream *stream, pc__bytes to, pc__bytes from, size_t n, const pc__work *work)
{
    return add(stream, &(pc__plan_node){.kind = PC__NODE_COPY, .work = *work, .to = to, .from = from, .bytes = n});
}

pc_status pc__plan_function(pc_stream *stream, void (*function)(void *context), void *context, const pc__work *work)
{
    return add(stream,
               &(pc__plan_node){.kind = PC__NODE_FUNCTION, .work = *work, .function = function, .context = context});
}

pc_status pc__plan_wait(pc_stream *stream, pc_stream *other, const pc__work *work)
{
    return append(pc__graph_of(stream),
                  &(pc__plan_node){
                      .kind = PC__NODE_WAIT, .stream = stream, .work = *work, .other = other, .other_id = other->id});
}

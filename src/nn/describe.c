/* describe.c: what a forward pass is made of and what it costs, as a table. The pass is recorded, which says of each call
 * what it takes and makes, and dropped. */
#include "nn/describe.h"
#include "nn/rehearse.h"

#include "device/graph.h"
#include "device/plan.h"
#include "ops/flop.h"

#include <paracord/no_grad.h>

typedef pc__describe_row row;
typedef pc__describe_table table;

static bool is_there(const table *t, const pc_module *module)
{
    for (int i = 0; i < t->count; i++)
        if (t->rows[i].module == module)
            return true;
    return false;
}

/* What was recorded since the last time belongs to the module that is under way. */
static void take_calls(table *t)
{
    for (; t->seen < pc__plan_count(t->graph); t->seen++) {
        const pc_call *call = pc__plan_call_at(t->graph, t->seen);
        if (!call || t->open < 0)
            continue;
        row *own = &t->rows[t->open];
        own->flop += pc__call_flop(call);
        for (int i = 0; i < call->n_out; i++)
            own->bytes += (double)call->out[i]->storage->bytes;
    }
}

static void enter(void *context, const pc_module *module)
{
    table *t = context;
    take_calls(t);
    if (t->failed || pc__grow((void **)&t->rows, &t->room, t->count, sizeof *t->rows) != PC_OK) {
        t->failed = true;
        return;
    }
    const int depth = t->open < 0 ? 0 : t->rows[t->open].depth + 1;
    const bool again = is_there(t, module);
    t->rows[t->count] = (row){.module = module, .depth = depth, .outer = t->open, .again = again};
    t->open = t->count++;
}

static void leave(void *context, const pc_module *module, pc_tensor *const *out, int out_count)
{
    table *t = context;
    (void)module;
    if (t->failed)
        return;
    take_calls(t);
    row *own = &t->rows[t->open];
    own->shape = pc__shape_format(out[0]->ndim, out[0]->shape);
    t->open = own->outer;
    (void)out_count;
}

/* --- the pass --- */

static pc_status pass(table *t, pc_module *module, pc_tensor *const *in, int in_count)
{
    const pc__observer observer = {t, enter, leave};
    pc_status status = PC_OK;
    pc__forward_observe(&observer);
    PC_SCOPE {
        pc_tensor *y = NULL;
        PC_NO_GRAD
            PC__EVALUATE
            {
                status = pc_forward_many(module, in, in_count, &y, 1);
            }
    }
    pc__forward_observe(NULL);
    return t->failed ? PC_ERR_MEMORY : status;
}

typedef struct inputs {
    table *t;
    pc_module *module;
    const pc__meta *in;
    int count;
    pc_device device;
} inputs;

/* Inputs of the same dtypes and shapes, which nobody has written. */
static pc_status record(void *context, pc_graph *graph)
{
    const inputs *i = context;
    pc_status status = PC_OK;
    pc_tensor **made = pc__calloc((size_t)i->count, sizeof *made);
    i->t->graph = graph;
    PC_SCOPE {
        for (int k = 0; made && k < i->count && status == PC_OK; k++) {
            made[k] = pc__tensor_new(&i->in[k], i->device);
            status = made[k] ? PC_OK : pc_error_last()->status;
        }
        status = !made ? PC_ERR_MEMORY : status == PC_OK ? pass(i->t, i->module, made, i->count) : status;
    }
    pc__free(made);
    return status;
}

static char *describe(pc_module *module, const pc__meta *in, int in_count, pc_device device)
{
    table t = {.open = -1};
    pc__text text = {0};
    inputs i = {&t, module, in, in_count, device};
    if (pc__rehearse("pc_module_describe", device, record, &i) == PC_OK)
        pc__describe_tell(&t, module, &text);
    pc__free(t.rows);
    if (text.failed)
        pc__text_free(&text);
    return text.data;
}

typedef struct first {
    const pc_tensor *parameter;
} first;

static pc_status find_first(void *context, const char *name, pc__named *parameter)
{
    first *f = context;
    (void)name;
    if (!f->parameter)
        f->parameter = parameter->object;
    return PC_OK;
}

char *pc_module_describe(pc_module *module, pc_shape input)
{
    PC__NEED_OR(NULL, module);
    first f = {0};
    (void)pc__module_each(module, find_first, &f);
    const pc_dtype dtype = f.parameter ? (pc_dtype)f.parameter->dtype : PC_F32;
    pc__meta meta;
    if (pc__shape_check("pc_module_describe", input, dtype) != PC_OK)
        return NULL;
    pc__meta_contiguous(&meta, dtype, input.ndim, input.dim);
    return describe(module, &meta, 1, f.parameter ? pc_tensor_device(f.parameter) : pc_device_current());
}

char *pc_module_describe_inputs(pc_module *module, pc_tensor *const *in, int in_count)
{
    PC__NEED_OR(NULL, module);
    PC__NEED_OR(NULL, in);
    if (in_count < 1)
        return pc__null(PC_ERR_ARGUMENT, "pc_module_describe_inputs: %d inputs; there is at least one", in_count);
    for (int i = 0; i < in_count; i++)
        PC__NEED_OR(NULL, in[i]);
    pc__meta *metas = pc__calloc((size_t)in_count, sizeof *metas);
    if (!metas)
        return NULL;
    for (int i = 0; i < in_count; i++)
        pc__meta_contiguous(&metas[i], (pc_dtype)in[i]->dtype, in[i]->ndim, in[i]->shape);
    char *text = describe(module, metas, in_count, pc_tensor_device(in[0]));
    pc__free(metas);
    return text;
}

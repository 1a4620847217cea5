/* rehearse.c: what a pass would come to. */
#include "nn/rehearse.h"

#include "device/graph.h"

#include <paracord/no_grad.h>
#include <paracord/random.h>

static pc_status record(const char *who, pc_stream *stream, pc_status (*work)(void *context, pc_graph *graph),
                        void *context)
{
    pc_status status = PC_OK;
    PC_WITH_STREAM(stream) {
        status = pc_graph_begin(stream);
        if (status == PC_OK) {
            const pc_graph *graph = pc__graph_of(stream);
            status = pc__graph_take_all(stream);
            status = status == PC_OK ? work(context, pc__graph_of(stream)) : status;
            if (status == PC_OK && graph->refused.status != PC_OK)
                status = pc__fail(graph->refused.status, "%s: the pass cannot be recorded: %.380s", who,
                                  graph->refused.message);
            pc__graph_abandon(stream);
        }
    }
    return status;
}

pc_status pc__rehearse(const char *who, pc_device device, pc_status (*work)(void *context, pc_graph *graph),
                       void *context)
{
    const pc_generator before = pc_generator_get();
    if (pc__graph_here(device))
        return pc__fail(PC_ERR_STATE, "%s: the thread records work on the device; end that first", who);
    pc_stream *stream = pc_stream(device);
    if (!stream)
        return pc_error_last()->status;
    const pc_status status = record(who, stream, work, context);
    pc_stream_free(stream);
    pc_generator_set(before);
    return status;
}

typedef struct forward {
    pc_module *module;
    const pc__meta *input;
    pc_device device;
} forward;

static pc_status pass(void *context, pc_graph *graph)
{
    const forward *f = context;
    pc_status status = PC_OK;
    (void)graph;
    PC_NO_GRAD {
        PC_SCOPE {
            pc_tensor *x = pc__tensor_new(f->input, f->device);
            status = x && pc_forward(f->module, x) ? PC_OK : pc_error_last()->status;
        }
    }
    return status;
}

pc_status pc__rehearse_forward(const char *who, pc_module *module, const pc__meta *input)
{
    pc_parameter first;
    const bool has = pc_module_parameter_list(module, &first, 1) > 0;
    forward f = {module, input, has ? pc_tensor_device(first.tensor) : pc_device_current()};
    return pc__rehearse(who, f.device, pass, &f);
}

/* plugin.c: CUDA devices as a backend, and the one function that the library calls. */
#include "cuda/dist/nccl.h"
#include "cuda/lessons/lessons.h"
#include "cuda/runtime/rows.h"
#include "cuda/runtime/state.h"
#include "ops/names.h"
#include "ops/table.h"

#include <stdlib.h>

bool pc__cuda_sync;

static bool is_faster_apart(const pc_call *call)
{
    return (call->op->index == PC__OP_region ? pc__cuda_region_is_faster_apart : pc__cuda_conv2d_is_faster_apart)(call);
}

static const pc__backend backend = {
    .api_version = PC__BACKEND_API,
    .type = PC_CUDA,
    .name = "cuda",
    .ops = pc__op_names,
    .one_device_graphs = true,
    .convolves_to_c_order = true,
    .norms_to_half = true,
    .span = PC__CUDA_SPAN,
    .count = pc__cuda_count,
    .allocate = pc__cuda_allocate,
    .release = pc__cuda_release,
    .memory = pc__cuda_memory,
    .allocate_host = pc__cuda_allocate_host,
    .release_host = pc__cuda_release_host,
    .stream_open = pc__cuda_stream_open,
    .stream_close = pc__cuda_stream_close,
    .stream_wait = pc__cuda_stream_wait,
    .submit = pc__cuda_submit,
    .copy = pc__cuda_copy,
    .host_call = pc__cuda_host_call,
    .event_record = pc__cuda_event_record,
    .graph_launch = pc__cuda_graph_launch,
    .note = pc__cuda_note,
    .ticket_synchronize = pc__cuda_ticket_synchronize,
    .ticket_query = pc__cuda_ticket_query,
    .stream_error = pc__cuda_stream_error,
    .stream_fail = pc__cuda_stream_fail,
    .event_open = pc__cuda_event_open,
    .event_close = pc__cuda_event_close,
    .event_elapsed = pc__cuda_event_elapsed,
    .graph_prepare = pc__cuda_prepare,
    .graph_begin = pc__cuda_graph_begin,
    .graph_join = pc__cuda_graph_join,
    .graph_wait = pc__cuda_branch_wait,
    .graph_aside = pc__cuda_graph_aside,
    .graph_end = pc__cuda_graph_end,
    .graph_update = pc__cuda_graph_update,
    .graph_close = pc__cuda_graph_close,
    .is_faster_apart = is_faster_apart,
    .reads_planes = pc__cuda_reads_planes,
    .keeps_planes = pc__cuda_keeps_planes,
    .engine = &pc__cuda_nccl,
    .kernels = pc__cuda_kernels,
    .lessons = pc__cuda_lessons,
};

static bool is_on(const char *variable)
{
    const char *value = getenv(variable);
    return value && value[0] && strcmp(value, "0") != 0;
}

PC_API const pc__backend *pc__cuda_plugin(const pc__host_api *host, char *why, size_t n);
const pc__backend *pc__cuda_plugin(const pc__host_api *host, char *why, size_t n)
{
    if (host->api_version != PC__BACKEND_API) {
        snprintf(why, n, "it was built for interface %u, this library has %u", PC__BACKEND_API, host->api_version);
        return NULL;
    }
    if (strcmp(host->version, PC_VERSION) != 0) {
        snprintf(why, n, "it belongs to Paracord %s, this library is %s", PC_VERSION, host->version);
        return NULL;
    }
    pc__cuda_host_set(host);
    pc__cuda_sync = is_on("PARACORD_CUDA_SYNC");
    pc__rows_only(getenv("PARACORD_ONLY"));
    if (is_on("PARACORD_NVTX"))
        pc__cuda_nvtx_start(host);
    return &backend;
}

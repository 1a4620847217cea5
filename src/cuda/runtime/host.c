/* host.c: the library's internal functions, by the names that they have there. */
#include "cuda/runtime/host.h"

#include "device/failure.h"
#include "device/workspace.h"

#include <stdarg.h>

static const pc__host_api *host;

void pc__cuda_host_set(const pc__host_api *table)
{
    host = table;
}

bool pc__cuda_tracing(void)
{
    return atomic_load_explicit(host->trace_on, memory_order_relaxed);
}

void *pc__alloc(size_t bytes)
{
    return host->alloc(bytes);
}

void *pc__calloc(size_t count, size_t size)
{
    return host->calloc(count, size);
}

void *pc__realloc(void *block, size_t bytes)
{
    return host->realloc(block, bytes);
}

void *pc__try_alloc_aligned(size_t bytes, size_t alignment)
{
    return host->try_alloc_aligned(bytes, alignment);
}

void pc__free(void *block)
{
    host->free(block);
}

pc_status pc__grow(void **items, int *capacity, int count, size_t size)
{
    return host->grow(items, capacity, count, size);
}

pc_status pc__fail_at(const char *file, int line, pc_status status, const char *cause, const char *format, ...)
{
    char message[PC_MESSAGE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return host->fail(file, line, status, cause, message);
}

pc_status pc__fail_null(const char *file, int line, const char *function, const char *argument)
{
    return pc__fail_at(file, line, PC_ERR_ARGUMENT, NULL, "%s: %s is NULL", function, argument);
}

void pc__log(pc_log_level level, const char *format, ...)
{
    char line[PC_MESSAGE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    host->log(level, line);
}

pc_error pc__error_take(void)
{
    return host->error_take();
}

pc_status pc__error_put(const pc_error *error)
{
    return host->error_put(error);
}

pc_precision pc_matmul_precision_get(void)
{
    return host->matmul_precision();
}

pc_choice pc_choice_get(void)
{
    return host->choice();
}

char *pc__site_text(pc__site site, char text[PC__SITE_TEXT])
{
    return host->site_text(site, text);
}

char *pc_device_name(pc_device device, char name[PC_DEVICE_NAME_MAX])
{
    return host->device_name(device, name);
}

void pc__trace_work_done(const pc__trace_work *work)
{
    host->trace_work_done(work);
}

int64_t pc__now(void)
{
    return host->now();
}

uint64_t pc__plan_wrote(const pc_stream *stream, const pc__storage *storage)
{
    return host->plan_wrote(stream, storage);
}

void pc__failure_begin(uint32_t stream, uint64_t ticket, const pc_error *error)
{
    host->failure_begin(stream, ticket, error);
}

void pc__failure_told(uint32_t stream, uint64_t queued)
{
    host->failure_told(stream, queued);
}

void *pc__workspace(pc_stream *stream, int level, size_t bytes)
{
    return host->workspace(stream, level, bytes);
}

void *pc__graph_workspace(pc_graph *graph, pc_stream *stream, size_t bytes)
{
    return host->graph_workspace(graph, stream, bytes);
}

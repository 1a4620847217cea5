/* plugin.h: what a backend in a library of its own gets from the library that opens it, and gives to it. */
#ifndef PC__PLUGIN_H
#define PC__PLUGIN_H

#include "device/graph.h"
#include "device/plan.h"
#include "device/trace.h"

/* The ops in the order of their numbers, by which a backend's kernels are found: a library and its plug-in have each their
 * own, and both must say the same. */
extern const char pc__op_names[];

/* The library's internal functions: they are not exported, so the plug-in gets them as a table. */
typedef struct pc__host_api {
    unsigned api_version; /* PC__BACKEND_API; what follows may differ when it does */
    const char *version;  /* PC_VERSION: structures are shared, so both must be of one version */
    void *(*try_alloc_aligned)(size_t bytes, size_t alignment);
    void *(*alloc)(size_t bytes);
    void *(*calloc)(size_t count, size_t size);
    void *(*realloc)(void *block, size_t bytes);
    void (*free)(void *block);
    pc_status (*grow)(void **items, int *capacity, int count, size_t size);
    pc_status (*fail)(const char *file, int line, pc_status status, const char *cause, const char *message);
    pc_error (*error_take)(void);
    pc_status (*error_put)(const pc_error *error);
    void (*log)(pc_log_level level, const char *line);
    char *(*site_text)(pc__site site, char text[PC__SITE_TEXT]);
    char *(*device_name)(pc_device device, char name[PC_DEVICE_NAME_MAX]);
    atomic_bool *trace_on;
    void (*trace_work_done)(const pc__trace_work *work);
    int64_t (*now)(void);
    pc_precision (*matmul_precision)(void);
    pc_choice (*choice)(void);
    void (*trace_ranges_set)(const pc__trace_ranges *ranges);
    uint64_t (*plan_wrote)(const pc_stream *stream, const pc__storage *storage);
    void (*failure_begin)(uint32_t stream, uint64_t ticket, const pc_error *error);
    void (*failure_told)(uint32_t stream, uint64_t queued);
    void *(*workspace)(pc_stream *stream, int level, size_t bytes);
    void *(*graph_workspace)(pc_graph *graph, pc_stream *stream, size_t bytes);
} pc__host_api;

/* The plug-in's one exported function: NULL, with the reason in why, when it does not fit the library. */
typedef const pc__backend *(*pc__plugin_entry)(const pc__host_api *host, char *why, size_t n);

/* The backend of the plug-in libparacord-cuda.so, which is opened when this is asked for the first time; NULL, with the
 * reason in why, when there is none that fits. Any thread. */
const pc__backend *pc__plugin_cuda(char *why, size_t n);
#define PC__CUDA_ENTRY "pc__cuda_plugin"

#endif

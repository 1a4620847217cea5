/* host.h: what the plug-in libparacord-cuda.so gets from the library that loads it, and gives to it. The library's
 * internal functions are not exported: the plug-in has forwarders of the same names (host.c), so that its code reads
 * like any other backend's. */
#ifndef PC__CUDA_HOST_H
#define PC__CUDA_HOST_H

#include "device/graph.h"
#include "device/trace.h"
#include "tensor/call.h"

#include <stdarg.h>

typedef struct pc__host_api {
    unsigned api_version; /* PC__BACKEND_API */
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
    atomic_bool *trace_on;
    void (*trace_work_done)(const pc__trace_work *work);
    int64_t (*now)(void);
    const char *(*dtype_name)(pc_dtype dtype);
    size_t (*dtype_size)(pc_dtype dtype);
} pc__host_api;

/* The plug-in's one exported function: NULL, with the reason in why, when it does not fit the library. */
#define PC__CUDA_ENTRY "pc__cuda_plugin"
typedef const pc__backend *(*pc__cuda_entry)(const pc__host_api *host, char *why, size_t n);

#endif

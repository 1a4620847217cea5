/* host.h: the library as the plug-in libparacord-cuda.so sees it. The library's internal functions are not exported:
 * the plug-in gets them as a table (device/plugin.h) and has forwarders of the same names (host.c), so that its code
 * reads like any other backend's. */
#ifndef PC__CUDA_HOST_H
#define PC__CUDA_HOST_H

#include "device/graph.h"
#include "device/plugin.h"
#include "tensor/call.h"

/* Take the table, before anything else. */
void pc__cuda_host_set(const pc__host_api *host);

/* pc__tracing() of the library. */
bool pc__cuda_tracing(void);

#endif

/* causes.h: what the host's drivers did, and why a device's compute engine stood idle. */
#ifndef PC__TIMELINE_CAUSES_H
#define PC__TIMELINE_CAUSES_H

#include "timeline/timeline.h"

/* When any driver of a file (-1: of all) was queuing ops, waiting for a device, waiting for the loader. */
typedef struct pc__host_spans {
    pc__spans queuing, waiting, loader;
} pc__host_spans;

pc_status pc__host_times(const pc_timeline *timeline, int file, pc__host_spans *host);
void pc__host_times_free(pc__host_spans *host);

/* For a device that worked. */
pc_status pc__idle_causes(const pc_timeline *timeline, int process, const pc__host_spans *host,
                          pc_timeline_causes *causes);

#endif

/* cpu.h: the pieces of the CPU backend. */
#ifndef PC__CPU_H
#define PC__CPU_H

#include "device/graph.h"

/* level.c: the kernels of the widest SIMD level that this machine has and whose file is there (place/). The environment
 * variable PARACORD_SIMD (base, v3, v4) asks for a narrower one. */
const pc__kernel *pc__cpu_kernels(void);
const pc__lesson_kernel *pc__cpu_lessons(void);

/* max_backward.c, prod_backward.c: the kernels of these ops, at any level. */
PC__FOR_LEVELS pc_status pc__cpu_max_backward(const struct pc_call *call);
PC__FOR_LEVELS pc_status pc__cpu_prod_backward(const struct pc_call *call);

/* graph.c: recordings: lists of calls. */
pc_status pc__cpu_host_call(pc_stream *stream, void (*function)(void *context), void *context, const pc__work *work);
pc_status pc__cpu_graph_begin(pc_graph *graph, pc_stream *stream);
pc_status pc__cpu_graph_end(pc_graph *graph, pc_stream *stream);
pc_status pc__cpu_graph_launch(pc_graph *graph, pc_stream *stream, const pc__work *work);
pc_status pc__cpu_graph_update(pc_graph *graph, pc_graph *newer);
void pc__cpu_graph_close(pc_graph *graph);
pc_status pc__cpu_submit(pc_stream *stream, pc__kernel kernel, const struct pc_call *call, const pc__work *work);

#endif

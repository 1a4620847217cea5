/* graph.c: a step is recorded once and launched many times: the host hands over one piece of work in the place of many.
 * New numbers go into the memory that the recording knows; new memory comes by an update. */
#include "accelerator.h"

enum { STEPS = 5 };

static pc_status step(pc_tensor *y, pc_tensor *x) /* y += x, the long way round */
{
    for (int i = 0; i < 8; i++)
        x = pc_mul_scalar(x, 0.5);
    return pc_saxpy(y, 1 << 8, x);
}

static pc_graph *record(pc_tensor *y, pc_tensor *x)
{
    if (pc_graph_begin(NULL) != PC_OK)
        return NULL;
    (void)!step(y, x); /* recorded: nothing runs */
    return pc_graph_end(NULL);
}

static void compare(pc_graph *graph, pc_tensor *y, pc_tensor *x)
{
    double start = now();
    PC_TRACE_RANGE("op by op") {
        for (int i = 0; i < STEPS && step(y, x) == PC_OK; i++)
            continue;
    }
    double queued = now();
    PC_TRACE_RANGE("as a graph") {
        for (int i = 0; i < STEPS && pc_graph_launch(graph, NULL) == PC_OK; i++)
            continue;
    }
    printf("host: %.3f ms op by op, %.3f ms as a graph\n", queued - start, now() - queued);
    printf("after %d steps of each: %.0f\n", STEPS, pc_item(pc_max(y)));
}

int main(void)
{
    pc_device dev = accelerator(.kernels = 1);
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(4), PC_F32, dev), *y = pc_zeros(PC_SHAPE(4), PC_F32, dev);
        pc_graph *graph = record(y, x), *newer = record(y, pc_full(PC_SHAPE(4), 100, PC_F32, dev));
        PC_TRACE_RANGE("graph") {
            compare(graph, y, x);
            if (pc_graph_update(graph, newer) == PC_OK && pc_graph_launch(graph, NULL) == PC_OK)
                printf("one more, on the other tensor: %.0f\n", pc_item(pc_max(y)));
        }
        if (!pc_failed() && pc_graph_begin(NULL) == PC_OK) {
            (void)pc_item(pc_max(y)); /* no recording can hold a value on the host */
            pc_graph_free(pc_graph_end(NULL));
            printf("refused: %s\n", pc_error_last()->message);
            pc_error_clear();
        }
        pc_graph_free(newer);
        pc_graph_free(graph);
    }
    return pc_failed() ? pc_report(stderr) : 0;
}

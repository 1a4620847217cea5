/* pipeline.c: a copy stream brings batch n + 1 while batch n is computed: the time of the longer of the two, not of
 * both. */
#include "accelerator.h"

enum { BATCHES = 6, FLOATS = 2 << 20 }; /* 8 MB a batch */

static double run(pc_tensor *const *batches, pc_stream *copies, pc_device dev)
{
    double start = now();
    pc_tensor *total = pc_zeros(PC_SHAPE_SCALAR, PC_F32, dev);
    for (int i = 0; i < BATCHES; i++) {
        pc_tensor *batch = NULL;
        PC_WITH_STREAM(copies) {
            batch = pc_to(batches[i], dev, PC_F32, true);
        }
        total = pc_add(total, pc_sum(batch)); /* on the default stream: waits for this batch, not for the next */
    }
    printf("%s: %.0f ms, sum %.0f\n", copies == pc_stream_current(dev) ? "copy, then compute" : "copy beside compute",
           now() - start, pc_item(total));
    return now() - start;
}

int main(void)
{
    pc_device dev =
        accelerator(.kernels = 1, .kernel_time = 5e-3, .bandwidth = 0.8e9); /* a copy takes 10 ms, as two kernels do */
    pc_stream *copies = pc_stream(dev);
    PC_SCOPE {
        pc_tensor *batches[BATCHES];
        for (int i = 0; i < BATCHES; i++) {
            batches[i] = pc_empty_pinned(PC_SHAPE(FLOATS), PC_F32, dev);
            if (pc_fill(batches[i], i) != PC_OK)
                return pc_report(stderr);
        }
        double after = run(batches, pc_stream_current(dev), dev), beside = 0;
        PC_TRACE_RANGE("pipeline") {
            beside = run(batches, copies, dev);
        }
        printf("%.1f times as fast\n", after / beside);
    }
    pc_stream_free(copies);
    return pc_failed() ? pc_report(stderr) : 0;
}

/* hidden_sync.c: printing a value makes the host wait for it. In a loop that is a wait per step, in which nothing new
 * is queued; kept on the device and printed at the end, there is one. A policy finds such calls. */
#include "accelerator.h"

enum { STEPS = 3 };

static double train(pc_tensor *x, bool print_each)
{
    double start = now();
    pc_tensor *losses[STEPS];
    for (int i = 0; i < STEPS; i++) {
        host_work(4); /* the next batch, say */
        x = pc_tanh(x);
        losses[i] = pc_sum(x);
        if (print_each)
            printf("step %d: %.1f\n", i, pc_item(losses[i])); /* the host waits here */
    }
    for (int i = 0; i < STEPS && !print_each; i++)
        printf("step %d: %.1f\n", i, pc_item(losses[i]));
    return now() - start;
}

int main(void)
{
    pc_device dev = accelerator(.kernels = 1, .kernel_time = 2e-3);
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(1000), PC_F32, dev);
        if (pc_stream_synchronize(NULL) != PC_OK)
            break;
        double each = 0, at_end = 0;
        PC_TRACE_RANGE("hidden_sync") {
            PC_TRACE_RANGE("printed each step")
                each = train(x, true);
            PC_TRACE_RANGE("printed at the end")
                at_end = train(x, false);
        }
        printf("printed each step: %.1f ms; printed at the end: %.1f ms\n", each, at_end);

        pc_sync_policy before = pc_sync_policy_set(PC_SYNC_REFUSE);
        pc_print(x);
        pc_sync_policy_set(before);
        printf("refused: %s\n", pc_error_last()->message);
        pc_error_clear();
    }
    return pc_failed() ? pc_report(stderr) : 0;
}

/* async_launch.c: an op queues its work and returns. The host goes on, and stands still only where it asks for a value
 * that is not there yet. */
#include "accelerator.h"

enum { OPS = 8 };

static void launch(pc_tensor *x)
{
    bool done;
    double start = now();
    for (int i = 0; i < OPS; i++)
        x = pc_tanh(x); /* queued, not computed */
    double queued = now();
    if (pc_stream_query(NULL, &done) == PC_OK)
        printf("%d ops were queued in %.2f ms; are they done? %s\n", OPS, queued - start, done ? "yes" : "no");

    host_work(10); /* the device computes meanwhile */

    double asked = now();
    double value = pc_item(pc_sum(x)); /* needs the result: here the host blocks */
    printf("after 10 ms of its own work the host stood still for %.1f ms, and read %.1f\n", now() - asked, value);
    printf("all of it took %.1f ms\n", now() - start);
}

int main(void)
{
    pc_device dev = accelerator(.kernels = 1, .kernel_time = 4e-3);
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(1000), PC_F32, dev);
        if (pc_stream_synchronize(NULL) != PC_OK)
            break;
        PC_TRACE_RANGE("async_launch") {
            launch(x);
        }
    }
    return pc_failed() ? pc_report(stderr) : 0;
}

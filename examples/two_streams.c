/* two_streams.c: two chains of ops that share no data. On one stream the second stands behind the first; on two streams
 * they run beside each other. What needs both waits for both, without a word from the program. */
#include "accelerator.h"

static double chains(pc_stream *first, pc_stream *second, pc_tensor *x)
{
    double start = now();
    pc_tensor *a = x, *b = x;
    PC_WITH_STREAM(first) {
        for (int i = 0; i < 6; i++)
            a = pc_tanh(a);
    }
    PC_WITH_STREAM(second) {
        for (int i = 0; i < 6; i++)
            b = pc_sigmoid(b);
    }
    pc_tensor *both = pc_add(a, b); /* on the default stream: waits for the last tanh and the last sigmoid */
    double sum = pc_item(pc_sum(both));
    printf("%s: %.1f ms, sum %.3f\n", first == second ? "one stream" : "two streams", now() - start, sum);
    return sum;
}

int main(void)
{
    pc_device dev = accelerator(.kernel_time = 4e-3);
    pc_stream *left = pc_stream(dev), *right = pc_stream(dev);
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(1000), 0.5, PC_F32, dev);
        if (pc_stream_synchronize(NULL) != PC_OK)
            break;
        double alone = chains(left, left, x), beside = 0;
        PC_TRACE_RANGE("two_streams") {
            beside = chains(left, right, x);
        }
        printf("the same result? %s\n", alone == beside ? "yes" : "no");
    }
    pc_stream_free(left);
    pc_stream_free(right);
    return pc_failed() ? pc_report(stderr) : 0;
}

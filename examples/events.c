/* events.c: marks in a stream. The host waits for one and reads what came before it, while what comes after it goes on;
 * two of them tell what the device needed for the work between them. */
#include "accelerator.h"

static pc_tensor *three_steps(pc_tensor *x)
{
    for (int i = 0; i < 3; i++)
        x = pc_tanh(x);
    return x;
}

static void lesson(pc_event *start, pc_event *half, pc_event *end, pc_tensor *x)
{
    bool done;
    double one, two;
    if (pc_event_record(start, NULL) != PC_OK)
        return;
    pc_tensor *first = three_steps(x);
    pc_tensor *copy = pc_to(first, PC_DEVICE_CPU, PC_F32, true); /* on its way, nobody waits */
    if (pc_event_record(half, NULL) != PC_OK || !three_steps(first) || pc_event_record(end, NULL) != PC_OK)
        return;

    if (pc_event_synchronize(half) != PC_OK || pc_event_query(end, &done) != PC_OK) /* waits for the first half only */
        return;
    printf("first half: %.4f; is the second half done? %s\n", pc_item(pc_max(copy)), done ? "yes" : "no");

    if (pc_event_elapsed(start, half, &one) == PC_OK && pc_event_elapsed(half, end, &two) == PC_OK) /* waits for both */
        printf("the halves took the device %.1f ms and %.1f ms\n", one, two);
}

int main(void)
{
    pc_device dev = accelerator(.kernels = 1, .kernel_time = 4e-3);
    pc_event *start = pc_event_new(dev), *half = pc_event_new(dev), *end = pc_event_new(dev);
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(1000), PC_F32, dev);
        if (start && half && end && pc_stream_synchronize(NULL) == PC_OK) {
            PC_TRACE_RANGE("events") {
                lesson(start, half, end, x);
            }
        }
    }
    pc_event_free(end);
    pc_event_free(half);
    pc_event_free(start);
    return pc_failed() ? pc_report(stderr) : 0;
}

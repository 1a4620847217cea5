/* timing.c: three clocks around the same work. Without a wait the clock measures queuing. A wait after each op adds the
 * way there and back to each. One wait at the end measures the work, and so do two events. */
#include "accelerator.h"

enum { OPS = 20 };

static void on_the_clock(const char *name, pc_tensor *x, bool wait_each, bool wait_at_end)
{
    pc_status status = PC_OK;
    PC_TRACE_RANGE(name) {
        double start = now();
        for (int i = 0; i < OPS && status == PC_OK; i++) {
            x = pc_tanh(x);
            if (wait_each)
                status = pc_stream_synchronize(NULL);
        }
        if (wait_at_end && status == PC_OK)
            status = pc_stream_synchronize(NULL);
        printf("%-16s %.3f ms an op\n", name, (now() - start) / OPS);
        if (status == PC_OK)
            (void)!pc_stream_synchronize(NULL); /* behind the clock: the next one begins with nothing to do */
    }
}

static void by_events(const char *name, pc_tensor *x, pc_event *start, pc_event *end)
{
    double ms = 0;
    PC_TRACE_RANGE(name) {
        pc_status status = pc_event_record(start, NULL);
        for (int i = 0; i < OPS; i++)
            x = pc_tanh(x);
        if (status == PC_OK && pc_event_record(end, NULL) == PC_OK && pc_event_elapsed(start, end, &ms) == PC_OK)
            printf("%-16s %.3f ms an op\n", name, ms / OPS);
    }
}

int main(void)
{
    pc_device dev = accelerator(.kernels = 1, .kernel_time = 5e-4);
    pc_event *start = pc_event_new(dev), *end = pc_event_new(dev);
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(1000), PC_F32, dev);
        on_the_clock("warm-up", x, false, true); /* the first time, memory is made and code is loaded */
        PC_TRACE_RANGE("timing") {
            on_the_clock("no wait", x, false, false);
            on_the_clock("wait after each", x, true, false);
            on_the_clock("wait at the end", x, false, true);
            by_events("two events", x, start, end);
        }
    }
    pc_event_free(end);
    pc_event_free(start);
    return pc_failed() ? pc_report(stderr) : 0;
}

/* manual_order.c: order by hand, for those who want it, and the checker that says what was forgotten. Only the event
 * makes the reader wait for the writer. */
#include "accelerator.h"

static pc_status write_and_read(pc_tensor *x, pc_stream *writer, pc_stream *reader, pc_event *ready)
{
    pc_status status = PC_OK;
    PC_MANUAL_ORDER {
        PC_WITH_STREAM(writer) {
            status = pc_fill(x, 2);
        }
        if (ready && status == PC_OK && (status = pc_event_record(ready, writer)) == PC_OK)
            status = pc_event_wait(ready, reader);
        PC_WITH_STREAM(reader) {
            pc_tensor *read = pc_tanh(x);
            if (!read)
                status = pc_error_last()->status;
        }
    }
    return status == PC_OK ? pc_device_synchronize(pc_stream_device(reader)) : status;
}

int main(void)
{
    pc_device dev = accelerator(.kernel_time = 4e-3);
    pc_stream *writer = pc_stream(dev), *reader = pc_stream(dev);
    pc_event *ready = pc_event_new(dev);
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(1000), PC_F32, dev);
        pc_race race;
        pc_check_streams(true); /* PARACORD_CHECK=streams does it for a whole program */
        if (!ready || pc_device_synchronize(dev) != PC_OK)
            break;
        PC_TRACE_RANGE("manual_order") {
            (void)!write_and_read(x, writer, reader, NULL);
            printf("races without the event: %d\n", pc_check_count());
            for (int i = 0; pc_check_race(i, &race); i++)
                printf("  %s\n", race.text);
            pc_check_streams(true);
            (void)!write_and_read(x, writer, reader, ready);
            printf("races with the event: %d\n", pc_check_count());
        }
        pc_check_streams(false);
    }
    pc_event_free(ready);
    pc_stream_free(reader);
    pc_stream_free(writer);
    return pc_failed() ? pc_report(stderr) : 0;
}

/* pinned.c: a copy to the device returns at once only from pinned memory, and only when asked not to block. And then
 * the source may be written or freed right away: Paracord keeps the copy's bytes as they were. */
#include "accelerator.h"

enum { FLOATS = 16 << 20 }; /* 64 MB */

static void copy(const char *name, pc_tensor *source, pc_device dev, bool non_blocking)
{
    PC_TRACE_RANGE(name) {
        double start = now();
        pc_tensor *there = pc_to(source, dev, PC_F32, non_blocking);
        double returned = now();
        if (there && pc_stream_synchronize(NULL) == PC_OK)
            printf("%-23s returned after %4.1f ms, was there after %4.1f ms\n", name, returned - start, now() - start);
    }
}

int main(void)
{
    pc_device dev = accelerator(.bandwidth = 2e9);
    PC_SCOPE {
        pc_tensor *pageable = pc_ones(PC_SHAPE(FLOATS), PC_F32, PC_DEVICE_CPU);
        pc_tensor *pinned = pc_pin(pageable, dev);
        copy("warm-up", pageable, dev, false); /* memory is made */
        PC_TRACE_RANGE("pinned") {
            copy("pageable, blocking", pageable, dev, false);
            copy("pageable, non-blocking", pageable, dev, true);
            copy("pinned, blocking", pinned, dev, false);
            copy("pinned, non-blocking", pinned, dev, true);
        }
        pc_tensor *there = pc_to(pinned, dev, PC_F32, true);
        if (pc_fill(pinned, 2) == PC_OK) /* waits, because the copy still reads it */
            printf("written right after: the source holds %.0f, the copy %.0f\n", pc_item(pc_slice(pinned, 0, 0, 1, 1)),
                   pc_item(pc_slice(there, 0, 0, 1, 1)));
    }
    return pc_failed() ? pc_report(stderr) : 0;
}

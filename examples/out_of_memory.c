/* out_of_memory.c: a batch too large for the device is an error that says what was asked for and what is there. The
 * program lowers the batch and goes on; nothing has leaked. */
#include "accelerator.h"

enum { FLOATS = 256 << 10 }; /* 1 MB a picture */

static pc_status step(int64_t batch, pc_device dev)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *x = pc_zeros(PC_SHAPE(batch, FLOATS), PC_F32, dev);
        pc_tensor *y = pc_tanh(x); /* as much again */
        if (!y || (status = pc_stream_synchronize(NULL)) != PC_OK)
            status = pc_error_last()->status;
    }
    return status;
}

int main(void)
{
    pc_device dev = accelerator(.kernels = 1, .memory = 64 << 20);
    pc_memory_stats stats;
    if (pc_memory_query(dev, &stats) != PC_OK)
        return pc_report(stderr);

    int64_t batch = stats.total >> 20; /* as many pictures as there are megabytes */
    pc_status status = PC_ERR_MEMORY;
    PC_TRACE_RANGE("out_of_memory") {
        while ((status = step(batch, dev)) == PC_ERR_MEMORY && batch > 1) {
            printf("batch %lld: %s\n", (long long)batch, pc_error_last()->message);
            pc_trace_mark("out of memory");
            pc_error_clear();
            batch /= 2;
        }
    }
    if (status != PC_OK || pc_memory_query(dev, &stats) != PC_OK)
        return pc_report(stderr);
    printf("batch %lld: fine\n", (long long)batch);
    printf("in use now: %lld bytes; at most: %lld MB\n", (long long)stats.in_use, (long long)stats.peak >> 20);
    return 0;
}

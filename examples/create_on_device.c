/* create_on_device.c: what can be made on the device should be: made on the host, every byte crosses the bus. */
#include "accelerator.h"

enum { FLOATS = 4 << 20 }; /* 16 MB */

static pc_tensor *made_on_host(pc_device dev)
{
    return pc_to(pc_full(PC_SHAPE(FLOATS), 0.5, PC_F32, PC_DEVICE_CPU), dev, PC_F32, false);
}

static pc_tensor *made_on_device(pc_device dev)
{
    return pc_full(PC_SHAPE(FLOATS), 0.5, PC_F32, dev);
}

static void time_it(const char *name, pc_tensor *(*make)(pc_device), pc_device dev)
{
    PC_TRACE_RANGE(name) {
        double start = now();
        pc_tensor *t = make(dev);
        double returned = now();
        if (t && pc_stream_synchronize(NULL) == PC_OK)
            printf("%-18s host busy for %4.1f ms, there after %4.1f ms\n", name, returned - start, now() - start);
    }
}

int main(void)
{
    pc_device dev = accelerator(.kernels = 1, .bandwidth = 0.5e9);
    PC_SCOPE {
        if (!made_on_device(dev) || !made_on_host(dev)) /* once for nothing: memory is made */
            return pc_report(stderr);
        PC_TRACE_RANGE("create_on_device") {
            time_it("made on the host", made_on_host, dev);
            time_it("made on the device", made_on_device, dev);
        }
    }
    return pc_failed() ? pc_report(stderr) : 0;
}

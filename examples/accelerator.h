/* accelerator.h: what the examples about streams compute on: a GPU where there is one, else a simulated device of the
 * speed that the example asks for; and the host's clock. */
#ifndef ACCELERATOR_H
#define ACCELERATOR_H

#include <paracord.h>
#include <time.h>

static inline pc_device accelerator_with(pc_sim_options simulated)
{
    bool gpu = pc_device_available(PC_CUDA);
    simulated.devices = 1;
    if (!gpu && pc_sim_configure(simulated) != PC_OK)
        return (pc_device){-1, 0};
    pc_device device = pc_device_pick(gpu ? "cuda:0" : "sim:0");
    return pc_device_set_current(device) == PC_OK ? device : (pc_device){-1, 0};
}

/* accelerator(.kernel_time = 4e-3, .bandwidth = 1e9): simulated, a kernel takes 4 ms and a copy goes at 1 GB/s. */
#define accelerator(...) accelerator_with(PC_OPTIONS(pc_sim_options, __VA_ARGS__))

/* Milliseconds. */
static inline double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* What a program does on its own CPU, for so many milliseconds. */
static inline void host_work(double milliseconds)
{
    PC_TRACE_RANGE("own work") {
        for (double start = now(); now() < start + milliseconds;)
            continue;
    }
}

#endif

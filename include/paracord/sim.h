/* sim.h: accelerators played by threads of the CPU, for programs and tests on machines that have none.
 *
 *     PARACORD_SIM=4 ./program                                  # sim:0 to sim:3
 *     PARACORD_SIM=2,memory=64M,bandwidth=1G ./program
 *     pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 4))  // the same from C
 *
 * A sim device behaves as a GPU does: memory of its own that the host cannot read or write (an address of it faults),
 * streams that run beside the host and beside each other, two copy engines (one a direction) and a compute engine,
 * events with times, copies between devices, graphs, an end to its memory, and errors that come later. Its kernels are
 * the CPU's: results are equal bit for bit.
 */
#ifndef PARACORD_SIM_H
#define PARACORD_SIM_H

#include <paracord/device.h>

PC_BEGIN

typedef struct pc_sim_options {
    int reserved_;
    int devices;           /* 0: none; at most 64 */
    int64_t memory;        /* bytes of each device; 0: 1 GiB */
    int kernels;           /* kernels of different streams that a device runs at once; 0: 2 */
    double bandwidth;      /* bytes a second that a copy engine moves at most; 0: what the machine does */
    double launch_latency; /* seconds from a kernel's turn to its start */
    double kernel_time;    /* seconds that a kernel takes at least */
} pc_sim_options;

/* Make these the sim devices, in place of what PARACORD_SIM said ("4", or "4,memory=64M,kernels=1,bandwidth=2G,
 * latency=20us,time=1ms,fail=kernel:17"; fail=copy:3@1 is of sim:1 alone). Waits for their work. PC_ERR_STATE while tensors on sim devices are alive;
 * PC_ERR_ARGUMENT. Lost devices come back. Not while other threads use sim devices. */
PC_API PC_MUST_USE pc_status pc_sim_configure(pc_sim_options options);

/* Something goes wrong on a device. */
typedef enum pc_sim_fault {
    PC_SIM_NO_FAULT,
    PC_SIM_FAIL_KERNEL, /* a kernel fails */
    PC_SIM_FAIL_COPY,   /* a copy fails */
    PC_SIM_FAIL_ANY,    /* either of them */
    PC_SIM_FAIL_MEMORY, /* an allocation of device memory is refused, until pc_sim_inject is called again */
    PC_SIM_LOSE,        /* the device is lost at a kernel or copy: everything on it fails from then on */
    PC_SIM_CORRUPT, /* a copy to another device, or a collective, leaves another byte than it should, without an error */
    PC_SIM_HANG     /* a copy to another device, or a collective, goes no further until pc_sim_inject is called again */
} pc_sim_fault;

/* Let the n-th operation from now (1 is the next one) of the kind that the fault is about go wrong, once;
 * PC_SIM_NO_FAULT takes back what has not happened yet. PC_ERR_DEVICE. Any thread. */
PC_API PC_MUST_USE pc_status pc_sim_inject(pc_device device, pc_sim_fault fault, int64_t n);

/* Kernels and copies that the device has begun so far. */
PC_API int64_t pc_sim_operations(pc_device device);

PC_END
#endif

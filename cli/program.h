/* program.h: what add, saxpy, matmul and mandelbrot share: where the time goes, and how much faster that is than what.
 *
 * Each program runs on any device and does the same: make room, copy in, compute, copy out, check the result against a
 * plain loop. Seconds are NaN where there is nothing to measure. */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include <paracord/stream.h>
#include <paracord/tensor.h>

#include "clock.h"
#include "command.h"

typedef struct cli_program {
    const cli_command *command;
    pc_device device;
    bool json;
    bool local;      /* the device computes in the host's memory: nothing is copied */
    double open;     /* the device's first answer: on a GPU, its context */
    double allocate; /* memory of the device */
    double copy_in, first, compute, copy_out;
    double plain; /* a plain loop on one core */
    double cpu;   /* the library on the CPU, all cores; NaN where that is the device */
    int64_t bytes_in, bytes_out;
    double work;      /* of one go: bytes moved, operations or steps */
    const char *unit; /* of the work: "B", "FLOP" */
} cli_program;

/* Find the device, and wait until it answers. False: an error, told. */
bool cli_program_open(cli_program *p, const cli_call *call, const char *device, bool json);

/* Whether the host has that much memory to spare; otherwise an error that names both, and `way_out`. */
bool cli_program_fits(const cli_program *p, double bytes, const char *way_out);

/* An array of the host, of zeros: every page of it is there before anything is timed. NULL: an error, not told yet. */
pc_tensor *cli_program_host(cli_program *p, pc_shape shape, pc_dtype dtype, bool pinned);

/* A tensor on the device for `host` (the tensor itself where that is the same memory), and its content there and back.
 * They add up their times. NULL, false: an error, not told yet. */
pc_tensor *cli_program_room(cli_program *p, pc_tensor *host);
bool cli_program_copy(cli_program *p, pc_tensor *to, pc_tensor *from);

/* The time of the first call, waited for; and of later ones: the median of several batches. */
bool cli_program_first(cli_program *p, cli_body body, void *context);
bool cli_program_steady(pc_device device, cli_body body, void *context, double *seconds);

/* Print where the time went; or, for JSON, those members of an object, the last without a comma behind it. */
void cli_program_report(const cli_program *p);

/* The exit status: CLI_FINE, or an error that says how many of n elements differ from the plain loop's. */
int cli_program_verdict(const cli_program *p, int64_t wrong, int64_t n);

/* "12.3 us", and "4.35 TB/s" of an amount in `unit`. */
char *cli_seconds(double seconds, char text[32]);
char *cli_rate(double amount, double seconds, const char *unit, char text[32]);

/* The options that all programs have: their help, and the devices that shells offer. */
extern const cli_choice cli_program_devices[];
#define CLI_DEVICE_HELP "Where to compute: cpu, cuda, cuda:1, sim:0; auto takes the fastest there is"
#define CLI_PINNED_HELP "Keep the host's side in pinned memory, which devices copy by themselves"

#endif

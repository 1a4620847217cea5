/* clock.h: how long work takes on a device, which the commands that measure share. */
#ifndef CLI_CLOCK_H
#define CLI_CLOCK_H

#include <paracord/device.h>
#include <stdbool.h>

/* Queues the work once; false: an error. */
typedef bool (*cli_body)(void *context);

/* Seconds of a clock that only goes forward. */
double cli_now(void);

/* Seconds of each of `times` calls: by the host's clock, until the device is done; and between marks in the device's
 * stream, so that the host's share does not count. False: an error. */
bool cli_by_clock(pc_device device, cli_body body, void *context, int times, double *seconds);
bool cli_by_marks(pc_device device, cli_body body, void *context, int times, double *seconds);

/* Smallest first. */
void cli_sort(double *values, int n);

#endif

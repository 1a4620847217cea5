/* devices.h: what the parts of paracord devices share. */
#ifndef CLI_DEVICES_H
#define CLI_DEVICES_H

#include <paracord-tools/probe.h>

#include "command.h"
#include "machine.h"

typedef struct devices_settings {
    bool json, csv, all, watch;
    double interval;
    int count;
    cli_machine_from from;
} devices_settings;

/* devices_line.c: a line with its label; the heading of a device; a library. In as many columns as there are. */
void cli_devices_line(const char *label, const char *format, ...) PC_PRINTF(2, 3);
void cli_devices_heading(const pc_machine *machine, int i);
void cli_devices_library(const char *label, const pc_probe_library *library);

/* devices_text.c: for people; with `all` every fact, and of unknown ones the reason. */
void cli_devices_text(const pc_machine *machine, bool all);

/* devices_compute.c: what Paracord computes on, and why not on the rest. */
void cli_compute_text(void);
void cli_compute_json(void);

/* devices_stream.c: a line for each device and sample. */
void cli_devices_csv_head(void);
void cli_devices_csv(const pc_machine *machine);
void cli_devices_time(char text[32]);

/* devices_watch.c: wait for the next sample; false when a signal came. */
bool cli_devices_pause(double seconds);

/* devices_watch.c: the live view, until Ctrl-C or q, or for `count` samples (0: for ever); the exit status. */
int cli_devices_watch(const cli_call *call, pc_machine *machine);

#endif

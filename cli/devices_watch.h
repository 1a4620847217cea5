/* devices_watch.h: what the live view remembers, and its page. */
#ifndef CLI_DEVICES_WATCH_H
#define CLI_DEVICES_WATCH_H

#include "devices.h"

#define WATCH_KEPT 512 /* samples of history */

/* What is watched of a device: a share of something, between 0 and 1; NaN: unknown then. */
enum { WATCH_LOAD, WATCH_MEMORY, WATCH_POWER, WATCH_HEAT, WATCH_ROWS };

typedef struct watch_history {
    float share[WATCH_ROWS][WATCH_KEPT];
    int count; /* samples so far; the last one is at (count - 1) % WATCH_KEPT */
} watch_history;

typedef struct watch {
    const pc_machine *machine;
    watch_history *histories; /* of each device */
    double interval;
    int first; /* the device that the page begins with, where there are more than it has lines */
} watch;

/* A driver says what the device does. */
bool cli_watch_tells(const pc_probe_device *device);

/* "37 %", "120.3 of 140.4 GiB", "612 of 700 W", "61 C", "unknown"; shorter ones for narrow columns. */
char *cli_watch_value(const pc_probe_device *device, int row, bool brief, char text[64]);

/* devices_view.c: the page for the screen as it is now. */
void cli_watch_draw(watch *w);

#endif

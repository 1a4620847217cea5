/* devices_watch.c: what each device does now, and did before: as a page of the terminal, or as lines where there is
 * none. */
#include "devices_watch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "screen.h"
#include "signals.h"
#include "text.h"

#define HEAD_EVERY 20 /* lines */

static float share_of(const pc_fact *part, const pc_fact *whole)
{
    if (!part->known || !whole->known || whole->number <= 0)
        return NAN;
    return (float)(part->number / whole->number);
}

static void remember(watch *w)
{
    pc_fact hundred = {.known = true, .number = 100};
    for (int i = 0; i < w->machine->device_count; i++) {
        const pc_probe_device *d = &w->machine->devices[i];
        watch_history *h = &w->histories[i];
        int at = h->count++ % WATCH_KEPT;
        h->share[WATCH_LOAD][at] = share_of(&d->utilization_gpu, &hundred);
        h->share[WATCH_MEMORY][at] = share_of(&d->memory_used, &d->memory_total);
        h->share[WATCH_POWER][at] = share_of(&d->power, &d->power_limit_enforced);
        h->share[WATCH_HEAT][at] =
            share_of(&d->temperature, d->temperature_slowdown.known ? &d->temperature_slowdown : &hundred);
    }
}

bool cli_watch_tells(const pc_probe_device *d)
{
    return d->nvml || d->utilization_gpu.known || d->memory_used.known || d->power.known;
}

char *cli_watch_value(const pc_probe_device *d, int row, bool brief, char text[64])
{
    double gib = 1 << 30;
    snprintf(text, 64, "%s", brief ? "?" : "unknown");
    if (row == WATCH_LOAD && d->utilization_gpu.known)
        snprintf(text, 64, "%.0f %%", d->utilization_gpu.number);
    if (row == WATCH_MEMORY && d->memory_used.known && d->memory_total.known)
        snprintf(text, 64, brief ? "%.0f/%.0f GiB" : "%.1f of %.1f GiB", d->memory_used.number / gib,
                 d->memory_total.number / gib);
    if (row == WATCH_POWER && d->power.known && d->power_limit_enforced.known)
        snprintf(text, 64, brief ? "%.0f/%.0f W" : "%.0f of %.0f W", d->power.number, d->power_limit_enforced.number);
    else if (row == WATCH_POWER && d->power.known)
        snprintf(text, 64, "%.0f W", d->power.number);
    if (row == WATCH_HEAT && d->temperature.known)
        snprintf(text, 64, "%.0f C", d->temperature.number);
    return text;
}

/* A line for each device and sample, for terminals that are mere paper and for files. */
static void print_lines(const pc_machine *m, int sample)
{
    char now[32], value[64];
    cli_devices_time(now);
    now[19] = 0;
    int every = HEAD_EVERY / (m->device_count ? m->device_count : 1);
    if (sample % (every ? every : 1) == 0)
        printf("%-19s  %-3s%-28s %7s %20s %13s %5s\n", "time (UTC)", "", "device", "load", "memory", "power", "heat");
    if (m->hung)
        printf("%s  the driver did not answer %s in time\n", now, m->hung);
    for (int i = 0; i < m->device_count; i++) {
        const pc_probe_device *d = &m->devices[i];
        const char *whose = d->model.known ? d->model.text : d->vendor.known ? d->vendor.text : "unknown device";
        char name[29];
        snprintf(name, sizeof name, "%s", whose + (strncmp(whose, "NVIDIA ", 7) ? 0 : 7));
        printf("%s  %-3d", now, i);
        cli_print_safe(stdout, name);
        cli_pad(stdout, cli_columns(name), 28);
        printf(" %7s", cli_watch_value(d, WATCH_LOAD, false, value));
        printf(" %20s", cli_watch_value(d, WATCH_MEMORY, false, value));
        printf(" %13s", cli_watch_value(d, WATCH_POWER, false, value));
        printf(" %5s\n", cli_watch_value(d, WATCH_HEAT, true, value));
    }
    if (!m->device_count)
        printf("%s  no graphics or accelerator device is visible\n", now);
    fflush(stdout);
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Wait for the next sample, and do what keys say meanwhile; false when it is time to go. */
static bool wait_for_next(watch *w)
{
    int64_t until = now_ms() + (int64_t)(w->interval * 1000);
    for (int64_t left; (left = until - now_ms()) > 0;) {
        int key = cli_screen_key(left);
        if (key == 'q' || key == 'Q' || key == CLI_KEY_STOP)
            return false;
        if (key == CLI_KEY_DOWN || key == CLI_KEY_UP)
            w->first += key == CLI_KEY_DOWN ? 1 : -1;
        if (key != CLI_KEY_NONE)
            cli_watch_draw(w);
    }
    return true;
}

bool cli_devices_pause(double seconds)
{
    struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    return nanosleep(&pause, NULL) == 0 && !cli_signal();
}

static bool watch_samples(watch *w, pc_machine *machine, int count, bool page)
{
    for (int i = 0; count == 0 || i < count; i++) {
        if (i && !(page ? wait_for_next(w) : cli_devices_pause(w->interval)))
            return true;
        if (i && pc_machine_sample(machine) != PC_OK)
            return false;
        remember(w);
        if (page)
            cli_watch_draw(w);
        else
            print_lines(machine, i);
        if (ferror(stdout))
            return true; /* cli_finish says so */
    }
    return true;
}

int cli_devices_watch(const cli_call *call, pc_machine *machine)
{
    const devices_settings *settings = call->settings;
    char why[256];
    watch w = {.machine = machine, .interval = settings->interval};
    w.histories = calloc((size_t)machine->device_count + 1, sizeof *w.histories);
    if (!w.histories) {
        cli_error(call->command, "out of memory");
        return CLI_FAILED;
    }
    bool page = cli_is_terminal(stdout);
    if (page && !cli_screen_begin(why, sizeof why)) {
        cli_error(call->command, "no live view: %s; lines instead, and --watch --csv gives samples for programs", why);
        page = false;
    }
    if (!page)
        cli_signals_catch();
    bool fine = watch_samples(&w, machine, settings->count, page);
    if (page)
        cli_screen_end();
    free(w.histories);
    return fine ? CLI_FINE : cli_failed(call->command);
}

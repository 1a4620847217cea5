/* devices_watch.c: the live view: what each device does now, and did before. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "devices.h"
#include "signals.h"
#include "text.h"

#define KEPT 512 /* samples of history */
#define SHOWN 5  /* processes of a device */

/* The rows of a device: a share of something, drawn as its history. NaN: unknown then. */
enum { LOAD, MEMORY, POWER, TEMPERATURE, ROWS };
static const char *const labels[ROWS] = {"Load", "Memory", "Power", "Heat"};

typedef struct history {
    float share[ROWS][KEPT];
    int count; /* samples so far; the last one is at (count - 1) % KEPT */
} history;

typedef struct view {
    pc_machine *machine;
    history *histories;
    bool terminal, keys; /* frames replace one another; letters can be read */
    struct termios before;
} view;

static float share_of(const pc_fact *part, const pc_fact *whole)
{
    if (!part->known || !whole->known || whole->number <= 0)
        return NAN;
    return (float)(part->number / whole->number);
}

static void remember(view *v)
{
    pc_fact hundred = {.known = true, .number = 100};
    for (int i = 0; i < v->machine->device_count; i++) {
        const pc_probe_device *d = &v->machine->devices[i];
        history *h = &v->histories[i];
        int at = h->count++ % KEPT;
        h->share[LOAD][at] = share_of(&d->utilization_gpu, &hundred);
        h->share[MEMORY][at] = share_of(&d->memory_used, &d->memory_total);
        h->share[POWER][at] = share_of(&d->power, &d->power_limit_enforced);
        h->share[TEMPERATURE][at] =
            share_of(&d->temperature, d->temperature_slowdown.known ? &d->temperature_slowdown : &hundred);
    }
}

/* The last `columns` samples, the newest to the right. */
static void draw_history(const history *h, int row, int columns)
{
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const plain[] = {"_", ".", ":", "-", "=", "+", "*", "#"};
    int known = h->count < KEPT ? h->count : KEPT;
    for (int i = columns; i > 0; i--) {
        float share = i <= known ? h->share[row][(h->count - i) % KEPT] : NAN;
        if (isnan(share)) {
            putchar(' ');
            continue;
        }
        int level = (int)(share * 8);
        level = level < 0 ? 0 : level > 7 ? 7 : level;
        fputs(cli_utf8() ? blocks[level] : plain[level], stdout);
    }
}

static void write_value(const pc_probe_device *d, int row, char *text, size_t n)
{
    snprintf(text, n, "unknown");
    if (row == LOAD && d->utilization_gpu.known)
        snprintf(text, n, "%.0f %%", d->utilization_gpu.number);
    if (row == MEMORY && d->memory_used.known && d->memory_total.known)
        snprintf(text, n, "%.1f of %.1f GiB", d->memory_used.number / (1 << 30), d->memory_total.number / (1 << 30));
    if (row == POWER && d->power.known && d->power_limit_enforced.known)
        snprintf(text, n, "%.0f of %.0f W", d->power.number, d->power_limit_enforced.number);
    else if (row == POWER && d->power.known)
        snprintf(text, n, "%.0f W", d->power.number);
    if (row == TEMPERATURE && d->temperature.known)
        snprintf(text, n, "%.0f C", d->temperature.number);
}

/* A driver says what the device does. */
static bool tells(const pc_probe_device *d)
{
    return d->nvml || d->utilization_gpu.known || d->memory_used.known || d->power.known;
}

/* End of a line: whatever an earlier frame left there goes away. */
static void end_line(const view *v)
{
    fputs(v->terminal ? "\033[K\n" : "\n", stdout);
}

static void draw_device(const view *v, int i, int width)
{
    char value[64];
    const pc_probe_device *d = &v->machine->devices[i];
    cli_set_style(stdout, CLI_BOLD);
    printf("%-3d", i);
    cli_print_safe(stdout, d->model.known ? d->model.text : d->vendor.known ? d->vendor.text : "unknown device");
    cli_set_style(stdout, CLI_PLAIN);
    printf("  %s", d->address.text);
    if (d->index_cuda.known)
        printf("  cuda:%.0f", d->index_cuda.number);
    end_line(v);
    if (!tells(d)) {
        fputs("   nothing to watch: no driver that tells", stdout);
        end_line(v);
        return;
    }
    for (int row = 0; row < ROWS; row++) {
        write_value(d, row, value, sizeof value);
        printf("   %-7s %-18s ", labels[row], value);
        draw_history(&v->histories[i], row, width > 40 ? width - 31 : 10);
        end_line(v);
    }
    printf("   Clocks  ");
    if (d->clock_sm.known)
        printf("%.0f MHz", d->clock_sm.number);
    else
        printf("unknown");
    if (d->clock_reasons.known && strcmp(d->clock_reasons.text, "nothing"))
        printf(", held down by: %s", d->clock_reasons.text);
    end_line(v);
    for (int p = 0; p < d->process_count && p < SHOWN; p++) {
        const pc_probe_process *process = &d->processes[p];
        printf("   %-7s %lld ", p ? "" : "Used by", (long long)process->pid);
        cli_print_safe(stdout, process->name ? process->name : "(not visible from here)");
        if (process->memory.known)
            printf(", %.0f MiB", process->memory.number / (1 << 20));
        end_line(v);
    }
}

/* A line for each, where the screen has no room for more. */
static void draw_line(const view *v, int i, int width)
{
    char value[ROWS][64];
    const pc_probe_device *d = &v->machine->devices[i];
    for (int row = 0; row < ROWS; row++)
        write_value(d, row, value[row], sizeof value[row]);
    int at = printf("%-3d%.24s", i, d->model.known ? d->model.text : d->vendor.known ? d->vendor.text : "unknown");
    cli_pad(stdout, at, 28);
    if (tells(d))
        printf("%6s  %18s  %12s  %5s  ", value[LOAD], value[MEMORY], value[POWER], value[TEMPERATURE]);
    if (tells(d))
        draw_history(&v->histories[i], LOAD, width > 90 ? width - 78 : 10);
    end_line(v);
}

/* Lines of the terminal; many where there is none. */
static int height(const view *v)
{
    struct winsize size;
    return v->terminal && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row ? size.ws_row : 10000;
}

static int lines_of(const view *v)
{
    int lines = 2;
    for (int i = 0; i < v->machine->device_count; i++) {
        const pc_probe_device *d = &v->machine->devices[i];
        lines += tells(d) ? ROWS + 2 + (d->process_count < SHOWN ? d->process_count : SHOWN) : 2;
    }
    return lines;
}

static void draw(const view *v)
{
    char now[32];
    int width = cli_width(stdout);
    if (v->terminal)
        fputs("\033[H", stdout);
    cli_devices_time(now);
    now[19] = 0;
    printf("%s UTC%s%s%s", now, v->machine->driver.known ? ", driver " : "",
           v->machine->driver.known ? v->machine->driver.text : "", v->keys ? ", q ends" : "");
    end_line(v);
    if (v->machine->hung) {
        printf("The driver did not answer %s in time", v->machine->hung);
        end_line(v);
    }
    bool tight = lines_of(v) >= height(v);
    for (int i = 0; i < v->machine->device_count; i++)
        (tight ? draw_line : draw_device)(v, i, width);
    if (!v->machine->device_count) {
        fputs("No graphics or accelerator device is visible", stdout);
        end_line(v);
    }
    if (v->terminal)
        fputs("\033[J", stdout);
    fflush(stdout);
}

/* The other screen of the terminal, without cursor; letters come at once. */
static void begin(view *v)
{
    v->terminal = cli_is_terminal(stdout);
    v->keys = v->terminal && tcgetattr(STDIN_FILENO, &v->before) == 0;
    if (v->keys) {
        struct termios raw = v->before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    if (v->terminal)
        fputs("\033[?1049h\033[?25l\033[2J", stdout);
}

static void end(view *v)
{
    if (v->terminal)
        fputs("\033[?25h\033[?1049l", stdout);
    fflush(stdout);
    if (v->keys)
        tcsetattr(STDIN_FILENO, TCSANOW, &v->before);
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Wait for the next sample; false when it is time to go. */
static bool wait_for_next(const view *v, double seconds)
{
    int64_t until = now_ms() + (int64_t)(seconds * 1000);
    struct pollfd keyboard = {.fd = v->keys ? STDIN_FILENO : -1, .events = POLLIN};
    char letter;
    for (int64_t left; (left = until - now_ms()) > 0;) {
        int ready = poll(&keyboard, 1, (int)(left > 100000 ? 100000 : left));
        if (cli_signal())
            return false;
        if (ready > 0 && (read(STDIN_FILENO, &letter, 1) != 1 || letter == 'q' || letter == 'Q'))
            return false;
    }
    return true;
}

int cli_devices_watch(const cli_call *call, pc_machine *machine)
{
    const devices_settings *settings = call->settings;
    view v = {.machine = machine};
    v.histories = calloc((size_t)machine->device_count + 1, sizeof *v.histories);
    if (!v.histories) {
        cli_error(call->command, "out of memory");
        return CLI_FAILED;
    }
    cli_signals_catch();
    begin(&v);
    bool fine = true;
    for (int i = 0; fine && (settings->count == 0 || i < settings->count); i++) {
        if (i && !wait_for_next(&v, settings->interval))
            break;
        fine = i == 0 || pc_machine_sample(machine) == PC_OK;
        remember(&v);
        draw(&v);
        if (!v.terminal && (settings->count == 0 || i + 1 < settings->count))
            putchar('\n');
        if (ferror(stdout))
            break;
    }
    end(&v);
    free(v.histories);
    return fine ? CLI_FINE : cli_failed(call->command);
}

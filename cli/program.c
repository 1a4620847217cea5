/* program.c: timing the programs' parts, and the report of where the time went. */
#include "program.h"

#include <math.h>
#include <string.h>

#include <paracord/memory.h>
#include <paracord/ops.h>
#include <paracord/threads.h>

#include "text.h"

const cli_choice cli_program_devices[] = {{"auto", NULL}, {"cpu", NULL}, {"cuda", NULL}, {"sim", NULL}, {0}};

bool cli_program_open(cli_program *p, const cli_call *call, const char *device, bool json)
{
    *p = (cli_program){.command = call->command, .json = json, .plain = NAN, .cpu = NAN};
    const double start = cli_now();
    bool fine = pc_device_parse(device, &p->device) == PC_OK;
    pc_tensor *first = fine ? pc_zeros(PC_SHAPE(1), PC_U8, p->device) : NULL;
    fine = first && pc_device_synchronize(p->device) == PC_OK;
    pc_tensor_free(first);
    p->open = cli_now() - start;
    p->local = p->device.type == PC_CPU;
    if (!fine)
        cli_failed(call->command);
    return fine;
}

bool cli_program_fits(const cli_program *p, double bytes, const char *way_out)
{
    const double left = (double)pc_memory_left();
    bytes *= p->device.type == PC_SIM ? 1.75 : 1; /* the device's memory is the host's, too */
    if (bytes <= left)
        return true;
    cli_error(p->command, "this takes %.1f GB of memory and %.1f GB are left; %s", bytes * 1e-9, left * 1e-9, way_out);
    return false;
}

pc_tensor *cli_program_host(cli_program *p, pc_shape shape, pc_dtype dtype, bool pinned)
{
    const double start = cli_now();
    pc_tensor *array = pinned ? pc_empty_pinned(shape, dtype, p->device) : pc_empty(shape, dtype, PC_DEVICE_CPU);
    p->allocate += p->local ? cli_now() - start : 0;
    if (!array || pc_fill(array, 0) == PC_OK)
        return array;
    pc_tensor_free(array);
    return NULL;
}

pc_tensor *cli_program_room(cli_program *p, pc_tensor *host)
{
    if (!host || p->local)
        return pc_tensor_retain(host);
    const double start = cli_now();
    pc_tensor *room = pc_empty(pc_tensor_shape(host), pc_tensor_dtype(host), p->device);
    p->allocate += cli_now() - start;
    return room;
}

bool cli_program_copy(cli_program *p, pc_tensor *to, pc_tensor *from)
{
    const bool in = pc_device_equal(pc_tensor_device(to), p->device);
    const int64_t bytes = pc_tensor_count(to) * (int64_t)pc_dtype_size(pc_tensor_dtype(to));
    if (!to || !from)
        return false;
    if (to == from)
        return true;
    const double start = cli_now();
    if (pc_copy(to, from) != PC_OK || pc_device_synchronize(p->device) != PC_OK)
        return false;
    *(in ? &p->copy_in : &p->copy_out) += cli_now() - start;
    *(in ? &p->bytes_in : &p->bytes_out) += bytes;
    return true;
}

bool cli_program_first(cli_program *p, cli_body body, void *context)
{
    const double start = cli_now();
    const bool fine = body(context) && pc_device_synchronize(p->device) == PC_OK;
    p->first = cli_now() - start;
    return fine;
}

bool cli_program_steady(pc_device device, cli_body body, void *context, double *seconds)
{
    enum { BATCHES = 7, MOST = 1000 };
    const double enough = 2e-3; /* seconds of a batch: marks and clocks do not count any more */
    double times[BATCHES];
    bool (*batch)(pc_device, cli_body, void *, int, double *) = device.type == PC_CPU ? cli_by_clock : cli_by_marks;
    if (!batch(device, body, context, 1, &times[0]))
        return false;
    if (times[0] > 1) { /* long enough by itself */
        *seconds = times[0];
        return true;
    }
    const int calls = times[0] > 0 ? (int)fmin(MOST, ceil(enough / times[0])) : MOST;
    for (int i = 0; i < BATCHES; i++)
        if (!batch(device, body, context, calls, &times[i]))
            return false;
    cli_sort(times, BATCHES);
    *seconds = times[BATCHES / 2];
    return true;
}

static char *scaled(double value, const char *const *units, int count, double step, char text[32])
{
    int i = 0;
    for (; i < count - 1 && value >= 999.5; i++)
        value /= step;
    snprintf(text, 32, value >= 99.95 ? "%.0f %s" : value >= 9.995 ? "%.1f %s" : "%.2f %s", value, units[i]);
    return text;
}

char *cli_seconds(double seconds, char text[32])
{
    static const char *const units[] = {"ns", "us", "ms"};
    if (isnan(seconds))
        return strcpy(text, "-");
    if (seconds >= 0.9995)
        return snprintf(text, 32, "%.2f s", seconds), text;
    return scaled(seconds * 1e9, units, 3, 1e3, text);
}

char *cli_rate(double amount, double seconds, const char *unit, char text[32])
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    char names[6][16];
    const char *units[6];
    for (int i = 0; i < 6; i++) {
        snprintf(names[i], sizeof names[i], "%s%s/s", prefixes[i], unit);
        units[i] = names[i];
    }
    if (!(amount > 0 && seconds > 0))
        return strcpy(text, "");
    return scaled(amount / seconds, units, 6, 1e3, text);
}

static void row(const char *what, double seconds, double amount, const char *unit)
{
    char time[32], rate[32];
    cli_rate(amount, seconds, unit, rate);
    printf("  %-26s %10s%s%s\n", what, cli_seconds(seconds, time), *rate ? "   " : "", rate);
}

/* How often `ours` goes into `theirs`. */
static char *times_as_fast(double theirs, double ours, char text[32])
{
    const double ratio = theirs / ours;
    snprintf(text, 32, ratio >= 99.5 ? "%.0fx" : ratio >= 9.95 ? "%.1fx" : ratio >= 0.0995 ? "%.2fx" : "%.2gx", ratio);
    return text;
}

static void speedup(const cli_program *p, const char *against, double theirs)
{
    char time[32], alone[32], all[32];
    if (isnan(theirs))
        return;
    printf("  %-26s %10s   %12s   %11s\n", against, cli_seconds(theirs, time), times_as_fast(theirs, p->compute, alone),
           p->local ? "no copies" : times_as_fast(theirs, p->copy_in + p->compute + p->copy_out, all));
}

static void print_text(const cli_program *p)
{
    char cores[64], name[PC_DEVICE_NAME_MAX];
    pc_device_name(p->device, name);
    printf("Where the time went on %s\n", name);
    row(p->local ? "start" : "start the device", p->open, 0, "");
    row("allocate", p->allocate, 0, "");
    if (p->bytes_in)
        row("copy in", p->copy_in, (double)p->bytes_in, "B");
    row("compute, first call", p->first, p->work, p->unit);
    row("compute, steady", p->compute, p->work, p->unit);
    if (p->bytes_out)
        row("copy out", p->copy_out, (double)p->bytes_out, "B");
    printf("How much faster than%*s%10s   compute only   with copies\n", 9, "", "its time");
    speedup(p, "a plain loop on one core", p->plain);
    snprintf(cores, sizeof cores, "paracord on cpu, %d core%s", pc_threads_get(), pc_threads_get() == 1 ? "" : "s");
    speedup(p, cores, p->cpu);
}

static void member(const char *name, double value, const char *behind)
{
    printf("\"%s\": ", name);
    cli_json_number(stdout, value);
    fputs(behind, stdout);
}

static void speedup_json(const cli_program *p, const char *name, double theirs, const char *behind)
{
    printf("\"%s\": {", name);
    member("compute_only", theirs / p->compute, ", ");
    member("with_copies", theirs / (p->copy_in + p->compute + p->copy_out), "}");
    fputs(behind, stdout);
}

static void print_json(const cli_program *p)
{
    char name[PC_DEVICE_NAME_MAX];
    printf("\"device\": \"%s\", \"cpu_threads\": %d, \"seconds\": {", pc_device_name(p->device, name),
           pc_threads_get());
    member("start", p->open, ", ");
    member("allocate", p->allocate, ", ");
    member("copy_in", p->bytes_in ? p->copy_in : NAN, ", ");
    member("first_call", p->first, ", ");
    member("compute", p->compute, ", ");
    member("copy_out", p->bytes_out ? p->copy_out : NAN, ", ");
    member("plain_loop", p->plain, ", ");
    member("cpu", p->local ? p->compute : p->cpu, "}, ");
    printf("\"bytes\": {\"in\": %lld, \"out\": %lld}, \"work\": {", (long long)p->bytes_in, (long long)p->bytes_out);
    member("amount", p->work, ", ");
    printf("\"unit\": \"%s\"}, \"speedup\": {", p->unit);
    speedup_json(p, "plain_loop", p->plain, ", ");
    speedup_json(p, "cpu", p->local ? p->compute : p->cpu, "}");
}

void cli_program_report(const cli_program *p)
{
    if (p->json)
        print_json(p);
    else
        print_text(p);
}

int cli_program_verdict(const cli_program *p, int64_t wrong, int64_t n)
{
    if (!wrong)
        return CLI_FINE;
    cli_error(p->command, "%lld of %lld elements are not those of a plain loop", (long long)wrong, (long long)n);
    return CLI_FAILED;
}

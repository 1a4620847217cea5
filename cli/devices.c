/* devices.c: paracord devices */
#include "devices.h"

#include <stddef.h>
#include <string.h>

#include "signals.h"
#include "text.h"

static void print_json(const pc_machine *machine, bool timed)
{
    char now[32];
    putchar('{');
    if (timed) {
        cli_devices_time(now);
        printf("\"time\": \"%s\", ", now);
    }
    fputs("\"machine\": ", stdout);
    if (pc_machine_json(machine, stdout) != PC_OK)
        pc_error_clear(); /* cli_finish says that the output cannot be written */
    if (machine->live && !timed && cli_machine_awake(machine)) {
        fputs(", \"compute\": ", stdout);
        cli_compute_json();
    }
    puts("}");
}

static void print_once(const devices_settings *settings, const pc_machine *machine)
{
    if (settings->json) {
        print_json(machine, false);
    } else if (settings->csv) {
        cli_devices_csv_head();
        cli_devices_csv(machine);
    } else {
        cli_devices_text(machine, settings->all);
        if (machine->live && cli_machine_awake(machine))
            cli_compute_text();
    }
}

/* Samples for programs, one line each, until they are enough or the reader is gone. */
static int stream(const cli_call *call, pc_machine *machine)
{
    const devices_settings *settings = call->settings;
    cli_signals_catch();
    if (settings->csv)
        cli_devices_csv_head();
    for (int i = 0; (settings->count == 0 || i < settings->count) && !cli_signal(); i++) {
        if (i && !cli_devices_pause(settings->interval))
            break;
        if (i && pc_machine_sample(machine) != PC_OK)
            return cli_failed(call->command);
        if (settings->csv)
            cli_devices_csv(machine);
        else
            print_json(machine, true);
        if (fflush(stdout))
            return CLI_FAILED;
    }
    return CLI_FINE;
}

static int show(const cli_call *call, pc_machine *machine)
{
    const devices_settings *settings = call->settings;
    if (settings->from.record) {
        if (pc_machine_record(machine, settings->from.record) != PC_OK)
            return cli_failed(call->command);
        printf("What the probe read of this machine is in %s\n", settings->from.record);
        return CLI_FINE;
    }
    if (!settings->watch) {
        print_once(settings, machine);
        return CLI_FINE;
    }
    return settings->json || settings->csv ? stream(call, machine) : cli_devices_watch(call, machine);
}

static int run(const cli_call *call)
{
    const devices_settings *settings = call->settings;
    if (settings->json && settings->csv) {
        cli_error(call->command, "--json and --csv exclude each other");
        return CLI_WRONG_USAGE;
    }
    return cli_with_machine(call, &settings->from, show);
}

static const cli_option options[] = {
    {"all", 'a', CLI_FLAG, offsetof(devices_settings, all), NULL, NULL,
     .help = "Every fact, and of unknown ones the reason"},
    {"json", 0, CLI_FLAG, offsetof(devices_settings, json), NULL, NULL, .help = "Print JSON, for programs"},
    {"csv", 0, CLI_FLAG, offsetof(devices_settings, csv), NULL, NULL,
     .help = "Print CSV, a line for each device; unknown is empty"},
    {"watch", 'w', CLI_FLAG, offsetof(devices_settings, watch), NULL, NULL,
     .help = "Live view with history (q ends it); with --json or --csv a stream of samples", .group = "Watching"},
    {"interval", 'i', CLI_FLOAT, offsetof(devices_settings, interval), "1", "SECONDS", .help = "Time between samples",
     .min = 0.05, .max = 86400},
    {"count", 'n', CLI_INT, offsetof(devices_settings, count), "0", "N", .help = "Samples to take; 0: until Ctrl-C",
     .max = 1e9},
    CLI_MACHINE_ROOT(devices_settings),
    {"record", 0, CLI_PATH, offsetof(devices_settings, from.record), NULL, "FILE",
     .help = "Write what is read of this machine to a file, for --root somewhere else"},
    CLI_MACHINE_WAKE(devices_settings),
    CLI_MACHINE_TIMEOUT(devices_settings),
    {0},
};

static const cli_example examples[] = {
    {"paracord devices", "What is in this machine"},
    {"paracord devices --watch", "What it is doing"},
    {"paracord devices --csv --watch --interval 5 >log.csv", "Keep samples"},
    {"paracord devices --record machine.txt", "Take the machine along, for a bug report"},
    {0},
};

const cli_command cli_devices = {
    .name = "devices",
    .alias = "device",
    .summary = "Show graphics and accelerator devices, and what there is to compute on",
    .description =
        "Shows every graphics and accelerator device, whether or not a driver runs: where it is, who made it, which "
        "kernel module has it, its memory, load, temperature, power, clocks and what holds them down, PCIe and NVLink, "
        "ECC, MIG, processes and displays. Then the CUDA toolkits, the libraries that parts of Paracord use, and what "
        "Paracord computes on.\n"
        "Unknown is shown as unknown; --all says why. No root is needed and no CUDA context is made. A driver that "
        "does not answer is cut off after --timeout and named.",
    .group = "The machine",
    .options = options,
    .examples = examples,
    .settings_size = sizeof(devices_settings),
    .run = run,
};

/* device.c: paracord device */
#include <stddef.h>
#include <string.h>

#include <paracord/device.h>

#include "command.h"
#include "text.h"

typedef struct device_settings {
    bool json;
} device_settings;

#define REASON_MAX 512

/* "cuda" for any of its devices */
static char *type_name(pc_device_type type, char name[PC_DEVICE_NAME_MAX])
{
    pc_device_name((pc_device){(int16_t)type, 0}, name);
    name[strcspn(name, ":")] = 0;
    return name;
}

static void print_text(void)
{
    char name[PC_DEVICE_NAME_MAX], why[REASON_MAX];
    int width = cli_width(stdout);
    for (int type = 0; type < PC_DEVICE_TYPES; type++) {
        int count = pc_device_count((pc_device_type)type, why, sizeof why);
        for (int i = 0; i < count; i++) {
            pc_device device = {(int16_t)type, (int16_t)i};
            bool current = pc_device_equal(device, pc_device_current());
            printf("%-8s %s\n", pc_device_name(device, name), current ? "ready, current" : "ready");
        }
        if (count)
            continue;
        int at = printf("%-8s not available: ", type_name((pc_device_type)type, name));
        cli_wrap(stdout, why, at, 9, width);
        putchar('\n');
    }
}

static void print_json(void)
{
    char name[PC_DEVICE_NAME_MAX], why[REASON_MAX];
    printf("{\"current\": \"%s\", \"devices\": [", pc_device_name(pc_device_current(), name));
    const char *joint = "";
    for (int type = 0; type < PC_DEVICE_TYPES; type++)
        for (int i = 0; i < pc_device_count((pc_device_type)type, NULL, 0); i++, joint = ", ")
            printf("%s\"%s\"", joint, pc_device_name((pc_device){(int16_t)type, (int16_t)i}, name));
    fputs("], \"not_available\": [", stdout);
    joint = "";
    for (int type = 0; type < PC_DEVICE_TYPES; type++) {
        if (pc_device_count((pc_device_type)type, why, sizeof why))
            continue;
        printf("%s{\"type\": \"%s\", \"why\": ", joint, type_name((pc_device_type)type, name));
        cli_json_text(stdout, why);
        putchar('}');
        joint = ", ";
    }
    puts("]}");
}

static int run(const cli_call *call)
{
    const device_settings *settings = call->settings;
    if (settings->json)
        print_json();
    else
        print_text();
    return CLI_FINE;
}

static const cli_option options[] = {
    {"json", 0, CLI_FLAG, offsetof(device_settings, json), NULL, NULL, .help = "Print JSON, for programs"},
    {0},
};

const cli_command cli_device = {
    .name = "device",
    .summary = "List what there is to compute on",
    .description = "Prints a line for each device, which one is current (where work goes unless --device says "
                   "otherwise), and for each kind of device that is not available the reason.",
    .group = "The machine",
    .options = options,
    .settings_size = sizeof(device_settings),
    .run = run,
};

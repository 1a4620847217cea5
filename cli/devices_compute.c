/* devices_compute.c: what Paracord computes on, and why not on the rest. */
#include <string.h>

#include "devices.h"
#include "text.h"

#define REASON_MAX 512
#define INDENT 14

/* "cuda" for any of its devices */
static char *type_name(pc_device_type type, char name[PC_DEVICE_NAME_MAX])
{
    pc_device_name((pc_device){(int16_t)type, 0}, name);
    name[strcspn(name, ":")] = 0;
    return name;
}

void cli_compute_text(void)
{
    char name[PC_DEVICE_NAME_MAX], why[REASON_MAX], list[512];
    const char *label = "Compute on";
    pc_device_list(list, sizeof list);
    int at = cli_pad(stdout, printf("%s", label), INDENT);
    at = cli_wrap(stdout, list, at, INDENT, cli_width(stdout));
    printf(" (now: %s)\n", pc_device_name(pc_device_current(), name));
    if (pc_cpu_level_why(why, sizeof why)[0]) {
        at = cli_pad(stdout, 0, INDENT);
        at += printf("cpu at SIMD level %s, no wider one: ", pc_cpu_level());
        cli_wrap(stdout, why, at, INDENT, cli_width(stdout));
        putchar('\n');
    }
    for (int type = 0; type < PC_DEVICE_TYPES; type++) {
        if (!pc_device_unavailable_reason((pc_device_type)type, why, sizeof why)[0])
            continue;
        at = cli_pad(stdout, 0, INDENT);
        at += printf("not on %s: ", type_name((pc_device_type)type, name));
        cli_wrap(stdout, why, at, INDENT, cli_width(stdout));
        putchar('\n');
    }
}

void cli_compute_json(void)
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
        if (!pc_device_unavailable_reason((pc_device_type)type, why, sizeof why)[0])
            continue;
        printf("%s{\"type\": \"%s\", \"why\": ", joint, type_name((pc_device_type)type, name));
        cli_json_text(stdout, why);
        putchar('}');
        joint = ", ";
    }
    printf("], \"simd\": \"%s\", \"simd_why\": ", pc_cpu_level());
    cli_json_text(stdout, pc_cpu_level_why(why, sizeof why));
    putchar('}');
}

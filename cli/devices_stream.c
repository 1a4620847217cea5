/* devices_stream.c: samples as CSV. */
#include <string.h>
#include <time.h>

#include "devices.h"

void cli_devices_time(char text[32])
{
    struct timespec now;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    size_t n = strftime(text, 32, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text + n, 32 - n, ".%03dZ", (int)(now.tv_nsec / 1000000));
}

void cli_devices_csv_head(void)
{
    char key[64];
    fputs("time", stdout);
    for (int i = 0; pc_device_fact(i); i++)
        printf(",%s", pc_fact_key(pc_device_fact(i), key, sizeof key));
    fputs(",processes\n", stdout);
}

static void print_text(const char *text)
{
    if (!text[strcspn(text, ",\"\n\r")]) {
        fputs(text, stdout);
        return;
    }
    putchar('"');
    for (; *text; text++)
        fputs(*text == '"' ? "\"\"" : (char[]){*text, 0}, stdout);
    putchar('"');
}

void cli_devices_csv(const pc_machine *machine)
{
    char now[32];
    cli_devices_time(now);
    for (int i = 0; i < machine->device_count; i++) {
        fputs(now, stdout);
        for (int j = 0; pc_device_fact(j); j++) {
            const pc_fact *fact = pc_fact_of(pc_device_fact(j), &machine->devices[i]);
            putchar(',');
            if (fact->known && fact->text)
                print_text(fact->text);
            else if (fact->known)
                printf("%.15g", fact->number);
        }
        putchar(',');
        if (machine->devices[i].processes_known.known)
            printf("%d", machine->devices[i].process_count);
        putchar('\n');
    }
}

/* devices_line.c: the lines of a machine's description: a label and its value, filled into the columns there are. */
#include <stdarg.h>
#include <string.h>

#include "devices.h"
#include "text.h"

#define INDENT 14 /* where values begin */

/* Words that are longer than a line get a blank behind a dash or a slash, where they may be parted. */
static void part_long_words(char *text, size_t n, int room)
{
    for (char *word = text; *word;) {
        size_t length = strcspn(word, " "), at = (size_t)room;
        if (room < 8 || length <= at || strlen(text) + 2 > n) {
            word += length + strspn(word + length, " ");
            continue;
        }
        while (at > 1 && !strchr("-/:_,.", word[at - 1]))
            at--;
        at = at > 1 ? at : (size_t)room;
        memmove(word + at + 1, word + at, strlen(word + at) + 1);
        word[at] = ' ';
        word += at + 1;
    }
}

static void print(const char *label, int from, int indent, char *text, size_t n)
{
    for (char *c = text; *c; c++)
        *c = (unsigned char)*c < ' ' || *c == 127 ? '?' : *c;
    int at = cli_pad(stdout, printf("%s", label), from);
    part_long_words(text, n, cli_width(stdout) - indent);
    cli_wrap(stdout, text, at, indent, cli_width(stdout));
}

void cli_devices_line(const char *label, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    print(label, INDENT, INDENT, text, sizeof text);
    putchar('\n');
}

void cli_devices_heading(const pc_machine *m, int i)
{
    const pc_probe_device *d = &m->devices[i];
    char text[1024], number[16], tail[256] = "";
    size_t used = 0;
    if (d->index_cuda.known)
        used = (size_t)snprintf(tail, sizeof tail, "  cuda:%.0f", d->index_cuda.number);
    if (d->index_pci.known && d->index_cuda.known && d->index_pci.number != d->index_cuda.number)
        snprintf(tail + used, sizeof tail - used, " (nvidia-smi says %.0f: PCI order)", d->index_pci.number);
    if (d->model.known)
        snprintf(text, sizeof text, "%s", d->model.text);
    else
        snprintf(text, sizeof text, "%s, model %s", d->vendor.known ? d->vendor.text : "unknown vendor",
                 d->device_id.known ? d->device_id.text : "unknown");
    snprintf(number, sizeof number, "\n%-3d", i);
    int rest = 2 + (int)strlen(d->address.text) + (int)strlen(tail);
    bool fits = 3 + cli_columns(text) + rest <= cli_width(stdout);
    cli_set_style(stdout, CLI_BOLD);
    print(number, 0, 3, text, sizeof text);
    cli_set_style(stdout, CLI_PLAIN);
    printf("%s%s", fits ? "  " : "\n   ", d->address.text);
    snprintf(text, sizeof text, "%s", tail + strspn(tail, " "));
    fits = fits || 3 + rest <= cli_width(stdout);
    if (text[0])
        print(fits ? "  " : "\n", 0, 3, text, sizeof text);
    putchar('\n');
}

void cli_devices_library(const char *label, const pc_probe_library *l)
{
    char text[1024];
    if (l->path)
        snprintf(text, sizeof text, "%-12s %-10s %s", l->name, l->version ? l->version : "", l->path);
    else
        snprintf(text, sizeof text, "%-12s not found (%s)", l->name, l->purpose);
    bool fits = INDENT + cli_columns(text) <= cli_width(stdout);
    if (!fits && !l->path) {
        cli_devices_line(label, "%s", text);
        return;
    }
    cli_pad(stdout, printf("%s", label), INDENT);
    if (fits) {
        cli_print_safe(stdout, text);
        putchar('\n');
        return;
    }
    printf("%s%s%s\n", l->name, l->version ? " " : "", l->version ? l->version : "");
    cli_devices_line("", "%s", l->path);
}

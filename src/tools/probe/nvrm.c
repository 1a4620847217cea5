/* nvrm.c: what the driver itself wrote into the kernel's log about a GPU that it did not start: lines, and their kind.
 */
#include "probe/doctor.h"

#include <ctype.h>
#include <stdlib.h>

enum { QUOTED = 4, AHEAD = 12 };

/* What stands first is the cause of what follows. */
static const struct {
    const char *words;
    pc__nvrm kind;
} known[] = {
    {"has fallen off the bus", PC__NVRM_LOST},
    {"GPU lost from the bus", PC__NVRM_LOST},
    {"device inaccessible", PC__NVRM_LOST},
    {"after resume; giving up", PC__NVRM_LOST},
    {"necessary power cables", PC__NVRM_POWER},
    {"I/O region assigned to your NVIDIA device is invalid", PC__NVRM_WINDOWS},
    {"BAR0 is 0M", PC__NVRM_WINDOWS},
    {"BAR1 is 0M", PC__NVRM_WINDOWS},
    {"BAR2 is 0M", PC__NVRM_WINDOWS},
    {"BAR3 is 0M", PC__NVRM_WINDOWS},
    {"BIOS may have misconfigured your GPU", PC__NVRM_WINDOWS},
    {": no space for", PC__NVRM_WINDOWS},
    {"can't assign; no space", PC__NVRM_WINDOWS},
    {": failed to assign", PC__NVRM_WINDOWS},
    {"Direct firmware load for nvidia/", PC__NVRM_NO_FIRMWARE},
    {"No firmware image found", PC__NVRM_NO_FIRMWARE},
    {"WPR2 already up", PC__NVRM_RESET},
    {"vbiosPatchInterfaceData", PC__NVRM_VBIOS},
    {"failed to copy vbios", PC__NVRM_VBIOS},
    {"failed to load VBIOS", PC__NVRM_VBIOS},
    {"GFW_BOOT", PC__NVRM_FIRMWARE},
    {"Cannot initialize GSP firmware RM", PC__NVRM_FIRMWARE},
    {"Can't find an IRQ for your NVIDIA card", PC__NVRM_INTERRUPT},
    {"not receiving interrupts", PC__NVRM_INTERRUPT},
};

/* 1: the line names this device's bus and slot; -1: another one's; 0: none. */
static int names(const char *line, const pc_probe_device *d)
{
    unsigned p[3] = {0}, q[3];
    sscanf(d->address.text, "%x:%x:%x", &p[0], &p[1], &p[2]);
    for (const char *at = line; *at; at++) {
        size_t n = strspn(at, "0123456789abcdefABCDEF");
        bool whole = n >= 4 && n <= 8 && at[n] == ':' && isxdigit((unsigned char)at[n + 1]) &&
                     isxdigit((unsigned char)at[n + 2]) && at[n + 3] == ':';
        if (whole && sscanf(at, "%8x:%2x:%2x", &q[0], &q[1], &q[2]) == 3)
            return memcmp(p, q, sizeof p) ? -1 : 1;
        at += n && at[n] ? n : 0;
    }
    return 0;
}

/* A line that names no device belongs to the next one that is named. */
static bool concerns(const char *line, const char *next, const pc_probe_device *d, bool alone)
{
    char following[PC__LOG_LINE];
    int named = names(line, d);
    for (int i = 0; !named && !alone && next && i < AHEAD; i++) {
        next = pc__log_line(next, following);
        named = names(following, d);
    }
    return named > 0 || (!named && alone);
}

static bool boring(const char *line)
{
    static const char *const words[] = {"loading NVIDIA UNIX", "taint",
                                        "Nvlink Core",         "vgaarb",
                                        "Loading driver",      "Loading NVIDIA",
                                        "Loaded the UVM",      "enabling device",
                                        "Initialized nvidia",  "PCIe Link Width",
                                        "GPU Board Serial",    "GPU at PCI",
                                        "module verification", "Xid"};
    if (!strstr(line, "NVRM") && !strstr(line, "nvidia") && !strstr(line, "BAR "))
        return true;
    for (int i = 0; i < PC__COUNT(words); i++)
        if (strstr(line, words[i]))
            return true;
    return false;
}

/* The two numbers of "RmInitAdapter failed! (0x62:0x65:1792)". */
static bool read_code(const char *line, int *step, int *status)
{
    const char *at = strstr(line, "RmInitAdapter failed! (");
    return at && sscanf(at, "RmInitAdapter failed! (%x:%x", (unsigned *)step, (unsigned *)status) == 2;
}

static pc__nvrm kind_of_code(int step, int status)
{
    if (status == 0x0f)
        return PC__NVRM_LOST;
    if (status == 0x1c || status == 0x11)
        return PC__NVRM_POWER;
    if (step == 0x61)
        return PC__NVRM_NO_FIRMWARE;
    if (status == 0x62)
        return PC__NVRM_RESET;
    if ((step >= 0x30 && step <= 0x32) || status == 0x61)
        return PC__NVRM_VBIOS;
    if (step == 0x62 || step == 0x63)
        return PC__NVRM_FIRMWARE;
    if (status == 0x45 || status == 0x46)
        return PC__NVRM_INTERRUPT;
    if (status == 0x01 || status == 0x0b || status == 0x47 || status == 0x72)
        return PC__NVRM_MEMORY;
    return PC__NVRM_OTHER;
}

static pc__nvrm kind_of(const char *line)
{
    int step, status;
    for (int i = 0; i < PC__COUNT(known); i++)
        if (strstr(line, known[i].words))
            return known[i].kind;
    if (read_code(line, &step, &status))
        return kind_of_code(step, status);
    return strstr(line, "nvidia") && strstr(line, "failed with error -") ? PC__NVRM_OTHER : PC__NVRM_NOTHING;
}

/* What was said after the driver's last loading; of old logs all. */
static const char *last_loading(const char *log)
{
    const char *begin = log;
    for (const char *at = log; (at = strstr(at, "nvidia-nvlink: Nvlink Core is being initialized")); at++)
        begin = at;
    return begin;
}

static bool is_alone(const pc__exam *e)
{
    int i = 0, count = 0;
    while (pc__next_gpu(e, &i))
        count++;
    return count == 1;
}

static pc__nvrm read_reason(const pc__exam *e, const pc_probe_device *d, char said[PC__NVRM_SAID])
{
    char line[PC__LOG_LINE];
    pc__nvrm best = PC__NVRM_NOTHING;
    bool alone = is_alone(e);
    const char *begin = e->log ? last_loading(e->log) : NULL;
    int step, status;
    said[0] = 0;
    for (const char *at = begin, *next; at && *at; at = next) {
        next = pc__log_line(at, line);
        pc__nvrm kind = kind_of(line);
        if (kind == PC__NVRM_NOTHING || !concerns(line, next, d, alone))
            continue;
        best = best == PC__NVRM_NOTHING || kind < best ? kind : best;
        if (read_code(line, &step, &status))
            pc__nvrm_words(step, status, said);
    }
    return best;
}

/* Every check of a start asks again; a log may be long. */
pc__nvrm pc__nvrm_reason(pc__exam *e, const pc_probe_device *d, char said[PC__NVRM_SAID])
{
    int i = (int)(d - e->machine->devices);
    if (!e->starts)
        e->starts = pc__calloc((size_t)PC__MAX(e->machine->device_count, 1), sizeof *e->starts);
    e->m->failed |= !e->starts;
    said[0] = 0;
    if (!e->starts)
        return PC__NVRM_NOTHING;
    if (!e->starts[i].read)
        e->starts[i].kind = read_reason(e, d, e->starts[i].said);
    e->starts[i].read = true;
    snprintf(said, PC__NVRM_SAID, "%s", e->starts[i].said);
    return e->starts[i].kind;
}

void pc__quote_words(pc__exam *e, pc_finding *f, const char *words)
{
    char line[PC__LOG_LINE], last[PC__LOG_LINE] = "";
    const char *behind = NULL;
    for (const char *at = e->log, *next; at && *at; at = next) {
        next = pc__log_line(at, line);
        if (!strstr(line, words))
            continue;
        snprintf(last, sizeof last, "%s", line);
        behind = next;
    }
    for (int i = 0; i < 2 && behind && *behind && !strstr(last, "Please"); i++) {
        behind = pc__log_line(behind, line);
        size_t used = strlen(last);
        if (!strncmp(line, "NVRM: ", 6) && !strstr(line, words))
            snprintf(last + used, sizeof last - used, " %s", line + 6);
    }
    char *polite = strstr(last, "  Please");
    if (polite)
        *polite = 0;
    if (last[0])
        pc__how(e, f, "The kernel log: \"%s\"", last);
}

void pc__nvrm_quote(pc__exam *e, pc_finding *f, const pc_probe_device *d)
{
    char line[PC__LOG_LINE], last[QUOTED][PC__LOG_LINE];
    int count = 0;
    bool alone = is_alone(e);
    const char *begin = e->log ? last_loading(e->log) : NULL;
    for (const char *at = begin, *next; at && *at; at = next) {
        next = pc__log_line(at, line);
        bool said = boring(line) || (d && !concerns(line, next, d, alone));
        for (int i = 0; i < count && !said; i++)
            said = !strcmp(last[i], line);
        if (said)
            continue;
        if (count == QUOTED)
            memmove(last[0], last[1], sizeof last - sizeof last[0]);
        snprintf(last[count < QUOTED ? count++ : QUOTED - 1], PC__LOG_LINE, "%s", line);
    }
    for (int i = 0; i < count; i++)
        pc__how(e, f, "%s: \"%s\"", i ? "then" : "The kernel log", last[i]);
}

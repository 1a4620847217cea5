/* doctor_sxid.c: SXids of the kernel's log: errors of NVSwitches, which have a numbering of their own. After the appendix
 * on errors of NVIDIA's "Fabric Manager User Guide": each comes as fatal or as non-fatal. */
#include "probe/doctor.h"

#include <ctype.h>
#include <stdlib.h>

enum { QUOTED = 3 };

/* "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Non-fatal, Link 46 ..."; lines with details of it say neither. */
static const char *next_sxid(const char *log, char address[48], int *sxid, bool *fatal)
{
    for (const char *at = log; (at = strstr(at, "SXid (PCI:")); at++) {
        const char *begin = at + strlen("SXid (PCI:"), *end = memchr(begin, ')', strnlen(begin, 40));
        if (!end || strncmp(end, "): ", 3) || !isdigit((unsigned char)end[3]))
            continue;
        const char *kind = end + 3 + strspn(end + 3, "0123456789");
        *fatal = !strncmp(kind, ", Fatal", 7);
        if (!*fatal && strncmp(kind, ", Non-fatal", 11))
            continue;
        *sxid = atoi(end + 3);
        if (!strncmp(begin, "0000", 4) && begin[4] != ':') /* a domain of eight digits, as others have four */
            begin += 4;
        snprintf(address, 48, "%.*s", (int)(end - begin), begin);
        return end;
    }
    return NULL;
}

typedef struct seen {
    int count, switches;
    char numbers[256], addresses[512];
} seen;

static void quote(pc__exam *e, pc_finding *f, const char *at)
{
    char line[PC__LOG_LINE];
    while (at > e->log && at[-1] != '\n')
        at--;
    pc__log_line(at, line);
    pc__how(e, f, "The kernel log: \"%s\"", line);
}

/* Those of one kind, of all switches. */
static void tell(pc__exam *e, bool fatal)
{
    seen s = {0};
    char address[48], number[16];
    int sxid;
    bool is_fatal;
    pc_finding *f = NULL;
    for (const char *at = e->log; at && (at = next_sxid(at, address, &sxid, &is_fatal));) {
        if (is_fatal != fatal)
            continue;
        f = f ? f : pc__found(e, fatal ? PC_SEVERITY_WRONG : PC_SEVERITY_ADVICE, NULL);
        snprintf(number, sizeof number, "%d", sxid);
        (void)pc__add_word(s.numbers, sizeof s.numbers, number);
        s.switches += pc__add_word(s.addresses, sizeof s.addresses, address);
        if (s.count++ < QUOTED)
            quote(e, f, at);
    }
    if (!f)
        return;
    pc__what(e, f,
             fatal ? "An NVSwitch reported a fatal error (SXid %s): what GPUs send through it does not arrive."
                   : "An NVSwitch reported an error that was not fatal (SXid %s).",
             s.numbers);
    pc__how(e, f, "The kernel log has %d of these, of the NVSwitch%s %s.", s.count, s.switches > 1 ? "es" : "",
            s.addresses);
    if (!fatal) {
        pc__fix(e, f, "# nothing, unless there are many: sudo nvidia-bug-report.sh, and ask the maker");
        return;
    }
    pc__fix(e, f, "# stop what uses GPUs, then: sudo nvidia-smi --gpu-reset # all GPUs at once, and the NVSwitches");
    pc__fix(e, f,
            "sudo reboot # if that is refused; where it comes again: sudo nvidia-bug-report.sh, and ask the maker");
}

void pc__check_nvswitch(pc__exam *e)
{
    if (!e->nvidia)
        return;
    if (!e->log && e->machine->nvswitch_count)
        pc__unseen(e, "the kernel log needs root, or membership in the group adm or systemd-journal");
    if (!e->log)
        return;
    tell(e, true);
    tell(e, false);
}

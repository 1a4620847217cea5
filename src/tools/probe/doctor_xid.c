/* doctor_xid.c: Xids of the kernel's log: what belongs together is one finding of one GPU. */
#include "probe/doctor.h"

#include <ctype.h>
#include <stdlib.h>

/* More pairs of GPU and Xid than a machine can have; a log of rubbish must not keep the checks busy for long. */
enum { SEEN_MAX = 8192, QUOTED = 3 };

typedef struct pc__seen_xid {
    int xid, count;
    bool done; /* a finding has it */
    char address[48];
    const char *line; /* the first one, in the log */
} seen;

/* "NVRM: Xid (PCI:0000:3b:00): 79, pid=..."; of an instance of MIG "(PCI:0000:3b:00 GPU-I:05)" */
static const char *next_xid(const char *log, char address[48], int *xid)
{
    for (const char *at = log; (at = strstr(at, "Xid (PCI:")); at++) {
        const char *begin = at + strlen("Xid (PCI:"), *end = memchr(begin, ')', strnlen(begin, 40));
        const bool of_switch = at > log && at[-1] == 'S'; /* doctor_sxid.c */
        if (of_switch || !end || strncmp(end, "): ", 3) || !isdigit((unsigned char)end[3]))
            continue;
        int n = (int)PC__MIN(strcspn(begin, " "), (size_t)(end - begin));
        *xid = atoi(end + 3); /* sscanf would measure the rest of the log each time */
        snprintf(address, 48, "%.*s%s", n, begin, memchr(begin, '.', (size_t)n) ? "" : ".0");
        return end;
    }
    return NULL;
}

static seen *seen_as(pc__exam *e, const char *address, int xid)
{
    for (int i = e->xid_count - 1; i >= 0; i--) /* what comes often came just before */
        if (e->xids[i].xid == xid && !strcmp(e->xids[i].address, address))
            return &e->xids[i];
    return NULL;
}

static seen *add(pc__exam *e, const char *address, int xid, const char *at)
{
    seen *s = e->xid_count < SEEN_MAX ? pc__more(e->m, &e->xids, &e->xid_count, &e->xid_capacity, sizeof *s) : NULL;
    if (!s)
        return NULL;
    while (at > e->log && at[-1] != '\n')
        at--;
    *s = (seen){.xid = xid, .line = at};
    snprintf(s->address, sizeof s->address, "%s", address);
    return s;
}

/* The log is read once for all checks. */
static void collect(pc__exam *e)
{
    int xid;
    char address[48];
    if (e->xids_read)
        return;
    e->xids_read = true;
    for (const char *at = e->log; at && (at = next_xid(at, address, &xid));) {
        seen *s = seen_as(e, address, xid);
        s = s ? s : add(e, address, xid, at);
        if (s)
            s->count++;
    }
}

static bool is_of(pc__exam *e, const seen *s, const pc_probe_device *d)
{
    return d && pc__device_at(e->m, s->address) == d;
}

int pc__xid_count(pc__exam *e, const pc_probe_device *d, int xid)
{
    int times = 0;
    collect(e);
    for (int i = 0; i < e->xid_count; i++)
        times += e->xids[i].xid == xid && is_of(e, &e->xids[i], d) ? e->xids[i].count : 0;
    return times;
}

static bool of_memory(int xid)
{
    static const int numbers[] = {48, 63, 64, 92, 94, 95, 140, 160, 161, 171, 172};
    for (int i = 0; i < PC__COUNT(numbers); i++)
        if (numbers[i] == xid)
            return true;
    return false;
}

/* What the driver writes after another error, because of it. */
static bool follows(int xid)
{
    return xid == 43 || xid == 45 || xid == 154;
}

static bool is_harmless(int xid)
{
    bool harmless = false;
    const char *advice;
    pc__xid_meaning(xid, &harmless, &advice);
    return harmless;
}

/* The smaller, the nearer to the cause. */
enum { OTHER = 50, FOLLOWS = 100 };

static int rank(int xid)
{
    static const int first[] = {79, 119, 120, 95, 94, 48, 64, 63};
    for (int i = 0; i < PC__COUNT(first); i++)
        if (first[i] == xid)
            return i;
    return follows(xid) ? FOLLOWS : OTHER;
}

static void quote(pc__exam *e, pc_finding *f, const seen *s)
{
    char line[PC__LOG_LINE], times[32] = "";
    pc__log_line(s->line, line);
    if (s->count > 1)
        snprintf(times, sizeof times, " (%d times)", s->count);
    pc__how(e, f, "The kernel log: \"%s\"%s", line, times);
}

static void quote_those(pc__exam *e, pc_finding *f, const pc_probe_device *d, bool memory)
{
    int quoted = 0;
    collect(e);
    for (int near = 1; near >= 0; near--) /* what is near to the cause before the rest */
        for (int i = 0; i < e->xid_count && quoted < QUOTED; i++) {
            const seen *s = &e->xids[i];
            if (!is_of(e, s, d) || is_harmless(s->xid) || (memory && !of_memory(s->xid)) ||
                (rank(s->xid) < OTHER) != near)
                continue;
            quote(e, f, s);
            quoted++;
        }
    int64_t bit = d ? (int64_t)1 << ((d - e->machine->devices) & 63) : 0;
    if (memory)
        e->memory_told |= bit;
    else
        e->xids_told |= bit;
}

void pc__xid_quote(pc__exam *e, pc_finding *f, const pc_probe_device *d)
{
    quote_those(e, f, d, false);
}

void pc__xid_quote_memory(pc__exam *e, pc_finding *f, const pc_probe_device *d)
{
    quote_those(e, f, d, true);
}

/* A finding before this one has it among its evidence. */
static bool told(pc__exam *e, const seen *s)
{
    const pc_probe_device *d = pc__device_at(e->m, s->address);
    int64_t bit = d ? (int64_t)1 << ((d - e->machine->devices) & 63) : 0;
    if (follows(s->xid))
        return ((e->xids_told | e->memory_told) & bit) != 0;
    return !is_harmless(s->xid) && ((e->xids_told & bit) || ((e->memory_told & bit) && of_memory(s->xid)));
}

/* The advice with the index by which nvidia-smi takes the GPU. */
static void advise(pc__exam *e, pc_finding *f, const char *advice, const seen *s)
{
    const pc_probe_device *d = pc__device_at(e->m, s->address);
    const char *index = d ? pc__index_of(e, d) : s->address;
    char text[1024] = "";
    for (const char *at = advice; *at;) {
        const char *place = strstr(at, "{gpu}");
        size_t used = strlen(text), n = place ? (size_t)(place - at) : strlen(at);
        snprintf(text + used, sizeof text - used, "%.*s%s", (int)n, at, place ? index : "");
        at += n + (place ? strlen("{gpu}") : 0);
    }
    pc__fix(e, f, "%s", text);
}

static bool of_nvlink(int xid)
{
    return xid == 74 || xid == 136 || xid == 137 || (xid >= 144 && xid <= 150);
}

/* Both have one cause: of one GPU and as harmful, or of several GPUs and the same. */
static bool together(const seen *a, const seen *head)
{
    if (a->done)
        return false;
    if (strcmp(a->address, head->address))
        return a->xid == head->xid || (of_nvlink(head->xid) && (of_nvlink(a->xid) || follows(a->xid)));
    return follows(a->xid) || is_harmless(a->xid) == is_harmless(head->xid);
}

/* The addresses of the others' GPUs, and the other numbers. */
static void list_others(pc__exam *e, pc_finding *f, const seen *head)
{
    const seen *all = e->xids;
    char numbers[256] = "", addresses[512] = "", number[16];
    for (int i = 0; i < e->xid_count; i++) {
        if (!together(&all[i], head))
            continue;
        snprintf(number, sizeof number, "%d", all[i].xid);
        if (all[i].xid != head->xid)
            (void)pc__add_word(numbers, sizeof numbers, number);
        if (strcmp(all[i].address, head->address))
            (void)pc__add_word(addresses, sizeof addresses, all[i].address);
    }
    if (numbers[0])
        pc__how(e, f, "With it came: Xid %s.", numbers);
    if (addresses[0])
        pc__how(e, f, "Other GPUs have it too: %s.", addresses);
}

/* What belongs together with the one at `first` is one finding, under the one that is nearest to the cause; it is done
 * with then. */
static void tell_group(pc__exam *e, int first)
{
    int others = 0;
    seen *all = e->xids;
    const seen *best = &all[first];
    for (int i = first; i < e->xid_count; i++)
        if (!strcmp(all[i].address, all[first].address) && together(&all[i], &all[first]) &&
            rank(all[i].xid) < rank(best->xid))
            best = &all[i];
    const seen head = *best;
    bool harmless = false;
    const char *advice = NULL, *meaning = pc__xid_meaning(head.xid, &harmless, &advice);
    pc_finding *f = pc__found(e, harmless ? PC_SEVERITY_ADVICE : PC_SEVERITY_WRONG, pc__device_at(e->m, head.address));
    pc__what(e, f, "The driver reported Xid %d: %s.", head.xid,
             meaning ? meaning : "an error that NVIDIA's list of Xids explains");
    pc__how(e, f, "The kernel log has it %d time%s, for %s.", head.count, head.count > 1 ? "s" : "", head.address);
    list_others(e, f, &head);
    for (int i = 0; i < e->xid_count; i++) {
        if (!together(&all[i], &head))
            continue;
        bool is_head = &all[i] == best;
        if (is_head || others < QUOTED - 1)
            quote(e, f, &all[i]);
        others += !is_head;
        all[i].done = true;
    }
    advise(e, f, advice ? advice : "# https://docs.nvidia.com/deploy/xid-errors", &head);
}

/* What only follows another Xid belongs to what it follows, where that is still to be told. */
static bool begins(const pc__exam *e, const seen *s)
{
    for (int i = 0; follows(s->xid) && i < e->xid_count; i++)
        if (!e->xids[i].done && !follows(e->xids[i].xid) && !strcmp(s->address, e->xids[i].address))
            return false;
    return !s->done;
}

void pc__check_xid(pc__exam *e)
{
    if (!e->nvidia)
        return;
    if (!e->log) {
        pc__unseen(e, "the kernel log needs root, or membership in the group adm or systemd-journal");
        return;
    }
    collect(e);
    for (int i = 0; i < e->xid_count; i++)
        e->xids[i].done = told(e, &e->xids[i]);
    for (int harmless = 0; harmless < 2; harmless++)
        for (int i = 0; i < e->xid_count; i++)
            if (is_harmless(e->xids[i].xid) == harmless && begins(e, &e->xids[i]))
                tell_group(e, i);
}

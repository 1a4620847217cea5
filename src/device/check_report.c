/* check_report.c: the races that were found, each pair of call sites once, and how they read. Allocates nothing. */
#include "device/check_uses.h"

enum { RACES_MAX = 1024, NAMES_MAX = 512 };

typedef struct race {
    pc_race_kind kind;
    pc__access first, second;
    size_t begin, end;
    uint64_t times;
} race;

static race races[RACES_MAX];
static int race_count;
static uint64_t ever;     /* races since the process began, kept or not */
static uint64_t not_kept; /* found since the last clear when there was no room */
static char names[NAMES_MAX][sizeof((pc_race_use *)NULL)->op];
static int name_count;

void (*pc__check_print)(const char *line);

const char *pc__check_name(const char *op)
{
    char name[sizeof names[0]];
    snprintf(name, sizeof name, "%s", op ? op : "unnamed work");
    for (int i = 0; i < name_count; i++)
        if (strcmp(names[i], name) == 0)
            return names[i];
    return name_count < NAMES_MAX ? memcpy(names[name_count++], name, sizeof name) : "work";
}

static void describe_use(pc_race_use *use, const pc__access *access)
{
    *use = (pc_race_use){.stream = access->stream,
                         .ticket = access->ticket,
                         .begin = access->whole_begin,
                         .end = access->whole_end,
                         .write = access->write};
    snprintf(use->op, sizeof use->op, "%s", access->op);
    char site[PC__SITE_TEXT];
    snprintf(use->site, sizeof use->site, "%s", pc__site_text(access->site, site));
    char name[PC_DEVICE_NAME_MAX];
    snprintf(use->device, sizeof use->device, "%s", access->stream ? pc_device_name(access->device, name) : "host");
}

static void where(char text[48], const pc_race_use *use)
{
    if (use->stream)
        snprintf(text, 48, "stream %u of %s", (unsigned)use->stream, use->device);
    else
        snprintf(text, 48, "the host");
}

static void describe(pc_race *out, const race *found)
{
    static const char *const kinds[] = {"read after write", "write after read", "write after write"};
    memset(out, 0, sizeof *out);
    out->kind = found->kind;
    out->begin = found->begin;
    out->end = found->end;
    out->times = found->times;
    describe_use(&out->first, &found->first);
    describe_use(&out->second, &found->second);
    const pc_race_use *a = &out->first, *b = &out->second;
    char a_where[48], b_where[48], way_out[128];
    where(a_where, a);
    where(b_where, b);
    if (b->stream)
        snprintf(way_out, sizeof way_out, "call pc_event_wait on stream %u or leave manual order", (unsigned)b->stream);
    else
        snprintf(way_out, sizeof way_out, "wait for stream %u first: pc_stream_synchronize, pc_event_synchronize",
                 (unsigned)a->stream);
    snprintf(out->text, sizeof out->text,
             "race, %s: %s at %s on %s %s bytes %zu to %zu of a storage, and nothing orders it after %s at %s on %s, "
             "which %s bytes %zu to %zu; %s",
             kinds[out->kind], b->op, b->site, b_where, b->write ? "writes" : "reads", b->begin, b->end, a->op, a->site,
             a_where, a->write ? "writes" : "reads", a->begin, a->end, way_out);
}

static bool same_line(const pc__access *a, const pc__access *b)
{
    return a->site == b->site && (a->site || a->op == b->op);
}

static race *find(pc_race_kind kind, const pc__access *first, const pc__access *second)
{
    for (int i = 0; i < race_count; i++)
        if (races[i].kind == kind && same_line(&races[i].first, first) && same_line(&races[i].second, second))
            return &races[i];
    return NULL;
}

void pc__race_found(const pc__access *first, const pc__access *second, size_t begin, size_t end)
{
    pc_race_kind kind = !second->write ? PC_RACE_READ_AFTER_WRITE
                        : first->write ? PC_RACE_WRITE_AFTER_WRITE
                                       : PC_RACE_WRITE_AFTER_READ;
    ever++;
    race *known = find(kind, first, second);
    if (known) {
        known->times++;
        return;
    }
    if (race_count == RACES_MAX) {
        not_kept++;
        return;
    }
    races[race_count] = (race){kind, *first, *second, begin, end, 1};
    if (pc__check_print) {
        pc_race text;
        describe(&text, &races[race_count]);
        pc__check_print(text.text);
    }
    race_count++;
}

void pc__races_clear(void)
{
    race_count = name_count = 0;
    not_kept = 0;
}

uint64_t pc__races_not_kept(void)
{
    return not_kept;
}

uint64_t pc__races_ever(void)
{
    return ever;
}

int pc_check_count(void)
{
    pthread_mutex_lock(&pc__check_lock);
    int count = race_count;
    pthread_mutex_unlock(&pc__check_lock);
    return count;
}

bool pc_check_race(int index, pc_race *report)
{
    PC__NEED_OR(false, report);
    race found = {0};
    pthread_mutex_lock(&pc__check_lock);
    bool there = index >= 0 && index < race_count;
    if (there)
        found = races[index];
    char first[sizeof names[0]], second[sizeof names[0]];
    if (there) { /* names can go as soon as the lock does */
        snprintf(first, sizeof first, "%s", found.first.op);
        snprintf(second, sizeof second, "%s", found.second.op);
    }
    pthread_mutex_unlock(&pc__check_lock);
    if (!there)
        return false;
    found.first.op = first;
    found.second.op = second;
    describe(report, &found);
    return true;
}

/* facts.c: the lists of facts as rows, setting facts, and a machine's own texts. */
#include "probe/probe.h"

#include <math.h>
#include <stdarg.h>

static const pc_fact_row device_rows[] = {
#define ROW(member, unit, changes, label) {#member, label, PC_UNIT_##unit, changes, offsetof(pc_probe_device, member)},
    PC_DEVICE_FACTS(ROW)
#undef ROW
};

static const pc_fact_row machine_rows[] = {
#define ROW(member, unit, changes, label) {#member, label, PC_UNIT_##unit, changes, offsetof(pc_machine, member)},
    PC_MACHINE_FACTS(ROW)
#undef ROW
};

const pc_fact_row *pc_device_fact(int i)
{
    return i >= 0 && i < PC__COUNT(device_rows) ? &device_rows[i] : NULL;
}

const pc_fact_row *pc_machine_fact(int i)
{
    return i >= 0 && i < PC__COUNT(machine_rows) ? &machine_rows[i] : NULL;
}

const pc_fact *pc_fact_of(const pc_fact_row *row, const void *owner)
{
    PC__NEED_OR(NULL, row);
    PC__NEED_OR(NULL, owner);
    return (const pc_fact *)((const char *)owner + row->offset);
}

char *pc_fact_text(const pc_fact_row *row, const pc_fact *fact, char *text, size_t n)
{
    PC__NEED_OR(NULL, row);
    PC__NEED_OR(NULL, fact);
    PC__NEED_OR(NULL, text);
    static const char *const units[PC_UNITS] = {
        [PC_UNIT_PERCENT] = " %", [PC_UNIT_CELSIUS] = " C", [PC_UNIT_WATTS] = " W", [PC_UNIT_MHZ] = " MHz"};
    if (!fact->known)
        snprintf(text, n, "unknown");
    else if (row->unit == PC_UNIT_TEXT)
        snprintf(text, n, "%s", fact->text);
    else if (row->unit == PC_UNIT_YES_NO)
        snprintf(text, n, "%s", fact->number != 0 ? "on" : "off");
    else if (row->unit == PC_UNIT_BYTES && fact->number < 1024 * 1024)
        snprintf(text, n, "%.0f bytes", fact->number);
    else if (row->unit == PC_UNIT_BYTES)
        snprintf(text, n, "%.0f MiB", fact->number / (1024 * 1024));
    else
        snprintf(text, n, "%.*f%s", row->unit == PC_UNIT_WATTS || fact->number != floor(fact->number) ? 1 : 0,
                 fact->number, units[row->unit] ? units[row->unit] : "");
    return text;
}

char *pc_fact_key(const pc_fact_row *row, char *text, size_t n)
{
    PC__NEED_OR(NULL, row);
    PC__NEED_OR(NULL, text);
    static const char *const units[PC_UNITS] = {[PC_UNIT_BYTES] = "_bytes",
                                                [PC_UNIT_PERCENT] = "_percent",
                                                [PC_UNIT_CELSIUS] = "_celsius",
                                                [PC_UNIT_WATTS] = "_watts",
                                                [PC_UNIT_MHZ] = "_mhz"};
    snprintf(text, n, "%s%s", row->name, units[row->unit] ? units[row->unit] : "");
    return text;
}

static uint32_t hash_of(const char *text)
{
    uint32_t hash = 2166136261u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

static char **place_of(char **table, int room, const char *text)
{
    uint32_t at = hash_of(text);
    while (table[at & (uint32_t)(room - 1)] && strcmp(table[at & (uint32_t)(room - 1)], text))
        at++;
    return &table[at & (uint32_t)(room - 1)];
}

static bool make_room(pc__machine *m)
{
    if (2 * m->string_count < m->string_room)
        return true;
    int room = m->string_room ? 2 * m->string_room : 256;
    char **table = pc__calloc((size_t)room, sizeof *table);
    if (!table)
        return false;
    for (int i = 0; i < m->string_room; i++)
        if (m->strings[i])
            *place_of(table, room, m->strings[i]) = m->strings[i];
    pc__free(m->strings);
    m->strings = table;
    m->string_room = room;
    return true;
}

const char *pc__keep(pc__machine *m, const char *text)
{
    char **place = make_room(m) ? place_of(m->strings, m->string_room, text) : NULL;
    if (place && !*place) {
        *place = pc__strdup(text);
        m->string_count += *place != NULL;
    }
    if (place && *place)
        return *place;
    m->failed = true;
    return "";
}

const char *pc__keepv(pc__machine *m, const char *format, va_list arguments)
{
    char text[1024], *longer = NULL;
    va_list again;
    va_copy(again, arguments);
    const int n = vsnprintf(text, sizeof text, format, arguments);
    if (n >= (int)sizeof text && (longer = pc__try_alloc_aligned((size_t)n + 1, 16)))
        vsnprintf(longer, (size_t)n + 1, format, again);
    va_end(again);
    m->failed |= n >= (int)sizeof text && !longer;
    const char *kept = pc__keep(m, longer ? longer : text);
    pc__free(longer);
    return kept;
}

const char *pc__keepf(pc__machine *m, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *kept = pc__keepv(m, format, arguments);
    va_end(arguments);
    return kept;
}

void pc__fact_text(pc__machine *m, pc_fact *fact, const char *text)
{
    *fact = (pc_fact){.known = true, .text = pc__keep(m, text)};
}

void pc__fact_number(pc_fact *fact, double number)
{
    *fact = (pc_fact){.known = true, .number = number};
}

void pc__fact_unknown(pc__machine *m, pc_fact *fact, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    *fact = (pc_fact){.why = pc__keep(m, text)};
}

void pc__facts_default(pc__machine *m, const pc_fact_row *(*row)(int), void *owner, const char *why)
{
    for (int i = 0; row(i); i++) {
        pc_fact *fact = (pc_fact *)((char *)owner + row(i)->offset);
        if (!fact->known && !fact->why)
            fact->why = pc__keep(m, why);
    }
}

void *pc__more(pc__machine *m, void *array, int *count, int *capacity, size_t size)
{
    void **items = array;
    if (pc__grow(items, capacity, *count, size) != PC_OK) {
        m->failed = true;
        return NULL;
    }
    return memset((char *)*items + (size_t)(*count)++ * size, 0, size);
}

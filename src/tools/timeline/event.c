/* event.c: one parsed trace event into the timeline: its row, and what it says. */
#include "timeline/timeline.h"

#if PC_HAVE_CJSON

#include "timeline/event.h"

#include <math.h>
#include <stdlib.h>

#define TIME_MAX 1e15 /* microseconds: 31 years; PyTorch once counted from 1970 */
#define NUMBER_MAX 9.2e18
#define RANKS_MAX 1048576

static const cJSON *get(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static double number(const cJSON *object, const char *key)
{
    const cJSON *item = get(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : (double)NAN;
}

static int64_t whole(const cJSON *object, const char *key)
{
    double value = number(object, key);
    return value >= 0 && value < NUMBER_MAX ? (int64_t)value : -1;
}

static const char *string(const cJSON *object, const char *key)
{
    const char *text = cJSON_GetStringValue(get(object, key));
    return text ? text : "";
}

static int file_of(const pc_timeline *t)
{
    return t->file_count - 1; /* the one that is being read */
}

/* A process, thread or flow is named by a number or a text: "FILE OUTER NAME". */
static int key_of(const pc_timeline *t, pc__words *words, int outer, const cJSON *item)
{
    char text[160];
    if (cJSON_IsString(item))
        snprintf(text, sizeof text, "%d %d %.120s", file_of(t), outer, item->valuestring);
    else
        snprintf(text, sizeof text, "%d %d %.17g", file_of(t), outer, cJSON_IsNumber(item) ? item->valuedouble : 0);
    return pc__words_add(words, text);
}

static pc_status process_of(pc_timeline *t, const cJSON *object, int *process)
{
    *process = key_of(t, &t->pids, 0, get(object, "pid"));
    if (*process < 0)
        return PC_ERR_MEMORY;
    if (*process < t->process_count)
        return PC_OK;
    PC__TRY(pc__grow((void **)&t->processes, &t->process_room, t->process_count, sizeof *t->processes));
    t->processes[t->process_count++] = (pc__timeline_process){.order = *process, .file = file_of(t)};
    return PC_OK;
}

static pc_status row_of(pc_timeline *t, const cJSON *object, int *row)
{
    int process;
    PC__TRY(process_of(t, object, &process));
    *row = key_of(t, &t->tids, process, get(object, "tid"));
    if (*row < 0)
        return PC_ERR_MEMORY;
    if (*row < t->row_count)
        return PC_OK;
    PC__TRY(pc__grow((void **)&t->rows, &t->row_room, t->row_count, sizeof *t->rows));
    t->rows[t->row_count++] = (pc__timeline_row){.process = process, .order = *row, .depths = 1};
    return PC_OK;
}

static pc_status text_of(pc_timeline *t, const char *text, int *index)
{
    *index = *text ? pc__words_add(&t->texts, text) : 0;
    return *index < 0 ? PC_ERR_MEMORY : PC_OK;
}

static pc__timeline_engine engine_of(const char *name)
{
    if (!strncmp(name, "compute", 7))
        return PC__ENGINE_COMPUTE;
    if (!strncmp(name, "copy in", 7))
        return PC__ENGINE_COPY_IN;
    if (!strncmp(name, "copy out", 8))
        return PC__ENGINE_COPY_OUT;
    return !strncmp(name, "copy", 4) ? PC__ENGINE_COPY : PC__ENGINE_OTHER;
}

/* "compute 1" is lane 1 of the engine "compute". */
static pc_status name_engine(pc_timeline *t, pc__timeline_row *row, const char *name)
{
    char base[64];
    snprintf(base, sizeof base, "%.63s", name);
    char *digits = strrchr(base, ' ');
    if (digits && digits[1] && digits[1 + strspn(digits + 1, "0123456789")] == 0) {
        row->lane = (int)PC__MIN(strtol(digits + 1, NULL, 10), INT32_MAX);
        *digits = 0;
    }
    row->kind = PC__ROW_ENGINE;
    row->engine = engine_of(base);
    return text_of(t, base, &row->engine_name);
}

static pc_status name_row(pc_timeline *t, const cJSON *object, const char *name)
{
    int index;
    PC__TRY(row_of(t, object, &index));
    pc__timeline_row *row = &t->rows[index];
    pc__timeline_process *process = &t->processes[row->process];
    PC__TRY(text_of(t, name, &row->name));
    if (!strncmp(name, "engine ", 7)) {
        PC__TRY(name_engine(t, row, name + 7));
        process->engines = process->device = true;
    } else if (!strncmp(name, "stream ", 7)) {
        row->kind = PC__ROW_STREAM;
        process->device = true;
    }
    return PC_OK;
}

/* At most two looks at the clocks: the first and the last. */
static pc_status add_rank(pc_timeline *t, const cJSON *args)
{
    pc__timeline_file *f = &t->files[file_of(t)];
    const double rank = number(args, "rank"), size = number(args, "size"), start = number(args, "start");
    const double at = number(args, "at_ns"), offset = number(args, "offset_ns"), error = number(args, "error_ns");
    if (!(size >= 1 && size <= RANKS_MAX && rank >= 0 && rank < size && fabs(at) <= NUMBER_MAX &&
          fabs(offset) <= NUMBER_MAX))
        return PC_OK;
    const int look = f->looks ? 1 : 0;
    f->rank = (int)rank;
    f->size = (int)size;
    f->start = start >= 0 && start < 1e9 ? (int)start : 0;
    f->at[look] = at;
    f->offset[look] = offset;
    f->error = PC__MAX(f->error, error >= 0 ? error : 0);
    f->looks = look + 1;
    return text_of(t, string(args, "job"), &f->job);
}

static pc_status add_metadata(pc_timeline *t, const cJSON *object)
{
    int index;
    const char *what = string(object, "name");
    const cJSON *args = get(object, "args");
    if (!strcmp(what, "paracord rank"))
        return add_rank(t, args);
    if (!strcmp(what, "paracord") && fabs(number(args, "clock_start_ns")) <= NUMBER_MAX) {
        t->files[file_of(t)].origin = number(args, "clock_start_ns");
        return PC_OK;
    }
    if (!strcmp(what, "thread_name"))
        return name_row(t, object, string(args, "name"));
    if (!strcmp(what, "thread_sort_index")) {
        PC__TRY(row_of(t, object, &index));
        t->rows[index].sort = number(args, "sort_index");
        return PC_OK;
    }
    if (strncmp(what, "process_", 8))
        return PC_OK;
    PC__TRY(process_of(t, object, &index));
    pc__timeline_process *process = &t->processes[index];
    if (!strcmp(what, "process_name"))
        return text_of(t, string(args, "name"), &process->name);
    if (!strcmp(what, "process_labels"))
        return text_of(t, string(args, "labels"), &process->label);
    if (!strcmp(what, "process_sort_index"))
        process->sort = number(args, "sort_index");
    return PC_OK;
}

static bool sensible(double at)
{
    return fabs(at) <= 4 * TIME_MAX; /* false for NaN */
}

/* A call of several ranks: done from `at` to `end`, or (NaN) in a stream's queue. */
static pc_status add_call(pc_timeline *t, const cJSON *object, int row, double at, double end)
{
    const cJSON *args = get(object, "args");
    const double member = number(args, "member"), rank = number(args, "rank"), of = number(args, "of");
    pc__timeline_call c = {.file = file_of(t), .row = row, .start = at, .end = end, .waited = NAN, .last = -1};
    if (!(of >= 1 && of <= RANKS_MAX && rank >= 0 && rank < of && member >= 0 && member < RANKS_MAX))
        return PC_OK;
    PC__TRY(text_of(t, string(object, "name"), &c.name));
    PC__TRY(text_of(t, string(args, "group"), &c.group));
    PC__TRY(text_of(t, string(args, "device"), &c.device));
    c.member = (int)member;
    c.rank = (int)rank;
    c.of = (int)of;
    c.number = whole(args, "number");
    c.bytes = whole(args, "bytes");
    c.pair = number(args, "pair") == 1;
    c.stream = (int)PC__MIN(whole(args, "stream"), INT32_MAX);
    c.ticket = isnan(end) ? whole(args, "ticket") : -1;
    t->processes[t->rows[row].process].collectives = true;
    PC__TRY(pc__grow((void **)&t->calls, &t->call_room, t->call_count, sizeof c));
    t->calls[t->call_count++] = c;
    return PC_OK;
}

static pc_status add_event(pc_timeline *t, const cJSON *object, double at)
{
    const cJSON *args = get(object, "args");
    pc__timeline_event event = {.start = at, .duration = number(object, "dur"), .parent = -1};
    if (!(event.duration >= 0 && event.duration <= TIME_MAX)) {
        t->skipped++;
        return PC_OK;
    }
    PC__TRY(row_of(t, object, &event.row));
    PC__TRY(text_of(t, string(object, "name"), &event.name));
    PC__TRY(text_of(t, string(object, "cat"), &event.category));
    PC__TRY(text_of(t, string(args, "site"), &event.site));
    PC__TRY(text_of(t, string(args, "note"), &event.note));
    event.bytes = whole(args, "bytes");
    event.ticket = whole(args, "ticket");
    event.stream = (int)PC__MIN(whole(args, "stream"), INT32_MAX);
    event.queued = number(args, "queued_us");
    if (!(event.queued >= 0 && event.queued <= TIME_MAX))
        event.queued = NAN;
    if (!strcmp(string(object, "cat"), "collective"))
        PC__TRY(add_call(t, object, event.row, at, at + event.duration));
    PC__TRY(pc__grow((void **)&t->events, &t->event_room, t->event_count, sizeof event));
    t->events[t->event_count++] = event;
    return PC_OK;
}

static pc_status add_mark(pc_timeline *t, const cJSON *object, double at)
{
    pc__timeline_mark mark = {.at = at};
    if (!strcmp(string(object, "name"), "paracord summary")) { /* how the writer ends a file */
        t->dropped = PC__MAX(whole(get(object, "args"), "dropped"), 0);
        return PC_OK;
    }
    PC__TRY(row_of(t, object, &mark.row));
    if (!strcmp(string(object, "cat"), "collective"))
        return add_call(t, object, mark.row, NAN, NAN);
    PC__TRY(text_of(t, string(object, "name"), &mark.name));
    PC__TRY(pc__grow((void **)&t->marks, &t->mark_room, t->mark_count, sizeof mark));
    t->marks[t->mark_count++] = mark;
    return PC_OK;
}

static pc_status add_flow(pc_timeline *t, const cJSON *object, double at, bool begins)
{
    int category;
    pc__timeline_flow flow = {.at = at, .begins = begins};
    PC__TRY(row_of(t, object, &flow.row));
    PC__TRY(text_of(t, string(object, "cat"), &category));
    flow.key = key_of(t, &t->flow_keys, category, get(object, "id"));
    if (flow.key < 0)
        return PC_ERR_MEMORY;
    PC__TRY(pc__grow((void **)&t->flows, &t->flow_room, t->flow_count, sizeof flow));
    t->flows[t->flow_count++] = flow;
    return PC_OK;
}

pc_status pc__timeline_add(pc_timeline *t, const cJSON *object)
{
    const char *phase = string(object, "ph");
    double at = number(object, "ts");
    if (*phase == 'M')
        return add_metadata(t, object);
    if (!*phase || !strchr("XisIf", *phase))
        return PC_OK;
    if (!sensible(at)) {
        t->skipped += *phase == 'X';
        return PC_OK;
    }
    if (*phase == 'X')
        return add_event(t, object, at);
    if (*phase == 'i' || *phase == 'I')
        return add_mark(t, object, at);
    return add_flow(t, object, at, *phase == 's');
}

#endif

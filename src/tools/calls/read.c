/* read.c: one file of a rank. It may be of any origin: what does not fit is an error that names the file. */
#include "calls/calls.h"

#include <math.h>

#include "io/json_read.h"

#define CALLS_MAX 100000
#define TIME_MAX 9e18
#define NUMBER_MAX 1000000000000000

typedef struct reader {
    pc_calls *calls;
    pc__seen_file file;
    pc__json in;
    pc__text key, text;
    double offset; /* nanoseconds */
    bool ours, memory;
} reader;

static void text_into(reader *r, char *to, size_t n)
{
    if (pc__json_string_in(&r->in, &r->text))
        snprintf(to, n, "%s", r->text.data);
}

static int small(reader *r, double least, double most)
{
    double value = 0;
    if (!pc__json_number_in(&r->in, &value) || !(value >= least && value <= most))
        r->in.bad = true;
    return r->in.bad ? 0 : (int)value;
}

/* Nanoseconds of the rank's clock as seconds of the job's; 0 is unknown. */
static double moment(reader *r)
{
    double ns = 0;
    if (!pc__json_number_in(&r->in, &ns) || !(fabs(ns) <= TIME_MAX))
        r->in.bad = true;
    return ns == 0 || r->in.bad ? (double)NAN : (ns + r->offset) * 1e-9;
}

static pc__call_state state(reader *r)
{
    char name[16] = "";
    text_into(r, name, sizeof name);
    for (int i = 0; i < PC__SEEN_STATES; i++)
        if (!strcmp(name, pc__seen_state((pc__call_state)i)))
            return (pc__call_state)i;
    r->in.bad = true;
    return PC__SEEN_DONE;
}

static void read_member(reader *r, pc__seen_call *c)
{
    const char *key = r->key.data;
    if (!strcmp(key, "group"))
        text_into(r, c->group, sizeof c->group);
    else if (!strcmp(key, "op"))
        text_into(r, c->op, sizeof c->op);
    else if (!strcmp(key, "dtype"))
        text_into(r, c->dtype, sizeof c->dtype);
    else if (!strcmp(key, "reduction"))
        text_into(r, c->reduction, sizeof c->reduction);
    else if (!strcmp(key, "device"))
        text_into(r, c->device, sizeof c->device);
    else if (!strcmp(key, "number"))
        (void)pc__json_whole(&r->in, &c->number);
    else if (!strcmp(key, "count"))
        (void)pc__json_whole(&r->in, &c->count);
    else if (!strcmp(key, "bytes"))
        (void)pc__json_whole(&r->in, &c->bytes);
    else if (!strcmp(key, "peer"))
        c->peer = small(r, -1, PC__CALLS_RANKS_MAX);
    else if (!strcmp(key, "rank"))
        c->rank = small(r, 0, PC__CALLS_RANKS_MAX);
    else if (!strcmp(key, "of"))
        c->of = small(r, 1, PC__CALLS_RANKS_MAX);
    else if (!strcmp(key, "member"))
        c->member = small(r, 0, PC__CALLS_RANKS_MAX - 1);
    else if (!strcmp(key, "queued_ns"))
        c->queued = moment(r);
    else if (!strcmp(key, "entered_ns"))
        c->entered = moment(r);
    else if (!strcmp(key, "finished_ns"))
        c->finished = moment(r);
    else if (!strcmp(key, "state"))
        c->state = state(r);
    else
        pc__json_skip(&r->in);
}

/* What is between threads of a process is of that process alone. */
static void place(const reader *r, pc__seen_call *c)
{
    const bool threads = !strncmp(c->group, "threads", 7);
    c->who = r->file.size > 1 ? r->file.rank : c->member;
    if (threads && r->file.size > 1) {
        char name[PC__CALLS_GROUP_MAX];
        snprintf(name, sizeof name, "%.40s in rank %d", c->group, r->file.rank);
        memcpy(c->group, name, sizeof name);
    }
}

static void read_call(reader *r)
{
    pc__seen_call c = {.peer = -1, .of = 0, .queued = NAN, .entered = NAN, .finished = NAN};
    for (pc__json_open(&r->in, '{'); pc__json_next(&r->in, '}');)
        if (pc__json_key(&r->in, &r->key))
            read_member(r, &c);
    if (!c.op[0] || !c.of || c.rank >= c.of || c.number > NUMBER_MAX || r->file.count >= CALLS_MAX)
        r->in.bad = true;
    if (r->in.bad)
        return;
    place(r, &c);
    if (pc__grow((void **)&r->calls->calls, &r->calls->call_room, r->calls->call_count, sizeof c) != PC_OK) {
        r->memory = r->in.bad = true;
        return;
    }
    r->calls->calls[r->calls->call_count++] = c;
    r->file.count++;
}

/* The rank, its size and its clock stand in front of the calls. */
static void read_outer(reader *r)
{
    const char *key = r->key.data;
    double number = 0;
    if (!strcmp(key, "paracord_calls"))
        r->ours = small(r, 1, 1) == 1;
    else if (!strcmp(key, "job"))
        text_into(r, r->file.job, sizeof r->file.job);
    else if (!strcmp(key, "host"))
        text_into(r, r->file.host, sizeof r->file.host);
    else if (!strcmp(key, "rank"))
        r->file.rank = small(r, 0, PC__CALLS_RANKS_MAX - 1);
    else if (!strcmp(key, "size"))
        r->file.size = small(r, 1, PC__CALLS_RANKS_MAX);
    else if (!strcmp(key, "start"))
        r->file.start = small(r, 0, 1e9);
    else if (!strcmp(key, "process"))
        r->file.process = small(r, 0, 2e9);
    else if (!strcmp(key, "written"))
        (void)pc__json_whole(&r->in, &r->file.written);
    else if (!strcmp(key, "offset_ns")) {
        if (pc__json_number_in(&r->in, &number) && fabs(number) <= TIME_MAX)
            r->offset = number;
        else
            r->in.bad = true;
    } else if (!strcmp(key, "now_ns")) {
        r->file.now = moment(r);
    } else if (!strcmp(key, "why") && pc__json_string_in(&r->in, &r->text)) {
        pc__free(r->file.why);
        r->file.why = pc__strdup(r->text.data);
        r->memory |= !r->file.why;
        r->in.bad |= r->memory;
    } else if (!strcmp(key, "calls")) {
        for (pc__json_open(&r->in, '['); pc__json_next(&r->in, ']');)
            read_call(r);
    } else
        pc__json_skip(&r->in);
}

static pc_status wrong(const reader *r, const char *path, const char *bytes)
{
    if (r->memory || r->key.failed || r->text.failed)
        return PC_ERR_MEMORY;
    return pc__fail(
        PC_ERR_FORMAT,
        "%s: it is cut off or damaged (at byte %zu), or nothing that a rank wrote of its calls: delete it, or have "
        "the ranks write once more",
        path, (size_t)(r->in.at - bytes));
}

pc_status pc__calls_read(pc_calls *calls, const char *path, const char *name, const void *bytes, size_t n)
{
    reader r = {.calls = calls, .in = pc__json_of(bytes, n), .file = {.first = calls->call_count, .now = NAN}};
    snprintf(r.file.name, sizeof r.file.name, "%s", name);
    for (pc__json_open(&r.in, '{'); pc__json_next(&r.in, '}');)
        if (pc__json_key(&r.in, &r.key))
            read_outer(&r);
    const bool fine = pc__json_ended(&r.in) && r.ours && r.file.size && r.file.rank < r.file.size && r.file.why;
    pc_status status =
        fine ? pc__grow((void **)&calls->files, &calls->file_room, calls->file_count, sizeof *calls->files)
             : wrong(&r, path, bytes);
    if (status == PC_OK)
        calls->files[calls->file_count++] = r.file;
    else
        pc__free(r.file.why);
    pc__text_free(&r.key);
    pc__text_free(&r.text);
    return status;
}

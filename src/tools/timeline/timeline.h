/* timeline.h: a timeline in memory: rows of events, marks on them, arrows between them; and sets of time spans, which
 * the summary calculates with. The public face is <paracord-tools/timeline.h>. */
#ifndef PC__TIMELINE_H
#define PC__TIMELINE_H

#include "base/base.h"

#include <paracord-tools/timeline.h>

/* Each text once; an index stays valid, number 0 is "". */
typedef struct pc__words {
    char **items;
    int *slots; /* open addressing: index + 1, 0 where free; a power of two of them */
    int count, capacity, slot_count;
} pc__words;

/* The index of `text`, added when it is new; -1 when memory fails. */
int pc__words_add(pc__words *words, const char *text);
void pc__words_free(pc__words *words);

/* What a row is, or what an event of the host is. */
typedef enum pc__timeline_row_kind { PC__ROW_HOST, PC__ROW_STREAM, PC__ROW_ENGINE } pc__timeline_row_kind;
typedef enum pc__timeline_host_kind {
    PC__HOST_OTHER,
    PC__HOST_OP,
    PC__HOST_WAIT,
    PC__HOST_LOADER,
    PC__HOST_STEP
} pc__timeline_host_kind;

/* What does a piece of work on a device. */
typedef enum pc__timeline_engine {
    PC__ENGINE_COMPUTE,
    PC__ENGINE_COPY_IN,
    PC__ENGINE_COPY_OUT,
    PC__ENGINE_COPY, /* between devices, or it is not known which way */
    PC__ENGINE_OTHER,
    PC__ENGINE_COUNT
} pc__timeline_engine;

/* Names, sites and so on are numbers of texts. Times are microseconds, starts counted from the timeline's first. */
typedef struct pc__timeline_event {
    double start, duration;
    bool collective;       /* a device's work that is a call of several ranks */
    double queued;         /* waited in its queue; NaN: unknown */
    int64_t bytes, ticket; /* -1: unknown */
    int row, depth;        /* depth: how many events of the row enclose it */
    int parent;            /* the innermost of those, or -1 */
    int name, category, site, note, stream;
} pc__timeline_event;

typedef struct pc__timeline_process {
    int name, label, order;
    int file;
    double sort;
    bool device;
    bool engines;     /* has engine rows */
    bool collectives; /* has a row for each rank */
} pc__timeline_process;

/* A file that the timeline is made of. Clocks are nanoseconds: the file's begins at `origin`; the job's shows offset[i] more at
 * at[i]. */
typedef struct pc__timeline_file {
    int name; /* a text, as the next */
    int job;
    int rank, size, start; /* rank -1: it does not say */
    int looks;
    bool cut;
    double origin, at[2], offset[2], error;
} pc__timeline_file;

/* A call of several ranks, of one of them. */
typedef struct pc__timeline_call {
    int file, row, name, group, device; /* the last three are texts */
    int member, rank, of;
    int who; /* rank in the job, or among the threads of a process alone */
    int64_t number, bytes;
    int stream;
    int64_t ticket;    /* -1: `start` and `end` are known */
    double start, end; /* NaN: unknown */
    double waited;     /* for the rank that came last; NaN: unknown */
    int last;          /* who that was; -1 */
    int one;           /* the same number for calls that are one */
    bool pair;
} pc__timeline_call;

typedef struct pc__timeline_row {
    int process, name, order;
    double sort;
    pc__timeline_row_kind kind;
    pc__timeline_engine engine; /* of engine rows, as the next two: "engine compute 1" is lane 1 of "compute" */
    int engine_name, lane;      /* the name is a text */
    int first, count;           /* its events, by start */
    int depths;                 /* 1 + the largest depth, at least 1 */
} pc__timeline_row;

typedef struct pc__timeline_mark {
    double at;
    int row, name;
} pc__timeline_mark;

/* One end of an arrow as read, `key` made of its category and id. */
typedef struct pc__timeline_flow {
    double at;
    int key, row;
    bool begins;
} pc__timeline_flow;

typedef struct pc__timeline_arrow {
    int from, to; /* events */
} pc__timeline_arrow;

struct pc_timeline {
    pc__words texts, pids, tids, flow_keys;
    pc__timeline_process *processes;
    pc__timeline_row *rows;
    pc__timeline_event *events;
    pc__timeline_mark *marks;
    pc__timeline_flow *flows;
    pc__timeline_arrow *arrows;
    pc__timeline_file *files;
    pc__timeline_call *calls;
    int *order; /* of the calls: those that are one behind each other */
    int file_count, file_room, call_count, call_room;
    int process_count, process_room, row_count, row_room, event_count, event_room, mark_count, mark_room;
    int flow_count, flow_room, arrow_count, arrow_room;
    double base, wall;        /* the first event's time in the file; the last one's end from there */
    int64_t skipped, dropped; /* see pc_timeline_summary */
    bool cut;
    int file;                           /* the file's own name, without folders */
    int engine_names[PC__ENGINE_COUNT]; /* texts */
    int collective, waiting;            /* texts: categories of what is drawn of calls */
};

static inline const char *pc__timeline_text(const pc_timeline *timeline, int text)
{
    return timeline->texts.items[text];
}

static inline double pc__timeline_end(const pc__timeline_event *event)
{
    return event->start + event->duration;
}

/* The text of a file into rows, events and so on as they stand there. */
pc_status pc__timeline_read(pc_timeline *timeline, const char *path, char *text, size_t n);

/* Times of the file that was read last, as the job's clock has them, from these on. */
void pc__timeline_align(pc_timeline *timeline, int event, int mark, int flow, int call);

/* Calls of ranks: whose each is, when those in queues were done, how long each rank waited, which is drawn, too. Before
 * pc__timeline_arrange. */
pc_status pc__timeline_calls(pc_timeline *timeline);

/* Put them in order: rows by device, events by row and start, depths, arrows between events. */
pc_status pc__timeline_arrange(pc_timeline *timeline);
pc_status pc__timeline_arrows(pc_timeline *timeline);

/* What an event of a host row is; whether an event is a piece of work to be counted, and whose. */
pc__timeline_host_kind pc__timeline_host_kind_of(const pc_timeline *timeline, const pc__timeline_event *event);
bool pc__timeline_is_work(const pc_timeline *timeline, const pc__timeline_event *event);
pc__timeline_engine pc__timeline_engine_of(const pc_timeline *timeline, const pc__timeline_event *event);
int pc__timeline_engine_name(const pc_timeline *timeline, const pc__timeline_event *event); /* a text */
bool pc__timeline_engine_copies(pc__timeline_engine engine);

/* Spans of time, sorted and disjoint once pc__spans_unite was called. After a failed allocation further calls do
 * nothing and `failed` says so. Start from {0}. */
typedef struct pc__span {
    double begin, end;
} pc__span;

typedef struct pc__spans {
    pc__span *items;
    int count, room;
    bool failed;
} pc__spans;

void pc__spans_add(pc__spans *spans, double begin, double end);
void pc__spans_unite(pc__spans *spans);
double pc__spans_total(const pc__spans *spans);
void pc__spans_free(pc__spans *spans);

/* United spans in, united spans out: what is in both; what is in `a` and not in `b`. `out` is overwritten. */
void pc__spans_both(pc__spans *out, const pc__spans *a, const pc__spans *b);
void pc__spans_without(pc__spans *out, const pc__spans *a, const pc__spans *b);

/* The median of `n` numbers, which are sorted by this; NaN of none. */
double pc__median(double *numbers, int n);

/* Parts of the summary; each fills its own lists. */
pc_status pc__timeline_sum_engines(const pc_timeline *timeline, pc_timeline_summary *summary);
pc_status pc__timeline_sum_devices(const pc_timeline *timeline, pc_timeline_summary *summary);
pc_status pc__timeline_sum_ops(const pc_timeline *timeline, pc_timeline_summary *summary);
pc_status pc__timeline_sum_notes(const pc_timeline *timeline, pc_timeline_summary *summary);
pc_status pc__timeline_sum_host(const pc_timeline *timeline, pc_timeline_summary *summary);
pc_status pc__timeline_sum_ranks(const pc_timeline *timeline, pc_timeline_summary *summary);
pc_status pc__timeline_sum_verdict(const pc_timeline *timeline, pc_timeline_summary *summary);

/* Busy spans of a device's engines of a kind (computing, or copying), united. */
void pc__timeline_busy(const pc_timeline *timeline, int process, bool copies, pc__spans *spans);

/* Which rows of a file (-1: of all) are drivers' (see the public header): a bool per row, from pc__alloc; NULL when memory
 * fails. */
bool *pc__timeline_drivers(const pc_timeline *timeline, int file) PC_MUST_USE;

/* "rank 3 sim:0": the file's rank where there are several. */
pc_status pc__timeline_name_process(pc_timeline *timeline, pc__timeline_process *process);

/* "4.2 us", "310 ms" in `text`, and `text`. */
char *pc__timeline_time(double us, char text[32]);

#endif

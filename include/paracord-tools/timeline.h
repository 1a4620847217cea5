/* timeline.h: reading a timeline that PARACORD_TRACE=file.json wrote, and saying where its time went.
 *
 *     pc_timeline *timeline = pc_timeline_open("trace.json");
 *     pc_timeline_summary summary;
 *     if (!timeline || pc_timeline_summarise(timeline, &summary) != PC_OK)
 *         return pc_report(stderr);
 *     puts(summary.verdict_words); // "launch-bound: compute on cuda:0 stood idle 83 % of the time while ..."
 *     pc_timeline_summary_free(&summary);
 *     if (pc_timeline_page(timeline, "trace.html") != PC_OK)
 *         return pc_report(stderr);
 *     pc_timeline_free(timeline);
 *
 * The file is Chrome's trace event format, as an array or an object with traceEvents; a file cut off in the middle (the
 * program was killed) is read up to there. Timelines of other programs are read as far as complete events ("X"), rows'
 * names, marks and flows go; PyTorch's kernels, copies and synchronisations are recognised. Reading needs cJSON.
 *
 * What is counted, and how (all times in microseconds):
 *  - Work is what engines did: the rows named "engine ...". Every piece also stands in its stream's row, where it is
 *    not counted again. A device without engine rows (other programs) has its stream rows counted, by kind of work.
 *  - An engine is busy in the union of its pieces' intervals. Lanes ("engine compute", "engine compute 1") count
 *    once together, and each alone.
 *  - The host stands still in events of the category "wait"; one inside another counts once. Drivers are the host
 *    threads that have "step" events; if there are none, those that queue ops; if there are none, all.
 *  - The verdict looks at one device, the one that computed most (copied most, if none computed), from the first to
 *    the last piece of work on its engines: what came before is starting up. Each moment in which its compute engine
 *    is idle is given to the first of these that applies:
 *      1. copying: a copy engine of this device was busy;
 *      2. loader: a driver was in an event "loader";
 *      3. synchronising: a driver was in a "wait"; or the queue ran dry during one (a driver was in a wait when this
 *         gap began), so that the host could only begin to queue again afterwards;
 *      4. launching: a driver was queuing ops; ops on one thread less than 100 us apart, with no wait or loader between
 *         them, are one stretch;
 *      5. host: none of these: the program's own code.
 *    Busy 80 % or more, or no cause of at least 15 %, is compute-bound; otherwise the largest cause gives the name.
 */
#ifndef PARACORD_TOOLS_TIMELINE_H
#define PARACORD_TOOLS_TIMELINE_H

#include <paracord/error.h>

PC_BEGIN

typedef struct pc_timeline pc_timeline;

typedef enum pc_timeline_verdict {
    PC_TIMELINE_EMPTY,   /* no complete event in the file */
    PC_TIMELINE_NO_WORK, /* no device did anything: the host's times are all there is */
    PC_TIMELINE_COMPUTE_BOUND,
    PC_TIMELINE_COPY_BOUND,
    PC_TIMELINE_LOADER_BOUND,
    PC_TIMELINE_SYNC_BOUND,
    PC_TIMELINE_LAUNCH_BOUND,
    PC_TIMELINE_HOST_BOUND,
} pc_timeline_verdict;

/* How busy an engine was: all its lanes together (lane -1), and then each lane where there are several. */
typedef struct pc_timeline_engine {
    const char *device, *engine; /* "sim:0", "copy in" */
    int lane;                    /* -1: together */
    int64_t count;
    double busy, share; /* share: of the timeline's wall time */
} pc_timeline_engine;

/* Shares are NaN where there is nothing to divide by. */
typedef struct pc_timeline_device {
    const char *device;
    double compute, copy, both;                          /* time computing, copying, and doing both at once */
    double copy_overlapped, compute_overlapped;          /* both / copy, both / compute */
    double median_kernel, median_gap, median_queue_wait; /* NaN: unknown. Gaps are those between computing */
} pc_timeline_device;

/* Work of one name on all engines. */
typedef struct pc_timeline_op {
    const char *name;
    int64_t count, bytes;        /* bytes: copied; 0 for computing, or unknown */
    double total, mean, share;   /* share: of the sum of all work */
    double gigabytes_per_second; /* NaN where no bytes are known */
} pc_timeline_op;

/* Times that the host stood still in one call at one place; the longest first. */
typedef struct pc_timeline_wait {
    const char *call, *site; /* site: "train.c:41 (step)", or "" */
    int64_t count;
    double total, longest;
} pc_timeline_wait;

/* Time the host spent queuing one kind of op, without what it waited inside, and without other ops inside. */
typedef struct pc_timeline_queuing {
    const char *name;
    int64_t count;
    double total, mean;
} pc_timeline_queuing;

/* A remark in the file, such as why a copy was staged. */
typedef struct pc_timeline_note {
    const char *note, *name, *site; /* of the first such piece of work */
    int64_t count, bytes;
} pc_timeline_note;

/* A rank: a process of a job, or one of the threads of a process that are ranks. Its calls with others, sends and receives
 * included, and what of their time is waiting: a rank waits in a call from when it came to it until the last rank came. On a
 * device whose engine says no more than that (CUDA) a rank comes when its device does, not its host. */
typedef struct pc_timeline_rank {
    int rank;
    int64_t calls;
    double in_calls, waited; /* time in calls, all of it, and waiting of it */
    int64_t last;            /* calls to which it came last */
    double caused;     /* what others waited in these, in sum, because it came last and not with the one before it */
    double overlapped; /* share of its time in calls in which its device computed; NaN where no device did */
} pc_timeline_rank;

/* A call of all ranks of a group, the longest waiting first. */
typedef struct pc_timeline_collective {
    const char *name, *group;
    int64_t number, bytes;
    double at, took; /* from when the first rank came to when the last one had done */
    double spread;   /* from the first rank to the last one */
    double waited;   /* of all ranks in sum */
    int first, last; /* ranks */
} pc_timeline_collective;

/* Why the compute engine of the verdict's device was idle: shares of `window`; they add up to 1 with `compute`. */
typedef struct pc_timeline_causes {
    const char *device; /* NULL: no device worked */
    double window, compute, copying, loader, synchronising, launching, host;
} pc_timeline_causes;

/* Texts belong to the timeline, arrays to the summary. Lists are sorted, the largest total first. */
typedef struct pc_timeline_summary {
    double wall; /* from the first event's begin to the last one's end */
    int64_t events;
    int64_t skipped;      /* complete events whose times made no sense */
    int64_t dropped;      /* events that the traced program says it could not write */
    bool cut;             /* the file ended in the middle */
    const char *cut_file; /* which one, where there are several; NULL */
    pc_timeline_verdict verdict;
    char verdict_words[600]; /* a sentence with the figure behind it and what to do */
    pc_timeline_causes causes;
    double waited, waited_share; /* host threads stood still: their sum; and the longest such thread's share of wall */
    double loader, queuing;      /* time in which any driver was in the loader; sum of `queuings` */
    int device_count, engine_count, op_count, wait_count, queuing_count, note_count;
    pc_timeline_device *devices;
    pc_timeline_engine *engines;
    pc_timeline_op *ops;
    pc_timeline_wait *waits;
    pc_timeline_queuing *queuings;
    pc_timeline_note *notes;
    int rank_count, collective_count;
    pc_timeline_rank *ranks; /* by rank; none in a timeline without collectives */
    pc_timeline_collective *collectives;
    int64_t unmatched; /* calls whose others are in no file, or have another number */
    /* Who the others wait for: a rank that causes half of all waiting, called a straggler where it came last to six calls in
     * ten; "" without collectives. */
    char rank_words[400];
    char absent[96];    /* "rank 2": of the job, without a file; "" */
    double clock_error; /* within which the clocks of the ranks' hosts are known; 0 on one host */
} pc_timeline_summary;

/* Read a timeline; the caller releases it with pc_timeline_free. NULL: PC_ERR_FILE when the file cannot be read,
 * PC_ERR_FORMAT when it is no timeline, PC_ERR_UNSUPPORTED when Paracord was built without cJSON. Any thread. */
PC_API PC_MUST_USE pc_timeline *pc_timeline_open(const char *path);

/* The same of several files of one job (PARACORD_TRACE=FOLDER/ under a launcher: trace.rank0.json and so on), or of a folder,
 * which stands for such files in it, of the last start where a job was started again. Rows of each rank are named after it,
 * times are the job's: clocks are put on that of the store by what each rank has measured. PC_ERR_FORMAT also when one says
 * no rank, two say the same or they are of two jobs; PC_ERR_NOT_FOUND when a folder holds none. */
PC_API PC_MUST_USE pc_timeline *pc_timeline_open_all(const char *const *paths, int count);
PC_API void pc_timeline_free(pc_timeline *timeline);

/* Fill `summary`; release it with pc_timeline_summary_free before the timeline. Zeroed after a failure. */
PC_API PC_MUST_USE pc_status pc_timeline_summarise(const pc_timeline *timeline, pc_timeline_summary *summary);
PC_API void pc_timeline_summary_free(pc_timeline_summary *summary);

/* "launch-bound" and so on; "unknown" for other numbers. Static storage. */
PC_API const char *pc_timeline_verdict_name(pc_timeline_verdict verdict);

/* Write the timeline and its summary as one HTML page that needs no network, whole or not at all. */
PC_API PC_MUST_USE pc_status pc_timeline_page(const pc_timeline *timeline, const char *path);

/* Draw the rows as an SVG for a document, light or dark as its reader has it, whole or not at all: all of the
 * timeline, or (range not NULL) the time of the first event of that name, such as one of PC_TRACE_RANGE ("epoch#2": the
 * second). What would share a pixel with something before it is left out. PC_ERR_NOT_FOUND when nothing has that name.
 */
PC_API PC_MUST_USE pc_status pc_timeline_picture(const pc_timeline *timeline, const char *path, const char *range);

/* Write it as one file in Chrome's trace event format, whole or not at all: for Perfetto, where several files became one
 * timeline. */
PC_API PC_MUST_USE pc_status pc_timeline_write(const pc_timeline *timeline, const char *path);

PC_END
#endif

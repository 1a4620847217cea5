/* timeline.h: what the engines of simulated devices did, read back from a trace: overlap as the device saw it, which
 * a loaded host cannot feign and hardly hides. */
#ifndef PC_TEST_TIMELINE_H
#define PC_TEST_TIMELINE_H

#include "support.h"

#include <paracord/trace.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_BARS = 1000 };

/* A copy or a kernel: microseconds from its start to its end. */
typedef struct bar {
    bool is_copy;
    double start, end;
} bar;

typedef struct timeline {
    bar bars[MOST_BARS]; /* in the order of their starts */
    int count;
} timeline;

/* The number of a key in a line of a trace. */
static inline double number_in(const char *line, const char *key)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = strstr(line, quoted);
    assert_non_null(at);
    return strtod(at + strlen(quoted), NULL);
}

static inline int by_start(const void *a, const void *b)
{
    const double p = ((const bar *)a)->start, q = ((const bar *)b)->start;
    return (p > q) - (p < q);
}

static char timeline_path[32];

static inline void start_timeline(void)
{
    snprintf(timeline_path, sizeof timeline_path, "/tmp/paracord-bars-XXXXXX");
    const int file = mkstemp(timeline_path);
    assert_true(file >= 0);
    close(file);
    assert_ok(pc_trace_start(timeline_path));
}

/* Since start_timeline; valid until the next one. What the devices called on the host is left out. */
static inline const timeline *stop_timeline(void)
{
    static timeline t;
    t.count = 0;
    assert_ok(pc_trace_stop());
    FILE *file = fopen(timeline_path, "r");
    assert_non_null(file);
    for (char line[8192]; fgets(line, sizeof line, file);) {
        if (!strstr(line, "\"cat\":\"engine\"") || strstr(line, " on host\""))
            continue;
        assert_true(t.count < MOST_BARS);
        const double start = number_in(line, "ts");
        t.bars[t.count++] = (bar){strstr(line, "\"name\":\"copy ") != NULL, start, start + number_in(line, "dur")};
    }
    fclose(file);
    unlink(timeline_path);
    qsort(t.bars, (size_t)t.count, sizeof *t.bars, by_start);
    return &t;
}

/* Milliseconds of work, whatever was beside it: of copies, or of kernels. */
static inline double ms_of(const timeline *t, bool copies)
{
    double sum = 0;
    for (int i = 0; i < t->count; i++)
        sum += t->bars[i].is_copy == copies ? t->bars[i].end - t->bars[i].start : 0;
    return sum * 1e-3;
}

/* Milliseconds in which anything was at work: the sum of all work, where none was side by side. */
static inline double ms_busy(const timeline *t)
{
    double busy = 0, until = 0;
    for (int i = 0; i < t->count; i++) {
        const bar *b = &t->bars[i];
        const double start = b->start > until ? b->start : until;
        if (b->end > start) {
            busy += b->end - start;
            until = b->end;
        }
    }
    return busy * 1e-3;
}

#endif

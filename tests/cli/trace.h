/* trace.h: timelines made for tests, as PARACORD_TRACE writes them: one host thread, one device with a stream and
 * engines. */
#ifndef PC_TEST_TRACE_H
#define PC_TEST_TRACE_H

#include "job.h"

#include <paracord-tools/timeline.h>

enum { HOST = 1, DEVICE = 2, MAIN = 1, STREAM = 7, COMPUTE = 101, COMPUTE_1 = 102, COPY_IN = 103 };

typedef struct trace_file {
    test_path path;
    FILE *file;
    int tickets;
} trace_file;

static inline void name_row(trace_file *t, int process, int thread, const char *name)
{
    fprintf(t->file, "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"%s\"}},\n",
            process, thread, name);
}

static inline trace_file begin_trace(const char *folder, const char *name)
{
    trace_file t = {.path = joined(folder, name)};
    t.file = fopen(t.path.s, "w");
    assert_non_null(t.file);
    fputs("[\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"host\"}},\n"
          "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":2,\"args\":{\"name\":\"sim:0\"}},\n",
          t.file);
    name_row(&t, HOST, MAIN, "main");
    name_row(&t, DEVICE, STREAM, "stream 7");
    name_row(&t, DEVICE, COMPUTE, "engine compute");
    name_row(&t, DEVICE, COMPUTE_1, "engine compute 1");
    name_row(&t, DEVICE, COPY_IN, "engine copy in");
    return t;
}

/* What a host thread does. */
static inline void host(trace_file *t, const char *category, const char *name, double at, double duration)
{
    fprintf(t->file,
            "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"ts\":%.3f,\"dur\":%.3f,\"pid\":1,\"tid\":1,"
            "\"args\":{\"site\":\"train.c:41 (step)\"}},\n",
            category, name, at, duration);
}

/* A piece of work: in its stream's row and in its engine's. */
static inline void work(trace_file *t, int engine, const char *name, double at, double duration, long bytes)
{
    t->tickets++;
    for (int i = 0; i < 2; i++)
        fprintf(t->file,
                "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"ts\":%.3f,\"dur\":%.3f,\"pid\":2,\"tid\":%d,"
                "\"args\":{\"ticket\":%d,\"stream\":7,\"bytes\":%ld,\"queued_us\":1.5%s}},\n",
                i ? "engine" : "work", name, at, duration, i ? engine : STREAM, t->tickets, bytes,
                bytes ? ",\"note\":\"staged: the source is pageable\"" : "");
}

static inline void end_trace(trace_file *t)
{
    fputs("{\"ph\":\"i\",\"name\":\"end\",\"ts\":0,\"pid\":1,\"tid\":1,\"s\":\"t\"}\n]\n", t->file);
    assert_int_equal(fclose(t->file), 0);
}

static inline test_path trace_of(const char *folder, const char *name, const char *text)
{
    put_bytes(folder, name, text, strlen(text));
    return joined(folder, name);
}

/* Read and summarise it; the caller releases both. */
static inline pc_timeline *summarised(const char *path, pc_timeline_summary *summary)
{
    pc_timeline *timeline = pc_timeline_open(path);
    assert_not_null_ok(timeline);
    assert_ok(pc_timeline_summarise(timeline, summary));
    return timeline;
}

static inline void forget(pc_timeline *timeline, pc_timeline_summary *summary)
{
    pc_timeline_summary_free(summary);
    pc_timeline_free(timeline);
}

/* A program that launches 100 kernels of 4 us, each 21 us after the one before. */
static inline test_path launching(const char *folder)
{
    trace_file t = begin_trace(folder, "launch.json");
    for (int i = 0; i < 100; i++) {
        host(&t, "op", "relu", 25.0 * i, 23);
        work(&t, COMPUTE, "relu", 25.0 * i + 21, 4, 0);
    }
    end_trace(&t);
    return t.path;
}

#endif

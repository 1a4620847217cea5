/* bench.h: paracord bench from the inside: rows, what was measured of them, and the machine's limits beside them.
 *
 * Rates are bytes or operations a second, times are seconds; NaN is unknown. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include <paracord-tools/probe.h>

#include "program.h"

/* What a row is about: it decides which words fit (bench_verdict.c). */
typedef enum bench_kind {
    BENCH_LINK,     /* pinned memory, one way */
    BENCH_BOTH,     /* the same, both ways at once */
    BENCH_PAGEABLE, /* memory that the device cannot copy by itself */
    BENCH_PEER,
    BENCH_MEMORY, /* streams through the device's memory */
    BENCH_HOST,   /* and the host's */
    BENCH_PRODUCT,
    BENCH_LAUNCH,
    BENCH_NODE,
    BENCH_SYNC,
    BENCH_OVERLAP,
    BENCH_DISK
} bench_kind;

/* The PCIe link of a device; 0: unknown. */
typedef struct bench_link {
    int generation, width, generation_max, width_max;
} bench_link;

/* Bytes a second that a link carries one way, before its packets' heads; NaN for an unknown one. */
double bench_link_rate(int generation, int width);

typedef struct bench_limit {
    double rate;        /* NaN: unknown */
    const char *origin; /* "datasheet of H200", "measured: reading", "PCIe 5.0 x16" */
} bench_limit;

enum { BENCH_F64, BENCH_F32, BENCH_TF32, BENCH_F16, BENCH_BF16, BENCH_TYPES };

enum { BENCH_COPY, BENCH_TRIAD, BENCH_ONE_THREAD }; /* rows of the host's memory */

typedef struct bench_limits {
    bench_limit memory, host, link, peer, math[BENCH_TYPES];
    bench_link pcie;
    char model[96], datasheet[64], link_name[32], clocks[96], simd[16]; /* clocks: what holds them down; "": nothing */
} bench_limits;

typedef struct bench_result {
    double first;             /* the first call, apart: it loads code and makes room */
    double median, low, high; /* of one go; a quarter of the times is below low, a quarter above high */
    double best;              /* the shortest of them */
    int goes, samples;        /* goes between two marks; times that were taken */
    double amount;            /* of one go, in the row's unit; 0: only time counts */
    double flops, bytes;      /* of one go, for the roofline; 0: it has no place there */
    double beside;            /* what the verdict compares with: seconds or a rate, as the kind says */
    bench_limit limit;        /* its rate is in the row's unit */
    char size[48];            /* "67,108,864 float32" */
    char why[320];            /* not measured, and why; "": measured */
    bool broken;              /* not measured since something failed, not since it is not there */
} bench_result;

typedef struct bench bench;

typedef struct bench_row {
    const char *name, *what;
    bench_kind kind;
    const char *unit;                                                        /* "B", "FLOP"; "": only time counts */
    int which;                                                               /* of rows that share a function */
    bool (*measure)(bench *b, const struct bench_row *row, bench_result *r); /* false: an error, not told yet */
} bench_row;

extern const bench_row bench_rows[];
extern const int bench_row_count;
enum { BENCH_ROWS_MAX = 32 };

struct bench {
    cli_program p;
    bool chosen[BENCH_ROWS_MAX];
    bench_result results[BENCH_ROWS_MAX];
    bench_limits limits;
    const char *disk; /* a folder */
    double took;
};

/* --- bench_time.c --- */

/* Time a body's goes: the first apart, warm-up, then batches of goes until about 0.3 s are over. With `host` the clock
 * runs until the device is done; otherwise the time is taken between marks in the current stream (the CPU's by the
 * clock). False: an error. */
bool bench_time(pc_device device, bool host, cli_body body, void *context, bench_result *r);

/* Median and quarters of times that were taken otherwise; `times` is sorted. */
void bench_settle(double *times, int n, bench_result *r);

/* Note that a row is not there on this machine; always true. */
bool bench_absent(bench_result *r, const char *why);

/* The result of a row by its name, NULL when it was not measured. */
const bench_result *bench_found(const bench *b, const char *name);

/* Amount a second. */
double bench_rate(const bench_result *r);

/* Rate as a part of the limit; NaN where there is no limit. */
double bench_share(const bench_result *r);

/* Times of one sort of row; bench_rows names them. */
bool bench_transfer(bench *b, const bench_row *row, bench_result *r);
bool bench_peer(bench *b, const bench_row *row, bench_result *r);
bool bench_overlap(bench *b, const bench_row *row, bench_result *r);
bool bench_memory(bench *b, const bench_row *row, bench_result *r);
bool bench_stream(bench *b, const bench_row *row, bench_result *r);
bool bench_product(bench *b, const bench_row *row, bench_result *r);
bool bench_calls(bench *b, const bench_row *row, bench_result *r);
bool bench_disk(bench *b, const bench_row *row, bench_result *r);

/* Elements of float32 in an array that no cache of the device, or of the host, holds. */
int64_t bench_elements(pc_device device);

/* --- bench_limits.c --- */

/* What the machine (may be NULL) says without measuring of the GPU that CUDA counts so (-1: none). The limits' texts
 * may point into *limits. */
void bench_known_limits(bench_limits *limits, const pc_machine *machine, int cuda_index);

/* Find out the machine's limits: datasheet, link, and what is measured where neither says. */
void bench_find_limits(bench *b, const pc_machine *machine);

/* A limit that was measured is no limit where a row went beyond it: then it is that row's rate. */
void bench_raise_limits(bench *b);

/* --- bench_verdict.c: no device is asked, so that words can be tested --- */

/* What a result means, in words: `text`, "" where there is nothing to say. */
char *bench_verdict(const bench_row *row, const bench_result *r, const bench_limits *limits, char *text, size_t n);

/* --- bench_text.c, bench_roofline.c --- */

void bench_print(const bench *b);
void bench_json(const bench *b);

/* The roofline, to be written as SVG or PNG (bench_plot.h). */
struct bench_plot;
void bench_draw(const bench *b, struct bench_plot *plot);

#endif

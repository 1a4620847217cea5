/* bench_verdict.c: what a result means, in words. */
#include "bench.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "text.h"

double bench_link_rate(int generation, int width)
{
    /* GT/s of a lane, after 8b/10b (1, 2), 128b/130b (3 to 5) or flits (6) */
    static const double lane[] = {
        0, 0.25e9, 0.5e9, 8e9 / 8 * 128 / 130, 16e9 / 8 * 128 / 130, 32e9 / 8 * 128 / 130, 64e9 / 8 * 236 / 256};
    return generation > 0 && generation <= 6 && width > 0 ? lane[generation] * width : NAN;
}

typedef struct words {
    char *text;
    size_t n, used;
} words;

static void __attribute__((format(printf, 2, 3))) say(words *w, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int more = vsnprintf(w->text + w->used, w->n - w->used, format, list);
    va_end(list);
    if (more > 0)
        w->used = w->used + (size_t)more < w->n ? w->used + (size_t)more : w->n - 1;
}

/* "copies at 42% of PCIe 5.0 x16: the link runs at x8" */
static void on_link(words *w, const bench_result *r, const bench_limits *l, const char *verb)
{
    static const bench_link none = {0};
    const double share = bench_share(r);
    const bench_link *p = r->limit.origin && !strncmp(r->limit.origin, "PCIe", 4) ? &l->pcie : &none;
    if (isnan(share)) {
        say(w, "how fast the link could be is unknown");
        return;
    }
    say(w, "%s at %.0f%% of %s: ", verb, 100 * share, r->limit.origin);
    const double now =
        bench_link_rate(p->generation ? p->generation : p->generation_max, p->width ? p->width : p->width_max) /
        bench_link_rate(p->generation_max, p->width_max);
    const bool explains = share <= now; /* a link that sleeps when nothing is copied was looked at in its sleep */
    const bool narrow = explains && p->width && p->width < p->width_max;
    const bool slow = explains && p->generation && p->generation < p->generation_max;
    if (narrow && slow)
        say(w, "the link runs at PCIe %d.0 x%d", p->generation, p->width);
    else if (narrow)
        say(w, "the link runs at x%d", p->width);
    else if (slow)
        say(w, "the link runs at PCIe %d.0", p->generation);
    else if (share >= 0.7)
        say(w, "as fast as such a link gets");
    else
        say(w, "the link itself is whole; look for other copies, the IOMMU, or memory of the other CPU socket");
}

static void on_pageable(words *w, const bench_result *r)
{
    const double times = r->beside / bench_rate(r);
    if (isnan(times))
        say(w, "goes through pinned memory in pieces");
    else if (times > 1.15)
        say(w, "pinned memory is %.1f times as fast", times);
    else
        say(w, "as fast as from pinned memory");
}

static void on_memory(words *w, const bench_result *r, const char *whose)
{
    const double share = bench_share(r);
    if (isnan(share))
        say(w, "how fast %s memory could be is unknown", whose);
    else if (share >= 0.75)
        say(w, "as fast as %s memory gets", whose);
    else if (share >= 0.45)
        say(w, "a part of what %s memory gives", whose);
    else
        say(w, "far below what %s memory gives", whose);
}

/* One thread is not meant to fill a memory. */
static void on_thread(words *w, const bench_result *r)
{
    if (bench_share(r) > 0)
        say(w, "one thread gets %.0f%% of what the host's memory gives", 100 * bench_share(r));
}

static void on_product(words *w, const bench_result *r, const bench_limits *l)
{
    const double share = bench_share(r);
    if (isnan(share))
        say(w, "how fast this type could be is unknown");
    else if (share > 1.05)
        say(w, "above that limit, which then is another board's");
    else if (share >= 0.7)
        say(w, "as fast as large products get");
    else if (share >= 0.4)
        say(w, "a part of the arithmetic's limit");
    else
        say(w, "far below the arithmetic's limit");
    if (*l->clocks && share < 0.9)
        say(w, "; clocks are held down by %s", l->clocks);
}

/* An op that does less than its launch takes is lost time. */
static void on_launch(words *w, const bench_result *r)
{
    char text[32];
    const double elements = r->median * r->beside / 12;
    if (elements >= 1)
        say(w, "sums of fewer than %s elements take less time than their call", cli_thousands((int64_t)elements, text));
}

static void on_node(words *w, const bench_result *r)
{
    const double times = r->beside / r->median;
    if (times > 1.15)
        say(w, "%.1f times as quick as a call: record what is called often", times);
    else if (times <= 1.15)
        say(w, "no quicker than a call: here a recording wins little");
}

static void on_wait(words *w, const bench_result *r)
{
    const double calls = r->median / r->beside;
    if (calls >= 1.5)
        say(w, "a result waited for costs %.0f calls that are not", calls);
    else if (calls > 0)
        say(w, "waiting costs little here");
}

static void on_overlap(words *w, const bench_result *r)
{
    const double longer = r->amount / r->limit.rate, hidden = (r->beside - r->median) / (r->beside - longer);
    if (isnan(hidden))
        return;
    say(w, "%.0f%% of the shorter is hidden behind the longer", 100 * fmin(fmax(hidden, 0), 1));
    if (hidden < 0.5)
        say(w, ": copies and computing mostly wait for each other");
}

static void on_disk(words *w, const bench_result *r)
{
    if (r->beside > 0)
        say(w, "this folder lies in memory: --disk names one on a disk");
    else if (bench_share(r) >= 0.85)
        say(w, "the disk sets the pace; copying hides behind it");
    else if (bench_share(r) < 0.85)
        say(w, "copying adds to reading");
}

char *bench_verdict(const bench_row *row, const bench_result *r, const bench_limits *l, char *text, size_t n)
{
    words w = {text, n, 0};
    *text = 0;
    if (*r->why) {
        say(&w, "not measured: %s", r->why);
        return text;
    }
    switch (row->kind) {
    case BENCH_LINK:
        on_link(&w, r, l, "copies");
        break;
    case BENCH_BOTH:
        on_link(&w, r, l, "copies both ways");
        break;
    case BENCH_PAGEABLE:
        on_pageable(&w, r);
        break;
    case BENCH_PEER:
        on_link(&w, r, l, "copies between devices");
        break;
    case BENCH_MEMORY:
        on_memory(&w, r, "this device's");
        break;
    case BENCH_HOST:
        if (row->which == BENCH_ONE_THREAD)
            on_thread(&w, r);
        else
            on_memory(&w, r, "the host's");
        break;
    case BENCH_PRODUCT:
        on_product(&w, r, l);
        break;
    case BENCH_LAUNCH:
        on_launch(&w, r);
        break;
    case BENCH_NODE:
        on_node(&w, r);
        break;
    case BENCH_SYNC:
        on_wait(&w, r);
        break;
    case BENCH_OVERLAP:
        on_overlap(&w, r);
        break;
    case BENCH_DISK:
        on_disk(&w, r);
        break;
    }
    if (r->high - r->low > 0.25 * r->median)
        say(&w, "%stimes differ by %.0f%%: something else runs here", w.used ? "; " : "",
            100 * (r->high - r->low) / r->median);
    return text;
}

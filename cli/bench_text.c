/* bench_text.c: results as a table, a verdict below each, for people; and as JSON, for programs. */
#include "bench.h"

#include <math.h>
#include <string.h>

#include <paracord/threads.h>

#include "text.h"

enum { NAME = 24, TIME = 11, SPREAD = 8, RATE = 15, SHARE = 10 };

static void print_head(const bench *b)
{
    char name[PC_DEVICE_NAME_MAX], rate[32], why[512];
    const bench_limits *l = &b->limits;
    printf("%s", pc_device_name(b->p.device, name));
    if (*l->model)
        printf(", %s", l->model);
    printf("; the host has %d thread%s, SIMD level %s\n", pc_threads_get(), pc_threads_get() == 1 ? "" : "s", l->simd);
    if (pc_cpu_level_why(why, sizeof why)[0])
        printf("  no wider SIMD level: %s\n", why);
    if (l->memory.rate > 0)
        printf("  memory at most  %10s  %s\n", cli_rate(l->memory.rate, 1, "B", rate), l->memory.origin);
    if (l->math[BENCH_F32].rate > 0)
        printf("  float32 at most %10s  %s\n", cli_rate(l->math[BENCH_F32].rate, 1, "FLOP", rate),
               l->math[BENCH_F32].origin);
    if (l->link.rate > 0)
        printf("  link at most    %10s  %s\n", cli_rate(l->link.rate, 1, "B", rate), l->link.origin);
    putchar('\n');
}

static void print_row(const bench *b, int i)
{
    char time[32], first[32], rate[32], spread[32], share[32] = "", verdict[512];
    const bench_row *row = &bench_rows[i];
    const bench_result *r = &b->results[i];
    bench_verdict(row, r, &b->limits, verdict, sizeof verdict);
    snprintf(spread, sizeof spread, "%.0f%%", 100 * (r->high - r->low) / r->median);
    if (bench_share(r) > 0)
        snprintf(share, sizeof share, "%.0f%%", 100 * bench_share(r));
    printf("%-*s%*s%*s%*s%*s%*s\n", NAME, row->name, TIME, cli_seconds(r->median, time), SPREAD, spread, RATE,
           cli_rate(r->amount, r->median, row->unit, rate), SHARE, share, TIME + 1, cli_seconds(r->first, first));
    int at = printf("    %s, %s", row->what, r->size);
    if (*verdict)
        at += printf(": ");
    cli_wrap(stdout, verdict, at, 4, cli_width(stdout));
    putchar('\n');
}

/* Rows that could not be measured, those of one reason together. */
static void print_absent(const bench *b)
{
    bool told[BENCH_ROWS_MAX] = {false};
    for (int i = 0; i < bench_row_count; i++) {
        const char *why = b->results[i].why;
        if (!b->chosen[i] || !*why || told[i])
            continue;
        int at = printf("not measured: ");
        for (int k = i; k < bench_row_count; k++)
            if (b->chosen[k] && !strcmp(b->results[k].why, why)) {
                told[k] = true;
                if (k > i)
                    at += printf(", ");
                at = cli_wrap(stdout, bench_rows[k].name, at, 4, cli_width(stdout));
            }
        at += printf(": ");
        cli_wrap(stdout, why, at, 4, cli_width(stdout));
        putchar('\n');
    }
}

static void print_table(const bench *b)
{
    cli_set_style(stdout, CLI_BOLD);
    printf("%-*s%*s%*s%*s%*s%*s", NAME, "row", TIME, "median", SPREAD, "spread", RATE, "rate", SHARE, "of limit",
           TIME + 1, "first call");
    cli_set_style(stdout, CLI_PLAIN);
    putchar('\n');
    for (int i = 0; i < bench_row_count; i++)
        if (b->chosen[i] && !*b->results[i].why)
            print_row(b, i);
    putchar('\n');
}

void bench_print(const bench *b)
{
    bool any = false;
    for (int i = 0; i < bench_row_count; i++)
        any = any || (b->chosen[i] && !*b->results[i].why);
    print_head(b);
    if (any)
        print_table(b);
    print_absent(b);
    printf("%.1f s%s\n", b->took, any ? "; spread: of the middle half of the times" : "");
}

/* --- JSON --- */

static void member(const char *name, double value)
{
    printf(", \"%s\": ", name);
    cli_json_number(stdout, value);
}

static void words(const char *name, const char *text)
{
    printf(", \"%s\": ", name);
    if (text && *text)
        cli_json_text(stdout, text);
    else
        fputs("null", stdout);
}

static void limit(const char *name, const bench_limit *l)
{
    printf(", \"%s\": {\"rate\": ", name);
    cli_json_number(stdout, l->rate > 0 ? l->rate : NAN);
    words("origin", l->rate > 0 ? l->origin : NULL);
    putchar('}');
}

static void result(const bench *b, int i)
{
    const bench_row *row = &bench_rows[i];
    const bench_result *r = &b->results[i];
    const bool there = !*r->why;
    char verdict[512];
    printf("{\"row\": \"%s\", \"what\": \"%s\"", row->name, row->what);
    words("size", r->size);
    member("first_call_s", there ? r->first : NAN);
    member("median_s", there ? r->median : NAN);
    member("low_quarter_s", there ? r->low : NAN);
    member("high_quarter_s", there ? r->high : NAN);
    printf(", \"samples\": %d, \"goes_per_sample\": %d", there ? r->samples : 0, there ? r->goes : 0);
    member("amount", there && r->amount > 0 ? r->amount : NAN);
    words("unit", row->unit);
    member("rate", there ? bench_rate(r) : NAN);
    limit("limit", &r->limit);
    member("share", there ? bench_share(r) : NAN);
    words("verdict", bench_verdict(row, r, &b->limits, verdict, sizeof verdict));
    putchar('}');
}

void bench_json(const bench *b)
{
    static const char *const types[] = {"f64", "f32", "tf32", "f16", "bf16"};
    const bench_limits *l = &b->limits;
    char name[PC_DEVICE_NAME_MAX];
    bool first = true;
    printf("{\"program\": \"bench\", \"device\": \"%s\"", pc_device_name(b->p.device, name));
    words("model", l->model);
    printf(", \"cpu_threads\": %d, \"simd\": \"%s\", \"limits\": {\"device\": \"%s\"", pc_threads_get(), l->simd, name);
    limit("memory", &l->memory);
    limit("host_memory", &l->host);
    limit("link", &l->link);
    limit("peer", &l->peer);
    for (int i = 0; i < BENCH_TYPES; i++)
        limit(types[i], &l->math[i]);
    words("clocks_held_down_by", l->clocks);
    fputs("}, \"results\": [", stdout);
    for (int i = 0; i < bench_row_count; i++)
        if (b->chosen[i]) {
            fputs(first ? "" : ", ", stdout);
            result(b, i);
            first = false;
        }
    putchar(']');
    member("seconds", b->took);
    puts("}");
}

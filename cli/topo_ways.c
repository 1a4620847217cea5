/* topo_ways.c: what collectives between GPUs will do, in words: for each pair, and for all together. */
#include "topo_ways.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text.h"

enum { GPUS = 64, NAMED = 3 };

static const char *const kinds[] = {[PC_WAY_UNKNOWN] = "unknown",
                                    [PC_WAY_NVLINK] = "NVLink",
                                    [PC_WAY_P2P] = "directly over PCIe",
                                    [PC_WAY_HOST] = "through host memory",
                                    [PC_WAY_NETWORK] = "by network"};
static const char *const names[] = {[PC_WAY_UNKNOWN] = "unknown",
                                    [PC_WAY_NVLINK] = "nvlink",
                                    [PC_WAY_P2P] = "p2p",
                                    [PC_WAY_HOST] = "host",
                                    [PC_WAY_NETWORK] = "network"};

static char *rate_text(double bandwidth, char text[48])
{
    if (isnan(bandwidth))
        snprintf(text, 48, "bandwidth unknown");
    else
        snprintf(text, 48, "at most %.1f GB/s a direction", bandwidth / 1e9);
    return text;
}

static bool same_way(const pc_way *a, const pc_way *b)
{
    return a->kind == b->kind && !strcmp(a->why, b->why) &&
           (fabs(a->bandwidth - b->bandwidth) < 1 || (isnan(a->bandwidth) && isnan(b->bandwidth)));
}

/* The pairs that go as the pair (a, b) does: "0-1 0-2", or how many; 0 when an earlier pair has named them. */
static int name_pairs(pc_machine *m, const int *index, const int *place, int count, int a, int b, const pc_way *way,
                      char text[64])
{
    int found = 0;
    text[0] = 0;
    for (int i = 0; i < count; i++)
        for (int j = i + 1; j < count; j++) {
            const pc_way other = pc_machine_way(m, index[i], index[j]);
            if (!same_way(way, &other))
                continue;
            if (!found && (i != a || j != b))
                return 0;
            const size_t used = strlen(text);
            if (found++ < NAMED)
                snprintf(text + used, 64 - used, "%s%d-%d", used ? " " : "", place[i], place[j]);
        }
    if (found > NAMED)
        snprintf(text, 64, found == count * (count - 1) / 2 ? "all %d pairs" : "%d pairs", found);
    return found;
}

static int print_label(const char *label)
{
    fputs("  ", stdout);
    return cli_pad(stdout, 2 + printf("%s", label), 17);
}

static void print_way(const char *label, const pc_way *way)
{
    char rate[48], line[512];
    snprintf(line, sizeof line, "%s, %s: %s", kinds[way->kind], rate_text(way->bandwidth, rate), way->why);
    cli_wrap(stdout, line, print_label(label), 17, cli_width(stdout));
    putchar('\n');
}

static void print_words(const char *label, const char *words)
{
    cli_wrap(stdout, words, print_label(label), 17, cli_width(stdout));
    putchar('\n');
}

static void print_advice(const char *advice)
{
    char line[1024];
    puts("\nWhat to change");
    for (; *advice; advice += strcspn(advice, "\n"), advice += *advice == '\n') {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(advice, "\n"), advice);
        fputs("  - ", stdout);
        cli_wrap(stdout, line, 4, 4, cli_width(stdout));
        putchar('\n');
    }
}

void cli_topo_ways(pc_machine *m, const int *index, int count)
{
    char label[64];
    int gpus[GPUS], place[GPUS], n = 0;
    const pc_ways ways = pc_machine_ways(m);
    if (ways.gpus < 2)
        return;
    for (int i = 0; i < count && n < GPUS; i++)
        if (m->devices[index[i]].nvidia) {
            place[n] = i;
            gpus[n++] = index[i];
        }
    puts("\nHow collectives go");
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++) {
            const pc_way way = pc_machine_way(m, gpus[i], gpus[j]);
            if (name_pairs(m, gpus, place, n, i, j, &way, label))
                print_way(label, &way);
        }
    snprintf(label, sizeof label, "all %d", ways.gpus);
    print_way(label, &ways.all);
    print_words("engine", ways.engine);
    print_words("NVLS", ways.nvls);
    print_words("other machines", ways.network);
    if (ways.advice[0])
        print_advice(ways.advice);
}

static void print_json_way(const pc_way *way)
{
    printf("\"way\": \"%s\", \"bytes_per_second_at_most\": ", names[way->kind]);
    cli_json_number(stdout, way->bandwidth);
    fputs(", \"why\": ", stdout);
    cli_json_text(stdout, way->why);
}

void cli_topo_ways_json(pc_machine *m, const int *index, int count)
{
    const pc_ways ways = pc_machine_ways(m);
    const char *joint = "";
    fputs("\"collectives\": {\"pairs\": [", stdout);
    for (int i = 0; i < count && ways.gpus > 1; i++)
        for (int j = i + 1; j < count; j++) {
            if (!m->devices[index[i]].nvidia || !m->devices[index[j]].nvidia)
                continue;
            const pc_way way = pc_machine_way(m, index[i], index[j]);
            printf("%s{\"devices\": [%d, %d], ", joint, i, j);
            print_json_way(&way);
            putchar('}');
            joint = ", ";
        }
    fputs("], \"all\": ", stdout);
    if (ways.gpus < 2) {
        fputs("null}, \"advice\": []", stdout);
        return;
    }
    putchar('{');
    print_json_way(&ways.all);
    fputs(", \"engine\": ", stdout);
    cli_json_text(stdout, ways.engine);
    fputs(", \"nvls\": ", stdout);
    cli_json_text(stdout, ways.nvls);
    fputs(", \"network\": ", stdout);
    cli_json_text(stdout, ways.network);
    fputs("}}, \"advice\": [", stdout);
    joint = "";
    char line[1024];
    for (const char *at = ways.advice; *at; at += strcspn(at, "\n"), at += *at == '\n', joint = ", ") {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        fputs(joint, stdout);
        cli_json_text(stdout, line);
    }
    putchar(']');
}

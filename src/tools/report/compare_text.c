/* compare_text.c: runs side by side as a table of text, and as JSON. */
#include "report/compare.h"
#include "report/parts.h"
#include "train/summary.h"

#include <math.h>

static void number(pc__text *text, double value, const char *format, int width)
{
    if (isfinite(value))
        pc__text_add(text, format, value);
    else
        pc__text_add(text, "%*s", width, "-");
}

static const pc__epoch_record *last_of(const pc__compared *run)
{
    return run->history.count ? &run->history.epochs[run->history.count - 1] : NULL;
}

static void put_name(pc__text *text, const char *name, int width)
{
    pc__text_add(text, "%*s", PC__MAX(width - (int)strlen(name), 0), "");
    pc__text_add_name(text, name);
}

static void put_row(pc__text *text, const pc__compared *run, int width)
{
    const pc__epoch_record *last = last_of(run), *kept = run->kept.epoch ? &run->kept : NULL;
    put_name(text, run->folder, width);
    pc__text_add(text, "  %6d", last ? last->epoch : 0);
    pc__text_add(text, kept ? "  %4d" : "     -", kept ? kept->epoch : 0);
    number(text, kept ? kept->test_accuracy : NAN, "  %8.3f", 10);
    number(text, kept ? kept->test_balanced_accuracy : NAN, "  %8.3f", 10);
    number(text, kept ? kept->test_loss : NAN, "  %9.4f", 11);
    number(text, last ? last->test_accuracy : NAN, "  %8.3f", 10);
    number(text, last ? last->loss : NAN, "  %10.4f", 12);
    pc__text_add(text, "  %11.1f s%s\n", pc__report_training_seconds(&run->history),
                 run->known && !run->finished ? "  not finished" : "");
}

/* "--lr: 0.001 (run1), 0.01 (run2)" of what is not the same. */
static void put_setting(pc__text *text, const pc__compared *runs, int count, const char *line)
{
    size_t n = pc__compared_name(line), length;
    pc__text_add(text, "%.*s:", (int)n, line);
    for (int i = 0; i < count; i++) {
        const char *value = pc__compared_setting(&runs[i], line, n, &length);
        pc__text_add(text, "%s ", i ? "," : "");
        if (!value)
            pc__text_add(text, "%s", pc__compared_absent(&runs[i], line));
        else if (length)
            pc__text_append(text, value, length);
        else
            pc__text_add(text, "yes");
        pc__text_add(text, " (");
        put_name(text, runs[i].folder, 0);
        pc__text_add(text, ")");
    }
    pc__text_add(text, "\n");
}

void pc__compare_text(pc__text *text, const pc__compared *runs, int count)
{
    int width = 3;
    bool any = false;
    for (int i = 0; i < count; i++)
        width = PC__MAX(width, (int)strlen(runs[i].folder));
    pc__text_add(text, "%*s  epochs  kept  test acc  balanced  test loss  last acc  train loss  training time\n", width,
                 "run");
    for (int i = 0; i < count; i++)
        put_row(text, &runs[i], width);
    for (int i = 0; i < count; i++)
        for (const char *line = runs[i].settings; *line; line += strcspn(line, "\n"), line += *line == '\n')
            if (count > 1 && pc__compared_shows(runs, count, i, line)) {
                pc__text_add(text, "%s", any ? "" : "\n");
                put_setting(text, runs, count, line);
                any = true;
            }
}

static void put_json_epoch(pc__text *json, const pc__epoch_record *r)
{
    pc__text_add(json, "{\"epoch\": %d", r->epoch);
#define PUT(name)                                                                                                      \
    pc__text_add(json, ", \"%s\": ", #name);                                                                           \
    pc__json_number(json, r->name);
    PC__EPOCH_FIELDS(PUT)
#undef PUT
    pc__text_add(json, "}");
}

static void put_json_steps(pc__text *json, const pc__curve *curve)
{
    pc__text_add(json, ", \"loss_by_step\": [");
    for (int64_t i = 0, put = 0; i < curve->count; i++) {
        const pc__curve_group *g = &curve->groups[i];
        if (!g->seen)
            continue;
        pc__text_add(json, "%s[%lld, ", put++ ? ", " : "", (long long)((i + 1) * curve->width));
        pc__json_number(json, g->loss / (double)g->seen);
        pc__text_add(json, "]");
    }
    pc__text_add(json, "]");
}

static void put_json_settings(pc__text *json, const pc__compared *run)
{
    pc__text_add(json, ", \"settings\": [");
    for (const char *line = run->settings; *line;) {
        char copy[sizeof run->settings];
        size_t n = strcspn(line, "\n");
        snprintf(copy, sizeof copy, "%.*s", (int)n, line);
        pc__text_add(json, "%s", line == run->settings ? "" : ", ");
        pc__json_string(json, copy);
        line += n + (line[n] == '\n');
    }
    pc__text_add(json, "]");
}

void pc__compare_json(pc__text *json, const pc__compared *runs, int count)
{
    pc__text_add(json, "[");
    for (int i = 0; i < count; i++) {
        pc__text_add(json, "%s{\"run\": ", i ? ",\n " : "");
        pc__json_string(json, runs[i].folder);
        pc__text_add(json, ", \"finished\": %s, \"kept\": ",
                     !runs[i].known     ? "null"
                     : runs[i].finished ? "true"
                                        : "false");
        if (runs[i].kept.epoch)
            put_json_epoch(json, &runs[i].kept);
        else
            pc__text_add(json, "null");
        put_json_settings(json, &runs[i]);
        pc__text_add(json, ", \"epochs\": [");
        for (int e = 0; e < runs[i].history.count; e++) {
            pc__text_add(json, "%s", e ? ", " : "");
            put_json_epoch(json, &runs[i].history.epochs[e]);
        }
        pc__text_add(json, "]");
        put_json_steps(json, &runs[i].curve);
        pc__text_add(json, "}");
    }
    pc__text_add(json, "]\n");
}

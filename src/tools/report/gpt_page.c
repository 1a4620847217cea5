/* gpt_page.c: a training of a GPT as a page: figures, curves, the last sample. */
#include "gpt/run.h"
#include "io/file.h"
#include "report/graph.h"
#include "report/parts.h"
#include "train/metrics_line.h"

#include <math.h>

static void card(pc__text *text, const char *class, const char *name)
{
    pc__text_add(text, "<div class='card%s'><h3>%s</h3><p class='value'>", class, name);
}

static void figures(pc__text *text, const pc_gpt_run *run)
{
    const pc__gpt_tested *last = run->tested_count ? &run->tested[run->tested_count - 1] : NULL;
    const bool held = last && isfinite(last->test_loss);
    pc__html_put(text, "<section class='cards'>\n");
    card(text, " lead", held ? "Test loss" : "Loss");
    pc__html_number(text, !last ? (double)NAN : held ? last->test_loss : last->loss);
    pc__html_put(text, "</p><p class='sub'>mean of a token; perplexity ");
    pc__html_number(text, last ? exp(held ? last->test_loss : last->loss) : (double)NAN);
    pc__html_put(text, "</p></div>\n");
    card(text, "", "Training loss");
    pc__html_number(text, last ? last->loss : (double)NAN);
    pc__html_put(text, "</p></div>\n");
    card(text, "", "Steps");
    pc__html_count(text, run->step);
    pc__text_add(text, "</p><p class='sub'>of %lld, %lld tokens each</p></div>\n", (long long)run->steps,
                 (long long)run->tokens);
    card(text, "", "Tokens a second");
    pc__html_count(text, isfinite(run->tokens_per_second) ? (int64_t)run->tokens_per_second : -1);
    pc__html_put(text, "</p><p class='sub'>");
    pc__html_percent(text, run->mfu);
    pc__html_put(text, " of the device's speed of products</p></div>\n");
    card(text, "", "Parameters");
    pc__html_count(text, run->parameters);
    pc__text_add(text, "</p><p class='sub'>%.0f MB of memory by the plan</p></div>\n", (double)run->bytes / 1e6);
    card(text, "", "Time");
    pc__html_duration(text, run->seconds);
    pc__html_put(text, "</p></div>\n</section>\n");
}

/* Training by groups of steps; both losses where they were tested. */
static void curves(pc__text *text, const pc_gpt_run *run)
{
    const int64_t n = run->curve.count, tests = run->tested_count;
    double *x = pc__alloc((size_t)(2 * n + 3 * tests + 1) * sizeof *x);
    if (!x) {
        text->failed = true;
        return;
    }
    double *each = x + n, *at = each + n, *loss = at + tests, *test = loss + tests;
    int64_t points = 0;
    for (int64_t i = 0; i < n; i++) {
        const pc__curve_group *g = &run->curve.groups[i];
        if (!g->seen)
            continue;
        x[points] = (double)((i + 1) * run->curve.width);
        each[points++] = g->loss / (double)g->seen;
    }
    for (int64_t i = 0; i < tests; i++)
        at[i] = run->tested[i].step, loss[i] = run->tested[i].loss, test[i] = run->tested[i].test_loss;
    const bool held = tests && isfinite(test[tests - 1]);
    const pc__graph_series series[] = {{"each step", x, each, points, 0, true},
                                       {"training text", at, loss, tests, 0, false},
                                       {"held out", at, test, tests, 1, false}};
    pc__graph_draw(
        text,
        &(pc__graph){.name = "Loss by step", .x_name = "step", .series = series, .count = held ? 3 : 2, .mark = NAN});
    pc__free(x);
}

static void sample(pc__text *text, const char *words)
{
    if (!words || !*words)
        return;
    pc__html_put(text, "<section class='card'><h2>What it writes</h2><pre class='wrap'>");
    pc__html_escape(text, words);
    pc__html_put(text, "</pre></section>\n");
}

/* Lines of a word of nine letters, with its spaces, and what is said of it, which goes on under itself. */
static void network(pc__text *text, const char *lines)
{
    if (!lines || !*lines)
        return;
    pc__html_put(text, "<section class='card'><h2>Network</h2><pre class='wrap hang'>");
    while (*lines) {
        const size_t all = strcspn(lines, "\n");
        pc__html_put(text, "<span>");
        pc__html_escape_some(text, lines, all);
        pc__html_put(text, "</span>");
        lines += all + (lines[all] == '\n');
    }
    pc__html_put(text, "</pre></section>\n");
}

static void rows(pc__text *text, const char *lines)
{
    while (lines && *lines) {
        const size_t name = strcspn(lines, "=\n"), all = strcspn(lines, "\n");
        pc__html_put(text, "<div><dt>");
        pc__html_escape_some(text, lines, name);
        pc__html_put(text, "</dt><dd>");
        if (all > name)
            pc__html_escape_some(text, lines + name + 1, all - name - 1);
        pc__html_put(text, "</dd></div>\n");
        lines += all + (lines[all] == '\n');
    }
}

static void settings(pc__text *text, const pc_gpt_run *run)
{
    pc__html_put(text, "<section class='card'><h2>Settings</h2><dl>\n");
    rows(text, run->settings);
    rows(text, run->shared);
    pc__html_put(text, "</dl></section>\n");
}

static void page(pc__text *text, const pc_gpt_run *run)
{
    pc__report_head(text, run->title ? run->title : "GPT", run->running ? 10 : 0);
    pc__html_put(text, "<body>\n<main>\n<header><p class='brand'>Paracord training report</p><h1>");
    pc__html_escape(text, run->title ? run->title : "GPT");
    pc__html_put(text, "</h1><ul class='facts'><li>GPT</li><li>");
    pc__html_escape(text, run->device);
    pc__html_put(text, "</li></ul></header>\n");
    figures(text, run);
    pc__html_put(text, "<section class='charts'>\n");
    curves(text, run);
    sample(text, run->sample);
    pc__html_put(text, "</section>\n");
    pc__html_put(text, "<div class='pair'>\n");
    network(text, run->network);
    settings(text, run);
    pc__html_put(text, "</div>\n");
    pc__report_foot(text, PC_VERSION);
    pc__html_put(text, "</main>\n</body>\n</html>\n");
}

pc_status pc_gpt_report_page(const char *path, const pc_gpt_run *run)
{
    PC__NEED(path);
    PC__NEED(run);
    pc__text html = {0};
    pc__plain_numbers plain = pc__plain_numbers_begin();
    page(&html, run);
    pc__plain_numbers_end(plain);
    const pc_status status = html.failed ? PC_ERR_MEMORY : pc__file_write(path, html.data, html.length);
    pc__text_free(&html);
    return status;
}

/* page.c: a run's report as a page: head, title, the order of the parts, foot. */
#include "io/file.h"
#include "pages/pages.h"
#include "train/metrics_line.h"
#include "report/parts.h"

void pc__report_head(pc__text *text, const char *title, int refresh)
{
    pc__html_put(text, pc__page_head_html);
    pc__html_put(text, "<title>");
    pc__html_escape(text, title);
    pc__html_put(text, "</title>\n<style>\n");
    pc__html_put(text, pc__page_report_css);
    pc__html_put(text, "</style>\n");
    if (refresh > 0)
        pc__text_add(text, "<noscript><meta http-equiv='refresh' content='%d'></noscript>\n", refresh);
    pc__html_put(text, "</head>\n");
}

static void epochs_done(pc__text *text, const pc__report *report)
{
    int done = pc__report_epochs_done(report);
    int last = done ? report->history->epochs[done - 1].epoch : 0;
    pc__html_put(text, "<li>");
    if (report->planned_epochs > last)
        pc__text_add(text, "%d of ", last);
    pc__html_things(text, PC__MAX(report->planned_epochs, last), "epoch", "epochs");
    pc__html_put(text, "</li>");
}

/* "2026-07-20T14:03:12Z" as people write it; any other text as it is. */
static void date(pc__text *text, const char *iso)
{
    int year, month, day, hour, minute, end = 0;
    pc__html_put(text, "<li><time datetime='");
    pc__html_escape(text, iso);
    pc__html_put(text, "'>");
    if (sscanf(iso, "%4d-%2d-%2dT%2d:%2d%n", &year, &month, &day, &hour, &minute, &end) == 5 && end == 16) {
        const char *zone = strpbrk(iso + end, "Z+-");
        pc__text_add(text, "%.10s %.5s ", iso, iso + 11);
        pc__html_escape(text, zone && *zone == 'Z' ? "UTC" : zone);
    } else {
        pc__html_escape(text, iso);
    }
    pc__html_put(text, "</time></li>");
}

static void title(pc__text *text, const pc__report *report, const char *name)
{
    pc__html_put(text, "<header><p class='brand'>Paracord training report</p><h1>");
    pc__html_escape(text, name);
    pc__html_put(text, "</h1><ul class='facts'>");
    epochs_done(text, report);
    if (report->device) {
        pc__html_put(text, "<li>");
        pc__html_escape(text, report->device);
        pc__html_put(text, "</li>");
    }
    if (report->date)
        date(text, report->date);
    pc__html_put(text, "</ul></header>\n");
}

static void network(pc__text *text, const pc__report *report)
{
    if (!report->network)
        return;
    pc__html_put(text, "<section class='card'><h2>Network</h2><pre class='scroll'>");
    pc__html_escape(text, report->network);
    pc__html_put(text, "</pre></section>\n");
}

/* Each word in a span, which the style keeps whole: a browser would break lines inside "--epochs". */
static void command(pc__text *text, const char *line)
{
    pc__html_put(text, "<pre class='command'><span>");
    for (size_t n; *line; line += n) {
        n = strcspn(line, " ");
        pc__html_escape_some(text, line, n);
        pc__html_put(text, line[n] ? "</span> <span>" : "");
        n += line[n] != 0;
    }
    pc__html_put(text, "</span></pre>");
}

static void settings(pc__text *text, const pc__report *report)
{
    int count = report->settings ? report->setting_count : 0;
    if (count < 1 && !report->command)
        return;
    pc__html_put(text, "<section class='card'><h2>Settings</h2>");
    if (report->command)
        command(text, report->command);
    pc__html_put(text, count > 0 ? "<dl>\n" : "");
    for (int i = 0; i < count; i++) {
        pc__html_put(text, "<div><dt>");
        pc__html_escape(text, report->settings[i].name);
        pc__html_put(text, "</dt><dd>");
        pc__html_escape(text, report->settings[i].value);
        pc__html_put(text, "</dd></div>\n");
    }
    pc__html_put(text, count > 0 ? "</dl></section>\n" : "</section>\n");
}

void pc__report_foot(pc__text *text, const char *version)
{
    pc__html_put(text, "<footer>Paracord");
    if (version) {
        pc__html_put(text, " ");
        pc__html_escape(text, version);
    }
    pc__html_put(text, " \u00b7 this file stands alone: it needs no network and no other file</footer>\n");
}

pc_status pc__report_render(pc__text *html, const pc__report *report)
{
    const char *name = report->title ? report->title : "Training run";
    pc__plain_numbers plain = pc__plain_numbers_begin();
    pc__report_head(html, name, report->running ? PC__MAX(report->next_seconds, 1) : 0);
    pc__html_put(html, "<body>\n<main>\n");
    title(html, report, name);
    pc__report_notes(html, report);
    pc__report_figures(html, report);
    pc__report_charts(html, report);
    pc__report_steps(html, report);
    pc__report_roc(html, report);
    pc__report_samples(html, report);
    pc__html_put(html, "<div class='pair'>\n");
    pc__report_confusion(html, report);
    pc__report_classes(html, report);
    network(html, report);
    settings(html, report);
    pc__html_put(html, "</div>\n");
    pc__report_epochs(html, report);
    pc__report_foot(html, report->version);
    pc__html_put(html, "</main>\n");
    pc__report_script(html, report);
    pc__html_put(html, "</body>\n</html>\n");
    pc__plain_numbers_end(plain);
    return html->failed ? PC_ERR_MEMORY : PC_OK;
}

pc_status pc_report_page(const char *path, const pc_run_report *run)
{
    PC__NEED(path);
    PC__NEED(run);
    pc__text html = {0};
    pc_status status = pc__report_render(&html, run);
    if (status == PC_OK)
        status = pc__file_write(path, html.data, html.length);
    pc__text_free(&html);
    return status;
}

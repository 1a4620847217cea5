/* epochs.c: every epoch's figures as a table, folded: the charts say it first. */
#include "report/parts.h"

#include <math.h>

typedef void show(pc__text *text, double value);

static void rate(pc__text *text, double value)
{
    pc__html_count(text, isfinite(value) && value >= 0 ? (int64_t)fmin(value + 0.5, 1e15) : -1);
}

static const struct {
    const char *name;
    size_t field;
    show *show;
} columns[] = {
    {"train loss", offsetof(pc__epoch_record, loss), pc__html_number},
    {"train accuracy", offsetof(pc__epoch_record, accuracy), pc__html_percent},
    {"test loss", offsetof(pc__epoch_record, test_loss), pc__html_number},
    {"test accuracy", offsetof(pc__epoch_record, test_accuracy), pc__html_percent},
    {"balanced", offsetof(pc__epoch_record, test_balanced_accuracy), pc__html_percent},
    {"learning rate", offsetof(pc__epoch_record, lr), pc__html_number},
    {"time", offsetof(pc__epoch_record, seconds), pc__html_duration},
    {"images/s", offsetof(pc__epoch_record, images_per_second), rate},
};

void pc__report_epochs(pc__text *text, const pc__report *report)
{
    int count = pc__report_epochs_done(report);
    if (!count)
        return;
    pc__html_put(text, "<section class='card'><details><summary><h2>Every epoch</h2></summary><div class='scroll'>"
                       "<table><thead><tr><th scope='col'>epoch</th>");
    for (int c = 0; c < PC__COUNT(columns); c++)
        pc__text_add(text, "<th scope='col'>%s</th>", columns[c].name);
    pc__html_put(text, "</tr></thead><tbody>\n");
    for (int i = 0; i < count; i++) {
        bool kept = report->history->epochs[i].epoch == report->kept_epoch;
        pc__text_add(text, "<tr%s><th scope='row'>%d%s</th>", kept ? " class='own'" : "",
                     report->history->epochs[i].epoch, kept ? " kept" : "");
        for (int c = 0; c < PC__COUNT(columns); c++) {
            pc__html_put(text, "<td>");
            columns[c].show(text, pc__report_value(&report->history->epochs[i], columns[c].field));
            pc__html_put(text, "</td>");
        }
        pc__html_put(text, "</tr>\n");
    }
    pc__html_put(text, "</tbody></table></div></details></section>\n");
}

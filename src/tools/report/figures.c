/* figures.c: the headline numbers of a report, and the sentences that say what they mean. */
#include "report/parts.h"

#include <math.h>
#include <stdlib.h>

static void card(pc__text *text, const char *class, const char *name)
{
    pc__text_add(text, "<div class='card%s'><h3>%s</h3><p class='value'>", class, name);
}

/* "best 74.6 % at epoch 18" under a figure of the test pictures, unless that is the figure itself. */
static void best(pc__text *text, const pc__report *report, size_t field, bool smallest)
{
    int at = pc__report_best(report->history, field, smallest);
    pc__epoch_record final = pc__report_final(report);
    if (at < 0)
        return;
    double value = pc__report_value(&report->history->epochs[at], field), shown = pc__report_value(&final, field);
    if (report->history->count < 2 || !isfinite(shown) || shown == value)
        return;
    pc__text_add(text, "<p class='sub'>%s ", smallest ? "lowest" : "best");
    (smallest ? pc__html_number : pc__html_percent)(text, value);
    pc__text_add(text, " at epoch %d</p>", report->history->epochs[at].epoch);
}

/* The figure that matters most, with how sure the number of pictures allows it to be. */
static void lead_card(pc__text *text, const pc__report *report, const pc__epoch_record *final)
{
    pc__report_test counts = pc__report_count(report);
    double accuracy = report->without_test ? final->accuracy : final->test_accuracy;
    if (!isfinite(accuracy) && counts.total)
        accuracy = (double)counts.right / (double)counts.total;
    card(text, " lead", report->without_test ? "Train accuracy" : "Test accuracy");
    pc__html_percent(text, accuracy);
    pc__html_put(text, "</p>");
    if (report->without_test)
        pc__html_put(text, "<p class='sub'>no test pictures: says little about new ones</p>");
    if (counts.total && !report->without_test) {
        pc__html_put(text, "<p class='sub'>");
        pc__html_count(text, counts.right);
        pc__html_put(text, " of ");
        pc__html_things(text, counts.total, "picture", "pictures");
        pc__text_add(text, " right</p><p class='sub'>95\u202f%% interval %.1f to %.1f\u202f%%</p>", counts.lowest * 100,
                     counts.highest * 100);
    }
    if (!report->without_test && isfinite(final->test_balanced_accuracy) &&
        fabs(final->test_balanced_accuracy - accuracy) > 0.0005) {
        pc__html_put(text, "<p class='sub'><abbr title='the mean over the classes of the share of their pictures that "
                           "was recognised'>balanced</abbr> ");
        pc__html_percent(text, final->test_balanced_accuracy);
        pc__html_put(text, "</p>");
    }
    if (report->kept_epoch)
        pc__text_add(text, "<p class='sub'>epoch %d, which is kept</p>", report->kept_epoch);
    if (!report->without_test)
        best(text, report, offsetof(pc__epoch_record, test_accuracy), false);
    pc__html_put(text, "</div>");
}

static void loss_cards(pc__text *text, const pc__report *report, const pc__epoch_record *final)
{
    card(text, "", report->without_test ? "Train loss" : "Test loss");
    pc__html_number(text, report->without_test ? final->loss : final->test_loss);
    pc__html_put(text, "</p>");
    best(text, report, report->without_test ? offsetof(pc__epoch_record, loss) : offsetof(pc__epoch_record, test_loss),
         true);
    pc__html_put(text, "</div>");
    if (report->without_test)
        return;
    card(text, "", "Train accuracy");
    pc__html_percent(text, final->accuracy);
    pc__html_put(text, "</p><p class='sub'>loss ");
    pc__html_number(text, final->loss);
    pc__html_put(text, "</p></div>");
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The middle of the known figures: one epoch disturbed by other work on the machine does not show. */
static double median(pc__text *text, const pc__history *history, size_t field)
{
    int n = 0;
    double *values = history && history->count ? pc__alloc((size_t)history->count * sizeof *values) : NULL;
    if (!values) {
        text->failed |= history && history->count;
        return NAN;
    }
    for (int i = 0; i < history->count; i++) {
        double value = pc__report_value(&history->epochs[i], field);
        if (isfinite(value))
            values[n++] = value;
    }
    qsort(values, (size_t)n, sizeof *values, ascending);
    double middle = n ? (values[(n - 1) / 2] + values[n / 2]) / 2 : NAN;
    pc__free(values);
    return middle;
}

double pc__report_training_seconds(const pc__history *history)
{
    double sum = 0;
    for (int i = 0; history && i < history->count; i++)
        sum += isfinite(history->epochs[i].seconds) ? history->epochs[i].seconds : 0;
    return sum;
}

static void speed_cards(pc__text *text, const pc__report *report)
{
    double per_epoch = median(text, report->history, offsetof(pc__epoch_record, seconds));
    double speed = median(text, report->history, offsetof(pc__epoch_record, images_per_second));
    card(text, "", "Wall clock");
    pc__html_duration(text, report->seconds);
    pc__html_put(text, "</p>");
    if (per_epoch > 0) {
        pc__html_put(text, "<p class='sub'>training time ");
        pc__html_duration(text, pc__report_training_seconds(report->history));
        pc__html_put(text, ", of an epoch ");
        pc__html_duration(text, per_epoch);
        pc__html_put(text, " (median)</p>");
    }
    pc__html_put(text, "</div>");
    if (speed > 0) {
        card(text, "", "Speed");
        pc__html_count(text, (int64_t)fmin(speed + 0.5, 1e15));
        pc__html_put(text, "</p><p class='sub'>images a second</p></div>");
    }
}

void pc__report_figures(pc__text *text, const pc__report *report)
{
    pc__epoch_record final = pc__report_final(report);
    if (!report->final && !report->confusion && !pc__report_epochs_done(report))
        return;
    pc__html_put(text, "<section class='cards' aria-label='Figures'>");
    lead_card(text, report, &final);
    loss_cards(text, report, &final);
    speed_cards(text, report);
    pc__html_put(text, "</section>\n");
}

/* notes.c: sentences that say what the figures of a run mean, and what to try. Only what the figures show. */
#include "train/answers.h"
#include "report/parts.h"

#include <math.h>

static void note(pc__text *text, const char *kind)
{
    pc__text_add(text, "<p class='note %s'>", kind);
}

/* True when it diverged: the other notes make no sense then. */
static bool divergence(pc__text *text, const pc__history *history)
{
    int bad = 0, first = 0;
    for (int i = history->count - 1; i >= 0; i--)
        if (!isfinite(history->epochs[i].loss))
            bad++, first = history->epochs[i].epoch;
    if (!bad)
        return false;
    note(text, "bad");
    pc__text_add(text,
                 "<b>The run diverged.</b> The training loss is no finite number in %d of %d epochs, first in epoch "
                 "%d. A smaller learning rate usually helps.</p>\n",
                 bad, history->count, first);
    return true;
}

static void chance(pc__text *text, const pc__report *report)
{
    pc__report_test test = pc__report_count(report);
    if (!test.total || test.lowest > test.baseline)
        return;
    note(text, "bad");
    pc__html_put(text, "<b>No better than guessing, so far.</b> Always answering \u201c");
    pc__report_class_name(text, report, test.common);
    pc__html_put(text, "\u201d would be right in ");
    pc__html_percent(text, test.baseline);
    pc__html_put(text, " of these pictures, and the results cannot be told apart from that.</p>\n");
}

static void overfitting(pc__text *text, const pc__history *history)
{
    int at = pc__report_best(history, offsetof(pc__epoch_record, test_loss), true);
    const pc__epoch_record *last = history->count ? &history->epochs[history->count - 1] : NULL;
    if (at < 0 || !isfinite(last->test_loss))
        return;
    const pc__epoch_record *best = &history->epochs[at];
    /* the test loss of small sets wobbles: it must have risen clearly, and stand clear of the training loss */
    if (last->test_loss > best->test_loss * 1.25 && last->test_loss > last->loss * 1.25 && last->loss < best->loss) {
        note(text, "warn");
        pc__text_add(text, "<b>The network learns its pictures by heart.</b> Test loss was lowest at epoch %d (",
                     best->epoch);
        pc__html_number(text, best->test_loss);
        pc__html_put(text, ") and rose to ");
        pc__html_number(text, last->test_loss);
        pc__html_put(text, " while training loss kept falling. More pictures, more augmentation, dropout or fewer "
                           "epochs would help.</p>\n");
    } else if (best == last && history->count >= 5 && last->loss < history->epochs[history->count - 3].loss) {
        note(text, "good");
        pc__html_put(text, "<b>Still improving.</b> Test loss was lowest at the last epoch: more epochs may well do "
                           "better.</p>\n");
    }
}

/* Classes that there are test pictures of, and that none was taken for. */
static void silence(pc__text *text, const pc__report *report)
{
    enum { NAMED = 12 };
    int count = report->confusion ? pc__never_named(report->confusion, report->class_count) : 0, shown = 0;
    if (!count)
        return;
    note(text, "bad");
    pc__text_add(text, "<b>%s never predicted.</b> No test picture was taken for ",
                 count == 1 ? "One class is" : "Some classes are");
    for (int k = 0; k < report->class_count && shown < NAMED; k++) {
        if (!pc__class_is_never_named(report->confusion, report->class_count, k))
            continue;
        pc__html_put(text, shown++ ? ", \u201c" : "\u201c");
        pc__report_class_name(text, report, k);
        pc__html_put(text, "\u201d");
    }
    if (count > shown)
        pc__text_add(text, " and %d more", count - shown);
    pc__text_add(text, ", of %d classes. Where classes have unequal numbers of pictures, weights for them help.</p>\n",
                 report->class_count);
}

void pc__report_notes(pc__text *text, const pc__report *report)
{
    int done = pc__report_epochs_done(report);
    if (report->notice) {
        note(text, "warn");
        pc__html_escape(text, report->notice);
        pc__html_put(text, "</p>\n");
    }
    if (report->running) {
        pc__html_put(text, "<p class='note good' id='live'>");
        pc__html_put(text, "<b>Training.</b> This page looks for its next version by itself.</p>\n");
    }
    if (!done || divergence(text, report->history))
        return;
    chance(text, report);
    silence(text, report);
    overfitting(text, report->history);
}

/* count.c: what several parts of a report read off the history and the confusion counts. */
#include "report/parts.h"

#include <math.h>

int pc__report_epochs_done(const pc__report *report)
{
    return report->history ? report->history->count : 0;
}

pc__epoch_record pc__report_final(const pc__report *report)
{
    int done = pc__report_epochs_done(report);
    if (report->final)
        return *report->final;
    return done ? report->history->epochs[done - 1] : pc__epoch_unknown(0);
}

double pc__report_value(const pc__epoch_record *record, size_t field)
{
    double value;
    memcpy(&value, (const char *)record + field, sizeof value);
    return value;
}

int pc__report_best(const pc__history *history, size_t field, bool smallest)
{
    int best = -1;
    double best_value = 0;
    for (int i = 0; history && i < history->count; i++) {
        double value = pc__report_value(&history->epochs[i], field);
        if (isfinite(value) && (best < 0 || (smallest ? value < best_value : value > best_value)))
            best = i, best_value = value;
    }
    return best;
}

pc__report_test pc__report_count(const pc__report *report)
{
    pc__report_test test = {.baseline = NAN, .lowest = NAN, .highest = NAN};
    int64_t most = -1;
    for (int row = 0; report->confusion && row < report->class_count; row++) {
        int64_t sum = 0;
        for (int column = 0; column < report->class_count; column++)
            sum += report->confusion[(size_t)row * report->class_count + column];
        test.right += report->confusion[(size_t)row * report->class_count + row];
        test.total += sum;
        if (sum > most)
            most = sum, test.common = row;
    }
    if (test.total <= 0)
        return (pc__report_test){.baseline = NAN, .lowest = NAN, .highest = NAN};
    double n = (double)test.total, share = (double)test.right / n, z = 1.96;
    double middle = (share + z * z / (2 * n)) / (1 + z * z / n);
    double half = z / (1 + z * z / n) * sqrt(share * (1 - share) / n + z * z / (4 * n * n));
    test.baseline = (double)most / n;
    test.lowest = fmax(middle - half, 0);
    test.highest = fmin(middle + half, 1);
    return test;
}

void pc__report_class_name(pc__text *text, const pc__report *report, int index)
{
    const char *name = report->classes && index < report->class_count ? report->classes[index].name : NULL;
    if (name)
        pc__html_escape(text, name);
    else
        pc__text_add(text, "class %d", index);
}

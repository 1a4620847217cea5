/* parts.h: the parts of a report, each in the file of its name, and the figures that several of them use.
 *
 * A report is one HTML file that needs nothing beside it: no network, charts as inline SVG, pictures as data: URIs, and
 * scripts only for what is more than reading (script.c). It follows the reader's light or dark setting, fits a
 * telephone and prints. Markup in texts is escaped, what is not UTF-8 is shown as U+FFFD. */
#ifndef PC__REPORT_PARTS_H
#define PC__REPORT_PARTS_H

#include "report/html.h"
#include "train/report.h"

#include <paracord-tools/report.h>

/* The whole report into memory, to be appended to `html`: a pure function, the same report gives the same bytes.
 * PC_ERR_MEMORY. */
PC_MUST_USE pc_status pc__report_render(pc__text *html, const pc__report *report);

/* The beginning of a page, up to its body; refresh: seconds after which a browser without scripts is to look again, 0:
 * never. And its last line. */
void pc__report_head(pc__text *text, const char *title, int refresh);
void pc__report_foot(pc__text *text, const char *version);

/* Each appends its part, or nothing when the report has nothing for it. */
void pc__report_figures(pc__text *text, const pc__report *report); /* the headline numbers */
void pc__report_notes(pc__text *text, const pc__report *report);   /* what they mean, in sentences */
void pc__report_charts(pc__text *text, const pc__report *report);
void pc__report_steps(pc__text *text, const pc__report *report); /* loss by step, learning rate */
void pc__report_roc(pc__text *text, const pc__report *report);   /* two classes: hits, false alarms, thresholds */
bool pc__report_has_roc(const pc__report *report);
void pc__report_script(pc__text *text, const pc__report *report);
void pc__report_samples(pc__text *text, const pc__report *report);
void pc__report_classes(pc__text *text, const pc__report *report);
void pc__report_confusion(pc__text *text, const pc__report *report);
void pc__report_epochs(pc__text *text, const pc__report *report); /* every epoch as a table */

/* Whether the class is the one of the report that has the most test pictures, and so on: what the confusion counts say.
 * total 0: there are none. */
typedef struct pc__report_test {
    int64_t total, right;
    int common;             /* the class with the most test pictures */
    double baseline;        /* the accuracy of always answering `common` */
    double lowest, highest; /* 95 % interval of the accuracy, for pictures drawn like these (Wilson's) */
} pc__report_test;
pc__report_test pc__report_count(const pc__report *report);

int pc__report_epochs_done(const pc__report *report);

/* The figures to show as final, every one unknown when there are none. */
pc__epoch_record pc__report_final(const pc__report *report);

/* The figure of a record that lies `field` bytes into it (offsetof). */
double pc__report_value(const pc__epoch_record *record, size_t field);

/* The time that all epochs took to train, without tests and files; 0: unknown. */
double pc__report_training_seconds(const pc__history *history);

/* Index of the epoch with the smallest (or greatest) known figure, the first of equals; -1: none is known. */
int pc__report_best(const pc__history *history, size_t field, bool smallest);

/* Class `index` of the report, "class 3" where it has no name; into the text, escaped. */
void pc__report_class_name(pc__text *text, const pc__report *report, int index);

#endif

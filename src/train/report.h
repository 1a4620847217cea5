/* report.h: what a training run tells whoever writes its report (pc_train_options.report): everything that is known of
 * it, as plain data. All text may hold any bytes. Every pointer may be NULL and every count 0: that part is to be left
 * out, never shown as 0.
 */
#ifndef PC__REPORT_H
#define PC__REPORT_H

#include "train/curve.h"
#include "train/metrics.h"

typedef struct pc__report_setting {
    const char *name, *value;
} pc__report_setting;

typedef struct pc__report_class {
    const char *name;
    int64_t train, test; /* pictures; negative: unknown */
} pc__report_class;

/* A picture file that could not be used, or is used though it is damaged. */
typedef struct pc__report_file {
    const char *path, *reason;
} pc__report_file;

typedef struct pc__report_files {
    const pc__report_file *files; /* the first PC__REPORT_FILES are shown */
    int count;
    int64_t total; /* in all, where that is more than `count` */
} pc__report_files;

/* A picture with what the network said. It counts as right when both names are known and equal. */
typedef struct pc__report_sample {
    const char *name;              /* the file's, with or without folders */
    const char *truth, *predicted; /* class names; NULL: unknown */
    double probability;            /* of the predicted class, 0 to 1; NaN: unknown */
    const uint8_t *bytes;          /* a PNG or JPEG file's content, told by its first bytes; a thumbnail is enough */
    size_t n;
} pc__report_sample;

/* What a network of two classes says of a test picture. */
typedef struct pc__report_score {
    float logit; /* 0 or more names the second class */
    bool second; /* what it is */
} pc__report_score;

/* Everything is borrowed for the length of the call. */
typedef struct pc_run_report {
    const char *title;   /* NULL: "Training run" */
    const char *notice;  /* a sentence at the top, such as how to go on with a stopped run */
    const char *command; /* the command line that made it */
    const char *date;    /* ISO 8601 */
    const char *device, *version;
    double seconds;     /* the whole run; not above 0: unknown */
    bool running;       /* there will be another version of the page, */
    int next_seconds;   /* in about so many seconds */
    int64_t written;    /* seconds since 1970; used while running */
    int planned_epochs; /* not above the history's: that all were done is taken for granted */

    const pc__report_setting *settings;
    int setting_count;
    const char *network; /* the table of layers, as text */

    const char *data; /* the folder */
    const pc__report_class *classes;
    int class_count;
    pc__report_files skipped, damaged;

    const pc__history *history;
    const pc__curve *curve;        /* the training loss by step */
    int kept_epoch;                /* whose weights are saved; 0: not to be shown */
    const pc__epoch_record *final; /* the figures of the saved model; NULL: those of the last epoch */
    const int64_t *confusion; /* class_count x class_count counts of test pictures: rows truth, columns predicted */
    bool without_test;        /* there are no test pictures: confusion and samples are of training pictures */
    const pc__report_sample *mistakes; /* the surest first */
    int mistake_count;
    const pc__report_sample *samples;
    int sample_count;
    const pc__report_score *scores; /* of two classes, for the curve of hits and false alarms */
    int64_t score_count;
} pc__report;

enum { PC__REPORT_FILES = 20 };

#endif

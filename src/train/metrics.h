/* metrics.h: the history of a run, one record an epoch, and its file metrics.jsonl (one JSON object a line).
 *
 *     pc__metrics_load(path, 0, &history);                        a fresh run begins with an empty file
 *     pc__metrics_append(path, &record), pc__history_add(...);    after each epoch, BEFORE its checkpoint is written
 *     pc__metrics_load(path, last_finished_epoch, &history);      a resumed run cuts what the checkpoint does not know
 *
 * In that order a kill at any moment loses nothing, and a resumed run's file equals an uninterrupted one's but for the
 * timings. Numbers are written with a decimal point whatever the locale, in the shortest form that reads back exactly.
 */
#ifndef PC__METRICS_H
#define PC__METRICS_H

#include "base/base.h"

/* The figures of an epoch, in the order in which they are written. */
#define PC__EPOCH_FIELDS(X)                                                                                            \
    X(loss) X(accuracy) X(test_loss) X(test_accuracy) X(test_balanced_accuracy) X(seconds) X(images_per_second) X(lr)

/* NaN is "unknown", in the file null (as are infinities, which JSON lacks); 0 is a measured 0. A training loss that is
 * not finite means that the run diverged. Accuracies are shares, 0 to 1. */
typedef struct pc__epoch_record {
    int epoch; /* from 1 */
#define FIELD(name) double name;
    PC__EPOCH_FIELDS(FIELD)
#undef FIELD
} pc__epoch_record;

typedef struct pc__history {
    pc__epoch_record *epochs; /* ascending */
    int count, capacity;
} pc__history;

/* A record of that epoch with every figure unknown. */
PC__SHARED pc__epoch_record pc__epoch_unknown(int epoch);

/* Start from {0}. Adding copies the record; freeing leaves an empty history. */
PC_MUST_USE pc_status pc__history_add(pc__history *history, const pc__epoch_record *record);
PC__SHARED void pc__history_free(pc__history *history);

/* Append one line and wait until it is on the disk. `recall`: of each of `classes` classes the share of its test
 * pictures that was recognised; 0: nothing of classes. After a failure (PC_ERR_FILE, PC_ERR_MEMORY) the file is as it
 * was. */
PC_MUST_USE pc_status pc__metrics_append(const char *path, const pc__epoch_record *record, const double *recall,
                                         int classes);

/* Read all whole records into `history` (overwritten; the caller frees it), of a file that another process may be
 * writing to; errors as below. */
PC__SHARED PC_MUST_USE pc_status pc__metrics_read(const char *path, pc__history *history);

/* Read the records of epochs up to `upto_epoch` into `history` (overwritten; the caller frees it) and cut the later
 * ones and a torn last line from the file, in one atomic write; kept lines stay byte for byte, unknown keys included.
 * A missing file is an empty history. PC_ERR_FORMAT, with the line's number and the file untouched, when another line
 * is no record; the history is empty after any failure. */
PC_MUST_USE pc_status pc__metrics_load(const char *path, int upto_epoch, pc__history *history);

#endif

/* metrics_line.h: one epoch's record as a line of JSON, there and back. */
#ifndef PC__METRICS_LINE_H
#define PC__METRICS_LINE_H

#include "base/number.h"
#include "train/metrics.h"

/* Append the record, each class's recall where there are classes, and a newline. */
void pc__metrics_line_write(pc__text *text, const pc__epoch_record *record, const double *recall, int classes);

/* Read the `n` bytes at `line` (a zero byte or newline behind them) as one JSON object with an "epoch" of 1 or more.
 * Keys that it does not know are skipped, missing figures are unknown. False when it is anything else. */
bool pc__metrics_line_read(const char *line, size_t n, pc__epoch_record *record);

#endif

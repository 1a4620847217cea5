/* metrics_line.h: one epoch's record as a line of JSON, there and back; and numbers apart from the locale. */
#ifndef PC__METRICS_LINE_H
#define PC__METRICS_LINE_H

#include "train/metrics.h"

#include <locale.h>

/* Between these two the calling thread, and it alone, writes and reads numbers as the C locale does. */
typedef struct pc__plain_numbers {
    locale_t plain, before;
} pc__plain_numbers;
PC__SHARED pc__plain_numbers pc__plain_numbers_begin(void);
PC__SHARED void pc__plain_numbers_end(pc__plain_numbers scope);

/* Append the record, each class's recall where there are classes, and a newline. */
void pc__metrics_line_write(pc__text *text, const pc__epoch_record *record, const double *recall, int classes);

/* Read the `n` bytes at `line` (a zero byte or newline behind them) as one JSON object with an "epoch" of 1 or more.
 * Keys that it does not know are skipped, missing figures are unknown. False when it is anything else. */
bool pc__metrics_line_read(const char *line, size_t n, pc__epoch_record *record);

#endif

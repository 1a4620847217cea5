/* csv_columns.h: which columns of a CSV file are meant. */
#ifndef PC__CSV_COLUMNS_H
#define PC__CSV_COLUMNS_H

#include "io/csv.h"

#include <paracord/samples.h>

typedef struct pc__csv_columns {
    char **names; /* of all columns, from pc__alloc; NULL: the file has no header */
    int all;      /* columns of a line */
    int *x, *y;   /* their numbers, from 0 */
    int xs, ys;
    int x_room, y_room;
} pc__csv_columns;

/* By the first record, which is the header unless the options say otherwise. */
pc_status pc__csv_columns_find(const pc__csv *first, const pc_csv_options *options, pc__csv_columns *columns);
void pc__csv_columns_free(pc__csv_columns *columns);

/* A column's name in quotes, or its number, for errors. */
typedef struct pc__csv_column_text {
    char s[80];
} pc__csv_column_text;
pc__csv_column_text pc__csv_column(const pc__csv_columns *columns, int column);

#endif

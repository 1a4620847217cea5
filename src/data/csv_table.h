/* csv_table.h: a CSV file as numbers, row by row. */
#ifndef PC__CSV_TABLE_H
#define PC__CSV_TABLE_H

#include "data/csv_columns.h"

/* All memory is from pc__alloc. */
typedef struct pc__csv_table {
    pc__csv_columns columns;
    int64_t rows, room, skipped;
    float *x, *y;    /* [rows, columns.xs], [rows, columns.ys]; y NULL: labels */
    int64_t *labels; /* [rows] */
    char **classes;  /* their names, by label */
    int class_count, class_room;
    int *class_by_name; /* places in `classes`, sorted by name, while the file is read */
} pc__csv_table;

pc_status pc__csv_table_read(const char *path, const pc_csv_options *options, pc__csv_table *table);
void pc__csv_table_free(pc__csv_table *table);

/* csv_classes.c: the number that a name has so far, a new one where it is news and `known` does not forbid that; -1 and
 * an error. And, at the end, the names sorted, with the labels of `rows` changed alike. */
int64_t pc__csv_class(pc__csv_table *table, const pc__csv *at, const char *name, bool known);
pc_status pc__csv_classes_sort(pc__csv_table *table);

#endif

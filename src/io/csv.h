/* csv.h: the records of a CSV file (RFC 4180): fields between separators, in quotes where they hold separators, quotes or
 * ends of lines. Whatever ends the lines; a byte order mark is passed over, and so are empty lines. Where the first record has
 * one field, an empty line behind it is one with an empty field, but for those at the end. */
#ifndef PC__CSV_H
#define PC__CSV_H

#include "base/base.h"

typedef struct pc__csv_field {
    const char *text; /* zero-terminated */
    size_t length;
    bool quoted;
} pc__csv_field;

typedef struct pc__csv {
    const char *path; /* for errors */
    char *at, *end;   /* what is not read yet; fields point into it */
    char *last;       /* from here on there are ends of lines alone */
    char separator;
    int64_t line;      /* the record's first, from 1 */
    int64_t next_line; /* the line that `at` is in */
    pc__csv_field *fields;
    int count, room;
    bool comes_next; /* a separator was read: another field follows */
    bool first;      /* no record was read yet */
    bool narrow;     /* the first one has one field */
} pc__csv;

/* Of `n` bytes in memory, which are changed and must outlive the fields, with one byte behind them that may be written.
 */
void pc__csv_begin(pc__csv *csv, const char *path, char *bytes, size_t n, char separator);

/* The next record; *any is false where there is none. PC_ERR_FORMAT names the line. */
pc_status pc__csv_next(pc__csv *csv, bool *any);

void pc__csv_end(pc__csv *csv);

/* A number, whatever the locale: all of the text, blanks around it aside. False for another text and for what is not
 * finite. */
bool pc__csv_number(const char *text, double *number);

#endif

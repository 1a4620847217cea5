/* csv_table.c: CSV files read into numbers. */
#include "data/csv_table.h"

#include "io/file.h"

#include <ctype.h>
#include <math.h>
#include <strings.h>

void pc__csv_table_free(pc__csv_table *t)
{
    for (int i = 0; i < t->class_count; i++)
        pc__free(t->classes[i]);
    pc__free(t->classes);
    pc__free(t->class_by_name);
    pc__free(t->x);
    pc__free(t->y);
    pc__free(t->labels);
    pc__csv_columns_free(&t->columns);
    *t = (pc__csv_table){0};
}

static bool is_missing(const pc__csv_field *f)
{
    static const char *const words[] = {"", "na", "n/a", "nan", "null", "none", "?"};
    const char *text = f->text;
    while (isspace((unsigned char)*text))
        text++;
    size_t n = strlen(text);
    while (n && isspace((unsigned char)text[n - 1]))
        n--;
    for (int i = 0; i < PC__COUNT(words); i++)
        if (n == strlen(words[i]) && strncasecmp(text, words[i], n) == 0)
            return true;
    return false;
}

static pc_status fail_at(const pc__csv *csv, const pc__csv_table *t, int column, const char *what)
{
    return pc__fail(PC_ERR_FORMAT, "%s:%lld: %s: %s%.60s%s", csv->path, (long long)csv->line,
                    pc__csv_column(&t->columns, column).s, *csv->fields[column].text ? "\"" : "",
                    csv->fields[column].text, what);
}

static pc_status grow(pc__csv_table *t)
{
    if (t->rows < t->room)
        return PC_OK;
    const int64_t room = t->room ? 2 * t->room : 256;
    float *x = pc__realloc(t->x, (size_t)room * (size_t)t->columns.xs * sizeof *x);
    if (!x)
        return PC_ERR_MEMORY;
    t->x = x;
    void *y = pc__realloc(t->labels ? (void *)t->labels : (void *)t->y,
                          (size_t)room * (size_t)PC__MAX(t->columns.ys, 1) * sizeof(int64_t));
    if (!y)
        return PC_ERR_MEMORY;
    *(t->labels ? (void **)&t->labels : (void **)&t->y) = y;
    t->room = room;
    return PC_OK;
}

/* A line that is left out stays out of everything. */
static bool leaves_out(const pc__csv *csv, const pc__csv_table *t, const pc_csv_options *o)
{
    for (int i = 0; o->missing == PC_CSV_MISSING_SKIPS && i < t->columns.xs + t->columns.ys; i++)
        if (is_missing(&csv->fields[i < t->columns.xs ? t->columns.x[i] : t->columns.y[i - t->columns.xs]]))
            return true;
    return false;
}

static pc_status take_number(const pc__csv *csv, const pc__csv_table *t, const pc_csv_options *o, int column,
                             bool fills, float *to)
{
    double number;
    const pc__csv_field *field = &csv->fields[column];
    if (is_missing(field)) {
        *to = (float)o->fill;
        return fills && o->missing == PC_CSV_MISSING_FILLS
                   ? PC_OK
                   : fail_at(csv, t, column, *field->text ? "\" is missing" : "a value is missing");
    }
    if (!pc__csv_number(field->text, &number))
        return fail_at(csv, t, column, "\" is no finite number");
    if (!isfinite((float)number))
        return fail_at(csv, t, column, "\" is beyond float32, whose greatest number is 3.4e38");
    *to = (float)number;
    return PC_OK;
}

/* In its place. */
static const char *without_blanks(const pc__csv_field *field)
{
    char *text = (char *)field->text;
    size_t n = strlen(text);
    while (n && isspace((unsigned char)text[n - 1]))
        n--;
    text[n] = 0;
    while (isspace((unsigned char)*text))
        text++;
    return text;
}

static pc_status take_y(const pc__csv *csv, pc__csv_table *t, const pc_csv_options *o)
{
    const pc__csv_columns *c = &t->columns;
    if (!o->classes) {
        for (int i = 0; i < c->ys; i++)
            PC__TRY(take_number(csv, t, o, c->y[i], false, &t->y[t->rows * c->ys + i]));
        return PC_OK;
    }
    if (is_missing(&csv->fields[c->y[0]]))
        return fail_at(csv, t, c->y[0], *csv->fields[c->y[0]].text ? "\" is missing" : "a class is missing");
    t->labels[t->rows] = pc__csv_class(t, csv, without_blanks(&csv->fields[c->y[0]]), o->class_names);
    return t->labels[t->rows] < 0 ? pc_error_last()->status : PC_OK;
}

static pc_status take_row(const pc__csv *csv, pc__csv_table *t, const pc_csv_options *o)
{
    const pc__csv_columns *c = &t->columns;
    if (csv->count != c->all)
        return pc__fail(PC_ERR_FORMAT, "%s:%lld: %d fields, and the first line has %d", csv->path, (long long)csv->line,
                        csv->count, c->all);
    if (leaves_out(csv, t, o)) {
        t->skipped++;
        return PC_OK;
    }
    PC__TRY(grow(t));
    for (int i = 0; i < c->xs; i++)
        PC__TRY(take_number(csv, t, o, c->x[i], true, &t->x[t->rows * c->xs + i]));
    PC__TRY(take_y(csv, t, o));
    t->rows++;
    return PC_OK;
}

/* Classes that are given keep their order. */
static pc_status begin(pc__csv_table *t, const pc_csv_options *o)
{
    for (int i = 0; o->class_names && i < o->class_count; i++)
        if (pc__csv_class(t, NULL, o->class_names[i], false) != i)
            return pc_failed() ? pc_error_last()->status
                               : pc__fail(PC_ERR_ARGUMENT, "class \"%.60s\" is given twice", o->class_names[i]);
    t->labels = o->classes ? pc__alloc(sizeof *t->labels) : NULL;
    return t->labels || !o->classes ? PC_OK : PC_ERR_MEMORY;
}

static pc_status read_rows(pc__csv *csv, const pc_csv_options *o, pc__csv_table *t)
{
    bool any;
    PC__TRY(pc__csv_next(csv, &any));
    if (!any)
        return pc__fail(PC_ERR_NOT_FOUND, "%s is empty", csv->path);
    PC__TRY(pc__csv_columns_find(csv, o, &t->columns));
    PC__TRY(begin(t, o));
    if (o->no_header)
        PC__TRY(take_row(csv, t, o));
    for (;;) {
        PC__TRY(pc__csv_next(csv, &any));
        if (!any)
            break;
        PC__TRY(take_row(csv, t, o));
    }
    if (t->rows == 0)
        return pc__fail(PC_ERR_NOT_FOUND, "%s has no rows%s", csv->path,
                        t->skipped ? ": a value is missing in each" : "");
    return t->labels && !o->class_names ? pc__csv_classes_sort(t) : PC_OK;
}

static pc_status check(const pc_csv_options *o)
{
    if (o->separator == '"' || o->separator == '\n' || o->separator == '\r' || (unsigned char)o->separator >= 128)
        return pc__fail(PC_ERR_ARGUMENT, "a CSV file cannot be separated by character %d", o->separator);
    if ((unsigned)o->missing > PC_CSV_MISSING_FILLS)
        return pc__fail(PC_ERR_ARGUMENT, "%d is no way with missing values: use PC_CSV_MISSING_FAILS, _SKIPS or _FILLS",
                        (int)o->missing);
    if (o->class_names && (!o->classes || o->class_count < 1))
        return pc__fail(PC_ERR_ARGUMENT, "%d class names: give one or more, with .classes", o->class_count);
    for (int i = 0; o->class_names && i < o->class_count; i++)
        if (!o->class_names[i])
            return pc__fail(PC_ERR_ARGUMENT, "class name %d is NULL", i);
    return PC_OK;
}

pc_status pc__csv_table_read(const char *path, const pc_csv_options *o, pc__csv_table *t)
{
    pc__csv csv;
    uint8_t *bytes;
    size_t n;
    *t = (pc__csv_table){0};
    PC__TRY(check(o));
    PC__TRY(pc__file_read(path, &bytes, &n));
    pc__csv_begin(&csv, path, (char *)bytes, n, o->separator ? o->separator : ',');
    const pc_status status = read_rows(&csv, o, t);
    pc__csv_end(&csv);
    pc__free(bytes);
    if (status != PC_OK)
        pc__csv_table_free(t);
    return status;
}

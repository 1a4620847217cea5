/* csv_columns.c: columns by name or number. */
#include "data/csv_columns.h"

#include <ctype.h>

pc__csv_column_text pc__csv_column(const pc__csv_columns *c, int column)
{
    pc__csv_column_text text;
    if (c->names)
        snprintf(text.s, sizeof text.s, "column \"%.60s\"", c->names[column]);
    else
        snprintf(text.s, sizeof text.s, "column %d", column + 1);
    return text;
}

void pc__csv_columns_free(pc__csv_columns *c)
{
    for (int i = 0; c->names && i < c->all; i++)
        pc__free(c->names[i]);
    pc__free(c->names);
    pc__free(c->x);
    pc__free(c->y);
    *c = (pc__csv_columns){0};
}

/* Without blanks around it. */
static char *trimmed(const char *text, size_t n)
{
    while (n && isspace((unsigned char)*text))
        text++, n--;
    while (n && isspace((unsigned char)text[n - 1]))
        n--;
    char *copy = pc__alloc(n + 1);
    if (copy) {
        memcpy(copy, text, n);
        copy[n] = 0;
    }
    return copy;
}

static pc_status take_names(const pc__csv *first, pc__csv_columns *c)
{
    c->names = pc__calloc((size_t)first->count, sizeof *c->names);
    if (!c->names)
        return PC_ERR_MEMORY;
    for (int i = 0; i < first->count; i++)
        if (!(c->names[i] = trimmed(first->fields[i].text, first->fields[i].length)))
            return PC_ERR_MEMORY;
    return PC_OK;
}

static pc_status add(int **list, int *count, int *room, int column)
{
    PC__TRY(pc__grow((void **)list, room, *count, sizeof **list));
    (*list)[(*count)++] = column;
    return PC_OK;
}

/* The first column of that name from `from` on; -1: none. */
static int named(const pc__csv_columns *c, const char *name, int from)
{
    for (int i = from; c->names && i < c->all; i++)
        if (strcmp(c->names[i], name) == 0)
            return i;
    return -1;
}

/* "7" or "7-9", from 1. */
static bool numbers_of(const char *text, int all, int *first, int *last)
{
    int used = 0;
    if (sscanf(text, "%6d-%6d%n", first, last, &used) != 2 || text[used]) {
        used = 0;
        if (sscanf(text, "%6d%n", first, &used) != 1 || text[used])
            return false;
        *last = *first;
    }
    return *first >= 1 && *first <= *last && *last <= all;
}

static pc_status add_meant(const pc__csv *csv, const pc__csv_columns *c, const char *word, int **list, int *count,
                           int *room)
{
    int first = named(c, word, 0), last = first;
    const int other = first >= 0 ? named(c, word, first + 1) : -1;
    if (other >= 0)
        return pc__fail(PC_ERR_ARGUMENT, "%s: the columns %d and %d are both called \"%.60s\"; choose by number",
                        csv->path, first + 1, other + 1, word);
    if (first >= 0)
        return add(list, count, room, first);
    if (!numbers_of(word, c->all, &first, &last))
        return pc__fail(PC_ERR_NOT_FOUND, "%s has no column \"%.60s\"; %s%s%.60s%s it has %d", csv->path, word,
                        c->names ? "the first is " : "", c->names ? "\"" : "", c->names ? c->names[0] : "",
                        c->names ? "\"," : "it has no header:", c->all);
    for (; first <= last; first++)
        PC__TRY(add(list, count, room, first - 1));
    return PC_OK;
}

static pc_status add_list(const pc__csv *csv, const pc__csv_columns *c, const char *text, int **list, int *count,
                          int *room)
{
    for (const char *at = text; *text; at++) {
        if (*at && *at != ',')
            continue;
        char *word = trimmed(text, (size_t)(at - text));
        const pc_status status = word ? add_meant(csv, c, word, list, count, room) : PC_ERR_MEMORY;
        pc__free(word);
        PC__TRY(status);
        text = *at ? at + 1 : at;
    }
    return *count ? PC_OK : pc__fail(PC_ERR_ARGUMENT, "%s: an empty list of columns", csv->path);
}

static bool is_in(const int *list, int count, int column)
{
    for (int i = 0; i < count; i++)
        if (list[i] == column)
            return true;
    return false;
}

static pc_status find(const pc__csv *first, const pc_csv_options *o, pc__csv_columns *c)
{
    PC__TRY(o->no_header ? PC_OK : take_names(first, c));
    PC__TRY(o->y ? add_list(first, c, o->y, &c->y, &c->ys, &c->y_room) : PC_OK);
    if (o->classes && c->ys != 1)
        return pc__fail(PC_ERR_ARGUMENT, "%s: %d columns of y; one of them names classes", first->path, c->ys);
    if (o->x)
        return add_list(first, c, o->x, &c->x, &c->xs, &c->x_room);
    for (int i = 0; i < c->all; i++)
        PC__TRY(is_in(c->y, c->ys, i) ? PC_OK : add(&c->x, &c->xs, &c->x_room, i));
    return c->xs ? PC_OK : pc__fail(PC_ERR_NOT_FOUND, "%s has no columns beside those of y", first->path);
}

pc_status pc__csv_columns_find(const pc__csv *first, const pc_csv_options *options, pc__csv_columns *columns)
{
    *columns = (pc__csv_columns){.all = first->count};
    const pc_status status = find(first, options, columns);
    if (status != PC_OK)
        pc__csv_columns_free(columns);
    return status;
}

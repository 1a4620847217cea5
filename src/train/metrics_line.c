/* metrics_line.c: one epoch's record as a line of JSON. A small reader of its own, so that runs can be recorded and
 * resumed in builds without a JSON library. */
#include "train/metrics_line.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

enum { DEEPEST = 32 }; /* nesting of unknown values; more is taken for garbage */

static const struct {
    const char *name;
    size_t offset;
} fields[] = {
#define FIELD(name) {#name, offsetof(pc__epoch_record, name)},
    PC__EPOCH_FIELDS(FIELD)
#undef FIELD
};

void pc__metrics_line_write(pc__text *text, const pc__epoch_record *record, const double *recall, int classes)
{
    pc__text_add(text, "{\"epoch\": %d", record->epoch);
    for (int i = 0; i < PC__COUNT(fields); i++) {
        pc__text_add(text, ", \"%s\": ", fields[i].name);
        pc__json_number(text, *(const double *)((const char *)record + fields[i].offset));
    }
    for (int k = 0; k < classes; k++) {
        pc__text_add(text, k ? ", " : ", \"test_recall\": [");
        pc__json_number(text, recall[k]);
    }
    pc__text_add(text, classes ? "]}\n" : "}\n");
}

typedef struct cursor {
    const char *at, *end;
} cursor;

/* The next character that is no white space, without taking it; 0 at the end. */
static char next(cursor *c)
{
    while (c->at < c->end && memchr(" \t\r", *c->at, 3))
        c->at++;
    return c->at < c->end ? *c->at : 0;
}

static bool take(cursor *c, char wanted)
{
    if (next(c) != wanted)
        return false;
    c->at++;
    return true;
}

/* A string as it is written, escapes and all: the keys that matter have none. */
static bool take_string(cursor *c, const char **text, size_t *n)
{
    if (!take(c, '"'))
        return false;
    *text = c->at;
    for (; c->at < c->end; c->at++)
        if (*c->at == '\\')
            c->at++;
        else if (*c->at == '"') {
            *n = (size_t)(c->at++ - *text);
            return true;
        }
    return false;
}

static bool take_number(cursor *c, double *value)
{
    char first = next(c), *stop;
    size_t length = 0;
    while (c->at + length < c->end && memchr("+-.0123456789eE", c->at[length], 15))
        length++;
    if (!length || first == '+' || first == '.')
        return false;
    *value = strtod(c->at, &stop);
    bool whole = stop == c->at + length;
    c->at += length;
    return whole;
}

static bool take_word(cursor *c, const char *word)
{
    size_t n = strlen(word);
    if (!next(c) || (size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0)
        return false;
    c->at += n;
    return true;
}

static bool skip_value(cursor *c, int depth)
{
    const char *text;
    size_t n;
    double number;
    char first = next(c), last = first == '{' ? '}' : ']';
    if (first == '"')
        return take_string(c, &text, &n);
    if (first != '{' && first != '[')
        return take_word(c, "null") || take_word(c, "true") || take_word(c, "false") || take_number(c, &number);
    c->at++;
    if (take(c, last))
        return true;
    do {
        if (depth == DEEPEST || (first == '{' && !(take_string(c, &text, &n) && take(c, ':'))) ||
            !skip_value(c, depth + 1))
            return false;
    } while (take(c, ','));
    return take(c, last);
}

static bool take_epoch(cursor *c, int *epoch)
{
    double number;
    if (!take_number(c, &number) || !(number >= 1 && number <= INT_MAX) || number != floor(number))
        return false;
    *epoch = (int)number;
    return true;
}

static bool take_member(cursor *c, pc__epoch_record *record)
{
    const char *key;
    size_t n;
    if (!take_string(c, &key, &n) || !take(c, ':'))
        return false;
    if (n == 5 && memcmp(key, "epoch", 5) == 0)
        return take_epoch(c, &record->epoch);
    for (int i = 0; i < PC__COUNT(fields); i++)
        if (strlen(fields[i].name) == n && memcmp(fields[i].name, key, n) == 0)
            return take_word(c, "null") || take_number(c, (double *)((char *)record + fields[i].offset));
    return skip_value(c, 0);
}

static bool take_record(cursor *c, pc__epoch_record *record)
{
    if (!take(c, '{'))
        return false;
    do {
        if (!take_member(c, record))
            return false;
    } while (take(c, ','));
    return take(c, '}') && !next(c) && c->at == c->end;
}

bool pc__metrics_line_read(const char *line, size_t n, pc__epoch_record *record)
{
    cursor c = {line, line + n};
    *record = pc__epoch_unknown(0);
    pc__plain_numbers plain = pc__plain_numbers_begin();
    bool good = take_record(&c, record) && record->epoch >= 1;
    pc__plain_numbers_end(plain);
    return good;
}

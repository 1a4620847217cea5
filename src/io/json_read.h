/* json_read.h: JSON of any origin, read from front to back without a tree: files of names and numbers (safetensors
 * headers, vocabularies, settings of networks).
 *
 *     pc__json in = pc__json_of(bytes, n);
 *     pc__text key = {0};
 *     for (pc__json_open(&in, '{'); pc__json_next(&in, '}');)
 *         if (pc__json_key(&in, &key) && strcmp(key.data, "n_head") == 0)
 *             pc__json_whole(&in, &heads);
 *         else
 *             pc__json_skip(&in);
 *     if (!pc__json_ended(&in)) ...
 *
 * Whatever does not fit makes the reader `bad`: then nothing is read any more, and loops end. */
#ifndef PC__JSON_READ_H
#define PC__JSON_READ_H

#include "base/base.h"

typedef struct pc__json {
    const char *at, *end;
    bool bad, first; /* first: nothing of the object or list that was opened last has been read */
} pc__json;

static inline pc__json pc__json_of(const void *bytes, size_t n)
{
    return (pc__json){bytes, (const char *)bytes + n, false, false};
}

/* Is the next mark this one? Does not pass over it. */
bool pc__json_ahead(pc__json *in, char mark);

/* Pass over `{` or `[`. */
PC__SHARED void pc__json_open(pc__json *in, char mark);

/* Is there one more entry? Passes over the comma in front of it, or over `close`. */
PC__SHARED bool pc__json_next(pc__json *in, char close);

/* A string, in UTF-8; false, and bad, for anything else, and where memory ran out. One that holds a zero byte is bad. Replaces
 * what `text` had. A key is followed by a colon. */
PC__SHARED bool pc__json_string_in(pc__json *in, pc__text *text);
PC__SHARED bool pc__json_key(pc__json *in, pc__text *text);

/* A whole number of at least 0; any number; true or false. */
PC__SHARED bool pc__json_whole(pc__json *in, int64_t *number);
PC__SHARED bool pc__json_number_in(pc__json *in, double *number);
bool pc__json_truth(pc__json *in, bool *truth);

/* Pass over a value of any kind. */
PC__SHARED void pc__json_skip(pc__json *in);

/* Append a code point in UTF-8. */
void pc__utf8_put(pc__text *text, uint32_t point);

/* Nothing is bad, and nothing but space is left. */
PC__SHARED bool pc__json_ended(pc__json *in);

#endif

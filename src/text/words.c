/* words.c: what byte-pair encoding takes for a word. */
#include "text/words.h"

enum { OTHER, LETTER, NUMBER, SPACE };

static const struct range {
    uint32_t first, last;
    int kind;
} ranges[] = {
#include "text/unicode_ranges.inc"
};

uint32_t pc__letter_at(const uint8_t *text, size_t n, size_t at, int *bytes)
{
    char four[5] = {0};
    *bytes = 1;
    if (text[at] < 0x80)
        return text[at];
    memcpy(four, text + at, PC__MIN(n - at, 4));
    const int length = pc__utf8_length(four);
    if (!length)
        return PC__STRAY + text[at];
    uint32_t point = text[at] & (0x7fu >> length);
    for (int i = 1; i < length; i++)
        point = point << 6 | (text[at + (size_t)i] & 0x3f);
    *bytes = length;
    return point;
}

static int kind_of(uint32_t point)
{
    int low = 0, high = PC__COUNT(ranges) - 1;
    while (low <= high) {
        const int middle = (low + high) / 2;
        if (point < ranges[middle].first)
            high = middle - 1;
        else if (point > ranges[middle].last)
            low = middle + 1;
        else
            return ranges[middle].kind;
    }
    return OTHER;
}

static int kind_at(const uint8_t *text, size_t n, size_t at, int *bytes)
{
    const uint8_t c = text[at];
    *bytes = 1;
    if ((uint8_t)((c | 0x20) - 'a') < 26)
        return LETTER;
    if (c < 0x80)
        return c >= '0' && c <= '9' ? NUMBER : c == ' ' || (c >= '\t' && c <= '\r') ? SPACE : OTHER;
    return kind_of(pc__letter_at(text, n, at, bytes));
}

/* Behind the letters of that kind from `at` on; *last: where the last one of them begins. */
static size_t run_end(const uint8_t *text, size_t n, size_t at, int kind, size_t *last)
{
    int bytes;
    while (at < n && kind_at(text, n, at, &bytes) == kind) {
        *last = at;
        at += (size_t)bytes;
    }
    return at;
}

/* The bytes of 's, 't, 're, 've, 'm, 'll or 'd; 0 for anything else. */
static size_t ending(const uint8_t *text, size_t n)
{
    static const char *const words[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    for (int i = 0; i < PC__COUNT(words); i++) {
        const size_t length = strlen(words[i]);
        if (n > length && memcmp(text + 1, words[i], length) == 0)
            return length + 1;
    }
    return 0;
}

size_t pc__word_end(const uint8_t *text, size_t n, size_t at)
{
    int bytes, next;
    size_t last = at;
    const size_t short_form = text[at] == '\'' ? ending(text + at, n - at) : 0;
    if (short_form)
        return at + short_form;
    const int kind = kind_at(text, n, at, &bytes);
    if (kind != SPACE)
        return run_end(text, n, at, kind, &last);
    if (text[at] == ' ' && at + 1 < n && (next = kind_at(text, n, at + 1, &bytes)) != SPACE)
        return run_end(text, n, at + 1, next, &last);
    const size_t end = run_end(text, n, at, SPACE, &last);
    return end == n || last == at ? end
                                  : last; /* the last space goes with what follows, where it is not the only one */
}

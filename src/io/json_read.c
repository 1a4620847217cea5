/* json_read.c: JSON, from front to back. */
#include "io/json_read.h"

#include <math.h>
#include <stdlib.h>

#define DEPTH_MAX 64 /* of what is passed over */

static bool bad(pc__json *in)
{
    in->bad = true;
    return false;
}

static void skip_space(pc__json *in)
{
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\n' || *in->at == '\t' || *in->at == '\r'))
        in->at++;
}

bool pc__json_ahead(pc__json *in, char mark)
{
    skip_space(in);
    return !in->bad && in->at < in->end && *in->at == mark;
}

static bool take(pc__json *in, char mark)
{
    if (!pc__json_ahead(in, mark))
        return bad(in);
    in->at++;
    return true;
}

void pc__json_open(pc__json *in, char mark)
{
    in->first = take(in, mark);
}

bool pc__json_next(pc__json *in, char close)
{
    const bool first = in->first;
    in->first = false;
    if (pc__json_ahead(in, close)) {
        in->at++;
        return false;
    }
    return first ? !in->bad && in->at < in->end ? true : bad(in) : take(in, ',');
}

/* The four digits behind \u. */
static bool take_unit(pc__json *in, uint32_t *unit)
{
    *unit = 0;
    if (in->end - in->at < 4)
        return bad(in);
    for (int i = 0; i < 4; i++) {
        const char c = *in->at++;
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0)
            return bad(in);
        *unit = *unit << 4 | (uint32_t)digit;
    }
    return true;
}

void pc__utf8_put(pc__text *text, uint32_t point)
{
    char out[4];
    int n = 1;
    if (point < 0x80) {
        out[0] = (char)point;
    } else {
        n = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
        for (int i = n - 1; i > 0; i--, point >>= 6)
            out[i] = (char)(0x80 | (point & 0x3f));
        out[0] = (char)((0xf00 >> n & 0xff) | point);
    }
    pc__text_append(text, out, (size_t)n);
}

/* What stands behind \u: two units above 0xffff. */
static bool take_point(pc__json *in, pc__text *text)
{
    uint32_t point, low;
    if (!take_unit(in, &point))
        return false;
    if (point >= 0xd800 && point < 0xe000) {
        if (point >= 0xdc00 || in->end - in->at < 2 || in->at[0] != '\\' || in->at[1] != 'u')
            return bad(in);
        in->at += 2;
        if (!take_unit(in, &low) || low < 0xdc00 || low > 0xdfff)
            return bad(in);
        point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
    }
    if (!point)
        return bad(in);
    pc__utf8_put(text, point);
    return true;
}

static bool take_escape(pc__json *in, pc__text *text)
{
    static const char marks[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    if (in->at == in->end)
        return bad(in);
    const char c = *in->at++;
    if (c == 'u')
        return take_point(in, text);
    const char *mark = c ? strchr(marks, c) : NULL;
    if (!mark)
        return bad(in);
    pc__text_append(text, &means[mark - marks], 1);
    return true;
}

/* One character as it stands. */
static bool take_plain(pc__json *in, pc__text *text)
{
    char four[5] = {0};
    memcpy(four, in->at, (size_t)PC__MIN(4, in->end - in->at));
    const int n = pc__utf8_length(four);
    if ((unsigned char)four[0] < ' ' || !n)
        return bad(in);
    pc__text_append(text, in->at, (size_t)n);
    in->at += n;
    return true;
}

bool pc__json_string_in(pc__json *in, pc__text *text)
{
    text->length = 0;
    pc__text_append(text, "", 0);
    if (!take(in, '"'))
        return false;
    while (in->at < in->end && *in->at != '"') {
        const bool escaped = *in->at == '\\';
        in->at += escaped;
        if (!(escaped ? take_escape(in, text) : take_plain(in, text)))
            return false;
    }
    return !text->failed && in->at < in->end ? (in->at++, true) : bad(in);
}

bool pc__json_key(pc__json *in, pc__text *text)
{
    return pc__json_string_in(in, text) && take(in, ':');
}

bool pc__json_whole(pc__json *in, int64_t *number)
{
    *number = 0;
    skip_space(in);
    const char *start = in->at;
    for (; !in->bad && in->at < in->end && *in->at >= '0' && *in->at <= '9'; in->at++)
        if (__builtin_mul_overflow(*number, 10, number) || __builtin_add_overflow(*number, *in->at - '0', number))
            return bad(in);
    const bool more = in->at < in->end && *in->at && strchr(".eE-+", *in->at);
    return in->at > start && !more ? true : bad(in);
}

bool pc__json_number_in(pc__json *in, double *number)
{
    char digits[64];
    size_t n = 0;
    skip_space(in);
    while (!in->bad && in->at + n < in->end && in->at[n] && strchr("+-.eE0123456789", in->at[n]) &&
           n + 1 < sizeof digits)
        digits[n] = in->at[n], n++;
    digits[n] = 0;
    in->at += n;
    double whole = 0, scale = 1;
    const char *c = digits;
    const bool negative = *c == '-';
    c += negative;
    const char *start = c;
    for (; *c >= '0' && *c <= '9'; c++)
        whole = whole * 10 + (*c - '0');
    if (c == start)
        return bad(in);
    if (*c == '.')
        for (c++; *c >= '0' && *c <= '9'; c++)
            whole = whole * 10 + (*c - '0'), scale *= 10;
    int exponent = 0;
    if (*c == 'e' || *c == 'E') {
        const bool below = c[1] == '-';
        for (c += 1 + (c[1] == '-' || c[1] == '+'); *c >= '0' && *c <= '9' && exponent < 1000; c++)
            exponent = exponent * 10 + (*c - '0');
        exponent = below ? -exponent : exponent;
    }
    *number = (negative ? -whole : whole) / scale * pow(10, exponent);
    return *c ? bad(in) : true;
}

static bool take_word(pc__json *in, const char *word)
{
    const size_t n = strlen(word);
    skip_space(in);
    if (in->bad || (size_t)(in->end - in->at) < n || memcmp(in->at, word, n) != 0)
        return false;
    in->at += n;
    return true;
}

bool pc__json_truth(pc__json *in, bool *truth)
{
    *truth = take_word(in, "true");
    return *truth || take_word(in, "false") ? true : bad(in);
}

static void skip_value(pc__json *in, pc__text *text, int depth)
{
    double number;
    const char close = pc__json_ahead(in, '{') ? '}' : pc__json_ahead(in, '[') ? ']' : 0;
    if (close && depth < DEPTH_MAX) {
        for (pc__json_open(in, close == '}' ? '{' : '['); pc__json_next(in, close);)
            if (close == ']' || pc__json_key(in, text))
                skip_value(in, text, depth + 1);
    } else if (close) {
        (void)bad(in);
    } else if (pc__json_ahead(in, '"')) {
        (void)pc__json_string_in(in, text);
    } else if (!take_word(in, "true") && !take_word(in, "false") && !take_word(in, "null")) {
        (void)pc__json_number_in(in, &number);
    }
}

void pc__json_skip(pc__json *in)
{
    pc__text text = {0};
    skip_value(in, &text, 0);
    pc__text_free(&text);
}

bool pc__json_ended(pc__json *in)
{
    skip_space(in);
    return !in->bad && in->at == in->end;
}

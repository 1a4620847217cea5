/* html.c: pieces of HTML. */
#include "report/html.h"

#include <math.h>

static const char UNKNOWN[] = "<span class='none'>\u2013</span>";

void pc__html_put(pc__text *text, const char *markup)
{
    pc__text_append(text, markup, strlen(markup));
}

/* Bytes of the letter at `s`, or 0 where none may stand in HTML: control characters but tab and newline. */
static int sequence(const char *s)
{
    unsigned char c = (unsigned char)*s;
    int n = pc__utf8_length(s);
    bool control = c < ' ' ? c != '\t' && c != '\n' : c == 0x7f || (c == 0xc2 && (unsigned char)s[1] < 0xa0);
    return control ? 0 : n;
}

static const char *entity(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

void pc__html_escape_some(pc__text *text, const char *words, size_t n)
{
    size_t run = 0, at = 0;
    while (at < n) {
        int length = sequence((const char *)words + at);
        const char *instead = length ? entity(words[at]) : "\ufffd";
        size_t next = at + (size_t)PC__MAX(length, 1);
        if (instead) {
            pc__text_append(text, words + run, at - run);
            pc__html_put(text, instead);
            run = next;
        }
        at = next;
    }
    pc__text_append(text, words + run, at - run);
}

void pc__html_escape(pc__text *text, const char *words)
{
    if (words)
        pc__html_escape_some(text, words, strlen(words));
}

void pc__html_base64(pc__text *text, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i;
        uint32_t group =
            (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) | (left > 2 ? bytes[i + 2] : 0);
        char quad[4] = {digits[group >> 18], digits[group >> 12 & 63], left > 1 ? digits[group >> 6 & 63] : '=',
                        left > 2 ? digits[group & 63] : '='};
        pc__text_append(text, quad, 4);
    }
}

void pc__html_number(pc__text *text, double value)
{
    if (isnan(value))
        pc__html_put(text, UNKNOWN);
    else if (isinf(value))
        pc__html_put(text, value > 0 ? "\u221e" : "\u2212\u221e");
    else if (fabs(value) >= 0.1 && fabs(value) < 9.9995)
        pc__text_add(text, "%.*f", fabs(value) < 0.99995 ? 4 : 3, value);
    else
        pc__text_add(text, "%.4g", value);
}

void pc__html_percent(pc__text *text, double share)
{
    if (isfinite(share))
        pc__text_add(text, "%.1f\u202f%%", share * 100);
    else
        pc__html_put(text, UNKNOWN);
}

void pc__html_duration(pc__text *text, double seconds)
{
    if (!(seconds > 0) || seconds > 1e12)
        pc__html_put(text, UNKNOWN);
    else if (seconds < 0.9995)
        pc__text_add(text, "%.3g\u202fms", seconds * 1000);
    else if (seconds < 59.95)
        pc__text_add(text, "%.1f\u202fs", seconds);
    else {
        long long whole = llround(seconds);
        if (whole < 3600)
            pc__text_add(text, "%lld\u202fmin %lld\u202fs", whole / 60, whole % 60);
        else
            pc__text_add(text, "%lld\u202fh %02lld\u202fmin", whole / 3600, whole % 3600 / 60);
    }
}

void pc__html_count(pc__text *text, int64_t count)
{
    char digits[24], grouped[32];
    if (count < 0) {
        pc__html_put(text, UNKNOWN);
        return;
    }
    int n = snprintf(digits, sizeof digits, "%lld", (long long)count), m = 0;
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0)
            grouped[m++] = ',';
        grouped[m++] = digits[i];
    }
    pc__text_append(text, grouped, (size_t)m);
}

void pc__html_things(pc__text *text, int64_t count, const char *one, const char *many)
{
    pc__html_count(text, count);
    pc__text_add(text, " %s", count == 1 ? one : many);
}

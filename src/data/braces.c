/* braces.c: "s-{000..146}.tar" and "{train,more}.tar", as shells and WebDataset mean them. */
#include "data/braces.h"

#include <stdlib.h>

typedef struct expansion {
    const char *pattern, *open, *close; /* the first braces */
    pc_status (*each)(void *context, const char *pattern);
    void *context;
} expansion;

static pc_status expand(const char *pattern, size_t from, pc_status (*each)(void *, const char *), void *context);

/* A word in the place of the braces, and what is behind it expanded. */
static pc_status put(const expansion *e, const char *word, size_t n)
{
    pc__text text = {0};
    const size_t before = (size_t)(e->open - e->pattern);
    pc__text_append(&text, e->pattern, before);
    pc__text_append(&text, word, n);
    pc__text_append(&text, e->close + 1, strlen(e->close + 1));
    const pc_status status = text.failed ? PC_ERR_MEMORY : expand(text.data, before + n, e->each, e->context);
    pc__text_free(&text);
    return status;
}

/* A whole number of at most nine digits, which ends at `stop`. */
static bool take_number(const char *at, char stop, int *digits, int *number)
{
    enum { MOST = 9 };
    *digits = (int)strspn(at, "0123456789");
    const bool fits = *digits >= 1 && *digits <= MOST && at[*digits] == stop;
    *number = fits ? atoi(at) : 0;
    return fits;
}

typedef struct range {
    int first, last, width;
} range;

/* 000..146: all of one width where one of them begins with a zero. */
static bool take_range(const expansion *e, range *r)
{
    int one, two;
    const char *at = e->open + 1;
    if (!take_number(at, '.', &one, &r->first) || at[one + 1] != '.' || !take_number(at + one + 2, '}', &two, &r->last))
        return false;
    const bool padded = (at[0] == '0' && one > 1) || (at[one + 2] == '0' && two > 1);
    r->width = padded ? PC__MAX(one, two) : 1;
    return true;
}

static pc_status put_range(const expansion *e, const range *r)
{
    const int step = r->first <= r->last ? 1 : -1;
    for (int i = r->first;; i += step) {
        char word[16];
        const int n = snprintf(word, sizeof word, "%0*d", r->width, i);
        PC__TRY(put(e, word, (size_t)n));
        if (i == r->last)
            return PC_OK;
    }
}

static pc_status put_list(const expansion *e)
{
    for (const char *at = e->open + 1; at <= e->close;) {
        const size_t n = strcspn(at, ",}");
        PC__TRY(put(e, at, n));
        at += n + 1;
    }
    return PC_OK;
}

/* What is in front of byte `from` is done. */
static pc_status expand(const char *pattern, size_t from, pc_status (*each)(void *, const char *), void *context)
{
    range r;
    expansion e = {.pattern = pattern, .open = strchr(pattern + from, '{'), .each = each, .context = context};
    e.close = e.open ? strchr(e.open, '}') : NULL;
    if (!e.close)
        return each(context, pattern);
    if (take_range(&e, &r))
        return put_range(&e, &r);
    if (memchr(e.open, ',', (size_t)(e.close - e.open)))
        return put_list(&e);
    return expand(pattern, (size_t)(e.close + 1 - pattern), each, context);
}

pc_status pc__braces_expand(const char *pattern, pc_status (*each)(void *context, const char *pattern), void *context)
{
    return expand(pattern, 0, each, context);
}

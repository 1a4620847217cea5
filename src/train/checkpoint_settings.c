/* checkpoint_settings.c: the settings that a checkpoint was made with, beside those of the run that is to go on. */
#include "train/checkpoint_form.h"

#include <stdlib.h>

/* Of a line of settings: its option, or what stands in front of its last word. */
static size_t key_of(const char *line)
{
    size_t n = strcspn(line, "\n");
    if (line[0] == '-')
        return strcspn(line, " \n");
    while (n && line[n] != ' ')
        n--;
    return n;
}

/* --flip and --no-flip are one option. */
static bool same_key(const char *a, const char *b)
{
    static const char no[] = "--no-";
    const size_t off = strlen(no);
    size_t n = key_of(a), m = key_of(b);
    if (strncmp(a, no, off) == 0 && strncmp(b, no, off) != 0)
        return m > 2 && n - off == m - 2 && memcmp(a + off, b + 2, m - 2) == 0;
    if (strncmp(b, no, off) == 0 && strncmp(a, no, off) != 0)
        return same_key(b, a);
    return n == m && memcmp(a, b, n) == 0;
}

static bool has_key(const char *settings, const char *line)
{
    for (; *settings; settings += strcspn(settings, "\n"), settings += *settings == '\n')
        if (same_key(settings, line))
            return true;
    return false;
}

/* A line as one would write it: numbers are kept so that they come back to the same bits, 20 as 2e+01. */
static const char *words_of(const char *line, char words[128])
{
    const int n = (int)strcspn(line, "\n"), key = (int)key_of(line);
    snprintf(words, 128, "%.*s", n, line);
    char *value = words + PC__MIN(key + 1, n), *end;
    if (line[0] != '-' || n > 100 || !strpbrk(value, ".e"))
        return words;
    const double number = strtod(value, &end);
    if (end != value && !*end)
        snprintf(value, 24, "%.10g", number);
    return words;
}

static pc_status settings_differ(const char *path, const char *was, const char *now, const char *all_was)
{
    char a[128], b[128];
    const bool both = same_key(was, now);
    const bool new = key_of(now) && !both && !has_key(all_was, now);
    if (new)
        snprintf(a, sizeof a, "without %.*s", (int)key_of(now), now);
    else
        snprintf(a, sizeof a, "with %.100s", words_of(was, b));
    return pc__fail(PC_ERR_STATE,
                    "%s was made %s, and this run has %s; resume with the same settings or choose another --out", path,
                    a, new || both ? words_of(now, b) : "none");
}

pc_status pc__checkpoint_check_settings(const char *path, const char *was, const char *now)
{
    const char *const all_was = was;
    while (*was || *now) {
        const size_t a = strcspn(was, "\n"), b = strcspn(now, "\n");
        if (a != b || memcmp(was, now, a) != 0)
            return settings_differ(path, was, now, all_was);
        was += a + (was[a] == '\n');
        now += b + (now[b] == '\n');
    }
    return PC_OK;
}

/* read.c: from the text of a trace file to rows, events, marks and flows. A scan finds where each event's
 * object ends, cJSON reads it: a file of any size needs the memory of one event, and one that was cut off is read up to
 * there. */
#include "timeline/timeline.h"

#if PC_HAVE_CJSON

#include "timeline/event.h"

typedef struct reader {
    pc_timeline *timeline;
    const char *path;
    char *text, *at;
} reader;

static pc_status wrong(const reader *r, const char *why)
{
    return pc__fail(PC_ERR_FORMAT, "%s: %s (at byte %zu): a timeline is a JSON array of trace events", r->path, why,
                    (size_t)(r->at - r->text));
}

static void skip_blanks(reader *r)
{
    r->at += strspn(r->at, " \t\r\n");
}

/* The end of the string that begins at `s`, behind its quote; NULL when the text ends first. */
static char *string_end(char *s)
{
    for (s++; *s && *s != '"'; s++)
        if (*s == '\\' && !*++s)
            return NULL;
    return *s ? s + 1 : NULL;
}

/* The end of the value that begins at `s`: an object or array as far as its brackets go, a string, or letters and
 * digits. */
static char *value_end(char *s)
{
    int depth = 0;
    do {
        s += strcspn(s, depth ? "\"{}[]" : "\"{}[], \t\r\n:");
        if (*s == '"')
            s = string_end(s);
        else if (*s == '{' || *s == '[')
            depth++, s++;
        else if (*s && depth)
            depth--, s++;
        else if (!*s && depth)
            s = NULL;
    } while (s && depth);
    return s;
}

static pc_status read_object(reader *r)
{
    char *end = value_end(r->at);
    if (!end) {
        r->timeline->cut = true;
        r->at += strlen(r->at);
        return PC_OK;
    }
    char kept = *end;
    *end = 0;
    cJSON *object = cJSON_Parse(r->at);
    *end = kept;
    if (!object)
        return wrong(r, "an event is not valid JSON");
    pc_status status = pc__timeline_add(r->timeline, object);
    cJSON_Delete(object);
    r->at = end;
    return status;
}

static pc_status read_array(reader *r)
{
    for (r->at++;;) {
        skip_blanks(r);
        if (*r->at == ',') {
            r->at++;
        } else if (*r->at == '{') {
            PC__TRY(read_object(r));
        } else if (*r->at == ']') {
            r->at++;
            return PC_OK;
        } else if (!*r->at) {
            r->timeline->cut = true;
            return PC_OK;
        } else {
            return wrong(r, "something that is no event");
        }
    }
}

/* {"traceEvents": [...], ...}: everything else in it is passed over. */
static pc_status read_outer(reader *r)
{
    for (r->at++;;) {
        skip_blanks(r);
        if (*r->at == ',') {
            r->at++;
            continue;
        }
        if (*r->at == '}' || !*r->at)
            return wrong(r, "no traceEvents");
        char *key = r->at, *end = *key == '"' ? string_end(key) : NULL;
        if (!end)
            return wrong(r, "not valid JSON");
        r->at = end;
        skip_blanks(r);
        if (*r->at != ':')
            return wrong(r, "not valid JSON");
        r->at++;
        skip_blanks(r);
        if (!strncmp(key, "\"traceEvents\"", 13) && *r->at == '[')
            return read_array(r);
        end = value_end(r->at);
        if (!end || end == r->at)
            return wrong(r, "no traceEvents");
        r->at = end;
    }
}

pc_status pc__timeline_read(pc_timeline *timeline, const char *path, char *text, size_t n)
{
    reader r = {timeline, path, text, text};
    if (n >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
        r.at += 3;
    skip_blanks(&r);
    if (!*r.at && (size_t)(r.at - text) == n)
        return pc__fail(PC_ERR_FORMAT,
                        "%s is empty: the program that should have written it ended too early, or did "
                        "nothing to write down",
                        path);
    if (*r.at == '[')
        return read_array(&r);
    if (*r.at == '{')
        return read_outer(&r);
    return wrong(&r, "not JSON");
}

#else

pc_status pc__timeline_read(pc_timeline *timeline, const char *path, char *text, size_t n)
{
    (void)timeline, (void)text, (void)n;
    return pc__fail(PC_ERR_UNSUPPORTED,
                    "%s: reading timelines needs cJSON, and this Paracord was built without it; install libcjson-dev "
                    "(Debian, Ubuntu) and build again",
                    path);
}

#endif

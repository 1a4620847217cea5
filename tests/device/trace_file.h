/* trace_file.h: traces for tests: a folder for them, reading them back, and work to record. */
#ifndef PC_TEST_TRACE_FILE_H
#define PC_TEST_TRACE_FILE_H

#include "support.h"
#include "timeline.h"

#include "base/base.h"
#include "device/trace.h"

#include <sys/stat.h>
#if PC_HAVE_CJSON
#include <cjson/cJSON.h>
#endif

static char folder[64] = "/tmp/paracord-trace-XXXXXX", path[96];
static const pc_device sim0 = {PC_SIM, 0}, sim1 = {PC_SIM, 1}, nowhere = {-1, 0};

static inline char *file_text(const char *name)
{
    FILE *f = fopen(name, "r");
    assert_non_null(f);
    struct stat s;
    assert_int_equal(fstat(fileno(f), &s), 0);
    char *text = malloc((size_t)s.st_size + 1);
    assert_non_null(text);
    text[fread(text, 1, (size_t)s.st_size, f)] = 0;
    fclose(f);
    return text;
}

static inline bool is_json(const char *text)
{
#if PC_HAVE_CJSON
    const char *end = NULL;
    cJSON *json = cJSON_ParseWithOpts(text, &end, true);
    bool fine = json != NULL;
    cJSON_Delete(json);
    return fine;
#else
    return text[0] == '[' || text[0] == '{';
#endif
}

enum { LINE = 8192 };

/* Copy the next line; false where no whole one is left. Byte by byte: the address sanitizer lets the functions of
 * string.h look at all of a text each time. */
static inline bool next_line(const char **text, char line[LINE])
{
    size_t n = 0;
    for (; (*text)[n] && (*text)[n] != '\n'; n++) {
        assert_true(n < LINE - 1);
        line[n] = (*text)[n];
    }
    line[n] = 0;
    bool whole = (*text)[n] == '\n';
    *text += n + whole;
    return whole;
}

/* How many whole lines a trace has that are events, all of them JSON and all but the last of a whole file with a comma
 * behind. */
static inline int events_in(const char *text, bool stopped)
{
    char line[LINE];
    int count = 0;
    bool last = false;
    assert_true(next_line(&text, line));
    assert_string_equal(line, "[");
    while (next_line(&text, line) && strcmp(line, "]") != 0) {
        size_t n = strlen(line);
        assert_false(last);
        last = line[n - 1] != ',';
        line[n - !last] = 0;
        assert_true(is_json(line));
        count++;
    }
    assert_int_equal(last, stopped);
    assert_true(!stopped || (line[0] == ']' && !text[0]));
    return count;
}

/* The text of a trace that was stopped. */
static inline char *whole_trace(void)
{
    char *text = file_text(path);
    assert_true(events_in(text, true) >= 3);
    return text;
}

/* How many lines hold all of the pieces (up to NULL); the last of them in `found`. */
static inline int lines_with(const char *text, char found[1024], ...)
{
    char line[LINE];
    int count = 0;
    while (next_line(&text, line)) {
        va_list pieces;
        va_start(pieces, found);
        const char *piece;
        while ((piece = va_arg(pieces, const char *)) && strstr(line, piece))
            ;
        va_end(pieces);
        if (piece)
            continue;
        count++;
        if (found)
            snprintf(found, 1024, "%.1023s", line);
    }
    return count;
}

#define assert_line(text, ...)                                                                                         \
    do {                                                                                                               \
        if (lines_with(text, NULL, __VA_ARGS__, NULL) != 1)                                                            \
            fail_msg("%d lines with %s in\n%.3000s", lines_with(text, NULL, __VA_ARGS__, NULL), #__VA_ARGS__, text);   \
    } while (0)

static inline void do_work(const char *name, pc_device device, uint32_t stream, uint64_t ticket, const char *engine,
                           int lane, int64_t started, int64_t ended)
{
    pc__trace_work_done(&(pc__trace_work){.name = name,
                                          .device = device,
                                          .stream = stream,
                                          .ticket = ticket,
                                          .engine = engine,
                                          .lane = lane,
                                          .queued = started - 1500,
                                          .started = started,
                                          .ended = ended,
                                          .bytes = 4096,
                                          .site = 41,
                                          .note = "staged: the source is pageable"});
}

static inline int make_folder(void **state)
{
    (void)state;
    if (pc__tracing() && pc_trace_stop() != PC_OK) /* somebody traces the tests */
        return -1;
    snprintf(path, sizeof path, "%s/t.json", mkdtemp(folder) ? folder : "/nowhere");
    return 0;
}

static inline int remove_folder(void **state)
{
    (void)state;
    const char *const names[] = {"t.json", "child.json", "errors"};
    for (int i = 0; i < PC__COUNT(names); i++) {
        char name[128];
        snprintf(name, sizeof name, "%s/%s", folder, names[i]);
        unlink(name);
    }
    return rmdir(folder);
}

#endif

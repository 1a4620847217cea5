/* trace_write.c: events as JSON, one a line. Digits and plain text are written by hand: an event has a microsecond. */
#include "device/trace_write.h"

static int open_objects;      /* braces to close */
static const char *separator; /* before the next member */
static bool counted;          /* not of the kind that only names things */

static void put(const char *text)
{
    pc__trace_put(text, strlen(text));
}

static void put_digits(uint64_t number, int least)
{
    char digits[20];
    int n = 0;
    for (; number || n < least; number /= 10)
        digits[PC__COUNT(digits) - ++n] = (char)('0' + number % 10);
    pc__trace_put(digits + PC__COUNT(digits) - n, (size_t)n);
}

static void put_micros(int64_t nanoseconds)
{
    uint64_t n = (uint64_t)PC__MAX(nanoseconds, 0);
    put_digits(n / 1000, 1);
    pc__trace_put(".", 1);
    put_digits(n % 1000, 3);
}

/* Text that needs escapes, or to be cut. A pc__text that is large enough from the start takes no memory. */
static void put_escaped(const char *text)
{
    char cut[PC__TRACE_CLIP + 1], room[PC__TRACE_CLIP * 6 + 8];
    pc__text out = {.data = room, .capacity = sizeof room};
    size_t n = strnlen(text, PC__TRACE_CLIP + 1);
    if (n > PC__TRACE_CLIP)
        for (n = PC__TRACE_CLIP; n && ((unsigned char)text[n] & 0xc0) == 0x80;)
            n--;
    memcpy(cut, text, n);
    cut[n] = 0;
    pc__json_string(&out, cut);
    pc__trace_put(out.data, out.length);
}

static void put_string(const char *text)
{
    size_t n = 0;
    while (n < PC__TRACE_CLIP && text[n] >= ' ' && text[n] < 127 && text[n] != '"' && text[n] != '\\')
        n++;
    if (text[n]) {
        put_escaped(text);
        return;
    }
    pc__trace_put("\"", 1);
    pc__trace_put(text, n);
    pc__trace_put("\"", 1);
}

static void put_key(const char *key)
{
    put(separator);
    put(key);
    put("\":");
    separator = ",\"";
}

void pc__trace_integer(const char *key, int64_t value)
{
    put_key(key);
    if (value < 0)
        pc__trace_put("-", 1);
    put_digits(value < 0 ? -(uint64_t)value : (uint64_t)value, 1);
}

void pc__trace_micros(const char *key, int64_t nanoseconds)
{
    put_key(key);
    put_micros(nanoseconds);
}

void pc__trace_text(const char *key, const char *text)
{
    if (!text || !text[0])
        return;
    put_key(key);
    put_string(text);
}

static void open_object(void)
{
    put("{");
    separator = "\"";
    open_objects++;
}

void pc__trace_event(const char *phase, const char *name, const char *cat, pc__row row, int64_t at)
{
    open_objects = 0;
    counted = phase[0] != 'M';
    open_object();
    pc__trace_text("name", name && name[0] ? name : "?");
    pc__trace_text("cat", cat);
    pc__trace_text("ph", phase);
    pc__trace_integer("pid", row.process);
    pc__trace_integer("tid", row.thread);
    if (counted)
        pc__trace_micros("ts", at - pc__trace_origin());
}

void pc__trace_args(void)
{
    put_key("args");
    open_object();
}

static void close_objects(void)
{
    while (open_objects > 0) {
        put("}");
        open_objects--;
    }
}

void pc__trace_finish(void)
{
    close_objects();
    put(",\n");
    if (counted)
        pc__trace_wrote();
}

void pc__trace_head(void)
{
    put("[\n");
    pc__trace_event("M", "paracord", NULL, (pc__row){1, 1}, 0);
    pc__trace_args();
    pc__trace_text("version", PC_VERSION);
    pc__trace_integer("clock_start_ns", pc__trace_origin());
    pc__trace_finish();
    pc__trace_event("M", "process_name", NULL, (pc__row){1, 1}, 0);
    pc__trace_args();
    pc__trace_text("name", "host");
    pc__trace_finish();
    pc__trace_rank_again();
}

void pc__trace_foot(int64_t events, int64_t dropped)
{
    pc__trace_event("i", "paracord summary", NULL, (pc__row){1, 1}, pc__now());
    pc__trace_text("s", "g");
    pc__trace_args();
    pc__trace_integer("events", events);
    pc__trace_integer("dropped", dropped);
    close_objects();
    put("\n]\n");
}

/* error.c: the calling thread's first error. */
#include "base.h"

#include "base/site.h"

#include <errno.h>
#include <stdarg.h>

static _Thread_local pc_error last;
static _Thread_local int last_number; /* its errno, or 0 */

static const struct {
    const char *name, *text;
} statuses[PC_STATUS_COUNT] = {
#define ROW(code, name, sentence) [code] = {name, sentence},
    PC_STATUS_LIST(ROW)
#undef ROW
};

const char *pc_status_name(pc_status status)
{
    return (unsigned)status < PC_STATUS_COUNT ? statuses[status].name : "unknown";
}

const char *pc_status_text(pc_status status)
{
    return (unsigned)status < PC_STATUS_COUNT ? statuses[status].text : "unknown";
}

const pc_error *pc_error_last(void)
{
    return &last;
}

bool pc_failed(void)
{
    return last.status != PC_OK;
}

void pc_error_clear(void)
{
    if (last.status != PC_OK) /* a kilobyte, and engines come by for each piece of work */
        last = (pc_error){.status = PC_OK};
    last_number = 0;
}

int pc__error_number(void)
{
    return last_number;
}

pc_error pc__error_take(void)
{
    pc_error taken = last;
    pc_error_clear();
    return taken;
}

pc_status pc__error_put(const pc_error *error)
{
    if (error->status == PC_OK)
        return PC_OK;
    if (last.status == PC_OK) {
        last = *error;
        last_number = 0;
    } else {
        last.suppressed += error->suppressed + 1;
    }
    return error->status;
}

/* Messages are one line whatever text from files or libraries went into them. */
static void one_line(char *text)
{
    size_t n = strlen(text);
    while (n && (text[n - 1] == '\n' || text[n - 1] == ' '))
        text[--n] = 0;
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            *text = ' ';
}

int pc_report(FILE *out)
{
    PC__NEED_OR(1, out);
    if (last.status == PC_OK)
        return 0;
    const char *place = pc_error_place();
    fprintf(out, "paracord: %s%s%s", last.message, last.cause[0] ? ": " : "", last.cause);
    if (place[0])
        fprintf(out, " [%s]", place);
    fprintf(out, "\n");
    return 1;
}

const char *pc_error_place(void)
{
    static _Thread_local char text[PC__SITE_TEXT];
    return pc__site_is_outside(last.site) ? pc__site_text(last.site, text) : "";
}

void pc__error_here(void)
{
    if (last.status != PC_OK && !pc__site_is_outside(last.site))
        last.site = pc__site_here();
}

void pc__error_before(const char *words, size_t instead)
{
    char message[PC_MESSAGE_MAX];
    const int n = snprintf(message, sizeof message, "%s", words);
    if (n >= 0 && n < (int)sizeof message)
        snprintf(message + n, sizeof message - (size_t)n, "%s", last.message + PC__MIN(instead, strlen(last.message)));
    memcpy(last.message, message, sizeof message);
    one_line(last.message);
}

static pc_status record(const char *file, int line, pc_status status, int number, const char *cause, const char *format,
                        va_list arguments)
{
    if (last.status != PC_OK) {
        last.suppressed++;
        return status;
    }
    last.status = status;
    last_number = number;
    last.file = file;
    last.line = line;
    last.site = pc__site_here();
    last.suppressed = 0;
    vsnprintf(last.message, sizeof last.message, format, arguments);
    snprintf(last.cause, sizeof last.cause, "%s", cause ? cause : "");
    one_line(last.message);
    one_line(last.cause);
    return status;
}

pc_status pc__fail_at(const char *file, int line, pc_status status, const char *cause, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    record(file, line, status, 0, cause, format, arguments);
    va_end(arguments);
    return status;
}

pc_status pc__fail_null(const char *file, int line, const char *function, const char *argument)
{
    if (last.status != PC_OK)
        return last.status;
    return pc__fail_at(file, line, PC_ERR_ARGUMENT, NULL, "%s: %s is NULL", function, argument);
}

pc_status pc__fail_errno(const char *file, int line, int number, const char *format, ...)
{
    pc_status status = number == ENOMEM ? PC_ERR_MEMORY : PC_ERR_FILE;
    char words[128];
    const char *cause = strerror_r(number, words, sizeof words);
    va_list arguments;
    va_start(arguments, format);
    record(file, line, status, number, cause, format, arguments);
    va_end(arguments);
    return status;
}

pc_status pc_fail(pc_status status, const char *format, ...)
{
    PC__NEED(format);
    if (status == PC_OK || (unsigned)status >= PC_STATUS_COUNT)
        return pc__fail(PC_ERR_ARGUMENT, "pc_fail: status %d is none of the errors of PC_STATUS_LIST", (int)status);
    va_list arguments;
    va_start(arguments, format);
    record("(the program)", 0, status, 0, NULL, format, arguments);
    va_end(arguments);
    return status;
}

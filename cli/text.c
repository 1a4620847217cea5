/* text.c: what is printed: widths, wrapping, styles, names of files, JSON. */
#include "text.h"

#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#define DEFAULT_WIDTH 80

int cli_width(FILE *out)
{
    const char *columns = getenv("COLUMNS");
    int width = columns ? atoi(columns) : 0;
    struct winsize size;
    if (width <= 0 && ioctl(fileno(out), TIOCGWINSZ, &size) == 0)
        width = size.ws_col;
    return width > 0 ? width : DEFAULT_WIDTH;
}

bool cli_is_terminal(FILE *out)
{
    const char *term = getenv("TERM");
    return term && *term && strcmp(term, "dumb") && isatty(fileno(out));
}

bool cli_utf8(void)
{
    static int known = -1;
    if (known < 0) {
        setlocale(LC_CTYPE, "");
        known = !strcmp(nl_langinfo(CODESET), "UTF-8");
    }
    return known;
}

int cli_columns(const char *text)
{
    if (!cli_utf8())
        return (int)strlen(text);
    int columns = 0;
    mbstate_t state = {0};
    size_t left = strlen(text);
    while (left) {
        wchar_t letter;
        size_t n = mbrtowc(&letter, text, left, &state);
        int width = n <= left ? wcwidth(letter) : 1;
        if (n == 0 || n > left) {
            n = 1;
            memset(&state, 0, sizeof state);
        }
        columns += width < 0 ? 1 : width;
        text += n;
        left -= n;
    }
    return columns;
}

void cli_set_style(FILE *out, cli_style style)
{
    static const char *const codes[] = {[CLI_PLAIN] = "\033[0m", [CLI_BOLD] = "\033[1m", [CLI_DIM] = "\033[2m"};
    const char *refused = getenv("NO_COLOR");
    if (!(refused && *refused) && cli_is_terminal(out))
        fputs(codes[style], out);
}

int cli_pad(FILE *out, int at, int to)
{
    for (; at < to; at++)
        fputc(' ', out);
    return at;
}

int cli_wrap(FILE *out, const char *text, int at, int indent, int width)
{
    bool first = true;
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        size_t bytes = strcspn(text, " ");
        int columns = (int)bytes;
        if (!first && at + 1 + columns > width) {
            fputc('\n', out);
            at = cli_pad(out, 0, indent);
        } else if (!first) {
            fputc(' ', out);
            at++;
        }
        fwrite(text, 1, bytes, out);
        at += columns;
        text += bytes;
        first = false;
    }
    return at;
}

void cli_print_safe(FILE *out, const char *text)
{
    for (; *text; text++)
        fputc((unsigned char)*text < ' ' || *text == 127 ? '?' : *text, out);
}

void cli_print_shell(FILE *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_";
    if (*word && !word[strspn(word, plain)]) {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (; *word; word++)
        fputs(*word == '\'' ? "'\\''" : (char[]){*word, 0}, out);
    fputc('\'', out);
}

char *cli_thousands(int64_t number, char text[32])
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%lld", (long long)number), to = 0;
    for (int i = 0; i < n; i++) {
        if (i > (digits[0] == '-') && (n - i) % 3 == 0)
            text[to++] = ',';
        text[to++] = digits[i];
    }
    text[to] = 0;
    return text;
}

/* Bytes of the UTF-8 letter at `text`, 0 when there is none. */
static int utf8_length(const unsigned char *text)
{
    int n = text[0] < 0x80 ? 1 : text[0] >= 0xC2 && text[0] < 0xE0 ? 2 : (text[0] & 0xF0) == 0xE0 ? 3 : 0;
    if ((text[0] & 0xF8) == 0xF0 && text[0] < 0xF5)
        n = 4;
    for (int i = 1; i < n; i++)
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    bool overlong = (text[0] == 0xE0 && text[1] < 0xA0) || (text[0] == 0xF0 && text[1] < 0x90);
    bool beyond = (text[0] == 0xED && text[1] >= 0xA0) || (text[0] == 0xF4 && text[1] >= 0x90);
    return overlong || beyond ? 0 : n;
}

void cli_json_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        int n = utf8_length(c);
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (*c < ' ' || *c == 127)
            fprintf(out, "\\u%04x", *c);
        else if (n)
            fwrite(c, 1, (size_t)n, out);
        else
            fputs("\\ufffd", out);
        c += n ? n : 1;
    }
    fputc('"', out);
}

void cli_json_number(FILE *out, double number)
{
    if (isfinite(number))
        fprintf(out, "%.9g", number);
    else
        fputs("null", out);
}

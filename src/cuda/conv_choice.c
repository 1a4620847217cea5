/* conv_choice.c: the rule, and rows of measured choices, "1 TEXT = WAY CHECK": 1 is the format's number, CHECK a hash
 * of what stands between. A row is whole or passed over, so a file that was torn, mixed up or written by another
 * version costs a measurement and nothing else. */
#include "cuda/conv_choice.h"

#include "cuda/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <paracord/tensor.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORMAT "1 "

enum { ROW = PC__CONV_TEXT + 32, LARGEST = 1 << 20 /* bytes of the file */ };

/* In 16 bits and TF32 cuDNN multiplies two to ten times as fast as our kernels do, unless a layer is so narrow or small
 * that what goes around its product shows. */
static bool units_rule(const pc__conv_shape *s, double work)
{
    const bool large = s->kh * s->kw > 9, first = s->c < 8 && s->kh * s->kw >= 49 && s->dtype == PC_F32;
    const bool eights = s->c % 8 == 0 && s->o % 8 == 0 && s->c >= (large ? 32 : 64) && s->o >= 64;
    return (eights && work >= 2e8) || (first && work >= 1e9);
}

/* In float32 our kernels are the faster ones as long as there are places enough for all of their blocks. */
static bool float_rule(const pc__conv_shape *s, double work)
{
    const double places = (double)s->n * s->oh * s->ow;
    const int narrower = s->c < s->o ? s->c : s->o;
    return s->direction == PC__CONV_WEIGHTS ? narrower >= 128 && places <= 7000 && work >= 2e8
                                            : narrower >= 256 && places <= 2000 && work >= 2e8;
}

/* From the tables of docs/kernels.md. */
bool pc__conv_rule(const pc__conv_shape *s)
{
    const double work = (double)s->n * s->oh * s->ow * s->o * s->c * s->kh * s->kw;
    if (s->dtype == PC_F16 || s->dtype == PC_BF16 || (s->dtype == PC_F32 && s->tf32))
        return units_rule(s, work);
    return s->dtype == PC_F32 && float_rule(s, work);
}

void pc__conv_text(char text[PC__CONV_TEXT], const char *gpu, int multiprocessors, size_t cudnn,
                   const pc__conv_shape *s)
{
    static const char *const directions[PC__CONV_DIRECTIONS] = {"forward", "input", "weights"};
    const char *const dtype = s->dtype == PC_F16 ? "float16" : s->dtype == PC_BF16 ? "bfloat16" : "float32";
    snprintf(
        text, PC__CONV_TEXT, "%.80s/%d cudnn %zu %s %s%s x %lld %d %d %d w %d %d %d stride %d %d padding %d %d%s%s",
        gpu, multiprocessors, cudnn, directions[s->direction], dtype, s->tf32 ? "/tf32" : "", (long long)s->n, s->c,
        s->h, s->w, s->o, s->kh, s->kw, s->sh, s->sw, s->ph, s->pw, s->bias ? " bias" : "", s->relu ? " relu" : "");
    for (char *c = text; *c; c++)
        *c = (unsigned char)*c < ' ' || *c == '=' ? '?' : *c; /* of the name: a row is one line */
}

bool pc__conv_file(char path[PATH_MAX])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = 0;
    if (cache && *cache == '/') /* the specification: relative ones are to be ignored */
        n = snprintf(path, PATH_MAX, "%s/paracord/convolutions", cache);
    else if (home && *home == '/')
        n = snprintf(path, PATH_MAX, "%s/.cache/paracord/convolutions", home);
    return n > 0 && n < PATH_MAX;
}

/* Returns its length. */
static size_t make_row(char row[ROW], const char *text, int way)
{
    const int start = snprintf(row, ROW, FORMAT);
    const int n = snprintf(row + start, ROW - (size_t)start, "%.*s = %d", PC__CONV_TEXT - 1, text, way);
    const unsigned check = pc__cuda_hash(row + start, (size_t)n);
    return (size_t)(start + n + snprintf(row + start + n, ROW - (size_t)(start + n), " %08x\n", check));
}

/* The way that a line has for `text`, or -1: a row is right when it is what would be written. */
static int way_of(const char *line, const char *text)
{
    const size_t start = strlen(FORMAT), n = strlen(text);
    char row[ROW];
    if (strncmp(line, FORMAT, start) != 0 || strncmp(line + start, text, n) != 0 ||
        strncmp(line + start + n, " = ", 3) != 0)
        return -1;
    const int way = line[start + n + 3] - '0'; /* one digit: PC__CONV_WAYS has one */
    if (way < 0 || way > PC__CONV_WAYS)
        return -1;
    (void)make_row(row, text, way);
    return strcmp(line, row) == 0 ? way : -1;
}

/* Not a pipe, on which others might wait forever. */
static int open_regular(const char *path, int flags, struct stat *info)
{
    const int fd = open(path, flags | O_NONBLOCK | O_CLOEXEC, 0644);
    if (fd < 0 || (fstat(fd, info) == 0 && S_ISREG(info->st_mode)))
        return fd;
    close(fd);
    return -1;
}

int pc__conv_recall(const char *path, const char *text)
{
    const int before = errno;
    struct stat info;
    const int fd = open_regular(path, O_RDONLY, &info);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (fd >= 0 && !file)
        close(fd);
    char line[ROW];
    int way = -1;
    for (size_t read = 0; file && way < 0 && read < LARGEST && fgets(line, sizeof line, file); read += strlen(line) + 1)
        way = way_of(line, text);
    if (file)
        fclose(file);
    errno = before;
    return way;
}

/* The folders above, as far as they are missing. */
static void make_folders(const char *path)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *p = strchr(folder + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = 0;
        (void)mkdir(folder, 0700);
        *p = '/';
    }
}

void pc__conv_note(const char *path, const char *text, int way)
{
    const int before = errno;
    char row[1 + ROW] = "\n", last = '\n';
    const size_t n = make_row(row + 1, text, way);
    struct stat info;
    make_folders(path);
    const int fd = open_regular(path, O_RDWR | O_APPEND | O_CREAT, &info);
    if (fd >= 0 && info.st_size < LARGEST) {
        if (info.st_size > 0) /* on a line of its own, also behind a row that was cut off */
            (void)!pread(fd, &last, 1, info.st_size - 1);
        const size_t from = last == '\n';
        (void)!write(fd, row + from, 1 + n - from);
    }
    if (fd >= 0)
        close(fd);
    errno = before;
}

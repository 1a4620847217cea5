/* choices.c: what measuring chose, kept as rows, "7 TEXT = NUMBER CHECK": 7 is the format's number, CHECK a hash of what
 * stands between. A row is whole or passed over, so a file that was torn, mixed up or written by another version costs
 * a measurement and nothing else. */
#include "cuda/runtime/choices.h"

#include "cuda/runtime/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORMAT "7 "

enum { ROW = PC__CHOICE_TEXT + 32, LARGEST = 1 << 20 /* bytes of the file */ };

void pc__choices_clean(char *text)
{
    for (char *c = text; *c; c++)
        *c = (unsigned char)*c < ' ' || *c == '=' ? '?' : *c; /* a row is one line */
}

bool pc__choices_file(char path[PATH_MAX])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = 0;
    if (cache && *cache == '/') /* the specification: relative ones are to be ignored */
        n = snprintf(path, PATH_MAX, "%s/paracord/choices", cache);
    else if (home && *home == '/')
        n = snprintf(path, PATH_MAX, "%s/.cache/paracord/choices", home);
    return n > 0 && n < PATH_MAX;
}

/* Returns its length. */
static size_t make_row(char row[ROW], const char *text, int number)
{
    const int start = snprintf(row, ROW, FORMAT);
    const int n = snprintf(row + start, ROW - (size_t)start, "%.*s = %d", PC__CHOICE_TEXT - 1, text, number);
    const unsigned check = pc__cuda_hash(row + start, (size_t)n);
    return (size_t)(start + n + snprintf(row + start + n, ROW - (size_t)(start + n), " %08x\n", check));
}

/* The number that a line has for `text`, or -1: a row is right when it is what would be written. */
static int number_of(const char *line, const char *text)
{
    const size_t start = strlen(FORMAT), n = strlen(text);
    char row[ROW];
    if (strncmp(line, FORMAT, start) != 0 || strncmp(line + start, text, n) != 0 ||
        strncmp(line + start + n, " = ", 3) != 0)
        return -1;
    const long number = strtol(line + start + n + 3, NULL, 10);
    if (number < 0 || number > PC__CHOICE_MOST)
        return -1;
    (void)make_row(row, text, (int)number);
    return strcmp(line, row) == 0 ? (int)number : -1; /* as it would be written, to the byte */
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

int pc__choices_recall(const char *path, const char *text)
{
    const int before = errno;
    struct stat info;
    const int fd = open_regular(path, O_RDONLY, &info);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (fd >= 0 && !file)
        close(fd);
    char line[ROW];
    int number = -1;
    for (size_t read = 0; file && number < 0 && read < LARGEST && fgets(line, sizeof line, file);
         read += strlen(line) + 1)
        number = number_of(line, text);
    if (file)
        fclose(file);
    errno = before;
    return number;
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

void pc__choices_note(const char *path, const char *text, int number)
{
    const int before = errno;
    char row[1 + ROW] = "\n", last = '\n';
    const size_t n = make_row(row + 1, text, number);
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

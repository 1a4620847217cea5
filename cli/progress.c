/* progress.c: the progress line. */
#include "progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "text.h"

#define INTERVAL 100000000 /* ns: ten times a second */
#define BAR_MOST 32
#define BAR_LEAST 8

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

char *cli_duration(double seconds, char text[32])
{
    int64_t s = (int64_t)(seconds + 0.5);
    if (s >= 3600)
        snprintf(text, 32, "%lld:%02d:%02d", (long long)(s / 3600), (int)(s / 60 % 60), (int)(s % 60));
    else
        snprintf(text, 32, "%d:%02d", (int)(s / 60), (int)(s % 60));
    return text;
}

/* `columns` columns filled to `share`, in steps of an eighth of a column where the letters allow it. */
static void draw_bar(char *bar, size_t n, double share, int columns, bool utf8)
{
    static const char *const eighths[] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
    int steps = utf8 ? 8 : 1;
    int filled = (int)(share * columns * steps);
    size_t at = (size_t)snprintf(bar, n, "%s", utf8 ? "▕" : "[");
    for (int i = 0; i < columns && at < n; i++) {
        int part = filled - i * steps;
        part = part < 0 ? 0 : part > steps ? steps : part;
        const char *head = filled == i && i > 0 ? ">" : " ";
        at += (size_t)snprintf(bar + at, n - at, "%s", utf8 ? eighths[part] : part ? "=" : head);
    }
    if (at < n)
        snprintf(bar + at, n - at, "%s", utf8 ? "▏" : "]");
}

/* The parts around the bar, in the order they are shown; "" for what is not known. */
enum { EPOCH, COUNT, SPEED, LOSS, ACCURACY, LEFT, PARTS };

static void write_parts(const pc_progress *at, char parts[PARTS][64])
{
    char text[32];
    memset(parts, 0, PARTS * sizeof parts[0]);
    if (at->epochs > 0)
        snprintf(parts[EPOCH], 64, "epoch %*d/%d", snprintf(NULL, 0, "%d", at->epochs), at->epoch, at->epochs);
    int digits = snprintf(NULL, 0, "%lld", (long long)at->total);
    snprintf(parts[COUNT], 64, "%*lld/%lld", digits, (long long)at->done, (long long)at->total);
    if (at->images_per_second > 0 && at->images_per_second < 1e12)
        snprintf(parts[SPEED], 64, "%s images/s", cli_thousands((int64_t)(at->images_per_second + 0.5), text));
    if (isfinite(at->loss))
        snprintf(parts[LOSS], 64, "loss %.4f", at->loss);
    if (isfinite(at->accuracy))
        snprintf(parts[ACCURACY], 64, "acc %.3f", at->accuracy);
    if (at->seconds_left >= 0 && at->seconds_left < 1e8)
        snprintf(parts[LEFT], 64, "%s left", cli_duration(at->seconds_left, text));
}

/* Leave parts out until the rest leaves `least` columns for the bar; returns the columns left for it. */
static int fit(char parts[PARTS][64], int width, int least)
{
    static const int unimportant[PARTS] = {COUNT, SPEED, LOSS, LEFT, ACCURACY, EPOCH};
    int used = 3; /* the bar's ends and the last column, which some terminals wrap at */
    for (int i = 0; i < PARTS; i++)
        used += parts[i][0] ? (int)strlen(parts[i]) + 2 : 0;
    for (int i = 0; i < PARTS && width - used < least; i++) {
        char *part = parts[unimportant[i]];
        used -= part[0] ? (int)strlen(part) + 2 : 0;
        part[0] = 0;
    }
    return width - used;
}

char *cli_progress_line(const pc_progress *at, int width, bool utf8, char line[CLI_PROGRESS_MAX])
{
    char parts[PARTS][64], bar[BAR_MOST * 3 + 8] = "";
    double share = at->total > 0 ? (double)at->done / (double)at->total : 0;
    write_parts(at, parts);
    int room = fit(parts, width, BAR_LEAST);
    if (room >= BAR_LEAST)
        draw_bar(bar, sizeof bar, share < 0 ? 0 : share > 1 ? 1 : share, room < BAR_MOST ? room : BAR_MOST, utf8);
    size_t n = (size_t)snprintf(line, CLI_PROGRESS_MAX, "%s%s%s", parts[EPOCH], parts[EPOCH][0] ? "  " : "", bar);
    for (int i = COUNT; i < PARTS; i++)
        if (parts[i][0])
            n += (size_t)snprintf(line + n, CLI_PROGRESS_MAX - n, "%s%s", n ? "  " : "", parts[i]);
    return line;
}

void cli_progress_start(cli_progress *progress)
{
    *progress = (cli_progress){.live = cli_is_terminal(stderr)};
}

void cli_progress_show(cli_progress *progress, const pc_progress *at)
{
    char line[CLI_PROGRESS_MAX];
    int64_t time = now();
    if (!progress->live || time - progress->last < INTERVAL)
        return;
    fprintf(stderr, "\r%s\033[K", cli_progress_line(at, cli_width(stderr), cli_utf8(), line));
    fflush(stderr);
    progress->drawn = true;
    progress->last = time;
}

void cli_progress_clear(cli_progress *progress)
{
    if (progress->drawn)
        fputs("\r\033[K", stderr);
    progress->drawn = false;
}

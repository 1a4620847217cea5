/* picture.c: from counts to colours. */
#include "picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "whole.h"

/* Colours from the edge of the picture (few steps) to the rim of the set. */
enum { STOPS = 6 };
static const struct {
    const char *name;
    uint8_t stops[STOPS][3];
} palettes[] = {
    {"fire", {{0, 0, 0}, {66, 10, 104}, {147, 38, 103}, {221, 81, 58}, {252, 165, 10}, {252, 255, 164}}},
    {"ocean", {{2, 6, 30}, {8, 40, 96}, {14, 104, 160}, {64, 176, 196}, {180, 232, 216}, {255, 255, 250}}},
    {"forest", {{4, 14, 10}, {12, 56, 38}, {44, 112, 52}, {132, 168, 60}, {226, 210, 110}, {255, 250, 226}}},
    {"rainbow", {{48, 18, 59}, {62, 110, 240}, {30, 200, 190}, {140, 240, 70}, {250, 180, 40}, {200, 30, 10}}},
    {"grey", {{0, 0, 0}, {51, 51, 51}, {102, 102, 102}, {153, 153, 153}, {204, 204, 204}, {255, 255, 255}}},
};
enum { PALETTES = sizeof palettes / sizeof *palettes };

const cli_choice cli_palettes[PALETTES + 1] = {{"fire", NULL},    {"ocean", NULL}, {"forest", NULL},
                                               {"rainbow", NULL}, {"grey", NULL},  {0}};

/* The colour at 0..1 of a palette. */
static void colour_at(int palette, double at, uint8_t colour[3])
{
    const double scaled = at * (STOPS - 1);
    const int stop = scaled < STOPS - 1 ? (int)scaled : STOPS - 2;
    const double part = scaled - stop;
    const uint8_t *from = palettes[palette].stops[stop], *to = palettes[palette].stops[stop + 1];
    for (int k = 0; k < 3; k++)
        colour[k] = (uint8_t)lround(from[k] + part * (to[k] - from[k]));
}

/* Where a count lies between the least that occurs and the most, 0 to 1: many points leave early and few late, so the
 * steps between late counts are small. */
static double place(double count, double least, double most)
{
    return most > least ? log1p(count - least) / log1p(most - least) : 0;
}

/* The counts that a few points have at most would leave no colours to all the others. */
static float nearly_most(const float *counts, int64_t n, int most)
{
    enum { BINS = 4096 };
    int64_t bins[BINS] = {0}, outside = 0, left;
    for (int64_t i = 0; i < n; i++)
        if (counts[i] < (float)most) {
            bins[(int)((double)counts[i] / most * BINS)]++;
            outside++;
        }
    left = outside / 1000;
    int bin = BINS - 1;
    for (; bin > 0 && left >= bins[bin]; bin--)
        left -= bins[bin];
    return (float)(bin + 1) * (float)most / BINS;
}

bool cli_picture_may_write(const cli_command *command, const char *path)
{
    static const char *const ends[] = {".png", ".jpg", ".jpeg"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof ends / sizeof *ends; i++)
        if (!strcasecmp(dot, ends[i]))
            return cli_may_write(command, path);
    cli_error(command, "cannot write %s: pictures end in .jpg, .jpeg or .png", path);
    return false;
}

bool cli_picture_make(const float *counts, int height, int width, int most, const char *palette, pc_image *picture)
{
    int chosen = 0;
    while (strcmp(palettes[chosen].name, palette) != 0)
        chosen++;
    if (pc_image_new(width, height, 3, picture) != PC_OK)
        return false;
    const int64_t n = (int64_t)height * width;
    float least = (float)most;
    for (int64_t i = 0; i < n; i++)
        least = fminf(least, counts[i]);
    const float last = nearly_most(counts, n, most);
    for (int64_t i = 0; i < n; i++)
        if (counts[i] < (float)most)
            colour_at(chosen, fmin(1, place((double)counts[i], (double)least, (double)last)), picture->pixels + 3 * i);
    return true;
}

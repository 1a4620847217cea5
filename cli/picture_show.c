/* picture_show.c: a picture in a terminal. */
#include "picture_show.h"

#include <stdlib.h>
#include <string.h>

#include "text.h"

/* The nearest of xterm's cube of 6 x 6 x 6 colours. */
static int cube(const uint8_t *p)
{
    return 16 + 36 * ((p[0] * 5 + 127) / 255) + 6 * ((p[1] * 5 + 127) / 255) + (p[2] * 5 + 127) / 255;
}

static void set_colour(FILE *out, const uint8_t *p, bool behind, bool all_colours)
{
    if (all_colours)
        fprintf(out, "\033[%d;2;%d;%d;%dm", behind ? 48 : 38, p[0], p[1], p[2]);
    else
        fprintf(out, "\033[%d;5;%dm", behind ? 48 : 38, cube(p));
}

/* The upper half of a letter's place in the letter's colour, the lower half in the one behind it. */
static void show_halves(FILE *out, const pc_image *p, bool all_colours)
{
    for (int y = 0; y + 1 < p->height; y += 2) {
        const uint8_t *upper = p->pixels + (size_t)y * (size_t)p->width * 3, *lower = upper + (size_t)p->width * 3;
        for (int x = 0; x < p->width; x++, upper += 3, lower += 3) {
            if (x == 0 || memcmp(upper, upper - 3, 3) != 0)
                set_colour(out, upper, false, all_colours);
            if (x == 0 || memcmp(lower, lower - 3, 3) != 0)
                set_colour(out, lower, true, all_colours);
            fputs("\342\226\200", out); /* the upper half block, in UTF-8 */
        }
        fputs("\033[0m\n", out);
    }
}

/* Where there are no colours: the brighter, the fuller. */
static void show_letters(FILE *out, const pc_image *p)
{
    static const char letters[] = " .:-=+*#%@";
    for (int y = 0; y + 1 < p->height; y += 2) {
        int last = p->width - 1;
        char line[1024];
        for (int x = 0; x < p->width && x < (int)sizeof line; x++) {
            const uint8_t *a = p->pixels + ((size_t)y * (size_t)p->width + (size_t)x) * 3,
                          *b = a + (size_t)p->width * 3;
            const int bright = (a[0] + b[0]) * 3 + (a[1] + b[1]) * 6 + (a[2] + b[2]);
            line[x] = letters[bright * 9 / (2 * 10 * 255)];
        }
        while (last >= 0 && line[last] == ' ')
            last--;
        fprintf(out, "%.*s\n", last + 1, line);
    }
}

bool cli_picture_show(FILE *out, const pc_image *picture, int columns)
{
    pc_image small;
    const char *term = getenv("COLORTERM");
    const bool colours = cli_is_terminal(out) && cli_utf8() && !getenv("NO_COLOR");
    const bool all = term && (strstr(term, "truecolor") || strstr(term, "24bit"));
    columns = columns < 1 ? 1 : columns > 1000 ? 1000 : columns;
    int rows = (int)((int64_t)picture->height * columns / picture->width) / 2 * 2; /* of pixels: two to a letter */
    rows = rows < 2 ? 2 : rows > 2000 ? 2000 : rows;
    if (colours && cli_picture_chafa(out, picture, columns, rows / 2, all))
        return true;
    if (pc_image_resize(picture, columns, rows, PC_RESIZE_AREA, &small) != PC_OK)
        return false;
    if (colours)
        show_halves(out, &small, all);
    else
        show_letters(out, &small);
    pc_image_free(&small);
    return true;
}

/* notes.c: the words for who makes the gradients of a convolution: of each pair of rows there may be. */
#include "cuda/conv/rows.h"

#include <stdio.h>

enum { ROWS = 16 }; /* more than any table has, and one for a gradient that is not made */

static char notes[ROWS][ROWS][80];

/* Rows by their number, from 1. */
static int number_of(const pc__row *row, int direction)
{
    return row ? (int)(row - pc__conv_rows[direction].row) + 1 : 0;
}

static const char *words_of(int number, int direction)
{
    return number ? pc__conv_rows[direction].row[number - 1].note : NULL;
}

static void make_notes(void)
{
    for (int i = 0; i <= pc__conv_rows[PC__CONV_INPUT].count; i++)
        for (int w = 0; w <= pc__conv_rows[PC__CONV_WEIGHTS].count; w++) {
            const char *input = words_of(i, PC__CONV_INPUT), *weights = words_of(w, PC__CONV_WEIGHTS);
            char *to = notes[i][w];
            if (input && weights && strcmp(input, weights) == 0)
                snprintf(to, sizeof notes[i][w], "both gradients %s", input);
            else if (input && weights)
                snprintf(to, sizeof notes[i][w], "the input's gradient %s, the weights' %s", input, weights);
            else if (input || weights)
                snprintf(to, sizeof notes[i][w], "the %s gradient %s", input ? "input's" : "weights'",
                         input ? input : weights);
        }
}

const char *pc__conv_backward_note(const pc__row *const *by)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_notes);
    const int i = number_of(by[PC__CONV_INPUT], PC__CONV_INPUT), w = number_of(by[PC__CONV_WEIGHTS], PC__CONV_WEIGHTS);
    return i || w ? notes[i][w] : NULL;
}

/* run_normal.c: mean and std of a run's pictures, from words. */
#include "train/metrics_line.h"
#include "train/run.h"

#include <math.h>
#include <stdlib.h>

enum { NUMBERS = 2 * PC_PREPARATION_CHANNELS };

/* How many numbers there are between commas; -1: it is something else. */
static int read_numbers(const char *words, double numbers[NUMBERS])
{
    int count = 0;
    for (const char *at = words; count < NUMBERS; at++) {
        char *end;
        numbers[count] = strtod(at, &end);
        if (end == at || !isfinite(numbers[count]))
            return -1;
        count++;
        at = end;
        if (!*at)
            return count;
        if (*at != ',')
            return -1;
    }
    return -1;
}

/* Of each channel the means, then the stds. */
static bool take(const double *numbers, int count, int channels, pc__run *run)
{
    if (count != 2 && (channels == 1 || count != NUMBERS))
        return false;
    for (int c = 0; c < PC_PREPARATION_CHANNELS; c++) {
        run->mean[c] = numbers[count == 2 ? 0 : c];
        run->std[c] = numbers[count == 2 ? 1 : PC_PREPARATION_CHANNELS + c];
        if (!(run->std[c] > 0))
            return false;
    }
    return true;
}

pc_status pc__run_normal(pc__run *run)
{
    /* torchvision's, of pixels in [0, 1] */
    static const double imagenet[NUMBERS] = {0.485, 0.456, 0.406, 0.229, 0.224, 0.225}, none[2] = {0, 1};
    const char *words = run->s.normalise;
    double numbers[NUMBERS];
    if (strcmp(words, "none") == 0) {
        (void)take(none, 2, run->s.channels, run);
        return PC_OK;
    }
    if (strcmp(words, "imagenet") == 0) {
        if (take(imagenet, NUMBERS, run->s.channels, run))
            return PC_OK;
        return pc__fail(PC_ERR_ARGUMENT,
                        "normalise \"imagenet\" is for colour, and pictures are grey: give a mean and a std");
    }
    pc__plain_numbers plain = pc__plain_numbers_begin();
    const int count = read_numbers(words, numbers);
    pc__plain_numbers_end(plain);
    if (take(numbers, count, run->s.channels, run))
        return PC_OK;
    return pc__fail(PC_ERR_ARGUMENT,
                    "normalise \"%.80s\": use \"none\", \"imagenet\", a mean and a std above 0 (\"0.5,0.25\") or, of "
                    "pictures in colour, three means and three stds (\"0.5,0.5,0.5,0.2,0.2,0.2\")",
                    words);
}

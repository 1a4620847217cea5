/* nearest.c: guesses at mistyped names. */
#include "nearest.h"

#include <string.h>

#define LONGEST 48

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

int cli_edit_distance(const char *a, const char *b)
{
    int rows = (int)strnlen(a, LONGEST), columns = (int)strnlen(b, LONGEST);
    int cost[LONGEST + 1][LONGEST + 1];
    for (int i = 0; i <= rows; i++)
        for (int j = 0; j <= columns; j++) {
            if (!i || !j) {
                cost[i][j] = i + j;
                continue;
            }
            int replaced = cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            cost[i][j] = smaller(replaced, 1 + smaller(cost[i - 1][j], cost[i][j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                cost[i][j] = smaller(cost[i][j], cost[i - 2][j - 2] + 1);
        }
    return cost[rows][columns];
}

/* 0 is as good as typed; beginning a name is nearly so. Negative: too far off to be meant. */
static int badness(const char *typed, const char *name)
{
    size_t n = strlen(typed);
    if (n >= 2 && !strncmp(typed, name, n))
        return 1;
    if (n <= 3 && *typed != *name)
        return -1; /* of so short a word the rest says nothing: csh is not zsh */
    int distance = cli_edit_distance(typed, name);
    return distance <= ((int)n + 1) / 3 && distance < (int)n ? distance : -1;
}

const char *cli_nearer(const char *typed, const char *best, const char *name)
{
    int old = best ? badness(typed, best) : -1, new = badness(typed, name);
    return new >= 0 && (old < 0 || new < old) ? name : best;
}

/* activate.c: what follows a product or a convolution. */
#include "cpu/level/real.h"

void activate(pc__activation activation, real *values, int64_t n)
{
    switch (activation) {
    case PC__ACT_RELU:
        for (int64_t i = 0; i < n; i++)
            values[i] = values[i] < 0 ? 0 : values[i];
        break;
    case PC__ACT_SIGMOID:
        for (int64_t i = 0; i < n; i++)
            values[i] = 1 / (1 + EXP(-values[i]));
        break;
    case PC__ACT_TANH:
        for (int64_t i = 0; i < n; i++)
            values[i] = TANH(values[i]);
        break;
    case PC__ACT_NONE:
        break;
    }
}

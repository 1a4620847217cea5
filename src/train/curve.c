/* curve.c: the training loss by step. */
#include "train/curve.h"

static void halve(pc__curve *c)
{
    for (int64_t i = 0; i < PC__CURVE_GROUPS / 2; i++) {
        const pc__curve_group *a = &c->groups[2 * i], *b = a + 1;
        c->groups[i] = (pc__curve_group){a->loss + b->loss, a->seen + b->seen};
    }
    memset(&c->groups[PC__CURVE_GROUPS / 2], 0, PC__CURVE_GROUPS / 2 * sizeof *c->groups);
    c->count = (c->count + 1) / 2;
    c->width *= 2;
}

void pc__curve_add(pc__curve *c, int64_t step, double loss, int64_t seen)
{
    c->width = PC__MAX(c->width, 1);
    while (step / c->width >= PC__CURVE_GROUPS)
        halve(c);
    int64_t group = step / c->width;
    c->groups[group].loss += loss;
    c->groups[group].seen += seen;
    c->count = PC__MAX(c->count, group + 1);
}

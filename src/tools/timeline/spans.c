/* spans.c: sets of time spans. */
#include "timeline/timeline.h"

#include <math.h>
#include <stdlib.h>

#define TOUCHING 2e-3 /* us: files have three digits, so spans this close touch */

void pc__spans_add(pc__spans *spans, double begin, double end)
{
    if (spans->failed || !(end > begin))
        return;
    if (pc__grow((void **)&spans->items, &spans->room, spans->count, sizeof *spans->items) != PC_OK)
        spans->failed = true;
    else
        spans->items[spans->count++] = (pc__span){begin, end};
}

static int by_begin(const void *a, const void *b)
{
    double x = ((const pc__span *)a)->begin, y = ((const pc__span *)b)->begin;
    return (x > y) - (x < y);
}

void pc__spans_unite(pc__spans *spans)
{
    int kept = 0;
    if (spans->count)
        qsort(spans->items, (size_t)spans->count, sizeof *spans->items, by_begin);
    for (int i = 1; i < spans->count; i++) {
        pc__span *last = &spans->items[kept], next = spans->items[i];
        if (next.begin <= last->end + TOUCHING)
            last->end = PC__MAX(last->end, next.end);
        else
            spans->items[++kept] = next;
    }
    spans->count = spans->count ? kept + 1 : 0;
}

double pc__spans_total(const pc__spans *spans)
{
    double total = 0;
    for (int i = 0; i < spans->count; i++)
        total += spans->items[i].end - spans->items[i].begin;
    return total;
}

void pc__spans_free(pc__spans *spans)
{
    pc__free(spans->items);
    *spans = (pc__spans){0};
}

void pc__spans_both(pc__spans *out, const pc__spans *a, const pc__spans *b)
{
    out->count = 0;
    out->failed |= a->failed || b->failed;
    for (int i = 0, j = 0; i < a->count && j < b->count;) {
        const pc__span *x = &a->items[i], *y = &b->items[j];
        pc__spans_add(out, PC__MAX(x->begin, y->begin), PC__MIN(x->end, y->end));
        if (x->end < y->end)
            i++;
        else
            j++;
    }
}

void pc__spans_without(pc__spans *out, const pc__spans *a, const pc__spans *b)
{
    out->count = 0;
    out->failed |= a->failed || b->failed;
    for (int i = 0, j = 0; i < a->count; i++) {
        double from = a->items[i].begin, end = a->items[i].end;
        while (j < b->count && b->items[j].end <= from)
            j++;
        for (int k = j; k < b->count && b->items[k].begin < end; k++) {
            pc__spans_add(out, from, b->items[k].begin);
            from = PC__MAX(from, b->items[k].end);
        }
        pc__spans_add(out, from, end);
    }
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double pc__median(double *numbers, int n)
{
    if (!n)
        return NAN;
    qsort(numbers, (size_t)n, sizeof *numbers, by_size);
    return n % 2 ? numbers[n / 2] : (numbers[n / 2 - 1] + numbers[n / 2]) / 2;
}

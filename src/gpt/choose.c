/* choose.c: a token drawn from logits, on the host: the same on every device. */
#include "gpt/choose.h"

#include "base/base.h"

#include <math.h>
#include <stdlib.h>

static int likelier(const void *a, const void *b)
{
    const pc__gpt_likely *p = a, *q = b;
    return p->logit != q->logit ? (p->logit < q->logit) - (p->logit > q->logit)
                                : (p->token > q->token) - (p->token < q->token);
}

/* -1: all are NaN. */
static int32_t likeliest(const float *logits, int64_t n)
{
    int64_t best = -1;
    for (int64_t i = 0; i < n; i++)
        if (!isnan(logits[i]) && (best < 0 || logits[i] > logits[best]))
            best = i;
    return (int32_t)best;
}

static void swap(pc__gpt_likely *a, pc__gpt_likely *b)
{
    const pc__gpt_likely c = *a;
    *a = *b;
    *b = c;
}

/* Bring the k likeliest to the front, in any order: quickselect around the middle of three. */
static void select_likeliest(pc__gpt_likely *list, int64_t n, int64_t k)
{
    int64_t low = 0, high = n - 1;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (likelier(&list[middle], &list[low]) < 0)
            swap(&list[middle], &list[low]);
        if (likelier(&list[high], &list[low]) < 0)
            swap(&list[high], &list[low]);
        if (likelier(&list[high], &list[middle]) < 0)
            swap(&list[high], &list[middle]);
        const pc__gpt_likely pivot = list[middle];
        int64_t i = low, j = high;
        while (i <= j) {
            while (likelier(&list[i], &pivot) < 0)
                i++;
            while (likelier(&list[j], &pivot) > 0)
                j--;
            if (i <= j)
                swap(&list[i++], &list[j--]);
        }
        if (k - 1 <= j)
            high = j;
        else if (k - 1 >= i)
            low = i;
        else
            return;
    }
}

static double weight(const pc__gpt_likely *of, float most, double temperature)
{
    return exp(((double)of->logit - most) / temperature);
}

/* How many of the first n, which are sorted, have top_p of their sum. */
static int64_t within(const pc__gpt_likely *list, int64_t n, double sum, double top_p, double temperature)
{
    double so_far = 0;
    for (int64_t i = 0; i < n; i++) {
        so_far += weight(&list[i], list[0].logit, temperature);
        if (so_far >= top_p * sum)
            return i + 1;
    }
    return n;
}

static double sum_of(const pc__gpt_likely *list, int64_t n, float most, double temperature)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += weight(&list[i], most, temperature);
    return sum;
}

int32_t pc__gpt_choose(const float *logits, int64_t n, const pc_gpt_write_options *options, double uniform,
                       pc__gpt_likely *room)
{
    const double temperature = options->temperature == 0 ? 1 : options->temperature;
    int64_t count = 0;
    if (temperature < 0)
        return likeliest(logits, n);
    for (int64_t i = 0; i < n; i++)
        if (!isnan(logits[i]) && logits[i] > -INFINITY)
            room[count++] = (pc__gpt_likely){logits[i], (int32_t)i};
    const int32_t first = likeliest(logits, n);
    if (!count || logits[first] == INFINITY)
        return first;
    const float most = logits[first];
    if (options->top_k > 0 && options->top_k < count) {
        select_likeliest(room, count, options->top_k);
        count = options->top_k;
    }
    const bool cut = options->top_p > 0 && options->top_p < 1;
    if (cut)
        qsort(room, (size_t)count, sizeof *room, likelier);
    double sum = sum_of(room, count, most, temperature);
    if (cut) {
        count = within(room, count, sum, options->top_p, temperature);
        sum = sum_of(room, count, most, temperature);
    }
    double left = uniform * sum;
    for (int64_t i = 0; i < count; i++) {
        left -= weight(&room[i], most, temperature);
        if (left < 0)
            return room[i].token;
    }
    return room[count - 1].token;
}

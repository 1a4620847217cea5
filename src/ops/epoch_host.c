/* epoch_host.c: an epoch's order and table on the host. */
#include "ops/epoch.h"

typedef struct pair {
    uint64_t key;
    int64_t sample;
} pair;

static bool before(pair a, pair b)
{
    return a.key < b.key || (a.key == b.key && a.sample < b.sample);
}

static void insert_each(uint64_t *keys, int64_t *order, int64_t n)
{
    for (int64_t i = 1, k; i < n; i++) {
        const pair p = {keys[i], order[i]};
        for (k = i; k > 0 && before(p, (pair){keys[k - 1], order[k - 1]}); k--)
            keys[k] = keys[k - 1], order[k] = order[k - 1];
        keys[k] = p.key, order[k] = p.sample;
    }
}

static void exchange(uint64_t *keys, int64_t *order, int64_t a, int64_t b)
{
    const pair p = {keys[a], order[a]};
    keys[a] = keys[b], order[a] = order[b];
    keys[b] = p.key, order[b] = p.sample;
}

/* Quicksort (Hoare's): keys are random, so any pivot is a good one. The longer part is left to the loop, so that it
 * nests no deeper than the bits of n. */
static void sort(uint64_t *keys, int64_t *order, int64_t n)
{
    enum { FEW = 16 };
    while (n > FEW) {
        const pair pivot = {keys[n / 2], order[n / 2]};
        int64_t low = 0, high = n - 1;
        while (low <= high) {
            while (before((pair){keys[low], order[low]}, pivot))
                low++;
            while (before(pivot, (pair){keys[high], order[high]}))
                high--;
            if (low <= high)
                exchange(keys, order, low++, high--);
        }
        const int64_t left = high + 1, right = n - low;
        if (left < right) {
            sort(keys, order, left);
            keys += low, order += low, n = right;
        } else {
            sort(keys + low, order + low, right);
            n = left;
        }
    }
    insert_each(keys, order, n);
}

void pc__epoch_order(uint64_t seed, uint64_t epoch, int64_t n, int64_t *order, uint64_t *keys)
{
    for (int64_t i = 0; i < n; i++) {
        order[i] = i;
        keys[i] = pc__shuffle_key(seed, epoch, i);
    }
    sort(keys, order, n);
}

pc__augment_drawn pc__epoch_draw(const pc__augment_plan *plan, uint64_t sample)
{
    return pc__augment_draw(plan, sample);
}

void pc__epoch_table(const pc__augment_plan *plan, const int64_t *order, int64_t n, pc__augment_row *table)
{
    for (int64_t i = 0; i < n; i++) {
        const pc__augment_drawn drawn = pc__epoch_draw(plan, (uint64_t)order[i]);
        table[i] = pc__augment_compose(&drawn, plan->height, plan->width);
    }
}

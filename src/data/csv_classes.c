/* csv_classes.c: names in a column as labels. */
#include "data/csv_table.h"

#include <math.h>
#include <stdlib.h>

enum { CLASSES_MAX = 1 << 20 };

/* The place of the name in the sorted list, or where it would be. */
static int find(const pc__csv_table *t, const char *name, bool *found)
{
    int low = 0, high = t->class_count;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        const int order = strcmp(t->classes[t->class_by_name[middle]], name);
        if (order == 0) {
            *found = true;
            return middle;
        }
        *(order < 0 ? &low : &high) = order < 0 ? middle + 1 : middle;
    }
    *found = false;
    return low;
}

static pc_status add(pc__csv_table *t, const char *name, int place)
{
    int room = t->class_room;
    PC__TRY(pc__grow((void **)&t->classes, &room, t->class_count, sizeof *t->classes));
    PC__TRY(pc__grow((void **)&t->class_by_name, &t->class_room, t->class_count, sizeof *t->class_by_name));
    char *copy = pc__strdup(name);
    if (!copy)
        return PC_ERR_MEMORY;
    memmove(t->class_by_name + place + 1, t->class_by_name + place,
            (size_t)(t->class_count - place) * sizeof *t->class_by_name);
    t->class_by_name[place] = t->class_count;
    t->classes[t->class_count++] = copy;
    return PC_OK;
}

int64_t pc__csv_class(pc__csv_table *t, const pc__csv *at, const char *name, bool known)
{
    bool found;
    const int place = find(t, name, &found);
    if (found)
        return t->class_by_name[place];
    if (known && at) {
        (void)pc__fail(PC_ERR_NOT_FOUND, "%s:%lld: \"%.60s\" is none of the %d classes", at->path, (long long)at->line,
                       name, t->class_count);
        return -1;
    }
    if (t->class_count == CLASSES_MAX) {
        (void)pc__fail(PC_ERR_UNSUPPORTED, "more than %d classes; is this column one of numbers?", CLASSES_MAX);
        return -1;
    }
    return add(t, name, place) == PC_OK ? t->class_count - 1 : -1;
}

typedef struct named {
    char *name;
    int label;
    double number;
} named;

static int by_number(const void *a, const void *b)
{
    const named *x = a, *y = b;
    return x->number != y->number ? (x->number > y->number) - (x->number < y->number) : strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

static bool is_whole(named *n)
{
    return pc__csv_number(n->name, &n->number) && n->number == floor(n->number); /* of any size */
}

static void renumber(pc__csv_table *t, named *list, int64_t *to)
{
    bool whole = true;
    for (int i = 0; i < t->class_count; i++) {
        list[i] = (named){t->classes[i], i, 0};
        whole = whole && is_whole(&list[i]);
    }
    qsort(list, (size_t)t->class_count, sizeof *list, whole ? by_number : by_name);
    for (int i = 0; i < t->class_count; i++) {
        t->classes[i] = list[i].name;
        to[list[i].label] = i;
    }
    for (int64_t i = 0; i < t->rows; i++)
        t->labels[i] = to[t->labels[i]];
}

pc_status pc__csv_classes_sort(pc__csv_table *t)
{
    named *list = pc__alloc((size_t)t->class_count * sizeof *list);
    int64_t *to = list ? pc__alloc((size_t)t->class_count * sizeof *to) : NULL;
    if (to)
        renumber(t, list, to);
    const pc_status status = to ? PC_OK : PC_ERR_MEMORY;
    pc__free(list);
    pc__free(to);
    return status;
}

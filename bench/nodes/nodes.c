/* nodes: what each kernel of a program's repeated work takes, and what lies between it and the one before: the nodes of a
 * recorded step, which a timeline shows as one launch. A library that CUDA loads when it starts:
 *
 *   CUDA_INJECTION64_PATH=build/release/bench/libbench-nodes.so PROGRAM
 *
 * At the end of the program the last kernels and copies (PC_NODES of them, 8000 unless given) are searched for the row of
 * names and grids that fills most of them, three times at least, with up to 63 others behind it. On standard error, or in
 * the file PC_NODES_FILE, a line for each of it, medians of up to 20 rows: microseconds, microseconds from the end of the
 * one before (below 0: they overlap), blocks, threads, registers, bytes of shared memory, name (c++filt makes it
 * readable). */
#include <cuda.h>
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 256, BUFFER = 8 << 20, ROWS = 20, LAST = 8000, BEHIND = 63 };

typedef struct node {
    uint64_t start, end;
    char name[NAME];
    int grid[3], threads, registers, shared;
} node;

static node *nodes;
static size_t count, room;

static node *add(uint64_t start, uint64_t end, const char *name)
{
    if (count == room) {
        const size_t more = room ? 2 * room : 4096;
        node *larger = realloc(nodes, more * sizeof *larger);
        if (!larger)
            return NULL;
        nodes = larger, room = more;
    }
    node *n = &nodes[count++];
    *n = (node){.start = start, .end = end};
    snprintf(n->name, sizeof n->name, "%s", name ? name : "?");
    return n;
}

static void take(const CUpti_Activity *record)
{
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
        const CUpti_ActivityKernel10 *k = (const CUpti_ActivityKernel10 *)record;
        node *n = add(k->start, k->end, k->name);
        if (!n)
            return;
        n->grid[0] = k->gridX, n->grid[1] = k->gridY, n->grid[2] = k->gridZ;
        n->threads = k->blockX * k->blockY * k->blockZ;
        n->registers = k->registersPerThread;
        n->shared = k->dynamicSharedMemory + k->staticSharedMemory;
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
        const CUpti_ActivityMemcpy6 *m = (const CUpti_ActivityMemcpy6 *)record;
        (void)add(m->start, m->end, "copy");
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
        const CUpti_ActivityMemset4 *m = (const CUpti_ActivityMemset4 *)record;
        (void)add(m->start, m->end, "fill");
    }
}

static void CUPTIAPI wanted(uint8_t **buffer, size_t *size, size_t *most)
{
    *buffer = aligned_alloc(8, BUFFER);
    *size = *buffer ? BUFFER : 0;
    *most = 0;
}

static void CUPTIAPI filled(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    CUpti_Activity *record = NULL;
    (void)context, (void)stream, (void)size;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
        take(record);
    free(buffer);
}

static int by_start(const void *a, const void *b)
{
    const node *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int is_same(const node *a, const node *b)
{
    return strcmp(a->name, b->name) == 0 && memcmp(a->grid, b->grid, sizeof a->grid) == 0 && a->threads == b->threads;
}

/* How often, up to `most`, the last `length` of `n` nodes end them. */
static size_t repeats(const node *list, size_t n, size_t length, size_t most)
{
    size_t times = 1;
    for (; times < most && (times + 1) * length <= n; times++)
        for (size_t i = 0; i < length; i++)
            if (!is_same(&list[n - length + i], &list[n - (times + 1) * length + i]))
                return times;
    return times;
}

static double median(double *list, size_t n)
{
    qsort(list, n, sizeof *list, by_size);
    return list[n / 2];
}

static void print(FILE *to, const node *list, size_t n, size_t length, size_t times)
{
    double each[ROWS], apart[ROWS], whole[ROWS];
    for (size_t t = 0; t < times; t++) {
        const node *row = &list[n - (t + 1) * length];
        whole[t] = (double)(row[length - 1].end - row[0].start) / 1e3;
    }
    fprintf(to, "%zu nodes, %.2f us from the first's start to the last's end\n", length, median(whole, times));
    for (size_t i = 0; i < length; i++) {
        const node *last = &list[n - length + i];
        for (size_t t = 0; t < times; t++) {
            const node *here = last - t * length;
            each[t] = (double)(here->end - here->start) / 1e3;
            apart[t] = here > list ? ((double)here->start - (double)here[-1].end) / 1e3 : 0;
        }
        fprintf(to, "%9.2f %8.2f  %d,%d,%d %d r%d s%d  %s\n", median(each, times), median(apart, times), last->grid[0],
                last->grid[1], last->grid[2], last->threads, last->registers, last->shared, last->name);
    }
}

static void tell(void)
{
    const char *most = getenv("PC_NODES"), *path = getenv("PC_NODES_FILE");
    FILE *to = path ? fopen(path, "w") : stderr;
    (void)cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    if (!to)
        return;
    qsort(nodes, count, sizeof *nodes, by_start);
    const size_t wish = most ? strtoul(most, NULL, 10) : LAST, n = wish < count ? wish : count;
    const node *list = nodes + (count - n);
    size_t best = 0, best_length = 0, best_end = 0;
    for (size_t behind = 0; behind <= BEHIND && behind < n; behind++)
        for (size_t length = 1; 3 * length <= n - behind; length++) {
            const size_t times = repeats(list, n - behind, length, n);
            if (times >= 3 && times * length > best)
                best = times * length, best_length = length, best_end = n - behind;
        }
    if (best)
        print(to, list, best_end, best_length, best / best_length < ROWS ? best / best_length : ROWS);
    else
        fprintf(to, "nothing repeats in the last %zu kernels and copies\n", n);
    if (path)
        fclose(to);
}

static int is_fine(CUptiResult result, const char *what)
{
    const char *words = NULL;
    if (result != CUPTI_SUCCESS && cuptiGetResultString(result, &words) != CUPTI_SUCCESS)
        words = "an unknown error";
    if (result != CUPTI_SUCCESS)
        fprintf(stderr, "nodes: CUPTI does not %s: %s\n", what, words);
    return result == CUPTI_SUCCESS;
}

__attribute__((visibility("default"))) int InitializeInjection(void)
{
    static const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                               CUPTI_ACTIVITY_KIND_MEMSET};
    if (!is_fine(cuptiActivityRegisterCallbacks(wanted, filled), "take callbacks"))
        return 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!is_fine(cuptiActivityEnable(kinds[i]), "record kernels and copies"))
            return 0;
    return atexit(tell) == 0;
}

/* loop.c: merging dimensions and cutting the work. */
#include "cpu/level/tiles.h"

static void swap_dims(pc__loop *loop, int a, int b)
{
    int64_t t = loop->shape[a];
    loop->shape[a] = loop->shape[b], loop->shape[b] = t;
    for (int k = 0; k < loop->operands; k++) {
        t = loop->strides[k][a];
        loop->strides[k][a] = loop->strides[k][b], loop->strides[k][b] = t;
    }
}

/* The output's smallest stride goes innermost: a channels-last output is then walked in memory order. */
static void sort_dims(pc__loop *loop)
{
    for (int i = 1; i < loop->ndim; i++)
        for (int j = i; j > 0 && loop->strides[0][j] > loop->strides[0][j - 1]; j--)
            swap_dims(loop, j, j - 1);
}

static bool mergeable(const pc__loop *loop, int outer, int inner)
{
    for (int k = 0; k < loop->operands; k++)
        if (loop->strides[k][outer] != loop->strides[k][inner] * loop->shape[inner])
            return false;
    return true;
}

static void merge_dims(pc__loop *loop)
{
    int kept = 0;
    for (int i = 1; i < loop->ndim; i++) {
        if (mergeable(loop, kept, i)) {
            loop->shape[kept] *= loop->shape[i];
        } else {
            kept++;
            loop->shape[kept] = loop->shape[i];
        }
        for (int k = 0; k < loop->operands; k++)
            loop->strides[k][kept] = loop->strides[k][i];
    }
    loop->ndim = kept + 1;
}

void pc__loop_make(pc__loop *loop, int count, pc_tensor *const *operands, const void *context)
{
    const pc_tensor *out = operands[0];
    loop->operands = count;
    loop->context = context;
    loop->ndim = 0;
    for (int k = 0; k < count; k++) {
        loop->data[k] = pc__data(operands[k]);
        loop->bytes[k] = (int64_t)pc_dtype_size(operands[k]->dtype);
    }
    for (int i = 0; i < out->ndim; i++) {
        if (out->shape[i] == 1)
            continue;
        int d = loop->ndim++;
        loop->shape[d] = out->shape[i];
        for (int k = 0; k < count; k++) {
            const pc_tensor *t = operands[k];
            int own = i - (out->ndim - t->ndim);
            bool repeats = own < 0 || t->shape[own] == 1;
            loop->strides[k][d] = repeats ? 0 : t->strides[own] * loop->bytes[k];
        }
    }
    if (loop->ndim == 0) {
        loop->ndim = 1;
        loop->shape[0] = 1;
        for (int k = 0; k < count; k++)
            loop->strides[k][0] = 0;
        return;
    }
    if (loop->ndim > 1) {
        sort_dims(loop);
        merge_dims(loop);
    }
}

void pc__loop_repeat(pc__loop *loop, int k, void *element, size_t bytes)
{
    for (int i = loop->operands++; i > k; i--) {
        loop->data[i] = loop->data[i - 1];
        loop->bytes[i] = loop->bytes[i - 1];
        memcpy(loop->strides[i], loop->strides[i - 1], sizeof loop->strides[i]);
    }
    loop->data[k] = element;
    loop->bytes[k] = (int64_t)bytes;
    memset(loop->strides[k], 0, sizeof loop->strides[k]);
}

enum {
    SHORT = 8,  /* elements of a run, */
    ROWS = 128, /* and so many such runs at once, whose lines the cache keeps */
};

/* Rows of a few elements: a run for each of their columns, as to begin one takes longer than elements apart. */
static void run_columns(const pc__loop *loop, pc__run_fn run, char **data, const int64_t *inner, int64_t n,
                        int64_t rows)
{
    int64_t outer[PC__OPERANDS];
    char *at[PC__OPERANDS];
    for (int k = 0; k < loop->operands; k++)
        outer[k] = loop->strides[k][loop->ndim - 2];
    for (int64_t r = 0, m; r < rows; r += m) {
        m = PC__MIN(rows - r, ROWS);
        for (int64_t i = 0; i < n; i++) {
            for (int k = 0; k < loop->operands; k++)
                at[k] = data[k] + i * inner[k];
            run(at, outer, m, loop->context);
        }
        for (int k = 0; k < loop->operands; k++)
            data[k] += m * outer[k];
    }
}

/* Elements [begin, end), in the loop's own order but for short rows. */
static void run_part(const pc__loop *loop, pc__run_fn run, int64_t begin, int64_t end)
{
    int last = loop->ndim - 1;
    int64_t index[PC_MAX_DIMS], rest = begin, inner[PC__OPERANDS];
    char *data[PC__OPERANDS];
    for (int k = 0; k < loop->operands; k++) {
        data[k] = loop->data[k];
        inner[k] = loop->strides[k][last];
    }
    for (int i = last; i >= 0; i--) {
        index[i] = rest % loop->shape[i];
        rest /= loop->shape[i];
        for (int k = 0; k < loop->operands; k++)
            data[k] += index[i] * loop->strides[k][i];
    }
    while (begin < end) {
        const int64_t n = PC__MIN(loop->shape[last] - index[last], end - begin);
        const bool whole = last > 0 && n == loop->shape[last];
        const int64_t rows = whole ? PC__MIN(loop->shape[last - 1] - index[last - 1], (end - begin) / n) : 1;
        const bool columns = n <= SHORT && rows >= 2 * n;
        if (columns)
            run_columns(loop, run, data, inner, n, rows);
        for (int64_t r = 0; !columns && r < rows; r++) {
            run(data, inner, n, loop->context);
            for (int k = 0; k < loop->operands; k++)
                data[k] += whole ? loop->strides[k][last - 1] : n * inner[k];
        }
        begin += rows * n;
        index[whole ? last - 1 : last] += whole ? rows : n;
        for (int i = last; i > 0; i--) {
            if (index[i] < loop->shape[i])
                continue;
            index[i] = 0;
            index[i - 1]++;
            for (int k = 0; k < loop->operands; k++)
                data[k] += loop->strides[k][i - 1] - loop->shape[i] * loop->strides[k][i];
        }
    }
}

enum { APART = 32, OPERATION = 3 /* in the measure of pc__threads, by what functions take */ };

typedef struct pieces {
    const pc__loop *loop;
    pc__run_fn run;
    int64_t n, piece;
} pieces;

static void run_piece(void *context, int64_t i)
{
    const pieces *p = context;
    run_part(p->loop, p->run, i * p->piece, PC__MIN((i + 1) * p->piece, p->n));
}

void pc__loop_run(const pc__loop *loop, pc__run_fn run, int cost)
{
    int64_t n = pc__count(loop->ndim, loop->shape);
    if (n <= 0)
        return;
    int64_t bytes = 0;
    for (int k = 0; k < loop->operands; k++) { /* elements apart take as long as a vector of those side by side */
        const int64_t stride = loop->strides[k][loop->ndim - 1], own = loop->bytes[k];
        bytes += stride == own || stride == 0 ? own : PC__MAX(own, APART);
    }
    int threads = pc__threads(n * (OPERATION * cost + 2 * bytes));
    pc__tiles tiles;
    if (pc__tiles_make(&tiles, loop)) {
        pc__tiles_run(&tiles, run, threads);
        return;
    }
    if (threads <= 1) {
        run_part(loop, run, 0, n);
        return;
    }
    int64_t piece = (n / (threads * 4) + 1023) / 1024 * 1024;
    pc__parallel(threads, (n + piece - 1) / piece, run_piece, &(pieces){loop, run, n, piece});
}

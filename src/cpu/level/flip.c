/* flip.c: elements in the opposite order along some dimensions. */
#include "cpu/level/kernels.h"
#include "ops/index.h"

enum { PIECE = 1 << 16 /* bytes, of rows that a thread claims */ };

typedef struct flipping {
    const char *from;
    char *to;
    int ndim; /* of merged dimensions: neighbours that are turned both, or neither, are one */
    bool turned[PC_MAX_DIMS];
    int64_t shape[PC_MAX_DIMS];
    int64_t rows, together, n; /* of the last dimension; rows in a piece; elements of a row */
    size_t bytes;
} flipping;

static void merge(flipping *f, const pc_tensor *t, uint64_t dims)
{
    f->shape[0] = 1;
    for (int d = 0; d < t->ndim; d++) {
        const bool turned = dims >> d & 1;
        if (t->shape[d] == 1)
            continue;
        if (f->ndim && f->turned[f->ndim - 1] == turned) {
            f->shape[f->ndim - 1] *= t->shape[d];
            continue;
        }
        f->turned[f->ndim] = turned;
        f->shape[f->ndim++] = t->shape[d];
    }
    f->ndim = f->ndim ? f->ndim : 1;
}

/* Where the rows of a result are from: that of row r, and of one after the other behind it. */
typedef struct walk {
    int64_t at[PC_MAX_DIMS], source;
} walk;

static walk walk_from(const flipping *f, int64_t r)
{
    walk w = {.source = 0};
    int64_t stride = 1;
    for (int d = f->ndim - 2; d >= 0; d--) {
        w.at[d] = r % f->shape[d];
        w.source += (f->turned[d] ? f->shape[d] - 1 - w.at[d] : w.at[d]) * stride;
        stride *= f->shape[d];
        r /= f->shape[d];
    }
    return w;
}

static void step(const flipping *f, walk *w)
{
    int64_t stride = 1;
    for (int d = f->ndim - 2; d >= 0; d--) {
        const int64_t by = f->turned[d] ? -stride : stride;
        w->source += by;
        if (++w->at[d] < f->shape[d])
            return;
        w->source -= by * f->shape[d];
        w->at[d] = 0;
        stride *= f->shape[d];
    }
}

#define TURN(T)                                                                                                        \
    static void turn_##T(void *to, const void *from, int64_t n)                                                        \
    {                                                                                                                  \
        T *restrict y = to;                                                                                            \
        const T *restrict x = from;                                                                                    \
        for (int64_t i = 0; i < n; i++)                                                                                \
            y[i] = x[n - 1 - i];                                                                                       \
    }
TURN(uint8_t)
TURN(uint16_t)
TURN(uint32_t)
TURN(uint64_t)

static void turn(void *to, const void *from, int64_t n, size_t bytes)
{
    if (bytes == 1)
        turn_uint8_t(to, from, n);
    else if (bytes == 2)
        turn_uint16_t(to, from, n);
    else if (bytes == 4)
        turn_uint32_t(to, from, n);
    else
        turn_uint64_t(to, from, n);
}

static void flip_piece(void *context, int64_t piece)
{
    const flipping *f = context;
    const size_t row = (size_t)f->n * f->bytes;
    const int64_t first = piece * f->together;
    walk w = walk_from(f, first);
    for (int64_t r = first; r < PC__MIN(first + f->together, f->rows); r++, step(f, &w)) {
        const char *from = f->from + (size_t)w.source * row;
        if (f->turned[f->ndim - 1])
            turn(f->to + (size_t)r * row, from, f->n, f->bytes);
        else
            memcpy(f->to + (size_t)r * row, from, row);
    }
}

PC__KERNEL(flip)
{
    (void)stream;
    const pc_tensor *t = call->in[0];
    const int64_t elements = pc_tensor_count(t);
    if (elements == 0)
        return PC_OK;
    flipping f = {.from = pc__data(t), .to = pc__data(call->out[0]), .bytes = pc_dtype_size(t->dtype)};
    merge(&f, t, ((const pc__flip_attributes *)call->attributes)->dims);
    f.n = f.shape[f.ndim - 1];
    f.rows = elements / f.n;
    f.together = PC__MAX(PIECE / (f.n * (int64_t)f.bytes), 1);
    pc__parallel(pc__threads(elements * (int64_t)(4 * f.bytes + 4)), (f.rows + f.together - 1) / f.together, flip_piece,
                 &f);
    return PC_OK;
}

/* flip.c: elements in the opposite order along some dimensions. */
#include "cpu/level/kernels.h"
#include "ops/index.h"

enum { PIECE = 1 << 16 /* bytes, of rows that a thread claims */ };

typedef struct flipping {
    const char *from;
    char *to;
    uint64_t dims;
    int ndim;
    const int64_t *shape;
    int64_t rows, together, n; /* of the last dimension; rows in a piece; elements of a row */
    size_t bytes;
} flipping;

/* The row that row r of the result comes from. */
static int64_t source_of(const flipping *f, int64_t r)
{
    int64_t row = 0, stride = 1;
    for (int d = f->ndim - 2; d >= 0; d--) {
        const int64_t at = r % f->shape[d];
        row += (f->dims >> d & 1 ? f->shape[d] - 1 - at : at) * stride;
        stride *= f->shape[d];
        r /= f->shape[d];
    }
    return row;
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
    const bool turned = f->ndim && f->dims >> (f->ndim - 1) & 1;
    for (int64_t r = piece * f->together; r < PC__MIN((piece + 1) * f->together, f->rows); r++) {
        const char *from = f->from + (size_t)source_of(f, r) * row;
        if (turned)
            turn(f->to + (size_t)r * row, from, f->n, f->bytes);
        else
            memcpy(f->to + (size_t)r * row, from, row);
    }
}

PC__KERNEL(flip)
{
    (void)stream;
    const pc_tensor *t = call->in[0];
    const int64_t elements = pc_tensor_count(t), n = t->ndim ? t->shape[t->ndim - 1] : 1;
    if (elements == 0)
        return PC_OK;
    flipping f = {.from = pc__data(t),
                  .to = pc__data(call->out[0]),
                  .dims = ((const pc__flip_attributes *)call->attributes)->dims,
                  .ndim = t->ndim,
                  .shape = t->shape,
                  .rows = elements / n,
                  .n = n,
                  .bytes = pc_dtype_size(t->dtype)};
    f.together = PC__MAX(PIECE / (n * (int64_t)f.bytes), 1);
    pc__parallel(pc__threads(elements * (int64_t)(4 * f.bytes + 4)), (f.rows + f.together - 1) / f.together, flip_piece,
                 &f);
    return PC_OK;
}

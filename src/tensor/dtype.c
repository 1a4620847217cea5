/* dtype.c: names, sizes and promotion of dtypes. */
#include "tensor/tensor.h"

static const struct {
    const char *name;
    size_t size;
    char kind;
} dtypes[PC_DTYPE_COUNT] = {
#define ROW(code, name, type, kind) [code] = {name, sizeof(type), kind},
    PC_DTYPE_LIST(ROW)
#undef ROW
};

const char *pc_dtype_name(pc_dtype dtype)
{
    return (unsigned)dtype < PC_DTYPE_COUNT ? dtypes[dtype].name : "unknown";
}

size_t pc_dtype_size(pc_dtype dtype)
{
    return (unsigned)dtype < PC_DTYPE_COUNT ? dtypes[dtype].size : 0;
}

static int kind_rank(pc_dtype dtype)
{
    return dtypes[dtype].kind == 'b' ? 0 : dtypes[dtype].kind == 'i' ? 1 : 2;
}

pc_dtype pc__join_dtypes(pc_dtype a, pc_dtype b)
{
    return a != b && pc__is_half(a) && pc__is_half(b) ? PC_F32 : PC__MAX(a, b); /* neither holds all of the other */
}

/* As PyTorch: a zero-dim tensor decides only when it is of a higher kind than the other. */
pc_dtype pc__promote(const pc_tensor *a, const pc_tensor *b)
{
    pc_dtype x = a->dtype, y = b->dtype;
    if ((a->ndim == 0) != (b->ndim == 0)) {
        pc_dtype full = a->ndim ? x : y, zero = a->ndim ? y : x;
        return kind_rank(zero) <= kind_rank(full) ? full : zero;
    }
    return pc__join_dtypes(x, y);
}

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

pc_status pc__number_check(const char *who, double value, pc_dtype dtype)
{
    static const struct {
        double least, below;
        const char *range;
    } limits[] = {[PC_U8] = {0, 256, "0 to 255, and whole numbers from -255 on, which wrap"},
                  [PC_I32] = {-0x1p31, 0x1p31, "-2147483648 to 2147483647"},
                  [PC_I64] = {-0x1p63, 0x1p63, "-2^63 to 2^63 - 1"}};
    if (pc__is_float(dtype) || dtype == PC_BOOL || (value >= limits[dtype].least && value < limits[dtype].below) ||
        (dtype == PC_U8 && value > -256 && value < 0 && value == (int)value))
        return PC_OK;
    return pc__fail(PC_ERR_ARGUMENT, "%s: %.17g does not fit in %s, which holds %s", who, value, pc_dtype_name(dtype),
                    limits[dtype].range);
}

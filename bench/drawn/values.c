/* values.c: tensors of numbers by a formula, and their sums: so two programs can see that they compute the same thing. */
#include "drawn/drawn.h"

#include <math.h>
#include <stdlib.h>

static uint32_t bits_of(int64_t i, uint32_t at)
{
    uint32_t h = (uint32_t)i * 2654435761u + at * 97531u;
    h = (h ^ h >> 15) * 2246822519u;
    return h ^ h >> 13;
}

static float number(int64_t i, uint32_t at)
{
    return (float)(bits_of(i, at) >> 8) * 0x1p-23f - 1;
}

static int64_t count_of(pc_shape shape)
{
    int64_t n = 1;
    for (int i = 0; i < shape.ndim; i++)
        n *= shape.dim[i];
    return n;
}

pc_tensor *numbers_of(pc_shape shape, uint32_t at, number_kind kind, double factor, pc_dtype dtype, pc_device device)
{
    const int64_t n = count_of(shape);
    float *values = malloc((size_t)(n > 0 ? n : 1) * sizeof *values);
    if (!values) {
        (void)pc_fail(PC_ERR_MEMORY, "%lld numbers: the host has no memory for them", (long long)n);
        return NULL;
    }
    for (int64_t i = 0; i < n; i++) {
        const float v = number(i, at);
        values[i] = kind == POSITIVE                            ? fabsf(v) + 0.5f
                    : kind == TRUTH || kind == TRUTH_OF_NUMBERS ? (float)(v > 0)
                                                                : v * (float)factor;
    }
    pc_tensor *t = pc_from_data(values, shape, PC_F32, device);
    free(values);
    return pc_cast(t, kind == TRUTH ? PC_BOOL : dtype);
}

pc_tensor *labels_of(int64_t count, int64_t classes, pc_device device)
{
    int64_t *labels = malloc((size_t)count * sizeof *labels);
    if (!labels) {
        (void)pc_fail(PC_ERR_MEMORY, "%lld labels: the host has no memory for them", (long long)count);
        return NULL;
    }
    for (int64_t i = 0; i < count; i++)
        labels[i] = bits_of(i, 50) % classes;
    pc_tensor *t = pc_from_data(labels, PC_SHAPE(count), PC_I64, device);
    free(labels);
    return t;
}

/* The memory is that of a contiguous tensor, whose shape and view follow from the letter behind the colon. */
pc_tensor *tensor_of(const char *text, uint32_t at, number_kind kind, pc_dtype dtype, pc_device device)
{
    const char *after;
    const pc_shape shape = numbers_between(text, 'x', &after);
    const char letter = *after == ':' ? after[1] : 'c';
    const pc_shape how = letter == 'n'   ? PC_SHAPE(0, 3, 1, 2)
                         : *after == ':' ? numbers_between(after + 2, '.', NULL)
                                         : PC_SHAPE_SCALAR;
    const bool fits = letter == 'c' || (letter == 's' && how.ndim == 3 && how.dim[0] < shape.ndim) ||
                      (letter == 'e' && how.ndim > 0 && how.dim[0] < shape.ndim) ||
                      ((letter == 'p' || letter == 'n') && how.ndim == shape.ndim);
    if (!fits) {
        (void)pc_fail(PC_ERR_ARGUMENT, "tensor '%s': the memory order behind the colon does not fit the shape", text);
        return NULL;
    }
    pc_shape base = shape;
    for (int i = 0; (letter == 'p' || letter == 'n') && i < shape.ndim; i++)
        base.dim[how.dim[i] % shape.ndim] = shape.dim[i];
    for (int i = 0; letter == 'e' && i < how.ndim; i++)
        base.dim[how.dim[i] % shape.ndim] = 1;
    if (letter == 's')
        base.dim[how.dim[0]] = how.dim[1] + shape.dim[how.dim[0]] * how.dim[2];
    pc_tensor *t = numbers_of(base, at, kind, 1, dtype, device);
    switch (letter) {
    case 'p':
    case 'n':
        return pc_permute(t, how);
    case 's':
        return pc_slice(t, (int)how.dim[0], how.dim[1], PC_END_OF_DIM, how.dim[2]);
    case 'e':
        return pc_expand(t, shape);
    default:
        return t;
    }
}

pc_status tell(const char *name, const pc_tensor *t)
{
    double weighted = 0, squares = 0;
    pc_status status = PC_ERR_MEMORY;
    PC_SCOPE {
        const int64_t n = pc_tensor_count(t);
        const size_t bytes = (size_t)n * sizeof(double);
        double *values = malloc(bytes + 1);
        PC_NO_GRAD
            status = values ? pc_read(pc_cast((pc_tensor *)t, PC_F64), values, bytes)
                            : pc_fail(PC_ERR_MEMORY, "%s: the host has no memory for %zu bytes", name, bytes);
        for (int64_t i = 0; status == PC_OK && i < n; i++) {
            weighted += (double)number(i, 99) * values[i];
            squares += values[i] * values[i];
        }
        free(values);
    }
    if (status != PC_OK)
        return status;
    printf(" %s:%s:", name, pc_dtype_name(pc_tensor_dtype(t)));
    for (int i = 0; i < pc_tensor_ndim(t); i++)
        printf("%s%lld", i ? "x" : "", (long long)pc_tensor_size(t, i));
    printf(":%.12g:%.12g", weighted, sqrt(squares));
    return PC_OK;
}

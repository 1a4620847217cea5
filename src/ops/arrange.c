/* arrange.c: tensors put together and taken apart by other ops. */
#include "ops/autocast.h"
#include "ops/matmul.h"
#include "ops/table.h"

pc_tensor *pc_stack(pc_tensor *const *tensors, int count, int dim)
{
    if (count < 1)
        return pc__null(PC_ERR_ARGUMENT, "stack: there must be at least one tensor");
    PC__NEED_OR(NULL, tensors);
    pc_tensor **rows = pc__alloc((size_t)count * sizeof *rows), *result = NULL;
    if (!rows)
        return NULL;
    PC_SCOPE {
        bool fits = true;
        for (int i = 0; i < count && fits; i++) {
            rows[i] = pc_unsqueeze(tensors[i], dim);
            fits = rows[i] && pc__same_shape(rows[i], rows[0]);
            if (rows[i] && !fits)
                (void)pc__fail(PC_ERR_SHAPE, "stack: the shapes %s and %s differ", PC__SHAPE_OF(tensors[0]),
                               PC__SHAPE_OF(tensors[i]));
        }
        result = pc_keep(fits ? pc_cat(rows, count, dim) : NULL);
    }
    pc__free(rows);
    return result;
}

/* Pieces of `size` entries, as many as there is room for. */
static pc_status split(const char *name, pc_tensor *a, int64_t size, int dim, pc_tensor **pieces, int count)
{
    const int64_t n = pc_tensor_size(a, dim), there = n > size ? n / size + (n % size != 0) : 1;
    pc_status status = PC_OK;
    if (there != count)
        return pc__fail(PC_ERR_ARGUMENT, "%s: %d pieces are asked for; %lld entries by %lld are %lld", name, count,
                        (long long)n, (long long)size, (long long)there);
    PC_SCOPE {
        for (int i = 0; i < count && status == PC_OK; i++) {
            pieces[i] = pc_slice(a, dim, i * size, i + 1 < count ? (i + 1) * size : PC_END_OF_DIM, 1);
            status = pieces[i] ? PC_OK : pc_error_last()->status;
        }
        for (int i = 0; i < count && status == PC_OK; i++)
            status = pc_keep(pieces[i]) ? PC_OK : pc_error_last()->status;
    }
    return status;
}

static pc_status splittable(const char *name, const pc_tensor *a, int dim)
{
    if (a->ndim == 0)
        return pc__fail(PC_ERR_SHAPE, "%s: a zero-dim tensor has no entries to take apart", name);
    return pc__dim(name, dim, a->ndim) < 0 ? pc_error_last()->status : PC_OK;
}

pc_status pc_split_dim(pc_tensor *a, int dim, int64_t size, pc_tensor **pieces, int count)
{
    PC__NEED(a);
    PC__NEED(pieces);
    PC__TRY(splittable("split_dim", a, dim));
    if (size < 1)
        return pc__fail(PC_ERR_ARGUMENT, "split_dim: a piece has at least one entry, not %lld", (long long)size);
    return split("split_dim", a, size, dim, pieces, count);
}

pc_status pc_chunk(pc_tensor *a, int dim, pc_tensor **pieces, int count)
{
    PC__NEED(a);
    PC__NEED(pieces);
    PC__TRY(splittable("chunk", a, dim));
    if (count < 1)
        return pc__fail(PC_ERR_ARGUMENT, "chunk: there is at least one piece, not %d", count);
    const int64_t n = pc_tensor_size(a, dim);
    return split("chunk", a, PC__MAX(n / count + (n % count != 0), 1), dim, pieces, count);
}

pc_tensor *pc_masked_fill(pc_tensor *a, pc_tensor *mask, double value)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, mask);
    if (mask->dtype != PC_BOOL)
        return pc__null(PC_ERR_DTYPE, "masked_fill: the mask is %s; it must be bool (compare, or pc_cast to PC_BOOL)",
                        pc_dtype_name(mask->dtype));
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(pc_where(mask, pc_scalar(value, a->dtype, a->storage->device), a));
    }
    return result;
}

pc_tensor *pc_outer(pc_tensor *a, pc_tensor *b)
{
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, b);
    if (a->ndim != 1 || b->ndim != 1)
        return pc__null(PC_ERR_SHAPE, "outer: the shapes %s and %s; both must have one dimension", PC__SHAPE_OF(a),
                        PC__SHAPE_OF(b));
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(pc_mul(pc_unsqueeze(a, 1), b));
    }
    return result;
}

/* c + a b; in 16 bits the product is not rounded, which might not hold it, before c is added. */
static pc_tensor *added(pc_tensor *c, pc_tensor *a, pc_tensor *b)
{
    const bool fit = a->dtype == b->dtype && a->shape[1] == b->shape[0];
    const bool wide = fit && pc__is_half((pc_dtype)a->dtype) && !pc__autocasting();
    pc_tensor *product = wide ? pc__matmul_wide(a, b) : pc_matmul(a, b);
    pc_tensor *all = product ? pc_expand(c, pc_tensor_shape(product)) : NULL, *sum = pc_add(all, product);
    return sum && wide ? pc__as_dtype(sum, pc__promote(all, a)) : sum;
}

pc_tensor *pc_addmm(pc_tensor *c, pc_tensor *a, pc_tensor *b)
{
    PC__NEED_OR(NULL, c);
    PC__NEED_OR(NULL, a);
    PC__NEED_OR(NULL, b);
    if (a->ndim != 2 || b->ndim != 2)
        return pc__null(PC_ERR_SHAPE, "addmm: a product of %s and %s; both must have two dimensions", PC__SHAPE_OF(a),
                        PC__SHAPE_OF(b));
    if (c->ndim > 2)
        return pc__null(PC_ERR_SHAPE, "addmm: %s does not broadcast to a matrix", PC__SHAPE_OF(c));
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(added(c, a, b));
    }
    return result;
}

/* half.c: calls with 16-bit numbers, by the kernels of float32: inputs are converted, results rounded once where they
 * are stored. Sums inside a kernel are those of float32. */
#include "cpu/level/kernels.h"
#include "tensor/floats.h"

static pc_status convert(pc_stream *stream, pc_tensor *to, pc_tensor *from)
{
    pc_call copy = {.op = &pc__ops[PC__OP_copy], .in = &from, .n_in = 1, .n_out = 1, .out = {to}};
    return PC__K(op_copy)(stream, &copy);
}

static pc_status load(pc_stream *stream, pc__single *s)
{
    s->storage.data = pc__try_alloc_aligned(PC__MAX(s->storage.bytes, 64), 64);
    if (!s->storage.data)
        return pc__fail(PC_ERR_MEMORY, "out of memory: %zu bytes for %s as float32", s->storage.bytes,
                        PC__SHAPE_OF(s->of));
    return s->is_read ? convert(stream, &s->tensor, s->of) : PC_OK;
}

pc_status PC__K(in_floats)(pc_stream *stream, const pc_call *call, pc__kernel kernel)
{
    pc__floats floats;
    PC__TRY(pc__floats_make(&floats, call));
    pc_status status = PC_OK;
    for (int k = 0; k < floats.count && status == PC_OK; k++)
        status = load(stream, &floats.list[k]);
    if (status == PC_OK)
        status = kernel(stream, &floats.call);
    for (int k = 0; k < floats.count; k++) {
        pc__single *s = &floats.list[k];
        if (s->is_written && status == PC_OK)
            status = convert(stream, s->of, &s->tensor);
        pc__free(s->storage.data);
    }
    pc__floats_free(&floats);
    return status;
}

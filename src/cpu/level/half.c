/* half.c: calls with 16-bit numbers, by the kernels of float32: inputs are converted, results rounded once where they
 * are stored. Sums inside a kernel are those of float32. */
#include "cpu/level/kernels.h"
#include "device/storage.h"
#include "tensor/floats.h"

static pc_status convert(pc_stream *stream, pc_tensor *to, pc_tensor *from)
{
    pc_call copy = {.op = &pc__ops[PC__OP_copy], .in = &from, .n_in = 1, .n_out = 1, .out = {to}};
    return PC__K(op_copy)(stream, &copy);
}

static size_t room_of(const pc__single *s)
{
    return (s->storage.bytes + 63) / 64 * 64;
}

static pc_status run(pc_stream *stream, pc__floats *floats, char *memory, pc__kernel kernel)
{
    for (int k = 0; k < floats->count; k++) {
        pc__single *s = &floats->list[k];
        s->storage.data = memory;
        memory += room_of(s);
        if (s->is_read)
            PC__TRY(convert(stream, &s->tensor, s->of));
    }
    PC__TRY(kernel(stream, &floats->call));
    for (int k = 0; k < floats->count; k++)
        if (floats->list[k].is_written)
            PC__TRY(convert(stream, floats->list[k].of, &floats->list[k].tensor));
    return PC_OK;
}

/* On the CPU in memory out of the cache that tensors come from, which the system need not bring in anew at each call; the
 * threads that play other devices take none of theirs. */
static pc_status in_floats(pc_stream *stream, pc__floats *floats, size_t bytes, pc__kernel kernel)
{
    if (stream && stream->device.type == PC_CPU) {
        pc__storage *block = pc__storage_at_once(stream, bytes, "16-bit numbers as float32");
        if (!block)
            return PC_ERR_MEMORY;
        const pc_status status = run(stream, floats, block->data, kernel);
        pc__storage_drop(block);
        return status;
    }
    void *memory = pc__try_alloc_aligned(bytes, 64);
    if (!memory)
        return pc__fail(PC_ERR_MEMORY, "out of memory: %zu bytes for 16-bit numbers as float32", bytes);
    const pc_status status = run(stream, floats, memory, kernel);
    pc__free(memory);
    return status;
}

pc_status PC__K(in_floats)(pc_stream *stream, const pc_call *call, pc__kernel kernel)
{
    pc__floats floats;
    size_t bytes = 64;
    PC__TRY(pc__floats_make(&floats, call));
    for (int k = 0; k < floats.count; k++)
        bytes += room_of(&floats.list[k]);
    const pc_status status = in_floats(stream, &floats, bytes, kernel);
    pc__floats_free(&floats);
    return status;
}

/* each.c: from a call to runs over its operands, and from any strides to dense blocks. */
#include "cpu/level/each.h"

enum { BLOCK = 256 }; /* elements: 2 KiB of the widest */

#define MOVE(T)                                                                                                        \
    for (int64_t i = 0; i < n; i++)                                                                                    \
        *(T *)(void *)(to + i * to_stride) = *(const T *)(const void *)(from + i * from_stride);                       \
    break

static void move(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n, size_t bytes)
{
    switch (bytes) {
    case 1:
        MOVE(uint8_t);
    case 2:
        MOVE(uint16_t);
    case 4:
        MOVE(uint32_t);
    default:
        MOVE(uint64_t);
    }
}

/* An input from element i on, dense; what repeats one element is the same for every block. */
static const char *gathered(const char *data, int64_t stride, int64_t i, int64_t n, size_t bytes, char *room)
{
    const char *from = data + i * stride;
    if (stride == (int64_t)bytes)
        return from;
    if (stride != 0 || i == 0)
        move(room, (int64_t)bytes, from, stride, n, bytes);
    return room;
}

void pc__in_blocks(char *const *data, const int64_t *s, int64_t n, size_t out_bytes, size_t in_bytes,
                   pc__dense_fn dense)
{
    _Alignas(64) char room[3][BLOCK * 8];
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t m = PC__MIN(n - i, BLOCK);
        const bool straight = s[0] == (int64_t)out_bytes;
        char *out = data[0] + i * s[0];
        const char *x = gathered(data[1], s[1], i, m, in_bytes, room[1]);
        const char *y = gathered(data[2], s[2], i, m, in_bytes, room[2]);
        dense(straight ? out : room[0], x, y, m);
        if (!straight)
            move(out, s[0], room[0], (int64_t)out_bytes, m, out_bytes);
    }
}

pc_status pc__each(const pc_call *call, const pc__run_fn runs[PC_DTYPE_COUNT], int cost)
{
    pc_dtype dtype = call->in[0]->dtype;
    if (!runs[dtype])
        return pc__fail(PC_ERR_DTYPE, "%s has no kernel for %s on the CPU; pc_cast to another dtype", call->op->name,
                        pc_dtype_name(dtype));
    pc_tensor *operands[PC__OPERANDS] = {call->out[0]};
    for (int i = 0; i < call->n_in; i++)
        operands[i + 1] = call->in[i];
    pc__loop loop;
    pc__loop_make(&loop, call->n_in + 1, operands, call->attributes);
    pc__loop_run(&loop, runs[dtype], cost);
    return PC_OK;
}

/* each.c: from a call to runs over its operands, and from any strides to dense blocks. */
#include "cpu/level/each.h"

#include "cpu/level/halves.h"

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

/* --- 16-bit numbers: blocks of float32, rounded once --- */

typedef struct halves {
    pc__run_fn run; /* float32's */
    const void *context;
    int inputs;
    bool is_f16, writes; /* writes: 16-bit numbers too, and not bools */
} halves;

static void load_halves(float *restrict to, const char *restrict from, int64_t stride, int64_t n, bool is_f16)
{
    if (stride == sizeof(pc_f16))
        pc__load_halves(to, from, n, is_f16);
    else
        for (int64_t i = 0; i < n; i++)
            pc__load_halves(to + i, from + i * stride, 1, is_f16);
}

static void store_halves(char *restrict to, int64_t stride, const float *restrict from, int64_t n, bool is_f16)
{
    if (stride == sizeof(pc_f16))
        pc__store_halves(to, from, n, is_f16);
    else
        for (int64_t i = 0; i < n; i++)
            pc__store_halves(to + i * stride, from + i, 1, is_f16);
}

static void run_halves(char *const *data, const int64_t *s, int64_t n, const void *context)
{
    const halves *h = context;
    _Alignas(64) float room[PC__OPERANDS][BLOCK];
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t m = PC__MIN(n - i, BLOCK);
        char *operands[PC__OPERANDS] = {h->writes ? (char *)room[0] : data[0] + i * s[0]};
        int64_t strides[PC__OPERANDS] = {h->writes ? (int64_t)sizeof(float) : s[0]};
        for (int k = 1; k <= h->inputs; k++) {
            if (i == 0 || s[k] != 0)
                load_halves(room[k], data[k] + i * s[k], s[k], m, h->is_f16);
            operands[k] = (char *)room[k];
            strides[k] = sizeof(float);
        }
        h->run(operands, strides, m, h->context);
        if (h->writes)
            store_halves(data[0] + i * s[0], s[0], room[0], m, h->is_f16);
    }
}

pc_status pc__each(const pc_call *call, const pc__run_fn runs[PC_DTYPE_COUNT], int cost)
{
    const pc_dtype dtype = call->in[0]->dtype;
    const bool is_half = pc__is_half(dtype);
    const halves h = {.run = runs[PC_F32],
                      .context = call->attributes,
                      .inputs = call->n_in,
                      .is_f16 = dtype == PC_F16,
                      .writes = pc__is_half((pc_dtype)call->out[0]->dtype)};
    const pc__run_fn run = is_half && runs[PC_F32] ? run_halves : runs[dtype];
    if (!run)
        return pc__fail(PC_ERR_DTYPE, "%s has no kernel for %s on the CPU; pc_cast to another dtype", call->op->name,
                        pc_dtype_name(dtype));
    pc_tensor *operands[PC__OPERANDS] = {call->out[0]};
    for (int i = 0; i < call->n_in; i++)
        operands[i + 1] = call->in[i];
    pc__loop loop;
    pc__loop_make(&loop, call->n_in + 1, operands, is_half ? &h : call->attributes);
    pc__loop_run(&loop, run, cost);
    return PC_OK;
}

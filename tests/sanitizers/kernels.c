/* kernels.c: for tests with the thread sanitizer that are not about kernels, which would be most of their time, as each access
 * of memory is looked at. Theirs are compiled without checks, and what a call reads and writes is told the sanitizer here, as
 * whole tensors: work that is not in order is seen. Tests of ops have kernels whose every access is looked at. */
#include "cpu/cpu.h"
#include "ops/table.h"
#include "tensor/call.h"

#include <pthread.h>

void __tsan_read_range(void *memory, long bytes);
void __tsan_write_range(void *memory, long bytes);

const pc__kernel *__real_pc__cpu_kernels(void);
const pc__kernel *__wrap_pc__cpu_kernels(void);

/* The elements of t from dimension d on, at this place. */
static void tell(const pc_tensor *t, int d, char *place, bool writes)
{
    const int64_t size = (int64_t)pc_dtype_size((pc_dtype)t->dtype);
    if (d == t->ndim || (d == t->ndim - 1 && t->strides[d] == 1)) {
        const long bytes = (long)((d < t->ndim ? t->shape[d] : 1) * size);
        (writes ? __tsan_write_range : __tsan_read_range)(place, bytes);
        return;
    }
    for (int64_t i = 0; i < (t->strides[d] ? t->shape[d] : 1); i++)
        tell(t, d + 1, place + i * t->strides[d] * size, writes);
}

static pc_status told(pc_stream *stream, const pc_call *call)
{
    for (int i = 0; i < call->n_in + call->n_out; i++) {
        const pc_tensor *t = pc__call_tensor(call, i);
        const int64_t count = pc__count(t->ndim, t->shape);
        const bool writes = pc__call_writes(call, i);
        if (count && pc__is_dense(t))
            (writes ? __tsan_write_range
                    : __tsan_read_range)(pc__data(t), (long)(count * (int64_t)pc_dtype_size((pc_dtype)t->dtype)));
        else if (count)
            tell(t, 0, pc__data(t), writes);
    }
    return __real_pc__cpu_kernels()[call->op->index](stream, call);
}

static pc__kernel kernels[PC__OP_COUNT];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void wrap(void)
{
    const pc__kernel *own = __real_pc__cpu_kernels();
    for (int i = 0; i < PC__OP_COUNT; i++)
        kernels[i] = own[i] ? told : NULL;
}

const pc__kernel *__wrap_pc__cpu_kernels(void)
{
    pthread_once(&once, wrap);
    return kernels;
}

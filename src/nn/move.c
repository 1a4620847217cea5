/* move.c: modules to another device and dtype. */
#include "device/storage.h"
#include "nn/module.h"

#include <paracord/autograd.h>

/* What was moved, as far as others hold it: it may be there under a second name, which stays the same tensor. */
typedef struct moved {
    pc_tensor *of, *now; /* one reference each */
} moved;

typedef struct moving {
    pc_device device;
    pc_dtype dtype;
    moved *list;
    int count, room;
} moving;

static pc_tensor *moved_before(const moving *m, const pc_tensor *old)
{
    for (int i = 0; i < m->count; i++)
        if (m->list[i].of == old)
            return m->list[i].now;
    return NULL;
}

static pc_status remember(moving *m, pc_tensor *old, pc_tensor *now)
{
    if (atomic_load(&old->references) == 1)
        return PC_OK;
    PC__TRY(pc__grow((void **)&m->list, &m->room, m->count, sizeof *m->list));
    m->list[m->count++] = (moved){pc_tensor_retain(old), pc_tensor_retain(now)};
    return PC_OK;
}

static void forget(moving *m)
{
    for (int i = 0; i < m->count; i++) {
        pc_tensor_free(m->list[i].of);
        pc_tensor_free(m->list[i].now);
    }
    pc__free(m->list);
}

static pc_status move_one(moving *m, pc_dtype dtype, pc__named *named, bool grad)
{
    pc_tensor *old = named->object;
    if (pc_device_equal(pc_tensor_device(old), m->device) && old->dtype == dtype)
        return PC_OK;
    if (old->watch)
        return pc__fail(PC_ERR_STATE,
                        "pc_module_to: \"%s\" is trained by ranks together, which go by its memory; move the module in "
                        "front of pc_ddp or pc_zero, or behind their end",
                        named->name);
    pc_status status = PC_ERR_MEMORY;
    PC_SCOPE {
        pc_tensor *before = moved_before(m, old), *now = before;
        PC_NO_GRAD {
            now = before ? before : pc_to(old, m->device, dtype, true);
        }
        status = !now ? pc_error_last()->status : grad ? pc_require_grad(now, true) : PC_OK;
        if (status == PC_OK && !before)
            status = remember(m, old, now);
        if (status == PC_OK) {
            named->object = pc_tensor_retain(now);
            old->moved = true; /* for those who hold it and go on with it: optimisers, averages */
            pc_tensor_free(old);
        }
    }
    return status;
}

static pc_status move(void *context, const char *name, pc__named *parameter)
{
    moving *m = context;
    (void)name;
    return move_one(m, m->dtype, parameter, pc_requires_grad(parameter->object)); /* frozen ones stay so */
}

static pc_status move_buffers(moving *m, pc_module *module)
{
    for (int i = 0; i < module->buffer_count; i++) {
        const pc_dtype own = pc_tensor_dtype(module->buffers[i].object); /* what counts goes on counting */
        PC__TRY(move_one(m, pc__is_float(own) ? m->dtype : own, &module->buffers[i], false));
    }
    for (int i = 0; i < module->child_count; i++)
        PC__TRY(move_buffers(m, module->children[i].object));
    return PC_OK;
}

pc_status pc_module_to(pc_module *module, pc_device device, pc_dtype dtype)
{
    PC__NEED(module);
    if (!pc__is_float(dtype))
        return pc__fail(PC_ERR_DTYPE, "pc_module_to: parameters cannot be %s; use a floating dtype such as float32",
                        pc_dtype_name(dtype));
    moving m = {.device = device, .dtype = dtype};
    pc_status status = pc__module_each(module, move, &m);
    if (status == PC_OK)
        status = move_buffers(&m, module);
    forget(&m);
    return status;
}

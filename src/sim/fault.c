/* fault.c: faults on request. */
#include "sim/sim.h"

#include "ops/collective.h"

static bool goes_between_devices(const pc__sim_command *c)
{
    return c->kind == PC__SIM_COPY ? c->copy.between
                                   : c->kind == PC__SIM_KERNEL && pc__is_collective(c->kernel.call->op);
}

static bool concerns(pc_sim_fault fault, const pc__sim_command *c)
{
    const pc__sim_kind kind = c->kind;
    switch (fault) {
    case PC_SIM_FAIL_KERNEL:
        return kind == PC__SIM_KERNEL;
    case PC_SIM_FAIL_COPY:
        return kind == PC__SIM_COPY;
    case PC_SIM_FAIL_ANY:
    case PC_SIM_LOSE:
        return kind == PC__SIM_KERNEL || kind == PC__SIM_COPY;
    case PC_SIM_CORRUPT:
    case PC_SIM_HANG:
        return goes_between_devices(c);
    default:
        return false;
    }
}

/* Until somebody calls pc_sim_inject again. */
static void hang(pc__sim_device *device)
{
    const int64_t turn = device->injections;
    while (device->injections == turn)
        pthread_cond_wait(&device->injected, &pc__sim.lock);
}

static uint8_t *last_byte_of(const pc__sim_command *c)
{
    if (c->kind == PC__SIM_COPY)
        return c->copy.bytes ? (uint8_t *)c->copy.to + c->copy.bytes - 1 : NULL;
    const pc_tensor *t = c->kernel.call->n_out ? c->kernel.call->out[0] : NULL;
    const size_t bytes = t ? (size_t)pc__count(t->ndim, t->shape) * pc_dtype_size((pc_dtype)t->dtype) : 0;
    return bytes ? (uint8_t *)pc__data(t) + bytes - 1 : NULL;
}

void pc__sim_spoil(const pc__sim_command *c)
{
    uint8_t *byte = last_byte_of(c);
    if (byte)
        *byte ^= 0xff;
}

pc_status pc__sim_fault_now(pc__sim_device *device, pc__sim_command *c)
{
    const pc__work *work = &c->work;
    device->operations++;
    c->spoilt = false;
    if (!device->fault_in || !concerns(device->fault, c) || --device->fault_in)
        return PC_OK;
    const pc_sim_fault fault = device->fault;
    if (fault == PC_SIM_HANG)
        hang(device);
    c->spoilt = fault == PC_SIM_CORRUPT;
    if (c->spoilt || fault == PC_SIM_HANG)
        return PC_OK;
    if (fault != PC_SIM_LOSE)
        return pc__fail_cause(PC_ERR_BACKEND, "injected fault", "it was told to");
    device->lost = true;
    char site[PC__SITE_TEXT];
    (void)pc__fail_cause(PC_ERR_LOST, "injected fault",
                         "sim:%d is lost: it stopped at %s (%s); what was on it is gone; start again, or "
                         "pc_sim_configure brings it back",
                         device->index, work->name, pc__site_text(work->site, site));
    device->loss = *pc_error_last();
    return PC_ERR_LOST;
}

pc_status pc_sim_inject(pc_device device, pc_sim_fault fault, int64_t n)
{
    if (device.type != PC_SIM)
        return pc__fail(PC_ERR_DEVICE, "pc_sim_inject: faults are for sim devices");
    PC__TRY(pc__device_check(device, "pc_sim_inject"));
    if ((unsigned)fault > PC_SIM_HANG || n < 0)
        return pc__fail(PC_ERR_ARGUMENT, "pc_sim_inject: there is no fault %d at operation %lld", (int)fault,
                        (long long)n);
    pthread_mutex_lock(&pc__sim.lock);
    pc__sim.device[device.index].fault = fault;
    pc__sim.device[device.index].fault_in = fault ? n : 0;
    pc__sim.device[device.index].injections++;
    if (pc__sim.device[device.index].open)
        pthread_cond_broadcast(&pc__sim.device[device.index].injected);
    pthread_mutex_unlock(&pc__sim.lock);
    return PC_OK;
}

int64_t pc_sim_operations(pc_device device)
{
    if (device.type != PC_SIM || pc__device_check(device, "pc_sim_operations") != PC_OK)
        return 0;
    pthread_mutex_lock(&pc__sim.lock);
    int64_t n = pc__sim.device[device.index].operations;
    pthread_mutex_unlock(&pc__sim.lock);
    return n;
}

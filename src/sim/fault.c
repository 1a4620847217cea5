/* fault.c: faults on request. */
#include "sim/sim.h"

static bool concerns(pc_sim_fault fault, pc__sim_kind kind)
{
    switch (fault) {
    case PC_SIM_FAIL_KERNEL:
        return kind == PC__SIM_KERNEL;
    case PC_SIM_FAIL_COPY:
        return kind == PC__SIM_COPY;
    case PC_SIM_FAIL_ANY:
    case PC_SIM_LOSE:
        return kind == PC__SIM_KERNEL || kind == PC__SIM_COPY;
    default:
        return false;
    }
}

pc_status pc__sim_fault_now(pc__sim_device *device, pc__sim_kind kind, const pc__work *work)
{
    device->operations++;
    if (!device->fault_in || !concerns(device->fault, kind) || --device->fault_in)
        return PC_OK;
    if (device->fault != PC_SIM_LOSE)
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
    if ((unsigned)fault > PC_SIM_LOSE || n < 0)
        return pc__fail(PC_ERR_ARGUMENT, "pc_sim_inject: there is no fault %d at operation %lld", (int)fault,
                        (long long)n);
    pthread_mutex_lock(&pc__sim.lock);
    pc__sim.device[device.index].fault = fault;
    pc__sim.device[device.index].fault_in = fault ? n : 0;
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

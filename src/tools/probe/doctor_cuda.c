/* doctor_cuda.c: does CUDA start, and does this build of Paracord use it? */
#include "probe/doctor.h"

/* Every GPU that the driver lists is cut up by MIG, into nothing. */
static bool without_instances(const pc__exam *e)
{
    int i = 0, listed = 0, empty = 0;
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i));) {
        listed += d->nvml;
        empty += d->nvml && d->mig.known && d->mig.number != 0 && !d->mig_count;
    }
    return listed && empty == listed;
}

/* What the errors of cuInit that machines have really mean; others speak for themselves. */
void pc__check_cuda_start(pc__exam *e)
{
    const pc_fact *start = &e->machine->cuda_init;
    int code;
    if (!start->known || sscanf(start->text, "error %d", &code) != 1)
        return;
    for (int i = 0; i < e->diagnosis->finding_count; i++) /* whose consequence it is */
        if (e->diagnosis->findings[i].severity == PC_SEVERITY_WRONG)
            return;
    if (code == 100 &&
        !e->machine->driver.known) /* no device where no driver is loaded: others say why, or it is meant */
        return;
    const char *visible = pc__root_env(e->m->root, "CUDA_VISIBLE_DEVICES");
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
    pc__how(e, f, "cuInit says: %s", start->text);
    if (code == 100 && visible) {
        pc__what(e, f, "CUDA_VISIBLE_DEVICES hides every GPU.");
        pc__how(e, f, "CUDA_VISIBLE_DEVICES is \"%s\".", visible);
        if (strstr(visible, "MIG-"))
            pc__fix(e, f, "nvidia-smi -L # the instances of MIG that there are: making them anew changes their UUIDs");
        pc__fix(e, f, "unset CUDA_VISIBLE_DEVICES");
    } else if (code == 100 && without_instances(e)) {
        pc__what(e, f, "MIG is on, and no instance of a GPU was made: CUDA has nothing to run on.");
        pc__fix(e, f, "sudo nvidia-smi mig -lgip # the kinds of instances that there are");
        pc__fix(e, f, "sudo nvidia-smi mig -cgi PROFILE -C # makes one");
        pc__fix(e, f, "sudo nvidia-smi -mig 0 # or the whole GPU at once, without MIG");
    } else if (code == 100 && e->m->forbidden) {
        pc__what(e, f, "This process may not use any GPU: the driver lists them and gives none to it.");
        pc__how(e, f, "NVML says of GPU%s.", e->m->forbidden + strlen("GPU"));
        pc__fix(e, f, "# ask for GPUs where the process is started: srun --gpus 1, docker run --gpus all");
    } else if (code == 804) {
        pc__what(e, f, "A CUDA compatibility library comes before the driver's own, and this GPU does not take it.");
        const pc_probe_library *l = pc__library_named(e, "CUDA driver");
        if (l && l->path && strstr(l->path, "compat")) {
            pc__how(e, f, "The loader finds %s first%s.", l->path,
                    pc__by_variable(e, l->path) ? ", by LD_LIBRARY_PATH" : "");
            pc__fix_order(e, f, l->path);
        } else {
            pc__fix(e, f, "echo $LD_LIBRARY_PATH # take the folder named compat out of it");
        }
        pc__fix(e, f, "# or update the driver%s, so that no compatibility library is needed",
                e->container ? " of the host" : "");
    } else if (pc__is_lxc(e) && (code == 999 || code == 100 || code == 304 || code == 3)) {
        pc__what(e, f, "CUDA does not start in this container (LXC): its rules for devices do not allow nvidia-uvm.");
        pc__how(e, f, "NVML works, so nvidiactl and the GPU's own file are allowed; the number of nvidia-uvm%s.",
                pc__device_major(e, "nvidia-uvm")
                    ? pc__keepf(e->m, " is %d now (/proc/devices), and changes with the host's start",
                                pc__device_major(e, "nvidia-uvm"))
                    : " changes with the host's start");
        pc__fix_lxc(e, f);
    } else if (code == 999) {
        pc__what(e, f, "CUDA does not start: mostly the module nvidia_uvm is in a bad state, as after suspending.");
        pc__fix(e, f, "sudo rmmod nvidia_uvm && sudo modprobe nvidia_uvm");
    } else {
        pc__what(e, f, "The driver runs, and CUDA does not start.");
        pc__nvrm_quote(e, f, NULL);
        pc__fix(e, f, "sudo dmesg | grep -E 'NVRM|Xid' | tail -n 20 # why");
    }
}

void pc__check_this_build(pc__exam *e)
{
    char *recorded = NULL;
    const char *reason = e->options->cuda_reason;
    if (!e->machine->live)
        reason = recorded = pc__root_text(e->m->root, "answers/paracord-cuda", 4096, false);
    if (recorded)
        recorded[strcspn(recorded, "\n")] = 0;
    bool works = e->machine->cuda_init.known && !strcmp(e->machine->cuda_init.text, "works");
    bool other = false;
    for (int i = 0; i < e->diagnosis->finding_count; i++)
        other |= e->diagnosis->findings[i].severity == PC_SEVERITY_WRONG &&
                 strcmp(e->diagnosis->findings[i].check, "driver-too-old");
    if (reason && reason[0] && works && !other) {
        pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
        bool code = strstr(reason, "compute capability") != NULL, old = strstr(reason, "driver") != NULL;
        if (code)
            pc__what(e, f, "This build of Paracord has no code for this GPU.");
        else if (old)
            pc__what(e, f, "The driver is too old for this build of Paracord.");
        else
            pc__what(e, f, "CUDA works, and this build of Paracord does not use it.");
        pc__how(e, f, "%s.", reason);
        if (!code && old)
            pc__how(e, f,
                    "Three versions: the driver is %s; the newest CUDA that it runs is %s; the toolkit here is %s.",
                    e->machine->driver.known ? e->machine->driver.text : "unknown",
                    e->machine->cuda_driver.known ? e->machine->cuda_driver.text : "unknown",
                    e->machine->toolkit_count ? e->machine->toolkits[0].version : "none");
        if (code)
            pc__fix(e, f, "cmake --preset release -DCMAKE_CUDA_ARCHITECTURES=native && cmake --build build/release");
        else if (old)
            pc__fix(e, f, "# update the driver, or build Paracord with an older toolkit");
        else
            pc__fix(e, f, "export PARACORD_PLUGIN_PATH=DIR # the folder that has libparacord-cuda.so");
    }
    pc__free(recorded);
}

/* doctor_access.c: may this process use the GPUs that are there? */
#include "probe/doctor.h"

#include <stdlib.h>

/* Ids of this process, by proc/self/status. */
typedef struct ids {
    unsigned uid, gid, groups[64];
    int count;
    bool known;
} ids;

static void read_ids(pc__exam *e, ids *who)
{
    char *text = pc__root_text(e->m->root, "proc/self/status", 65536, false), *line;
    if (!text)
        return;
    if ((line = strstr(text, "Uid:")) && sscanf(line, "Uid: %*u %u", &who->uid) == 1)
        who->known = true;
    if ((line = strstr(text, "Gid:")))
        who->known &= sscanf(line, "Gid: %*u %u", &who->gid) == 1;
    if ((line = strstr(text, "Groups:"))) {
        char *end = line + strlen("Groups:"), *next;
        for (; who->count < PC__COUNT(who->groups) && *end && *end != '\n'; end = next) {
            unsigned long group = strtoul(end, &next, 10);
            if (next == end)
                break;
            who->groups[who->count++] = (unsigned)group;
        }
    }
    pc__free(text);
}

static bool may_use(const ids *who, const pc__root_status *file)
{
    bool in_group = who->gid == file->gid;
    for (int i = 0; i < who->count; i++)
        in_group |= who->groups[i] == file->gid;
    unsigned bits = who->uid == file->uid ? file->mode >> 6 : in_group ? file->mode >> 3 : file->mode;
    return who->uid == 0 || (bits & 6) == 6;
}

static void say_missing(pc__exam *e, const char *file)
{
    pc_finding *f = pc__found(e, PC_WRONG, NULL);
    pc__what(e, f, "The device file /%s is missing: programs cannot reach the GPU.", file);
    pc__how(e, f, "The driver %s is loaded, and there is no /%s.", e->machine->driver.text, file);
    if (strstr(file, "uvm"))
        pc__fix(e, f, "sudo nvidia-modprobe -u -c=0");
    else
        pc__fix(e, f, "sudo nvidia-modprobe -c=0 -u");
    pc__fix(e, f, "# for good: sudo systemctl enable --now nvidia-persistenced");
}

static void say_forbidden(pc__exam *e, const char *file, const pc__root_status *s)
{
    pc_finding *f = pc__found(e, PC_WRONG, NULL);
    pc__what(e, f, "This user may not use /%s.", file);
    pc__how(e, f,
            "Its mode is %04o, its owner %u, its group %u; this process is in none of them with leave to read and "
            "write.",
            s->mode, s->uid, s->gid);
    if ((s->mode & 060) == 060 && s->gid != 0) {
        pc__fix(e, f, "sudo usermod -aG $(stat -c %%G /%s) $USER", file);
        pc__fix(e, f, "# then log in again");
    } else {
        pc__fix(e, f, "echo 'options nvidia NVreg_DeviceFileMode=0666' | sudo tee /etc/modprobe.d/nvidia-files.conf");
        pc__fix(e, f, "sudo chmod 666 /dev/nvidia* # until the next start");
    }
}

/* False when the check found something. */
static bool look_at(pc__exam *e, const ids *who, const char *file)
{
    pc__root_status status;
    if (!pc__root_stat(e->m->root, file, &status)) {
        say_missing(e, file);
        return false;
    }
    if (who->known && !may_use(who, &status)) {
        say_forbidden(e, file, &status);
        return false;
    }
    return true;
}

/* Those of systems on a chip have files of other names. */
static bool integrated(const pc__exam *e)
{
    int i = 0;
    const pc_probe_device *d = pc__next_gpu(e, &i);
    return d && d->integrated;
}

/* Inside a container without GPUs there is a driver (of the host) and no file at all: pc__check_container says so. */
void pc__check_device_files(pc__exam *e)
{
    ids who = {0};
    char file[32];
    bool works = e->machine->cuda_init.known && !strcmp(e->machine->cuda_init.text, "works");
    if (!e->machine->driver.known || !e->nvidia || works || integrated(e))
        return;
    if (e->container && !pc__root_exists(e->m->root, "dev/nvidiactl"))
        return;
    read_ids(e, &who);
    if (!look_at(e, &who, "dev/nvidiactl"))
        return;
    int i = 0;
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i));) {
        if (!d->minor.known)
            continue;
        snprintf(file, sizeof file, "dev/nvidia%d", (int)d->minor.number);
        if (!look_at(e, &who, file))
            return;
    }
    look_at(e, &who, "dev/nvidia-uvm");
}

void pc__check_container(pc__exam *e)
{
    if (!e->container || !e->nvidia || pc__root_exists(e->m->root, "dev/nvidiactl") ||
        pc__root_exists(e->m->root, "dev/nvidia0") || integrated(e))
        return;
    const char *visible = pc__root_env(e->m->root, "NVIDIA_VISIBLE_DEVICES");
    pc_finding *f = pc__found(e, PC_WRONG, NULL);
    pc__what(e, f, "This container was started without GPUs.");
    pc__how(e, f, "It is a container (%s) on a machine with an NVIDIA GPU, and has no /dev/nvidiactl.%s%s%s",
            e->machine->container.text, visible ? " NVIDIA_VISIBLE_DEVICES is \"" : "", visible ? visible : "",
            visible ? "\"." : "");
    if (!strcmp(e->machine->container.text, "podman")) {
        pc__fix(e, f, "# on the host, once:");
        pc__fix(e, f, "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml");
        pc__fix(e, f, "podman run --device nvidia.com/gpu=all ...");
    } else if (!strcmp(e->machine->container.text, "apptainer")) {
        pc__fix(e, f, "apptainer exec --nv IMAGE ...");
    } else if (!strcmp(e->machine->container.text, "kubernetes")) {
        pc__fix(e, f, "# in the container's resources: limits: nvidia.com/gpu: 1");
    } else {
        pc__fix(e, f, "docker run --gpus all ...");
        pc__fix(e, f, "# if that says \"could not select device driver\", on the host, once:");
        pc__fix(e, f, "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker");
    }
}

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
        if (e->diagnosis->findings[i].severity == PC_WRONG)
            return;
    if (code == 100 &&
        !e->machine->driver.known) /* no device where no driver is loaded: others say why, or it is meant */
        return;
    const char *visible = pc__root_env(e->m->root, "CUDA_VISIBLE_DEVICES");
    pc_finding *f = pc__found(e, PC_WRONG, NULL);
    pc__how(e, f, "cuInit says: %s", start->text);
    if (code == 100 && visible) {
        pc__what(e, f, "CUDA_VISIBLE_DEVICES hides every GPU.");
        pc__how(e, f, "CUDA_VISIBLE_DEVICES is \"%s\".", visible);
        pc__fix(e, f, "unset CUDA_VISIBLE_DEVICES");
    } else if (code == 100 && without_instances(e)) {
        pc__what(e, f, "MIG is on, and no instance of a GPU was made: CUDA has nothing to run on.");
        pc__fix(e, f, "sudo nvidia-smi mig -lgip # the kinds of instances that there are");
        pc__fix(e, f, "sudo nvidia-smi mig -cgi PROFILE -C # makes one");
        pc__fix(e, f, "sudo nvidia-smi -mig 0 # or the whole GPU at once, without MIG");
    } else if (code == 804) {
        pc__what(e, f, "A CUDA compatibility library comes before the driver's own, and this GPU does not take it.");
        pc__fix(e, f, "echo $LD_LIBRARY_PATH # take the folder named compat out of it");
        pc__fix(e, f, "# or update the driver, so that no compatibility library is needed");
    } else if (code == 999) {
        pc__what(e, f, "CUDA does not start: mostly the module nvidia_uvm is in a bad state, as after suspending.");
        pc__fix(e, f, "sudo rmmod nvidia_uvm && sudo modprobe nvidia_uvm");
    } else {
        pc__what(e, f, "The driver runs, and CUDA does not start.");
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
        other |=
            e->diagnosis->findings[i].severity == PC_WRONG && strcmp(e->diagnosis->findings[i].check, "driver-too-old");
    if (reason && reason[0] && works && !other) {
        pc_finding *f = pc__found(e, PC_WRONG, NULL);
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

/* doctor_many.c: what several GPUs need to work together. */
#include "probe/doctor.h"

#include <stdlib.h>

#define SHARED_LEAST (1 << 30)

void pc__check_fabric(pc__exam *e)
{
    const pc_machine *m = e->machine;
    pc__cards waiting = {0};
    int i = 0;
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i));)
        if (d->fabric_state.known &&
            (!strcmp(d->fabric_state.text, "not started") || !strcmp(d->fabric_state.text, "in progress")))
            pc__add_card(&waiting, d);
    bool code = m->cuda_init.known && !strncmp(m->cuda_init.text, "error 802", 9);
    if (!code && !(waiting.count && m->nvswitch_count))
        return;
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, waiting.first);
    pc__what(e, f,
             "The GPUs of this machine are joined by NVSwitches, and the fabric manager does not run: CUDA does "
             "not start.");
    if (m->nvswitch_count)
        pc__how(e, f, "There are %d NVSwitches.", m->nvswitch_count);
    if (waiting.count)
        pc__how(e, f, "The fabric of %s is %s.", waiting.list, waiting.first->fabric_state.text);
    if (code)
        pc__how(e, f, "cuInit says: %s.", m->cuda_init.text);
    const char *driver = m->driver.known ? m->driver.text : "";
    int branch = atoi(driver);
    if (e->packages == PC__APT_UBUNTU || e->packages == PC__APT)
        pc__fix(e, f, "sudo apt install nvidia-fabricmanager-%d # of the driver's version, %s", branch, driver);
    else if (e->packages == PC__DNF || e->packages == PC__DNF_FEDORA)
        pc__fix(e, f, "sudo dnf install nvidia-fabric-manager-%s", driver);
    else
        pc__fix(e, f, "# install nvidia-fabricmanager of the driver's version, %s", driver);
    if (!m->nvswitch_count) { /* since Blackwell they are reached by InfiniBand */
        pc__fix(e, f, "%s # the manager of the NVSwitches' own network",
                pc__install(e, "nvlsm", "nvlsm", "nvlsm", "nvlsm"));
        pc__fix(e, f, "sudo modprobe -a mlx5_ib ib_umad # Ubuntu in clouds: linux-modules-extra-$(uname -r) has them");
    }
    pc__fix(e, f, "sudo systemctl enable --now nvidia-fabricmanager");
    pc__fix(e, f, "systemctl status nvidia-fabricmanager # if it does not stay up: the versions differ");
}

void pc__check_shared_memory(pc__exam *e)
{
    const pc_fact *size = &e->machine->shared_memory;
    if (pc__gpu_count(e) < 2 || !size->known || size->number >= SHARED_LEAST)
        return;
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
    pc__what(e, f, "/dev/shm is too small for NCCL and for loaders with several workers.");
    pc__how(e, f, "It has %.0f MiB; several GPUs need 1 GiB or more.", size->number / (1 << 20));
    if (e->container && !strcmp(e->machine->container.text, "kubernetes"))
        pc__fix(e, f, "# mount an emptyDir with medium: Memory at /dev/shm");
    else if (e->container)
        pc__fix(e, f, "docker run --ipc=host ... # or --shm-size=8g");
    else
        pc__fix(e, f, "sudo mount -o remount,size=8G /dev/shm");
}

bool pc__read_list(const char *list, unsigned char bits[PC__LIST_BYTES])
{
    memset(bits, 0, PC__LIST_BYTES);
    while (list && *list) {
        char *end;
        long first = strtol(list, &end, 10), last = first;
        if (end == list)
            return false;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        for (long i = first; i >= 0 && i <= last && i < PC__LIST_BYTES * 8; i++)
            bits[i / 8] |= (unsigned char)(1 << i % 8);
        list = *end == ',' ? end + 1 : NULL;
    }
    return true;
}

void pc__check_placement(pc__exam *e)
{
    unsigned char mine[PC__LIST_BYTES], near[PC__LIST_BYTES];
    char *text = pc__root_text(e->m->root, "proc/self/status", 65536, false);
    char *line = text ? strstr(text, "Cpus_allowed_list:") : NULL;
    if (line) {
        line += strlen("Cpus_allowed_list:");
        line += strspn(line, " \t");
        line[strcspn(line, "\n")] = 0;
    }
    bool known = line && pc__read_list(line, mine);
    const pc_probe_device *far = NULL;
    int i = 0, close = 0;
    for (const pc_probe_device *d; known && (d = pc__next_gpu(e, &i));) {
        if (!d->nvml || !d->cpu_affinity.known || !pc__read_list(d->cpu_affinity.text, near))
            continue;
        bool meet = false, any = false;
        for (int b = 0; b < PC__LIST_BYTES; b++) {
            meet |= (mine[b] & near[b]) != 0;
            any |= near[b] != 0;
        }
        close += meet;
        far = !meet && any ? d : far;
    }
    if (far) { /* a rank of several may well be bound to the CPUs of its own GPU */
        pc_finding *f = pc__found(e, close ? PC_SEVERITY_ADVICE : PC_SEVERITY_WRONG, far);
        pc__what(e, f,
                 "This process may only run on CPUs that are far from the GPU: every copy crosses the link "
                 "between the sockets.");
        pc__how(e, f, "It may use CPUs %s; those near the GPU are %s.", line, far->cpu_affinity.text);
        pc__fix(e, f, "taskset -c %s COMMAND", far->cpu_affinity.text);
        if (far->numa_node.known)
            pc__fix(e, f, "# with its memory: numactl --cpunodebind=%.0f --membind=%.0f COMMAND", far->numa_node.number,
                    far->numa_node.number);
    }
    pc__free(text);
}

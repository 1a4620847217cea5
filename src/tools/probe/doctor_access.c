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

bool pc__is_lxc(const pc__exam *e)
{
    const char *kind = e->container ? e->machine->container.text : "";
    return !strncmp(kind, "lxc", 3) || !strncmp(kind, "lxd", 3) || !strncmp(kind, "incus", 5);
}

/* What a container of LXC needs, in its configuration on the host. */
void pc__fix_lxc(pc__exam *e, pc_finding *f)
{
    pc__fix(e, f, "# on the host: ls -l /dev/nvidia* shows the majors, mostly 195, and another one for nvidia-uvm");
    pc__fix(e, f, "# in the container's configuration (Proxmox: /etc/pve/lxc/ID.conf) a line for each major:");
    pc__fix(e, f, "lxc.cgroup2.devices.allow: c 195:* rwm");
    pc__fix(e, f, "lxc.cgroup2.devices.allow: c MAJOR_OF_NVIDIA_UVM:* rwm");
    pc__fix(e, f, "# and one for each of nvidia0, nvidiactl, nvidia-uvm, nvidia-uvm-tools:");
    pc__fix(e, f, "lxc.mount.entry: /dev/nvidia0 dev/nvidia0 none bind,optional,create=file");
    pc__fix(e, f,
            "# Proxmox 8.2 and newer, in their stead: dev0: /dev/nvidia0 and so on; LXD, Incus: lxc config device "
            "add NAME gpu gpu");
    pc__fix(e, f, "# then start the container again; its driver's libraries must be of the host's version");
}

static void say_missing(pc__exam *e, const char *file)
{
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
    pc__what(e, f, "The device file /%s is missing: programs cannot reach the GPU.", file);
    pc__how(e, f, "The driver %s is loaded, and there is no /%s.", e->machine->driver.text, file);
    if (pc__is_lxc(e)) {
        pc__fix_lxc(e, f);
        return;
    }
    if (e->container) {
        pc__fix(e, f, "# on the host, where the file is made; then start the container again:");
        pc__fix(e, f, "sudo nvidia-modprobe -u -c=0");
        pc__fix(e, f, "# for each start of the host: sudo systemctl enable --now nvidia-persistenced there");
        return;
    }
    if (strstr(file, "uvm"))
        pc__fix(e, f, "sudo nvidia-modprobe -u -c=0");
    else
        pc__fix(e, f, "sudo nvidia-modprobe -c=0 -u");
    pc__fix(e, f, "# for good: sudo systemctl enable --now nvidia-persistenced");
}

static void say_forbidden(pc__exam *e, const char *file, const pc__root_status *s)
{
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
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

/* "511 nvidia-uvm" in /proc/devices; 0: unknown. The number of nvidia-uvm changes with each start of the host. */
int pc__device_major(pc__exam *e, const char *file)
{
    char text[8192], *rest, name[64];
    const char *wanted = strstr(file, "uvm") ? "nvidia-uvm" : "nvidia";
    int number, found = 0;
    if (pc__root_read(e->m->root, "proc/devices", text, sizeof text) < 0)
        return 0;
    for (char *line = strtok_r(text, "\n", &rest); line && !found; line = strtok_r(NULL, "\n", &rest))
        if (sscanf(line, "%d %63s", &number, name) == 2 &&
            (!strcmp(name, wanted) || (!strcmp(wanted, "nvidia") && !strcmp(name, "nvidia-frontend"))))
            found = number;
    return found;
}

static void say_wrong_device(pc__exam *e, const char *file, int is, int wanted)
{
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
    if (is == PC__NO_DEVICE) {
        pc__what(e, f, "/%s is an empty file and no device: programs cannot reach the GPU.", file);
        pc__how(e, f, "It is an ordinary file: it was mounted before the host's own was there.");
    } else {
        pc__what(e, f, "/%s is of an old number: the driver's has changed, and programs cannot reach the GPU.", file);
        pc__how(e, f, "Its major is %d; /proc/devices says %d.", is, wanted);
    }
    if (pc__is_lxc(e)) {
        pc__fix(e, f, "# on the host, before the container starts: nvidia-modprobe -u -c=0");
        pc__fix_lxc(e, f);
    } else if (e->container) {
        pc__fix(e, f, "# on the host: sudo nvidia-modprobe -u -c=0; then start the container again");
    } else {
        pc__fix(e, f, "sudo rm /%s && sudo nvidia-modprobe -u -c=0", file);
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
    int major = pc__device_major(e, file);
    if (status.major == PC__NO_DEVICE || (status.major > 0 && major > 0 && status.major != major)) {
        say_wrong_device(e, file, status.major, major);
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
    if (!e->machine->driver.known || !e->nvidia || works || integrated(e) || pc__found_by(e, "kernel-replaced"))
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
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
    pc__what(e, f,
             pc__is_lxc(e) ? "This container (LXC) was not given the GPU's device files."
                           : "This container was started without GPUs.");
    pc__how(e, f, "It is a container (%s) on a machine with an NVIDIA GPU, and has no /dev/nvidiactl.%s%s%s",
            e->machine->container.text, visible ? " NVIDIA_VISIBLE_DEVICES is \"" : "", visible ? visible : "",
            visible ? "\"." : "");
    if (pc__is_lxc(e)) {
        pc__fix_lxc(e, f);
    } else if (!strcmp(e->machine->container.text, "podman")) {
        pc__fix(e, f, "# on the host, once:");
        pc__fix(e, f, "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml");
        pc__fix(e, f, "podman run --device nvidia.com/gpu=all ...");
    } else if (!strcmp(e->machine->container.text, "apptainer")) {
        pc__fix(e, f, "apptainer exec --nv IMAGE ...");
    } else if (!strcmp(e->machine->container.text, "kubernetes")) {
        pc__fix(e, f, "# in the container's resources: limits: nvidia.com/gpu: 1");
    } else if (!strcmp(e->machine->container.text, "docker")) {
        pc__fix(e, f, "docker run --gpus all ...");
        pc__fix(e, f, "# if that says \"could not select device driver\", on the host, once:");
        pc__fix(e, f, "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker");
    } else {
        pc__fix(e, f,
                "# give the container the host's /dev/nvidia* and the libraries of its driver, then start it again");
    }
}

/* doctor_wsl.c: the Windows Subsystem for Linux: Windows owns the GPU and its driver, and lends both by /dev/dxg and
 * /usr/lib/wsl/lib. After NVIDIA's "CUDA on WSL User Guide" and Microsoft's "Enable NVIDIA CUDA on WSL". */
#include "probe/doctor.h"

#include <stdlib.h>

#define WSL_LIBRARIES "usr/lib/wsl/lib"
#define WSL_DRIVERS "usr/lib/wsl/drivers"

pc__wsl pc__wsl_of(pc__exam *e)
{
    const pc_fact *kernel = &e->machine->kernel;
    if (pc__root_exists(e->m->root, "dev/dxg"))
        return PC__WSL_2;
    if (!pc__kernel_of_microsoft(e->m))
        return PC__WSL_NONE;
    /* WSL 1 plays a kernel: "4.4.0-19041-Microsoft"; that of WSL 2 is a real one, "-microsoft-standard-WSL2" */
    return kernel->known && !strncmp(kernel->text, "4.4.0-", 6) && strstr(kernel->text, "-Microsoft") ? PC__WSL_1
                                                                                                      : PC__WSL_2;
}

/* The driver's library that the loader takes first, if it is one of Linux; what NVIDIA's packages put there. */
static const char *linux_library(const pc__exam *e)
{
    static const char *const names[] = {"CUDA driver", "NVML"};
    for (int n = 0; n < PC__COUNT(names); n++)
        for (int i = 0; i < e->machine->library_count; i++) {
            const pc_probe_library *l = &e->machine->libraries[i];
            if (!strcmp(l->name, names[n]) && l->path && !strstr(l->path, "/wsl/") && !strstr(l->path, "/stubs/"))
                return l->path;
        }
    return NULL;
}

static void fix_linux_driver(pc__exam *e, pc_finding *f)
{
    if (e->packages == PC__APT_UBUNTU || e->packages == PC__APT)
        pc__fix(e, f, "sudo apt purge 'nvidia-driver-*' 'libnvidia-*' 'nvidia-utils-*' && sudo ldconfig");
    else
        pc__fix(e, f, "# remove the packages of NVIDIA's driver (not those of the toolkit), then: sudo ldconfig");
}

/* How Windows gives WSL its GPU. */
static void fix_windows(pc__exam *e, pc_finding *f)
{
    pc__fix(e, f, "# all of this in Windows, without a GPU of NVIDIA's in it there is nothing to mend:");
    pc__fix(e, f, "# winver must say Windows 11, or Windows 10 of version 21H2 or newer");
    pc__fix(e, f, "# install NVIDIA's driver for Windows: https://www.nvidia.com/drivers; nvidia-smi there must work");
    pc__fix(e, f, "wsl --update");
    pc__fix(e, f, "wsl --shutdown # then start it again");
    if (linux_library(e)) {
        pc__fix(e, f, "# inside WSL, where no Linux driver belongs:");
        fix_linux_driver(e, f);
    } else {
        pc__fix(e, f, "# inside WSL install no Linux driver: it would hide that of Windows");
    }
}

static void say_one(pc__exam *e)
{
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
    pc__what(e, f, "This is WSL 1, in which no program reaches a GPU: WSL 2 has that.");
    pc__how(e, f, "The kernel calls itself %s.", e->machine->kernel.text);
    pc__fix(e, f, "# in Windows (wsl -l -v shows the names and versions):");
    pc__fix(e, f, "wsl --set-version NAME 2");
    pc__fix(e, f, "wsl --set-default-version 2");
    fix_windows(e, f);
}

static void say_no_gpu(pc__exam *e)
{
    const char *library = linux_library(e);
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
    pc__what(e, f, "Windows does not let its GPU through to this WSL.");
    pc__how(e, f, "The kernel is one of WSL (%s), and there is no /dev/dxg.",
            e->machine->kernel.known ? e->machine->kernel.text : "/proc/version");
    if (library)
        pc__how(e, f, "A Linux driver is installed (%s), which finds no GPU here.", library);
    fix_windows(e, f);
    pc__fix(e, f, "# and %%UserProfile%%\\.wslconfig must not have gpuSupport=false");
}

static void say_hidden(pc__exam *e, const char *path)
{
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
    pc__what(e, f,
             "A Linux driver is installed inside WSL, and hides the driver of Windows, which is the one that "
             "works here.");
    pc__how(e, f, "/dev/dxg is there, and the loader finds %s before /" WSL_LIBRARIES ".", path);
    if (!pc__root_exists(e->m->root, WSL_LIBRARIES "/libcuda.so.1"))
        pc__how(e, f, "Windows brings none: there is no /" WSL_LIBRARIES "/libcuda.so.1 either.");
    fix_linux_driver(e, f);
    if (!pc__root_exists(e->m->root, WSL_LIBRARIES "/libcuda.so.1"))
        pc__fix(e, f, "# in Windows: install NVIDIA's driver (https://www.nvidia.com/drivers), then: wsl --update");
    pc__fix(e, f, "# in Windows: wsl --shutdown, and start it again");
}

/* Folders are called after the drivers' own descriptions: nv_dispi.inf_amd64_..., iigd_dch.inf_..., u0398226.inf_... */
typedef struct makers {
    int all, nvidia;
} makers;

static void count_maker(void *context, const char *name)
{
    makers *m = context;
    m->all++;
    m->nvidia += !strncmp(name, "nv", 2);
}

static void say_no_libraries(pc__exam *e)
{
    makers m = {0};
    pc__root_list(e->m->root, WSL_DRIVERS, "", count_maker, &m);
    bool others = m.all && !m.nvidia; /* perhaps there is no card of NVIDIA's at all */
    pc_finding *f = pc__found(e, others ? PC_SEVERITY_ADVICE : PC_SEVERITY_WRONG, NULL);
    pc__what(e, f,
             others ? "Windows lets a GPU through to WSL, and has no driver for one of NVIDIA's."
                    : "Windows lets a GPU through to WSL, and the libraries of NVIDIA's driver do not come with it.");
    pc__how(e, f, "/dev/dxg is there, and no /" WSL_LIBRARIES "/libcuda.so.1.");
    if (m.all)
        pc__how(e, f, "Of the %d driver%s in /" WSL_DRIVERS ", %d %s NVIDIA's.", m.all, m.all == 1 ? "" : "s", m.nvidia,
                m.nvidia == 1 ? "is" : "are");
    fix_windows(e, f);
}

static void say_not_found(pc__exam *e, const char *why)
{
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
    pc__what(e, f, "The libraries of Windows' driver are in WSL, and the loader does not look there.");
    pc__how(e, f, "/" WSL_LIBRARIES "/libcuda.so.1 is there. The loader: %s.", why);
    pc__fix(e, f, "echo /" WSL_LIBRARIES " | sudo tee /etc/ld.so.conf.d/ld.wsl.conf && sudo ldconfig");
    pc__fix(e, f, "# WSL does that at each start, unless /etc/wsl.conf has ldconfig=false under [automount]");
    pc__fix(e, f, "# in a shell of Nix: export LD_LIBRARY_PATH=/" WSL_LIBRARIES);
}

/* The container's runtime chose what it has of WSL. */
static void say_refused_inside(pc__exam *e, const char *why)
{
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
    pc__what(e, f, "This container has the GPU of WSL, and CUDA does not start in it.");
    pc__how(e, f, "%s.", why);
    pc__fix(e, f, "# in WSL, outside the container, where paracord doctor should find nothing wrong:");
    pc__fix(e, f, "%s && sudo systemctl restart docker",
            pc__install(e, "nvidia-container-toolkit", "nvidia-container-toolkit", "nvidia-container-toolkit",
                        "nvidia-container-toolkit"));
    pc__fix(e, f, "wsl --update # in Windows; then wsl --shutdown");
}

/* All that Windows lends is there, and its driver refuses. */
static void say_refused(pc__exam *e, const char *why)
{
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
    pc__what(e, f, "WSL has a GPU and the libraries of Windows' driver, and CUDA does not start.");
    pc__how(e, f, "%s.", why);
    fix_windows(e, f);
    pc__fix(e, f, "# if nvidia-smi in Windows says TCC beside the card: nvidia-smi -dm 0 (WSL needs WDDM or MCDM)");
}

/* The adapter by which Windows lends a GPU, which containers see in /sys even without the device file. */
static bool has_adapter(const pc__exam *e)
{
    for (int i = 0; i < e->machine->device_count; i++) {
        const pc_probe_device *d = &e->machine->devices[i];
        if (d->vendor_id.known && d->device_id.known && strtol(d->vendor_id.text, NULL, 16) == 0x1414 &&
            strtol(d->device_id.text, NULL, 16) == 0x008e)
            return true;
    }
    return false;
}

static void say_container(pc__exam *e)
{
    if (!has_adapter(e)) /* nothing is there to be handed to it */
        return;
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
    pc__what(e, f, "This container was started without the GPU of WSL.");
    pc__how(e, f, "It is a container (%s) in WSL 2, and has no /dev/dxg.", e->machine->container.text);
    pc__fix(e, f, "docker run --gpus all ...");
    pc__fix(e, f, "# Docker Desktop has what that needs; Docker inside WSL needs, once:");
    pc__fix(e, f, "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker");
    pc__fix(e, f, "# if WSL itself has no GPU: paracord doctor outside the container says why");
}

/* NULL: NVML and CUDA start, or nobody asked them, or a variable hides the GPU. */
static const char *refusal(pc__exam *e)
{
    const pc_machine *m = e->machine;
    const char *visible = pc__root_env(e->m->root, "CUDA_VISIBLE_DEVICES");
    if (m->cuda_init.known && !strncmp(m->cuda_init.text, "error ", 6) && !visible &&
        !strstr(m->cuda_init.text, "stub"))
        return pc__keepf(e->m, "cuInit says: %s", m->cuda_init.text);
    if (!m->nvml.known && m->nvml.why && strstr(m->nvml.why, "nvmlInit") && !m->cuda_init.known)
        return pc__keepf(e->m, "NVML says: %s", m->nvml.why);
    return NULL;
}

void pc__check_wsl(pc__exam *e)
{
    const pc_machine *m = e->machine;
    const char *library = linux_library(e), *why;
    bool works = m->cuda_init.known && !strcmp(m->cuda_init.text, "works");
    if (e->wsl == PC__WSL_NONE || works)
        return;
    if (e->wsl == PC__WSL_1) {
        say_one(e);
    } else if (!pc__root_exists(e->m->root, "dev/dxg")) {
        if (e->container)
            say_container(e);
        else if (!e->nvidia) /* the kernel of WSL in a virtual machine that owns its GPU is none */
            say_no_gpu(e);
    } else if (e->container) {
        if ((why = refusal(e)) && !pc__any_wrong(e))
            say_refused_inside(e, why);
    } else if (library) {
        say_hidden(e, library);
    } else if (!pc__root_exists(e->m->root, WSL_LIBRARIES "/libcuda.so.1")) {
        say_no_libraries(e);
    } else if (!m->cuda_init.known && m->cuda_init.why && strstr(m->cuda_init.why, "cannot open shared object")) {
        say_not_found(e, m->cuda_init.why);
    } else if ((why = refusal(e)) && !pc__any_wrong(e)) {
        say_refused(e, why);
    }
}

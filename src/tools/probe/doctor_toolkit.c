/* doctor_toolkit.c: do compilers and programs find CUDA, and the right libraries of it? */
#include "probe/doctor.h"

#include <stdlib.h>

bool pc__has_nvcc(pc__exam *e, const pc_probe_toolkit *toolkit)
{
    char path[1100];
    snprintf(path, sizeof path, "%s/bin/nvcc", toolkit->path + 1);
    return toolkit->on_path || pc__root_exists(e->m->root, path) ||
           pc__root_exists(e->m->root, "usr/local/cuda/bin/nvcc");
}

/* Images to run programs in have the toolkit's libraries and no compiler, as is meant. */
void pc__check_toolkit(pc__exam *e)
{
    const pc_machine *m = e->machine;
    bool compiler = false;
    for (int i = 0; i < m->toolkit_count; i++)
        compiler |= pc__has_nvcc(e, &m->toolkits[i]);
    if (!compiler) {
        if (!e->nvidia || e->options->job != PC_JOB_BUILD)
            return; /* who only runs programs needs none */
        pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
        pc__what(e, f, "There is no CUDA toolkit: nvcc is needed to build programs with kernels of their own.");
        pc__how(e, f,
                m->toolkit_count ? "There is %s, with libraries and without bin/nvcc."
                                 : "No nvcc in PATH, no /usr/local/cuda*, no /opt/cuda*.",
                m->toolkit_count ? m->toolkits[0].path : "");
        if (m->toolkit_count && e->container) {
            pc__fix(e, f,
                    "# the image is one of those to run programs in: take \"devel\" instead of \"runtime\" or "
                    "\"base\" in its name");
            return;
        }
        pc__fix(e, f, "# https://developer.nvidia.com/cuda-downloads%s%s",
                m->cuda_driver.known ? ": not newer than " : "", m->cuda_driver.known ? m->cuda_driver.text : "");
        pc__fix(e, f, "%s", pc__install(e, "nvidia-cuda-toolkit", "cuda-toolkit", "cuda-toolkit", "cuda"));
        return;
    }
    for (int i = 0; i < m->toolkit_count; i++)
        if (m->toolkits[i].on_path)
            return;
    const pc_probe_toolkit *newest = &m->toolkits[0];
    pc_finding *f = pc__found(e, e->options->job == PC_JOB_BUILD ? PC_SEVERITY_WRONG : PC_SEVERITY_ADVICE, NULL);
    pc__what(e, f, "The CUDA toolkit %s is installed, and the shell does not find its compiler.", newest->version);
    pc__how(e, f, "It is in %s, and no folder of PATH has nvcc.%s", newest->path,
            newest->on_library_path ? "" : " The loader does not look in its lib64 either.");
    pc__fix(e, f, "echo 'export PATH=%s/bin:$PATH' >> ~/.bashrc", newest->path);
    if (!newest->on_library_path)
        pc__fix(e, f, "echo 'export LD_LIBRARY_PATH=%s/lib64:$LD_LIBRARY_PATH' >> ~/.bashrc", newest->path);
    pc__fix(e, f, "source ~/.bashrc");
}

/* The major version of "9.14.0"; -1: none. */
static int major_of(const char *version)
{
    return version && *version >= '0' && *version <= '9' ? atoi(version) : -1;
}

/* "/a/libcudnn.so.9 (9.14.0)": the newest version of those behind the first. */
static int newest_of(const char *others, char path[512])
{
    int best = -1;
    for (const char *at = others; at && *at; at = pc__behind(at, ')')) {
        char one[512], version[64];
        if (sscanf(at, "%511s (%63[^)]", one, version) != 2)
            continue;
        int number = pc__version_number(version);
        if (number > best) {
            best = number;
            snprintf(path, 512, "%s", one);
        }
    }
    return best;
}

void pc__check_libraries(pc__exam *e)
{
    const char *loader = pc__root_env(e->m->root, "LD_LIBRARY_PATH");
    for (int i = 0; i < e->machine->library_count; i++) {
        const pc_probe_library *l = &e->machine->libraries[i];
        char newer[512];
        if ((strcmp(l->name, "cuDNN") && strcmp(l->name, "NCCL")) || !l->path || !l->others)
            continue;
        int first = pc__version_number(l->version), best = newest_of(l->others, newer);
        if (first < 0 || best <= first)
            continue;
        bool major = best / 100 > major_of(l->version);
        pc_finding *f = pc__found(e, major ? PC_SEVERITY_WRONG : PC_SEVERITY_ADVICE, NULL);
        pc__what(e, f, "The loader finds an older %s first than another one that is installed.", l->name);
        pc__how(e, f, "First is %s (%s); behind it: %s. LD_LIBRARY_PATH is \"%s\".", l->path, l->version, l->others,
                loader ? loader : "");
        char *slash = strrchr(newer, '/');
        if (slash)
            *slash = 0;
        pc__fix(e, f, "export LD_LIBRARY_PATH=%s:$LD_LIBRARY_PATH", newer);
        pc__fix(e, f, "# or remove the old one: %s", l->path);
    }
}

void pc__check_storage(pc__exam *e)
{
    const pc_machine *m = e->machine;
    bool file = false, module = pc__root_exists(e->m->root, "sys/module/nvidia_fs");
    for (int i = 0; i < m->library_count; i++)
        file |= !strcmp(m->libraries[i].name, "cuFile") && m->libraries[i].path;
    if (!m->driver.known || (file && module) || e->options->job != PC_JOB_TRAIN)
        return;
    pc_finding *f = pc__found(e, PC_SEVERITY_ADVICE, NULL);
    pc__what(e, f, "GPUDirect Storage is not %s: files go through the host's memory on their way to the GPU.",
             file ? "active" : "installed");
    pc__how(e, f, "%s; the kernel module nvidia_fs is %s.", file ? "libcufile.so is there" : "There is no libcufile.so",
            module ? "loaded" : "not loaded");
    if (!file)
        pc__fix(e, f, "%s", pc__install(e, "nvidia-gds", "nvidia-gds", "nvidia-gds", "nvidia-fs-dkms"));
    else
        pc__fix(e, f, "sudo modprobe nvidia-fs # from the package nvidia-fs-dkms");
}

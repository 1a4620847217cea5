/* doctor_loader.c: which of several driver libraries the loader takes: stubs of a toolkit, a runfile's over packages'.
 */
#include "probe/doctor.h"

const pc_probe_library *pc__library_named(const pc__exam *e, const char *name)
{
    for (int i = 0; i < e->machine->library_count; i++)
        if (!strcmp(e->machine->libraries[i].name, name))
            return &e->machine->libraries[i];
    return NULL;
}

/* "/opt/x/libcuda.so.1" is in a folder of LD_LIBRARY_PATH. */
bool pc__by_variable(pc__exam *e, const char *path)
{
    const char *list = pc__root_env(e->m->root, "LD_LIBRARY_PATH"), *slash = strrchr(path, '/');
    size_t n = (size_t)(slash - path);
    for (; list && *list; list += strcspn(list, ":"), list += *list == ':')
        if (!strncmp(list, path, n) && (list[n] == ':' || !list[n] || (list[n] == '/' && strchr(":", list[n + 1]))))
            return true;
    return false;
}

void pc__fix_order(pc__exam *e, pc_finding *f, const char *path)
{
    int n = (int)(strrchr(path, '/') - path);
    if (pc__by_variable(e, path)) {
        pc__fix(e, f,
                "export LD_LIBRARY_PATH=$(echo \"$LD_LIBRARY_PATH\" | tr : '\\n' | grep -vx '%.*s/*' | paste -sd :)", n,
                path);
        pc__fix(e, f, "# and for good: take it out of ~/.bashrc, /etc/environment or the module file that sets it");
    } else {
        pc__fix(e, f, "grep -r '%.*s' /etc/ld.so.conf.d # take that line out, then:", n, path);
        pc__fix(e, f, "sudo ldconfig");
    }
}

/* The toolkit brings an empty libcuda to link with where no driver is; programs that run on it find no GPU. */
void pc__check_stub(pc__exam *e)
{
    static const char *const names[] = {"CUDA driver", "NVML"};
    const pc_fact *start = &e->machine->cuda_init;
    bool says = start->known && !strncmp(start->text, "error 34", 8);
    const char *list = pc__root_env(e->m->root, "LD_LIBRARY_PATH"), *path = NULL;
    for (int i = 0; i < PC__COUNT(names) && !path; i++) {
        const pc_probe_library *l = pc__library_named(e, names[i]);
        path = l && l->path && strstr(l->path, "/stubs/") ? l->path : NULL;
    }
    if (!says && !path)
        return;
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
    pc__what(e, f, "Programs load the toolkit's stub of the driver's library, which is empty, and find no GPU.");
    if (path)
        pc__how(e, f, "The loader finds %s first%s.", path, pc__by_variable(e, path) ? ", by LD_LIBRARY_PATH" : "");
    else
        pc__how(e, f, "LD_LIBRARY_PATH is \"%s\".", list ? list : "");
    if (says)
        pc__how(e, f, "cuInit says: %s.", start->text);
    pc__fix_order(e, f, path ? path : "/usr/local/cuda/lib64/stubs/libcuda.so.1");
    pc__fix(e, f, "# stubs are for linking alone: -L/usr/local/cuda/lib64/stubs -lcuda");
}

/* Of "/a/libcuda.so.1 (535.1) /b/libcuda.so.1 (550.2)" the one of this version, or NULL. */
static const char *other_of_version(pc__exam *e, const pc_probe_library *l, const char *version)
{
    char one[512], is[64];
    for (const char *at = l->others; at && *at; at = pc__behind(at, ')'))
        if (sscanf(at, "%511s (%63[^)]", one, is) == 2 && !strcmp(is, version))
            return pc__keep(e->m, one);
    return NULL;
}

static void fix_mixed(pc__exam *e, pc_finding *f, const char *path, bool runfile)
{
    if (e->container) {
        pc__fix(e, f,
                "# remove the driver from the image (packages libnvidia-* and libcuda1): a container takes the host's");
        return;
    }
    if (pc__by_variable(e, path)) {
        pc__fix_order(e, f, path);
        return;
    }
    if (runfile)
        pc__fix(e, f, "sudo nvidia-uninstall # removes what the runfile (NVIDIA-Linux-*.run) installed");
    else
        pc__fix(e, f, "ls -l %s* # whose is it? dpkg -S or rpm -qf says; remove what no package owns", path);
    if (e->packages == PC__APT_UBUNTU || e->packages == PC__APT)
        pc__fix(e, f, "sudo apt install --reinstall 'libnvidia-compute-*' # Debian: libcuda1 libnvidia-ml1");
    else if (e->packages == PC__DNF || e->packages == PC__DNF_FEDORA)
        pc__fix(e, f, "sudo dnf reinstall '*nvidia*'");
    pc__fix(e, f, "sudo ldconfig && sudo reboot");
}

/* The library that fits the kernel's module is there, and another one is found before it. */
void pc__check_mixed(pc__exam *e)
{
    static const char *const names[] = {"NVML", "CUDA driver"};
    const pc_machine *m = e->machine;
    bool nvml_bad = !m->nvml.known && m->nvml.why && strstr(m->nvml.why, "mismatch");
    bool cuda_bad = m->cuda_init.known && !strncmp(m->cuda_init.text, "error 803", 9);
    if (!m->driver.known || !(nvml_bad || cuda_bad))
        return;
    for (int i = 0; i < PC__COUNT(names); i++) {
        const pc_probe_library *l = pc__library_named(e, names[i]);
        if (l && l->path && !strncmp(l->path, "/run/opengl-driver/", 19))
            continue; /* NixOS has one place, which a new generation changes before the kernel does */
        const char *right = l && l->path && l->version ? other_of_version(e, l, m->driver.text) : NULL;
        bool wrong = l && l->path && l->version && strchr(l->version, '.') && strcmp(l->version, m->driver.text);
        bool runfile = pc__root_exists(e->m->root, "usr/bin/nvidia-uninstall") ||
                       pc__root_exists(e->m->root, "var/log/nvidia-installer.log");
        bool alone = !nvml_bad && cuda_bad && i == 1; /* NVML fits, and libcuda does not */
        if (!wrong || !(right || runfile || alone || pc__by_variable(e, l->path)))
            continue;
        pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
        pc__what(e, f,
                 "Two installations of the driver are mixed: the loader takes libraries of another version than "
                 "the module in the kernel.");
        pc__how(e, f, "The kernel has %s; the loader takes %s, which is %s%s.", m->driver.text, l->path, l->version,
                pc__by_variable(e, l->path) ? " (by LD_LIBRARY_PATH)" : "");
        if (right)
            pc__how(e, f, "The right one, %s, is behind it.", right);
        if (runfile)
            pc__how(e, f, "A runfile has installed a driver here (%s).",
                    pc__root_exists(e->m->root, "usr/bin/nvidia-uninstall") ? "/usr/bin/nvidia-uninstall"
                                                                            : "/var/log/nvidia-installer.log");
        if (nvml_bad)
            pc__how(e, f, "NVML says: %s", m->nvml.why);
        else
            pc__how(e, f, "cuInit says: %s", m->cuda_init.text);
        fix_mixed(e, f, l->path, runfile);
        return;
    }
}

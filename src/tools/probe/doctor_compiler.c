/* doctor_compiler.c: is the host's compiler one that nvcc takes? nvcc's own header says up to which (host_config.h). */
#include "probe/doctor.h"

#include <ctype.h>
#include <stdlib.h>

/* Where the header cannot be read: after the tables of NVIDIA's "CUDA Installation Guide for Linux". */
static int newest_gcc(const char *toolkit)
{
    static const struct {
        int from, gcc;
    } known[] = {{1300, 15}, {1208, 14}, {1204, 13}, {1201, 12}, {1200, 12},
                 {1104, 11}, {1101, 10}, {1100, 9},  {1010, 8}};
    int version = pc__version_number(toolkit);
    for (int i = 0; i < PC__COUNT(known); i++)
        if (version >= known[i].from && version / 100 <= 13)
            return known[i].gcc;
    return 0;
}

/* "#if __GNUC__ > 13" in the toolkit's header */
static int accepted_gcc(pc__exam *e, const pc_probe_toolkit *toolkit)
{
    static const char *const headers[] = {"targets/x86_64-linux/include/crt/host_config.h",
                                          "targets/sbsa-linux/include/crt/host_config.h", "include/crt/host_config.h",
                                          "include/host_config.h"};
    static const char words[] = "#if __GNUC__ > ";
    char path[1100];
    for (int i = 0; i < PC__COUNT(headers); i++) {
        snprintf(path, sizeof path, "%s/%s", toolkit->path + 1, headers[i]);
        char *line = pc__root_lines(e->m->root, path, words);
        int newest = line ? atoi(line + strlen(words)) : 0;
        pc__free(line);
        if (newest > 3)
            return newest;
    }
    return newest_gcc(toolkit->version);
}

/* gcc-14, x86_64-linux-gnu-gcc-14 */
static int version_in(const char *name)
{
    const char *dash = strrchr(name, '-');
    return dash && isdigit((unsigned char)dash[1]) ? atoi(dash + 1) : 0;
}

static void look_version(void *context, const char *name)
{
    int *newest = context;
    if (isdigit((unsigned char)*name))
        *newest = PC__MAX(*newest, atoi(name));
}

/* The number of the gcc that "gcc" is: by its link's end, else by the newest folder of its parts. */
static int default_gcc(pc__exam *e)
{
    static const char *const parts[] = {"usr/lib/gcc/x86_64-linux-gnu",    "usr/lib/gcc/x86_64-redhat-linux",
                                        "usr/lib64/gcc/x86_64-suse-linux", "usr/lib/gcc/x86_64-pc-linux-gnu",
                                        "usr/lib/gcc/aarch64-linux-gnu",   "usr/lib/gcc/aarch64-redhat-linux"};
    char path[512] = "usr/bin/gcc", target[512];
    for (int hops = 0; hops < 6 && pc__root_link(e->m->root, path, target, sizeof target); hops++) {
        if (version_in(target))
            return version_in(target);
        snprintf(path, sizeof path, "%s%.480s", target[0] == '/' ? "" : "usr/bin/", target + (target[0] == '/'));
    }
    int newest = 0;
    if (pc__root_exists(e->m->root, "usr/bin/gcc"))
        for (int i = 0; i < PC__COUNT(parts) && !newest; i++)
            pc__root_list(e->m->root, parts[i], "", look_version, &newest);
    return newest;
}

void pc__check_compiler(pc__exam *e)
{
    static const char *const chosen[] = {"NVCC_CCBIN", "CUDAHOSTCXX", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"};
    const pc_probe_toolkit *used = NULL;
    for (int i = e->machine->toolkit_count; i-- > 0;)
        used = e->machine->toolkits[i].on_path || !used ? &e->machine->toolkits[i] : used;
    if (!used || !pc__has_nvcc(e, used))
        return;
    for (int i = 0; i < PC__COUNT(chosen); i++)
        if (pc__root_env(e->m->root, chosen[i]))
            return; /* another compiler than "gcc" was chosen */
    int newest = accepted_gcc(e, used), gcc = default_gcc(e);
    if (!newest || gcc <= newest)
        return;
    pc_finding *f = pc__found(e, e->options->job == PC_JOB_BUILD ? PC_SEVERITY_WRONG : PC_SEVERITY_ADVICE, NULL);
    pc__what(e, f, "The host's compiler, gcc %d, is too new for nvcc of CUDA %s: it takes gcc up to %d.", gcc,
             used->version, newest);
    pc__how(e, f,
            "nvcc's own header stops with \"unsupported GNU version! gcc versions later than %d are not "
            "supported!\"; /usr/bin/gcc is gcc %d.",
            newest, gcc);
    pc__fix(e, f, "%s",
            pc__install(e, pc__keepf(e->m, "gcc-%d g++-%d", newest, newest),
                        pc__keepf(e->m, "gcc%d gcc%d-c++", newest, newest),
                        pc__keepf(e->m, "gcc%d gcc%d-c++", newest, newest), pc__keepf(e->m, "gcc%d", newest)));
    pc__fix(e, f, "export NVCC_CCBIN=g++-%d # CMake: -DCMAKE_CUDA_HOST_COMPILER=g++-%d", newest, newest);
    pc__fix(e, f, "# or a newer toolkit, if the driver is new enough for it");
}

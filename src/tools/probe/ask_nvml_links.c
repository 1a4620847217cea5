/* ask_nvml_links.c: what a device is, what it is connected to, how it is divided. */
#include "probe/ask_nvml.h"

#include <dlfcn.h>

static void ask_kind(pc__asking *a)
{
    static const char *const architectures[] = {"Kepler", "Maxwell", "Pascal", "Volta",    "Turing",
                                                "Ampere", "Ada",     "Hopper", "Blackwell"};
    static const char *const modes[] = {"default", "exclusive thread", "prohibited", "exclusive process"};
    static const char *const states[] = {"not supported", "not started", "in progress", "completed"};
    int major, minor, mode;
    unsigned architecture;
    int (*f)(pc__nvml_device, int *, int *) =
        pc__nvml_function(a, "compute_capability", "nvmlDeviceGetCudaComputeCapability");
    if (f && pc__nvml_fine(a, "compute_capability", f(a->device, &major, &minor)))
        pc__say(a->answer, "compute_capability = %d.%d", major, minor);
    int (*g)(pc__nvml_device, unsigned *) = pc__nvml_function(a, "architecture", "nvmlDeviceGetArchitecture");
    if (g && pc__nvml_fine(a, "architecture", g(a->device, &architecture))) {
        if (architecture - 2 < (unsigned)PC__COUNT(architectures))
            pc__say(a->answer, "architecture = %s", architectures[architecture - 2]);
        else
            pc__say(a->answer, "architecture ! NVML says %u, which is newer than this program", architecture);
    }
    int (*h)(pc__nvml_device, int *) = pc__nvml_function(a, "compute_mode", "nvmlDeviceGetComputeMode");
    if (h && pc__nvml_fine(a, "compute_mode", h(a->device, &mode)))
        pc__say(a->answer, "compute_mode = %s", mode >= 0 && mode < PC__COUNT(modes) ? modes[mode] : "other");
    pc__nvml_fabric fabric = {0};
    int (*k)(pc__nvml_device, pc__nvml_fabric *) = pc__nvml_function(a, "fabric_state", "nvmlDeviceGetGpuFabricInfo");
    if (k && pc__nvml_fine(a, "fabric_state", k(a->device, &fabric))) {
        const char *state = fabric.state < PC__COUNT(states) ? states[fabric.state] : "other";
        if (fabric.state == 3 && fabric.status)
            pc__say(a->answer, "fabric_state = %s with an error: %s", state, pc__nvml_words(a->nvml, fabric.status));
        else
            pc__say(a->answer, "fabric_state = %s", state);
    }
}

static void ask_link(pc__asking *a, int link)
{
    static const char *const kinds[] = {"gpu", "cpu", "switch"};
    pc__nvml_pci pci = {.address = "?"};
    int kind = -1;
    int (*f)(pc__nvml_device, unsigned, pc__nvml_pci *) =
        dlsym(a->nvml->library, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
    int (*g)(pc__nvml_device, unsigned, int *) = dlsym(a->nvml->library, "nvmlDeviceGetNvLinkRemoteDeviceType");
    if (f && f(a->device, (unsigned)link, &pci))
        snprintf(pci.address, sizeof pci.address, "?");
    if (g && g(a->device, (unsigned)link, &kind))
        kind = -1;
    pc__say(a->answer, "link %d %s %s", link, kind >= 0 && kind < PC__COUNT(kinds) ? kinds[kind] : "unknown",
            pci.address);
}

static void ask_links(pc__asking *a)
{
    static const double versions[] = {0, 1, 2, 2.2, 3, 3.1, 4, 5, 6}; /* NVML counts them */
    int links = 0, active_links = 0, silent = 0, up = 0;
    unsigned version = 0;
    int (*f)(pc__nvml_device, unsigned, int *) = pc__nvml_function(a, "nvlinks", "nvmlDeviceGetNvLinkState");
    int (*g)(pc__nvml_device, unsigned, unsigned *) = dlsym(a->nvml->library, "nvmlDeviceGetNvLinkVersion");
    for (int i = 0; f && i < PC__NVML_LINKS; i++) {
        const int code = f(a->device, (unsigned)i, &up);
        if (code == PC__NVML_INVALID) /* there are no more */
            break;
        silent += code && code != PC__NVML_NOT_SUPPORTED;
        links += !code;
        if (code || !up)
            continue;
        active_links++;
        if (!version && g && g(a->device, (unsigned)i, &version))
            version = 0;
        ask_link(a, i);
    }
    if (!f)
        return;
    pc__say_number(a, "nvlinks", links ? links + silent : 0); /* where none answers it is not the links */
    pc__say_number(a, "nvlinks_active", active_links);
    if (version < (unsigned)PC__COUNT(versions) && versions[version] > 0)
        pc__say_number(a, "nvlink_version", versions[version]);
    else if (version)
        pc__say(a->answer, "nvlink_version ! NVML's number for it is %u, which is newer than this program", version);
    else
        pc__say(a->answer, "nvlink_version ! no NVLink is up");
}

static void ask_migs(pc__asking *a)
{
    unsigned most = 0;
    int (*f)(pc__nvml_device, unsigned *) = dlsym(a->nvml->library, "nvmlDeviceGetMaxMigDeviceCount");
    int (*g)(pc__nvml_device, unsigned, pc__nvml_device *) =
        dlsym(a->nvml->library, "nvmlDeviceGetMigDeviceHandleByIndex");
    int (*h)(pc__nvml_device, char *, unsigned) = dlsym(a->nvml->library, "nvmlDeviceGetUUID");
    int (*k)(pc__nvml_device, pc__nvml_bar1 *) = dlsym(a->nvml->library, "nvmlDeviceGetMemoryInfo");
    if (!f || !g || !h || !k || f(a->device, &most))
        return;
    for (unsigned i = 0; i < most && i < 16; i++) {
        pc__nvml_device part;
        char uuid[96];
        pc__nvml_bar1 memory;
        pc__say(a->answer, "call nvmlDeviceGetMigDeviceHandleByIndex for %s", a->nvml->address[a->index]);
        if (g(a->device, i, &part) || h(part, uuid, sizeof uuid))
            continue;
        if (k(part, &memory))
            pc__say(a->answer, "mig %s ?", uuid);
        else
            pc__say(a->answer, "mig %s %llu", uuid, memory.total);
    }
}

void pc__ask_identity(pc__asking *a)
{
    ask_kind(a);
    ask_links(a);
    ask_migs(a);
}

/* ask_nvml.c: what NVML says, line by line. Runs in the child process of ask.c alone. */
#include "probe/ask.h"
#include "probe/nvml.h"

#include <dlfcn.h>
#include <stdlib.h>

#define DEVICES_MAX 64

typedef pc__nvml_device device;

struct pc__nvml {
    void *library;
    const char *(*error_text)(int code);
    unsigned count;
    bool ready;
    device devices[DEVICES_MAX];
    char address[DEVICES_MAX][32];
};

/* How a function of NVML is called, behind the device. */
typedef enum shape { TEXT, TEXT_ALONE, NUMBER, NUMBER_OF, LONG, PAIR, ECC } shape;

typedef struct row {
    const char *key, *function;
    shape shape;
    bool changes;
    int argument, second;   /* of NUMBER_OF and ECC */
    double scale;           /* 0: 1 */
    const char *second_key; /* of PAIR */
} row;

static const row rows[] = {
    {"model", "nvmlDeviceGetName", TEXT, false, 0, 0, 0, NULL},
    {"uuid", "nvmlDeviceGetUUID", TEXT, false, 0, 0, 0, NULL},
    {"serial", "nvmlDeviceGetSerial", TEXT, false, 0, 0, 0, NULL},
    {"vbios", "nvmlDeviceGetVbiosVersion", TEXT, false, 0, 0, 0, NULL},
    {"gsp_firmware", "nvmlDeviceGetGspFirmwareVersion", TEXT_ALONE, false, 0, 0, 0, NULL},
    {"minor", "nvmlDeviceGetMinorNumber", NUMBER, false, 0, 0, 0, NULL},
    {"persistence", "nvmlDeviceGetPersistenceMode", NUMBER, false, 0, 0, 0, NULL},
    {"display_active", "nvmlDeviceGetDisplayActive", NUMBER, false, 0, 0, 0, NULL},
    {"ecc", "nvmlDeviceGetEccMode", PAIR, false, 0, 0, 0, "ecc_pending"},
    {"mig", "nvmlDeviceGetMigMode", PAIR, false, 0, 0, 0, "mig_pending"},
    {"pcie_generation_max", "nvmlDeviceGetMaxPcieLinkGeneration", NUMBER, false, 0, 0, 0, NULL},
    {"pcie_generation_device", "nvmlDeviceGetGpuMaxPcieLinkGeneration", NUMBER, false, 0, 0, 0, NULL},
    {"pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth", NUMBER, false, 0, 0, 0, NULL},
    {"pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration", NUMBER, true, 0, 0, 0, NULL},
    {"pcie_width", "nvmlDeviceGetCurrPcieLinkWidth", NUMBER, true, 0, 0, 0, NULL},
    {"pcie_replays", "nvmlDeviceGetPcieReplayCounter", NUMBER, true, 0, 0, 0, NULL},
    {"utilization_encoder", "nvmlDeviceGetEncoderUtilization", PAIR, true, 0, 0, 0, NULL},
    {"utilization_decoder", "nvmlDeviceGetDecoderUtilization", PAIR, true, 0, 0, 0, NULL},
    {"temperature", "nvmlDeviceGetTemperature", NUMBER_OF, true, 0, 0, 0, NULL},
    {"temperature_shutdown", "nvmlDeviceGetTemperatureThreshold", NUMBER_OF, false, 0, 0, 0, NULL},
    {"temperature_slowdown", "nvmlDeviceGetTemperatureThreshold", NUMBER_OF, false, 1, 0, 0, NULL},
    {"fan", "nvmlDeviceGetFanSpeed", NUMBER, true, 0, 0, 0, NULL},
    {"power", "nvmlDeviceGetPowerUsage", NUMBER, true, 0, 0, 1e-3, NULL},
    {"power_limit", "nvmlDeviceGetPowerManagementLimit", NUMBER, false, 0, 0, 1e-3, NULL},
    {"power_limit_default", "nvmlDeviceGetPowerManagementDefaultLimit", NUMBER, false, 0, 0, 1e-3, NULL},
    {"power_limit_enforced", "nvmlDeviceGetEnforcedPowerLimit", NUMBER, true, 0, 0, 1e-3, NULL},
    {"power_limit_min", "nvmlDeviceGetPowerManagementLimitConstraints", PAIR, false, 0, 0, 1e-3, "power_limit_max"},
    {"clock_graphics", "nvmlDeviceGetClockInfo", NUMBER_OF, true, 0, 0, 0, NULL},
    {"clock_sm", "nvmlDeviceGetClockInfo", NUMBER_OF, true, 1, 0, 0, NULL},
    {"clock_memory", "nvmlDeviceGetClockInfo", NUMBER_OF, true, 2, 0, 0, NULL},
    {"clock_video", "nvmlDeviceGetClockInfo", NUMBER_OF, true, 3, 0, 0, NULL},
    {"clock_graphics_max", "nvmlDeviceGetMaxClockInfo", NUMBER_OF, false, 0, 0, 0, NULL},
    {"clock_sm_max", "nvmlDeviceGetMaxClockInfo", NUMBER_OF, false, 1, 0, 0, NULL},
    {"clock_memory_max", "nvmlDeviceGetMaxClockInfo", NUMBER_OF, false, 2, 0, 0, NULL},
    {"clock_video_max", "nvmlDeviceGetMaxClockInfo", NUMBER_OF, false, 3, 0, 0, NULL},
    {"ecc_corrected", "nvmlDeviceGetTotalEccErrors", ECC, true, 0, 0, 0, NULL},
    {"ecc_uncorrected", "nvmlDeviceGetTotalEccErrors", ECC, true, 1, 0, 0, NULL},
    {"ecc_corrected_ever", "nvmlDeviceGetTotalEccErrors", ECC, true, 0, 1, 0, NULL},
    {"ecc_uncorrected_ever", "nvmlDeviceGetTotalEccErrors", ECC, true, 1, 1, 0, NULL},
};

typedef struct asking {
    pc__answer *answer;
    pc__nvml *nvml;
    int index;
    device device;
} asking;

static const char *words(const pc__nvml *nvml, int code)
{
    const char *text = nvml->error_text ? nvml->error_text(code) : NULL;
    return text ? text : "NVML failed";
}

/* The function, announced; NULL with the key said to be unknown. */
static void *function_for(asking *a, const char *key, const char *name)
{
    void *function = dlsym(a->nvml->library, name);
    if (function)
        pc__say(a->answer, "call %s%s%s", name, a->index >= 0 ? " for " : "",
                a->index >= 0 ? a->nvml->address[a->index] : "");
    else
        pc__say(a->answer, "%s ! this driver's NVML has no %s", key, name);
    return function;
}

static bool fine(asking *a, const char *key, int code)
{
    if (code != PC__NVML_FINE)
        pc__say(a->answer, "%s ! %s", key, words(a->nvml, code));
    return code == PC__NVML_FINE;
}

static void say_number(asking *a, const char *key, double number)
{
    pc__say(a->answer, "%s = %.15g", key, number);
}

static void ask_row(asking *a, const row *r)
{
    char text[128] = "";
    unsigned first = 0, second = 0;
    unsigned long long wide = 0;
    void *f = function_for(a, r->key, r->function);
    int code = 0;
    if (!f)
        return;
    switch (r->shape) {
    case TEXT:
        code = ((int (*)(device, char *, unsigned))f)(a->device, text, sizeof text);
        break;
    case TEXT_ALONE:
        code = ((int (*)(device, char *))f)(a->device, text);
        break;
    case NUMBER:
        code = ((int (*)(device, unsigned *))f)(a->device, &first);
        break;
    case NUMBER_OF:
        code = ((int (*)(device, int, unsigned *))f)(a->device, r->argument, &first);
        break;
    case LONG:
        code = ((int (*)(device, unsigned long long *))f)(a->device, &wide);
        break;
    case PAIR:
        code = ((int (*)(device, unsigned *, unsigned *))f)(a->device, &first, &second);
        break;
    case ECC:
        code = ((int (*)(device, int, int, unsigned long long *))f)(a->device, r->argument, r->second, &wide);
        break;
    }
    if (!fine(a, r->key, code))
        return;
    double scale = r->scale != 0 ? r->scale : 1;
    if (r->shape == TEXT || r->shape == TEXT_ALONE)
        pc__say(a->answer, "%s = %s", r->key, text);
    else
        say_number(a, r->key, (r->shape == LONG || r->shape == ECC ? (double)wide : (double)first) * scale);
    if (r->second_key)
        say_number(a, r->second_key, second * scale);
}

static void ask_memory(asking *a)
{
    pc__nvml_memory memory = {.version = sizeof memory | 2u << 24};
    int (*f)(device, pc__nvml_memory *) = function_for(a, "memory_total", "nvmlDeviceGetMemoryInfo_v2");
    if (f && fine(a, "memory_total", f(a->device, &memory))) {
        say_number(a, "memory_total", (double)memory.total);
        say_number(a, "memory_reserved", (double)memory.reserved);
        say_number(a, "memory_used", (double)memory.used);
        say_number(a, "memory_free", (double)memory.free);
    } else { /* of older drivers; it counts what is reserved as used */
        pc__nvml_bar1 old;
        int (*g)(device, pc__nvml_bar1 *) = function_for(a, "memory_total", "nvmlDeviceGetMemoryInfo");
        if (g && fine(a, "memory_total", g(a->device, &old))) {
            say_number(a, "memory_total", (double)old.total);
            say_number(a, "memory_used", (double)old.used);
            say_number(a, "memory_free", (double)old.free);
        }
    }
    pc__nvml_bar1 bar1;
    int (*b)(device, pc__nvml_bar1 *) = function_for(a, "bar1_total", "nvmlDeviceGetBAR1MemoryInfo");
    if (b && fine(a, "bar1_total", b(a->device, &bar1))) {
        say_number(a, "bar1_total", (double)bar1.total);
        say_number(a, "bar1_used", (double)bar1.used);
    }
}

static void ask_use(asking *a)
{
    pc__nvml_use use;
    int (*f)(device, pc__nvml_use *) = function_for(a, "utilization_gpu", "nvmlDeviceGetUtilizationRates");
    if (!f)
        return;
    int code = f(a->device, &use);
    if (fine(a, "utilization_gpu", code) && fine(a, "utilization_memory", code)) {
        say_number(a, "utilization_gpu", use.gpu);
        say_number(a, "utilization_memory", use.memory);
    }
}

static void ask_reasons(asking *a)
{
    static const char *const names[] = {
        "idle",          "application clocks",        "software power cap",        "hardware slowdown",
        "sync boost",    "software thermal slowdown", "hardware thermal slowdown", "hardware power brake",
        "display clocks"};
    static const char *const calls[] = {"nvmlDeviceGetCurrentClocksEventReasons",
                                        "nvmlDeviceGetCurrentClocksThrottleReasons"};
    unsigned long long reasons = 0;
    bool newer = dlsym(a->nvml->library, calls[0]) != NULL;
    int (*f)(device, unsigned long long *) = function_for(a, "clock_reasons", calls[!newer]);
    if (!f || !fine(a, "clock_reasons", f(a->device, &reasons)))
        return;
    char text[256] = "";
    size_t used = 0;
    for (int i = 0; i < PC__COUNT(names); i++)
        if (reasons >> i & 1)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? ", " : "", names[i]);
    pc__say(a->answer, "clock_reasons = %s", used ? text : "nothing");
}

static void ask_state(asking *a)
{
    int state;
    int (*f)(device, int *) = function_for(a, "performance_state", "nvmlDeviceGetPerformanceState");
    if (f && fine(a, "performance_state", f(a->device, &state)))
        pc__say(a->answer, "performance_state = P%d", state);
    unsigned corrected, uncorrected, pending, failed;
    int (*g)(device, unsigned *, unsigned *, unsigned *, unsigned *) =
        function_for(a, "rows_remapped_corrected", "nvmlDeviceGetRemappedRows");
    if (!g)
        return;
    int code = g(a->device, &corrected, &uncorrected, &pending, &failed);
    if (!fine(a, "rows_remapped_corrected", code)) {
        pc__say(a->answer, "rows_remapped_uncorrected ! %s", words(a->nvml, code));
        pc__say(a->answer, "rows_pending ! %s", words(a->nvml, code));
        pc__say(a->answer, "rows_failed ! %s", words(a->nvml, code));
        return;
    }
    say_number(a, "rows_remapped_corrected", corrected);
    say_number(a, "rows_remapped_uncorrected", uncorrected);
    say_number(a, "rows_pending", pending);
    say_number(a, "rows_failed", failed);
}

static void ask_identity(asking *a)
{
    static const char *const architectures[] = {"Kepler", "Maxwell", "Pascal", "Volta",    "Turing",
                                                "Ampere", "Ada",     "Hopper", "Blackwell"};
    static const char *const modes[] = {"default", "exclusive thread", "prohibited", "exclusive process"};
    static const char *const states[] = {"not supported", "not started", "in progress", "completed"};
    int major, minor, mode;
    unsigned architecture;
    int (*f)(device, int *, int *) = function_for(a, "compute_capability", "nvmlDeviceGetCudaComputeCapability");
    if (f && fine(a, "compute_capability", f(a->device, &major, &minor)))
        pc__say(a->answer, "compute_capability = %d.%d", major, minor);
    int (*g)(device, unsigned *) = function_for(a, "architecture", "nvmlDeviceGetArchitecture");
    if (g && fine(a, "architecture", g(a->device, &architecture))) {
        if (architecture - 2 < (unsigned)PC__COUNT(architectures))
            pc__say(a->answer, "architecture = %s", architectures[architecture - 2]);
        else
            pc__say(a->answer, "architecture ! NVML says %u, which is newer than this program", architecture);
    }
    int (*h)(device, int *) = function_for(a, "compute_mode", "nvmlDeviceGetComputeMode");
    if (h && fine(a, "compute_mode", h(a->device, &mode)))
        pc__say(a->answer, "compute_mode = %s", mode >= 0 && mode < PC__COUNT(modes) ? modes[mode] : "other");
    pc__nvml_fabric fabric = {0};
    int (*k)(device, pc__nvml_fabric *) = function_for(a, "fabric_state", "nvmlDeviceGetGpuFabricInfo");
    if (k && fine(a, "fabric_state", k(a->device, &fabric))) {
        const char *state = fabric.state < PC__COUNT(states) ? states[fabric.state] : "other";
        if (fabric.state == 3 && fabric.status)
            pc__say(a->answer, "fabric_state = %s with an error: %s", state, words(a->nvml, fabric.status));
        else
            pc__say(a->answer, "fabric_state = %s", state);
    }
}

static void ask_link(asking *a, int link)
{
    static const char *const kinds[] = {"gpu", "cpu", "switch"};
    pc__nvml_pci pci = {.address = "?"};
    int kind = -1;
    int (*f)(device, unsigned, pc__nvml_pci *) = dlsym(a->nvml->library, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
    int (*g)(device, unsigned, int *) = dlsym(a->nvml->library, "nvmlDeviceGetNvLinkRemoteDeviceType");
    if (f && f(a->device, (unsigned)link, &pci))
        snprintf(pci.address, sizeof pci.address, "?");
    if (g && g(a->device, (unsigned)link, &kind))
        kind = -1;
    pc__say(a->answer, "link %d %s %s", link, kind >= 0 && kind < PC__COUNT(kinds) ? kinds[kind] : "unknown",
            pci.address);
}

static void ask_links(asking *a)
{
    int links = 0, active_links = 0, up;
    unsigned version = 0;
    int (*f)(device, unsigned, int *) = function_for(a, "nvlinks", "nvmlDeviceGetNvLinkState");
    int (*g)(device, unsigned, unsigned *) = dlsym(a->nvml->library, "nvmlDeviceGetNvLinkVersion");
    for (int i = 0; f && i < PC__NVML_LINKS && !f(a->device, (unsigned)i, &up); i++, links++) {
        if (!up)
            continue;
        active_links++;
        if (!version && g && g(a->device, (unsigned)i, &version))
            version = 0;
        ask_link(a, i);
    }
    if (!f)
        return;
    say_number(a, "nvlinks", links);
    say_number(a, "nvlinks_active", active_links);
    if (version)
        say_number(a, "nvlink_version", version);
    else
        pc__say(a->answer, "nvlink_version ! no NVLink is up");
}

static void ask_processes(asking *a, const char *kind, const char *name, const char *older)
{
    pc__nvml_process processes[128];
    unsigned count = PC__COUNT(processes);
    int (*f)(device, unsigned *, pc__nvml_process *) = dlsym(a->nvml->library, name);
    pc__say(a->answer, "call %s for %s", name, a->nvml->address[a->index]);
    if (!f)
        f = dlsym(a->nvml->library, older);
    int code = f ? f(a->device, &count, processes) : 13;
    if (code) {
        pc__say(a->answer, "processes ! %s", words(a->nvml, code));
        return;
    }
    pc__say(a->answer, "processes = known");
    for (unsigned i = 0; i < count && i < (unsigned)PC__COUNT(processes); i++)
        if (processes[i].memory == ~0ull)
            pc__say(a->answer, "process %u %s ?", processes[i].pid, kind);
        else
            pc__say(a->answer, "process %u %s %llu", processes[i].pid, kind, processes[i].memory);
}

static void ask_migs(asking *a)
{
    unsigned most = 0;
    int (*f)(device, unsigned *) = dlsym(a->nvml->library, "nvmlDeviceGetMaxMigDeviceCount");
    int (*g)(device, unsigned, device *) = dlsym(a->nvml->library, "nvmlDeviceGetMigDeviceHandleByIndex");
    int (*h)(device, char *, unsigned) = dlsym(a->nvml->library, "nvmlDeviceGetUUID");
    int (*k)(device, pc__nvml_bar1 *) = dlsym(a->nvml->library, "nvmlDeviceGetMemoryInfo");
    if (!f || !g || !h || !k || f(a->device, &most))
        return;
    for (unsigned i = 0; i < most && i < 16; i++) {
        device part;
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

static void ask_device(asking *a, bool again)
{
    pc__say(a->answer, "gpu %s", a->nvml->address[a->index]);
    if (!again)
        say_number(a, "index_pci", a->index);
    for (int i = 0; i < PC__COUNT(rows); i++)
        if (!again || rows[i].changes)
            ask_row(a, &rows[i]);
    ask_memory(a);
    ask_use(a);
    ask_reasons(a);
    ask_state(a);
    ask_processes(a, "compute", "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2");
    ask_processes(a, "graphics", "nvmlDeviceGetGraphicsRunningProcesses_v3",
                  "nvmlDeviceGetGraphicsRunningProcesses_v2");
    if (again)
        return;
    ask_identity(a);
    ask_links(a);
    ask_migs(a);
}

static void ask_system(asking *a)
{
    char text[128] = "";
    int version = 0;
    int (*f)(char *, unsigned) = function_for(a, "driver", "nvmlSystemGetDriverVersion");
    if (f && fine(a, "driver", f(text, sizeof text)))
        pc__say(a->answer, "driver = %s", text);
    f = function_for(a, "nvml", "nvmlSystemGetNVMLVersion");
    if (f && fine(a, "nvml", f(text, sizeof text)))
        pc__say(a->answer, "nvml = %s", text);
    int (*g)(int *) = function_for(a, "cuda_driver", "nvmlSystemGetCudaDriverVersion_v2");
    if (g && fine(a, "cuda_driver", g(&version)))
        pc__say(a->answer, "cuda_driver = %d.%d", version / 1000, version % 1000 / 10);
}

/* Open, and find the devices. False after saying why not. */
static bool open_nvml(asking *a, const char *library)
{
    pc__nvml *nvml = a->nvml;
    nvml->library = dlopen(library ? library : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library) {
        pc__say(a->answer, "nvml ! %s", dlerror());
        return false;
    }
    nvml->error_text = (const char *(*)(int))dlsym(nvml->library, "nvmlErrorString");
    pc__say(a->answer, "slow nvmlInit_v2");
    int (*start)(void) = (int (*)(void))dlsym(nvml->library, "nvmlInit_v2");
    int (*count)(unsigned *) = (int (*)(unsigned *))dlsym(nvml->library, "nvmlDeviceGetCount_v2");
    int (*get)(unsigned, device *) = (int (*)(unsigned, device *))dlsym(nvml->library, "nvmlDeviceGetHandleByIndex_v2");
    int (*pci)(device, pc__nvml_pci *) =
        (int (*)(device, pc__nvml_pci *))dlsym(nvml->library, "nvmlDeviceGetPciInfo_v3");
    if (!start || !count || !get || !pci) {
        pc__say(a->answer, "nvml ! the library is none, or older than 2018");
        return false;
    }
    int code = start();
    if (code) {
        pc__say(a->answer, "nvml ! %s (nvmlInit_v2: error %d)", words(nvml, code), code);
        return false;
    }
    ask_system(a);
    pc__say(a->answer, "call nvmlDeviceGetCount_v2");
    if (count(&nvml->count))
        nvml->count = 0;
    nvml->count = PC__MIN(nvml->count, DEVICES_MAX);
    for (unsigned i = 0; i < nvml->count; i++) {
        pc__nvml_pci info = {0};
        pc__say(a->answer, "slow nvmlDeviceGetHandleByIndex_v2 for GPU %u", i);
        code = get(i, &nvml->devices[i]);
        if (!code)
            code = pci(nvml->devices[i], &info);
        if (code) {
            nvml->devices[i] = NULL;
            pc__say(a->answer, "lost %u: %s", i, words(nvml, code));
        }
        snprintf(nvml->address[i], sizeof nvml->address[i], "%s", info.address);
    }
    return true;
}

void pc__ask_nvml(pc__answer *answer, pc__nvml **state, const char *library, bool again)
{
    if (!*state)
        *state = pc__calloc(1, sizeof **state);
    if (!*state)
        return;
    asking a = {answer, *state, -1, NULL};
    if (!a.nvml->ready && !(a.nvml->ready = open_nvml(&a, library)))
        return;
    for (unsigned i = 0; i < a.nvml->count; i++) {
        a.index = (int)i;
        a.device = a.nvml->devices[i];
        if (a.device)
            ask_device(&a, again);
    }
}

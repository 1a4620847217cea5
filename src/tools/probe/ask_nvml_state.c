/* ask_nvml_state.c: how much of a device is in use, and by whom. */
#include "probe/ask_nvml.h"

#include <dlfcn.h>

static void ask_memory(pc__asking *a)
{
    pc__nvml_memory memory = {.version = sizeof memory | 2u << 24};
    int (*f)(pc__nvml_device, pc__nvml_memory *) = pc__nvml_function(a, "memory_total", "nvmlDeviceGetMemoryInfo_v2");
    if (f && pc__nvml_fine(a, "memory_total", f(a->device, &memory))) {
        pc__say_number(a, "memory_total", (double)memory.total);
        pc__say_number(a, "memory_reserved", (double)memory.reserved);
        pc__say_number(a, "memory_used", (double)memory.used);
        pc__say_number(a, "memory_free", (double)memory.free);
    } else { /* of older drivers; it counts what is reserved as used */
        pc__nvml_bar1 old;
        int (*g)(pc__nvml_device, pc__nvml_bar1 *) = pc__nvml_function(a, "memory_total", "nvmlDeviceGetMemoryInfo");
        if (g && pc__nvml_fine(a, "memory_total", g(a->device, &old))) {
            pc__say_number(a, "memory_total", (double)old.total);
            pc__say_number(a, "memory_used", (double)old.used);
            pc__say_number(a, "memory_free", (double)old.free);
        }
    }
    pc__nvml_bar1 bar1;
    int (*b)(pc__nvml_device, pc__nvml_bar1 *) = pc__nvml_function(a, "bar1_total", "nvmlDeviceGetBAR1MemoryInfo");
    if (b && pc__nvml_fine(a, "bar1_total", b(a->device, &bar1))) {
        pc__say_number(a, "bar1_total", (double)bar1.total);
        pc__say_number(a, "bar1_used", (double)bar1.used);
    }
}

static void ask_use(pc__asking *a)
{
    pc__nvml_use use;
    int (*f)(pc__nvml_device, pc__nvml_use *) =
        pc__nvml_function(a, "utilization_gpu", "nvmlDeviceGetUtilizationRates");
    if (!f)
        return;
    int code = f(a->device, &use);
    if (pc__nvml_fine(a, "utilization_gpu", code) && pc__nvml_fine(a, "utilization_memory", code)) {
        pc__say_number(a, "utilization_gpu", use.gpu);
        pc__say_number(a, "utilization_memory", use.memory);
    }
}

static void ask_reasons(pc__asking *a)
{
    static const char *const names[] = {
        "idle",          "application clocks",        "software power cap",        "hardware slowdown",
        "sync boost",    "software thermal slowdown", "hardware thermal slowdown", "hardware power brake",
        "display clocks"};
    static const char *const calls[] = {"nvmlDeviceGetCurrentClocksEventReasons",
                                        "nvmlDeviceGetCurrentClocksThrottleReasons"};
    unsigned long long reasons = 0;
    bool newer = dlsym(a->nvml->library, calls[0]) != NULL;
    int (*f)(pc__nvml_device, unsigned long long *) = pc__nvml_function(a, "clock_reasons", calls[!newer]);
    if (!f || !pc__nvml_fine(a, "clock_reasons", f(a->device, &reasons)))
        return;
    char text[256] = "";
    size_t used = 0;
    for (int i = 0; i < PC__COUNT(names); i++)
        if (reasons >> i & 1)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? ", " : "", names[i]);
    pc__say(a->answer, "clock_reasons = %s", used ? text : "nothing");
}

static void ask_rows_of_memory(pc__asking *a)
{
    int state;
    int (*f)(pc__nvml_device, int *) = pc__nvml_function(a, "performance_state", "nvmlDeviceGetPerformanceState");
    if (f && pc__nvml_fine(a, "performance_state", f(a->device, &state))) {
        if (state >= 0 && state < PC__NVML_STATES)
            pc__say(a->answer, "performance_state = P%d", state);
        else
            pc__say(a->answer, "performance_state ! the driver does not know");
    }
    unsigned corrected, uncorrected, pending, failed;
    int (*g)(pc__nvml_device, unsigned *, unsigned *, unsigned *, unsigned *) =
        pc__nvml_function(a, "rows_remapped_corrected", "nvmlDeviceGetRemappedRows");
    if (!g)
        return;
    int code = g(a->device, &corrected, &uncorrected, &pending, &failed);
    if (!pc__nvml_fine(a, "rows_remapped_corrected", code)) {
        pc__say(a->answer, "rows_remapped_uncorrected ! %s", pc__nvml_words(a->nvml, code));
        pc__say(a->answer, "rows_pending ! %s", pc__nvml_words(a->nvml, code));
        pc__say(a->answer, "rows_failed ! %s", pc__nvml_words(a->nvml, code));
        return;
    }
    pc__say_number(a, "rows_remapped_corrected", corrected);
    pc__say_number(a, "rows_remapped_uncorrected", uncorrected);
    pc__say_number(a, "rows_pending", pending);
    pc__say_number(a, "rows_failed", failed);
}

/* `rest`: those of another kind could be asked for. */
static bool ask_processes(pc__asking *a, const char *kind, const char *name, const char *older, bool rest)
{
    static pc__nvml_process processes[2048]; /* a fork of a program with threads had better not allocate */
    unsigned count = PC__COUNT(processes);
    int (*f)(pc__nvml_device, unsigned *, pc__nvml_process *) = dlsym(a->nvml->library, name);
    pc__say(a->answer, "call %s for %s", name, a->nvml->address[a->index]);
    if (!f)
        f = dlsym(a->nvml->library, older);
    int code = f ? f(a->device, &count, processes) : 13;
    if (code) {
        pc__say(a->answer, "processes ! %s", pc__nvml_words(a->nvml, code));
        return false;
    }
    if (rest)
        pc__say(a->answer, "processes = known");
    for (unsigned i = 0; i < count && i < (unsigned)PC__COUNT(processes); i++)
        if (processes[i].memory == ~0ull)
            pc__say(a->answer, "process %u %s ?", processes[i].pid, kind);
        else
            pc__say(a->answer, "process %u %s %llu", processes[i].pid, kind, processes[i].memory);
    return true;
}

void pc__ask_state(pc__asking *a)
{
    ask_memory(a);
    ask_use(a);
    ask_reasons(a);
    ask_rows_of_memory(a);
    const bool known = ask_processes(a, "compute", "nvmlDeviceGetComputeRunningProcesses_v3",
                                     "nvmlDeviceGetComputeRunningProcesses_v2", true);
    ask_processes(a, "graphics", "nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2",
                  known);
}

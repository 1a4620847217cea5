/* nvml.c: a library that answers as NVIDIA's management library does, for one GPU that is not there. FAKE_NVML says how
 * it behaves: "hang" (one call never comes back), "hang-init" (the first one does not), "hang-deaf" (nor does it hear
 * signals), "crash", "kill", "exit" (one ends the process), "chatter" (it prints), "mismatch" (it does not start),
 * "forbidden" and "lost" (so is a second GPU), "links" (there are five, of which one answers with an error, and one is
 * none), "unknown" (values that mean so, and a list of processes that fails), "held" (most of the
 * memory is used, and no process is listed), "held-and-busy" (and the GPU computes), "unused" (nothing is).
 * FAKE_NVML_PROCESS is a process that computes, as long as it lives. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static int behaves(const char *how)
{
    const char *asked = getenv("FAKE_NVML");
    return asked && !strcmp(asked, how);
}

static void hang(void)
{
    for (;;)
        pause();
}

struct pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char address[32];
};

struct memory {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

struct process {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
};

static int temperature = 40;

static int held(void)
{
    return behaves("held") || behaves("held-and-busy");
}

EXPORT const char *nvmlErrorString(int code);
EXPORT const char *nvmlErrorString(int code)
{
    return code == 18   ? "Driver/library version mismatch"
           : code == 15 ? "GPU is lost"
           : code == 4  ? "Insufficient Permissions"
           : code == 3  ? "Not Supported"
                        : "Unknown Error";
}

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlInit_v2(void)
{
    if (behaves("hang-init"))
        hang();
    if (behaves("chatter")) {
        puts("noise on stdout");
        fputs("noise on stderr\n", stderr);
        fflush(stdout);
    }
    return behaves("mismatch") ? 18 : 0;
}

EXPORT int nvmlSystemGetDriverVersion(char *text, unsigned n);
EXPORT int nvmlSystemGetDriverVersion(char *text, unsigned n)
{
    snprintf(text, n, "999.1");
    return 0;
}

EXPORT int nvmlSystemGetNVMLVersion(char *text, unsigned n);
EXPORT int nvmlSystemGetNVMLVersion(char *text, unsigned n)
{
    snprintf(text, n, "1.999.1");
    return 0;
}

EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *version);
EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = 14020;
    return 0;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *count);
EXPORT int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = behaves("forbidden") || behaves("lost") ? 2 : 1;
    return 0;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = &temperature;
    return index == 0 ? 0 : behaves("forbidden") ? 4 : behaves("lost") ? 15 : 2;
}

EXPORT int nvmlDeviceGetPciInfo_v3(void *device, struct pci *pci);
EXPORT int nvmlDeviceGetPciInfo_v3(void *device, struct pci *pci)
{
    (void)device;
    memset(pci, 0, sizeof *pci);
    snprintf(pci->address, sizeof pci->address, "00007777:01:00.0");
    return 0;
}

EXPORT int nvmlDeviceGetName(void *device, char *text, unsigned n);
EXPORT int nvmlDeviceGetName(void *device, char *text, unsigned n)
{
    (void)device;
    snprintf(text, n, "Fake GPU");
    return 0;
}

/* Rises with every question, so that samples differ. */
EXPORT int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *value);
EXPORT int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *value)
{
    (void)device;
    *value = (unsigned)(sensor == 0 ? ++temperature : 0);
    return 0;
}

EXPORT int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts);
EXPORT int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
    (void)device;
    if (behaves("hang-deaf")) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        signal(SIGTERM, SIG_IGN);
    }
    if (behaves("hang") || behaves("hang-deaf"))
        hang();
    if (behaves("crash"))
        signal(SIGSEGV, SIG_DFL), raise(SIGSEGV);
    if (behaves("kill"))
        raise(SIGKILL);
    if (behaves("exit"))
        exit(0);
    *milliwatts = behaves("unknown") ? ~0u : 123400;
    return 0;
}

EXPORT int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *up);
EXPORT int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *up)
{
    static const int codes[] = {0, 999, 0, 3, 0};
    (void)device;
    *up = 1;
    return !behaves("links") ? 3 : link >= sizeof codes / sizeof *codes ? 2 : codes[link];
}

EXPORT int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory *memory);
EXPORT int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory *memory)
{
    (void)device;
    if (memory->version != (sizeof *memory | 2u << 24))
        return 25;
    *memory = (struct memory){memory->version, 1000, 100, 600, 300};
    if (held())
        memory->total = 16000000000, memory->used = 8000000000;
    return 0;
}

EXPORT int nvmlDeviceGetUtilizationRates(void *device, unsigned rates[2]);
EXPORT int nvmlDeviceGetUtilizationRates(void *device, unsigned rates[2])
{
    (void)device;
    rates[0] = behaves("held-and-busy") ? 100 : 0;
    rates[1] = 0;
    return 0;
}

EXPORT int nvmlDeviceGetFanSpeed(void *device, unsigned *percent);
EXPORT int nvmlDeviceGetFanSpeed(void *device, unsigned *percent)
{
    (void)device;
    *percent = ~0u;
    return behaves("unknown") ? 0 : 3;
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *processes);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *processes)
{
    (void)device;
    if (behaves("unknown"))
        return 999;
    *count = 0;
    if (held() || behaves("unused"))
        return 0;
    processes[0] = (struct process){1, 200, ~0u, ~0u};
    processes[1] = (struct process){999999999, ~0ull, ~0u, ~0u};
    *count = 2;
    const char *third = getenv("FAKE_NVML_PROCESS");
    if (third && kill(atoi(third), 0) == 0)
        processes[(*count)++] = (struct process){(unsigned)atoi(third), 1u << 30, ~0u, ~0u};
    return 0;
}

EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count, struct process *processes);
EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count, struct process *processes)
{
    (void)device;
    (void)processes;
    *count = 0;
    return 0;
}

EXPORT int nvmlDeviceGetPerformanceState(void *device, int *state);
EXPORT int nvmlDeviceGetPerformanceState(void *device, int *state)
{
    (void)device;
    *state = behaves("unknown") ? 32 : 2;
    return 0;
}

EXPORT int nvmlDeviceGetEncoderUtilization(void *device, unsigned *percent, unsigned *period);
EXPORT int nvmlDeviceGetEncoderUtilization(void *device, unsigned *percent, unsigned *period)
{
    (void)device;
    *percent = behaves("unknown") ? ~0u : 7;
    *period = 1;
    return 0;
}

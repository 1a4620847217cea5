/* ask_nvml.c: opening NVML and finding its devices. Runs in the child process of ask.c alone. */
#include "probe/ask_nvml.h"

#include "base/number.h"

#include <dlfcn.h>

const char *pc__nvml_words(const pc__nvml *nvml, int code)
{
    const char *text = nvml->error_text ? nvml->error_text(code) : NULL;
    return text ? text : "NVML failed";
}

void *pc__nvml_function(pc__asking *a, const char *key, const char *name)
{
    void *function = dlsym(a->nvml->library, name);
    if (function)
        pc__say(a->answer, "call %s%s%s", name, a->index >= 0 ? " for " : "",
                a->index >= 0 ? a->nvml->address[a->index] : "");
    else
        pc__say(a->answer, "%s ! this driver's NVML has no %s", key, name);
    return function;
}

bool pc__nvml_fine(pc__asking *a, const char *key, int code)
{
    if (code != PC__NVML_FINE)
        pc__say(a->answer, "%s ! %s", key, pc__nvml_words(a->nvml, code));
    return code == PC__NVML_FINE;
}

void pc__say_number(pc__asking *a, const char *key, double number)
{
    char text[32];
    const pc__plain_numbers plain = pc__plain_numbers_begin();
    snprintf(text, sizeof text, "%.15g", number);
    pc__plain_numbers_end(plain);
    pc__say(a->answer, "%s = %s", key, text);
}

void pc__say_counted(pc__asking *a, const char *key, unsigned number, double scale)
{
    if (number == ~0u)
        pc__say(a->answer, "%s ! the driver does not know", key);
    else
        pc__say_number(a, key, number * scale);
}

static void ask_device(pc__asking *a, bool again)
{
    pc__say(a->answer, "gpu %s", a->nvml->address[a->index]);
    if (!again)
        pc__say_number(a, "index_pci", a->index);
    pc__ask_rows(a, again);
    pc__ask_state(a);
    if (!again)
        pc__ask_identity(a);
}

static void ask_system(pc__asking *a)
{
    char text[128] = "";
    int version = 0;
    int (*f)(char *, unsigned) = pc__nvml_function(a, "driver", "nvmlSystemGetDriverVersion");
    if (f && pc__nvml_fine(a, "driver", f(text, sizeof text)))
        pc__say(a->answer, "driver = %s", text);
    f = pc__nvml_function(a, "nvml", "nvmlSystemGetNVMLVersion");
    if (f && pc__nvml_fine(a, "nvml", f(text, sizeof text)))
        pc__say(a->answer, "nvml = %s", text);
    int (*g)(int *) = pc__nvml_function(a, "cuda_driver", "nvmlSystemGetCudaDriverVersion_v2");
    if (g && pc__nvml_fine(a, "cuda_driver", g(&version)))
        pc__say(a->answer, "cuda_driver = %d.%d", version / 1000, version % 1000 / 10);
}

/* Open, and find the devices. False after saying why not. */
static bool open_nvml(pc__asking *a, const char *library)
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
    int (*get)(unsigned, pc__nvml_device *) =
        (int (*)(unsigned, pc__nvml_device *))dlsym(nvml->library, "nvmlDeviceGetHandleByIndex_v2");
    int (*pci)(pc__nvml_device, pc__nvml_pci *) =
        (int (*)(pc__nvml_device, pc__nvml_pci *))dlsym(nvml->library, "nvmlDeviceGetPciInfo_v3");
    if (!start || !count || !get || !pci) {
        pc__say(a->answer, "nvml ! the library is none, or older than 2018");
        return false;
    }
    int code = start();
    if (code) {
        pc__say(a->answer, "nvml ! %s (nvmlInit_v2: error %d)", pc__nvml_words(nvml, code), code);
        return false;
    }
    ask_system(a);
    pc__say(a->answer, "call nvmlDeviceGetCount_v2");
    if (count(&nvml->count))
        nvml->count = 0;
    nvml->count = PC__MIN(nvml->count, PC__NVML_DEVICES_MAX);
    for (unsigned i = 0; i < nvml->count; i++) {
        pc__nvml_pci info = {0};
        pc__say(a->answer, "slow nvmlDeviceGetHandleByIndex_v2 for GPU %u", i);
        code = get(i, &nvml->devices[i]);
        if (!code)
            code = pci(nvml->devices[i], &info);
        if (code == PC__NVML_NOT_SUPPORTED && nvml->devices[i]) { /* an integrated one */
            snprintf(info.address, sizeof info.address, PC__ADDRESS_INTEGRATED);
            code = 0;
        }
        if (code) {
            nvml->devices[i] = NULL;
            pc__say(a->answer, code == PC__NVML_NO_PERMISSION ? "forbidden %u: %s" : "lost %u: %s", i,
                    pc__nvml_words(nvml, code));
        }
        snprintf(nvml->address[i], sizeof nvml->address[i], "%s", info.address);
    }
    return true;
}

void pc__ask_nvml(pc__answer *answer, const char *library, bool again)
{
    static pc__nvml nvml; /* one child, one library: and a fork of a program with threads had better not allocate */
    pc__asking a = {answer, &nvml, -1, NULL};
    if (!nvml.ready && !(nvml.ready = open_nvml(&a, library)))
        return;
    for (unsigned i = 0; i < nvml.count; i++) {
        a.index = (int)i;
        a.device = nvml.devices[i];
        if (a.device)
            ask_device(&a, again);
    }
}

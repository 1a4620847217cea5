/* ask_nvml_rows.c: the functions of NVML that give a number or a text of a device, as a table. */
#include "probe/ask_nvml.h"

#include <dlfcn.h>

/* How a function of NVML is called, behind the device. */
typedef enum shape { TEXT, TEXT_ALONE, NUMBER, NUMBER_OF, PAIR, ECC } shape;

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

static void ask_row(pc__asking *a, const row *r)
{
    char text[128] = "";
    unsigned first = 0, second = 0;
    unsigned long long wide = 0;
    void *f = pc__nvml_function(a, r->key, r->function);
    int code = 0;
    if (!f)
        return;
    switch (r->shape) {
    case TEXT:
        code = ((int (*)(pc__nvml_device, char *, unsigned))f)(a->device, text, sizeof text);
        break;
    case TEXT_ALONE:
        code = ((int (*)(pc__nvml_device, char *))f)(a->device, text);
        break;
    case NUMBER:
        code = ((int (*)(pc__nvml_device, unsigned *))f)(a->device, &first);
        break;
    case NUMBER_OF:
        code = ((int (*)(pc__nvml_device, int, unsigned *))f)(a->device, r->argument, &first);
        break;
    case PAIR:
        code = ((int (*)(pc__nvml_device, unsigned *, unsigned *))f)(a->device, &first, &second);
        break;
    case ECC:
        code = ((int (*)(pc__nvml_device, int, int, unsigned long long *))f)(a->device, r->argument, r->second, &wide);
        break;
    }
    if (!pc__nvml_fine(a, r->key, code))
        return;
    double scale = r->scale != 0 ? r->scale : 1;
    if (r->shape == TEXT || r->shape == TEXT_ALONE)
        pc__say(a->answer, "%s = %s", r->key, text);
    else if (r->shape == ECC)
        pc__say_number(a, r->key, (double)wide * scale);
    else
        pc__say_counted(a, r->key, first, scale);
    if (r->second_key)
        pc__say_counted(a, r->second_key, second, scale);
}

void pc__ask_rows(pc__asking *a, bool again)
{
    for (int i = 0; i < PC__COUNT(rows); i++)
        if (!again || rows[i].changes)
            ask_row(a, &rows[i]);
}

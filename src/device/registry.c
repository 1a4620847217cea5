/* registry.c: the backends there are, and devices as text. The one place that knows backends by name. */
#include "device/plugin.h"

#include <ctype.h>
#include <stdlib.h>

extern const pc__backend pc__backend_cpu, pc__backend_sim;

static const pc__backend *const backends[PC_DEVICE_TYPES] = {[PC_CPU] = &pc__backend_cpu, [PC_SIM] = &pc__backend_sim};
static const char *const type_names[PC_DEVICE_TYPES] = {"cpu", "sim", "cuda"};

static _Thread_local pc_device current = {-1, 0};

static const pc__backend *find(int type, char *why, size_t n)
{
    return type == PC_CUDA ? pc__plugin_cuda(why, n) : backends[type];
}

const pc__backend *pc__backend_of(pc_device_type type)
{
    return (unsigned)type < PC_DEVICE_TYPES ? find((int)type, NULL, 0) : NULL;
}

int pc_device_count(pc_device_type type, char *why, size_t n)
{
    char unread[256];
    if (!why || !n)
        why = unread, n = sizeof unread;
    why[0] = 0;
    if ((unsigned)type >= PC_DEVICE_TYPES) {
        snprintf(why, n, "there is no device type %d", (int)type);
        return 0;
    }
    const pc__backend *backend = find((int)type, why, n);
    return backend ? PC__MIN(backend->count(why, n), PC__DEVICES_MAX) : 0;
}

char *pc_device_unavailable_reason(pc_device_type type, char *why, size_t n)
{
    PC__NEED_OR(NULL, why);
    if (pc_device_count(type, why, n) && n)
        why[0] = 0;
    return why;
}

bool pc_device_available(pc_device_type type)
{
    return pc_device_count(type, NULL, 0) > 0;
}

char *pc_device_name(pc_device device, char name[PC_DEVICE_NAME_MAX])
{
    PC__NEED_OR(NULL, name);
    if (device.type < 0 || device.type >= PC_DEVICE_TYPES)
        snprintf(name, PC_DEVICE_NAME_MAX, "none");
    else if (device.type == PC_CPU)
        snprintf(name, PC_DEVICE_NAME_MAX, "cpu");
    else
        snprintf(name, PC_DEVICE_NAME_MAX, "%s:%d", type_names[device.type], device.index);
    return name;
}

bool pc_device_equal(pc_device a, pc_device b)
{
    return a.type == b.type && a.index == b.index;
}

char *pc_device_list(char *text, size_t n)
{
    PC__NEED_OR(NULL, text);
    size_t used = (size_t)snprintf(text, n, "cpu");
    for (int type = PC_SIM; type < PC_DEVICE_TYPES; type++)
        for (int i = 0, count = pc_device_count(type, NULL, 0); i < count && used < n; i++)
            used += (size_t)snprintf(text + used, n - used, ", %s:%d", type_names[type], i);
    return text;
}

static pc_device fastest(void)
{
    return pc_device_available(PC_CUDA) ? (pc_device){PC_CUDA, 0} : PC_DEVICE_CPU;
}

pc_status pc__device_check(pc_device device, const char *who)
{
    if (device.type == PC_CPU && device.index == 0)
        return PC_OK;
    char name[PC_DEVICE_NAME_MAX], there[256], why[384] = "";
    bool known = device.type >= 0 && device.type < PC_DEVICE_TYPES;
    int count = known ? pc_device_count(device.type, why, sizeof why) : 0;
    if (device.index >= 0 && device.index < count)
        return PC_OK;
    return pc__fail(PC_ERR_DEVICE, "%s: there is no device %s%s%s; the devices are: %s", who,
                    pc_device_name(device, name), why[0] ? ": " : "", why, pc_device_list(there, sizeof there));
}

/* "cuda" or "cuda:1" for a type's name; *index is -1 without a number. False when it is neither. */
static bool parse_type(const char *text, const char *type, int *index)
{
    size_t n = strlen(type);
    if (strncmp(text, type, n) != 0 || (text[n] && text[n] != ':'))
        return false;
    *index = -1;
    if (!text[n])
        return true;
    char *end;
    long number = isdigit((unsigned char)text[n + 1]) ? strtol(text + n + 1, &end, 10) : -1;
    if (number < 0 || number > INT16_MAX || *end)
        return false;
    *index = (int)number;
    return true;
}

pc_status pc_device_parse(const char *text, pc_device *device)
{
    PC__NEED(device);
    *device = (pc_device){-1, 0};
    PC__NEED(text);
    if (strcmp(text, "auto") == 0) {
        *device = fastest();
        return PC_OK;
    }
    for (int type = 0; type < PC_DEVICE_TYPES; type++) {
        int index;
        if (!parse_type(text, type_names[type], &index) || (type == PC_CPU && index > 0))
            continue;
        pc_device now = pc_device_current();
        if (index < 0)
            index = now.type == type ? now.index : 0;
        pc_device found = {(int16_t)type, (int16_t)index};
        PC__TRY(pc__device_check(found, text));
        *device = found;
        return PC_OK;
    }
    char there[256];
    return pc__fail(PC_ERR_ARGUMENT, "\"%.40s\" is no device; write auto, cpu, sim:N or cuda:N (here: %s)", text,
                    pc_device_list(there, sizeof there));
}

pc_device pc_device_pick(const char *text)
{
    pc_device device = {-1, 0};
    PC__NEED_OR(device, text);
    return pc_device_parse(text, &device) == PC_OK ? device : (pc_device){-1, 0};
}

pc_device pc_device_current(void)
{
    if (current.type < 0)
        current = fastest();
    return current;
}

pc_status pc_device_set_current(pc_device device)
{
    PC__TRY(pc__device_check(device, "pc_device_set_current"));
    current = device;
    return PC_OK;
}

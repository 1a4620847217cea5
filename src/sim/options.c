/* options.c: how many sim devices there are and what they are like: from PARACORD_SIM or from the program. */
#include "sim/sim.h"

#include "base/number.h"

#include <paracord/memory.h>
#include <stdlib.h>

pc__sim_state pc__sim = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t once = PTHREAD_ONCE_INIT;

#define MEMORY ((int64_t)1 << 30)

static pc_status check(const pc_sim_options *o)
{
    if (o->devices < 0 || o->devices > PC__DEVICES_MAX)
        return pc__fail(PC_ERR_ARGUMENT, "%d sim devices: it goes from 0 to %d", o->devices, PC__DEVICES_MAX);
    if (o->memory < 0 || o->memory > (int64_t)1 << 42)
        return pc__fail(PC_ERR_ARGUMENT, "sim devices with %lld bytes of memory: it goes to 4 TiB",
                        (long long)o->memory);
    if (o->kernels < 0 || o->kernels > PC__SIM_KERNELS_MAX)
        return pc__fail(PC_ERR_ARGUMENT, "sim devices that run %d kernels at once: it goes from 1 to %d", o->kernels,
                        PC__SIM_KERNELS_MAX);
    if (!(o->bandwidth >= 0) || !(o->launch_latency >= 0 && o->launch_latency <= 10) ||
        !(o->kernel_time >= 0 && o->kernel_time <= 10))
        return pc__fail(PC_ERR_ARGUMENT, "sim devices: a bandwidth below 0, or a time that is not 0 to 10 seconds");
    return PC_OK;
}

static void set(const pc_sim_options *o)
{
    pc__sim.options = *o;
    pc__sim.options.memory = o->memory ? o->memory : MEMORY;
    pc__sim.options.kernels = o->kernels ? o->kernels : 2;
}

/* "64M" with a factor of 1024 or 1000, "20us" in seconds; NAN when it is neither. */
static bool parse_number(const char *text, const char *const *units, const double *factors, double *value)
{
    char *end;
    *value = pc__number_of(text, &end);
    if (end == text || !(*value >= 0 && *value <= 1e15))
        return false;
    if (!*end)
        return true;
    for (int i = 0; units[i]; i++)
        if (strcmp(end, units[i]) == 0) {
            *value *= factors[i];
            return true;
        }
    return false;
}

static bool parse_size(const char *text, double *value)
{
    static const char *const units[] = {"K", "M", "G", NULL};
    static const double factors[] = {1024, 1048576, 1073741824};
    return parse_number(text, units, factors, value);
}

static bool parse_rate(const char *text, double *value)
{
    static const char *const units[] = {"K", "M", "G", NULL};
    static const double factors[] = {1e3, 1e6, 1e9};
    return parse_number(text, units, factors, value);
}

static bool parse_time(const char *text, double *value)
{
    static const char *const units[] = {"s", "ms", "us", "ns", NULL};
    static const double factors[] = {1, 1e-3, 1e-6, 1e-9};
    return parse_number(text, units, factors, value);
}

static bool parse_count(const char *text, int *count)
{
    char *end;
    long n = strtol(text, &end, 10);
    *count = (int)n;
    return end != text && !*end && n > -1000000 && n < 1000000;
}

/* "kernel:17": on every device, its 17th operation of that kind; "kernel:17@1": on sim:1 alone. */
static bool parse_fault(const char *text)
{
    static const char *const names[] = {"", "kernel", "copy", "any", "memory", "lost", "corrupt", "hang"};
    const char *colon = strchr(text, ':');
    char *end;
    long long n = colon ? strtoll(colon + 1, &end, 10) : 0;
    long only = -1;
    if (n > 0 && *end == '@' && end[1])
        only = strtol(end + 1, &end, 10);
    if (n <= 0 || *end || only < -1 || only >= PC__DEVICES_MAX)
        return false;
    for (int f = PC_SIM_FAIL_KERNEL; f < PC__COUNT(names); f++)
        if (strncmp(text, names[f], (size_t)(colon - text)) == 0 && !names[f][colon - text]) {
            for (int i = 0; i < PC__DEVICES_MAX; i++) {
                pc__sim.device[i].fault = (pc_sim_fault)f;
                pc__sim.device[i].fault_in = only < 0 || only == i ? n : 0;
            }
            return true;
        }
    return false;
}

static bool parse_option(char *text, pc_sim_options *o)
{
    char *value = strchr(text, '=');
    if (!value)
        return false;
    *value++ = 0;
    double number = 0;
    if (strcmp(text, "memory") == 0 && parse_size(value, &number)) {
        o->memory = (int64_t)number;
        return true;
    }
    if (strcmp(text, "kernels") == 0)
        return parse_count(value, &o->kernels) && o->kernels > 0;
    if (strcmp(text, "bandwidth") == 0)
        return parse_rate(value, &o->bandwidth);
    if (strcmp(text, "latency") == 0)
        return parse_time(value, &o->launch_latency);
    if (strcmp(text, "time") == 0)
        return parse_time(value, &o->kernel_time);
    return strcmp(text, "fail") == 0 && parse_fault(value);
}

/* False with why, in words, when it is not understood. */
static bool parse_environment(const char *value, pc_sim_options *o, char *why, size_t room)
{
    static const char *const advice =
        "write 4, or 4,memory=64M,kernels=1,bandwidth=2G,latency=20us,time=1ms,fail=kernel:17, or fail=copy:3@1";
    char text[256], part_text[256], *rest = text;
    if ((size_t)snprintf(text, sizeof text, "%s", value) >= sizeof text) {
        snprintf(why, room, "PARACORD_SIM=%.40s... is too long; %s", value, advice);
        return false;
    }
    for (char *part = strsep(&rest, ","), *first = part; part; part = strsep(&rest, ",")) {
        snprintf(part_text, sizeof part_text, "%s", part);
        if (part == first ? parse_count(part, &o->devices) : parse_option(part, o))
            continue;
        snprintf(why, room, "PARACORD_SIM=%.80s: \"%.40s\" is not understood; %s", value, part_text, advice);
        return false;
    }
    if (check(o) == PC_OK)
        return true;
    snprintf(why, room, "PARACORD_SIM=%.80s: %.200s", value, pc_error_last()->message);
    return false;
}

/* What cannot be read makes no devices: pc_device_count says why. */
static void read_environment(void)
{
    const char *value = getenv("PARACORD_SIM");
    pc_sim_options o = {0};
    pc_error before = pc__error_take();
    if (!value || !*value) {
        snprintf(pc__sim.why_none, sizeof pc__sim.why_none,
                 "PARACORD_SIM is not set (PARACORD_SIM=2 makes sim:0 and sim:1)");
    } else if (!parse_environment(value, &o, pc__sim.why_none, sizeof pc__sim.why_none)) {
        pc__log(PC_LOG_WARNING, "%s", pc__sim.why_none);
        o = (pc_sim_options){0};
    } else if (!o.devices) {
        snprintf(pc__sim.why_none, sizeof pc__sim.why_none, "PARACORD_SIM=%.80s asks for none", value);
    }
    set(&o);
    pc_error_clear();
    (void)pc__error_put(&before);
}

void pc__sim_start(void)
{
    pthread_once(&once, read_environment);
}

/* Nothing of the program's is on the device, and nothing is under way. */
static pc_status empty(int index)
{
    pc_device device = {PC_SIM, (int16_t)index};
    pc_memory_stats stats;
    PC__TRY(pc_memory_query(device, &stats));
    if (stats.in_use)
        return pc__fail(PC_ERR_STATE, "pc_sim_configure: tensors hold %lld bytes on sim:%d; free them first",
                        (long long)stats.in_use, index);
    pc_error before = pc__error_take();
    (void)!pc_device_synchronize(device); /* what is lost need not finish */
    (void)!pc_device_synchronize(device); /* failures that reached a stream after its turn */
    pc_error_clear();
    (void)pc__error_put(&before);
    return pc_memory_trim(device);
}

pc_status pc_sim_configure(pc_sim_options options)
{
    pc__sim_start();
    PC__TRY(check(&options));
    for (int i = 0; i < PC__DEVICES_MAX; i++)
        if (pc__sim.device[i].forked)
            return pc__error_put(&pc__sim.device[i].loss); /* nobody is there to finish what was under way */
    for (int i = 0; i < pc__sim.options.devices; i++)
        if (pc__sim.device[i].open) {
            PC__TRY(pc_sim_inject((pc_device){PC_SIM, (int16_t)i}, PC_SIM_NO_FAULT, 0)); /* what hangs goes on */
            PC__TRY(empty(i));
        }
    pthread_mutex_lock(&pc__sim.lock);
    bool open[PC__DEVICES_MAX];
    for (int i = 0; i < PC__DEVICES_MAX; i++) {
        open[i] = pc__sim.device[i].open;
        pc__sim_device_close(&pc__sim.device[i]);
        pc__sim.device[i].fault_in = pc__sim.device[i].operations = 0;
    }
    set(&options);
    snprintf(pc__sim.why_none, sizeof pc__sim.why_none, "pc_sim_configure was asked for none");
    pc_status status = PC_OK;
    for (int i = 0; i < PC__DEVICES_MAX && status == PC_OK; i++)
        if (open[i])
            status = pc__sim_device_open(&pc__sim.device[i]);
    pthread_mutex_unlock(&pc__sim.lock);
    return status;
}

/* out_of_memory.c: saying why a device has no memory left, so that the reader knows what to make smaller. */
#include "device/pool.h"

#define HOLDERS 64

typedef struct holder {
    const char *maker;
    int64_t bytes;
    int count;
} holder;

static void add(holder *list, int *n, const pc__storage *storage)
{
    const char *maker = storage->maker ? storage->maker : "others";
    int i = 0;
    while (i < *n && strcmp(list[i].maker, maker) != 0)
        i++;
    if (i == *n) {
        if (*n == HOLDERS)
            return;
        list[(*n)++] = (holder){.maker = maker};
    }
    list[i].bytes += (int64_t)storage->capacity;
    list[i].count++;
}

/* "1.5 MiB" */
static const char *size_text(int64_t bytes, char text[32])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    int unit = 0;
    for (; value >= 1024 && unit < PC__COUNT(units) - 1; unit++)
        value /= 1024;
    snprintf(text, 32, value < 10 && unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return text;
}

/* The three who hold the most, "conv2d 300 MiB in 12, relu ...". */
static void say_holders(const pc__pool *pool, char *text, size_t room)
{
    holder list[HOLDERS];
    int n = 0;
    for (const pc__storage *s = pool->in_use; s; s = s->next)
        add(list, &n, s);
    text[0] = 0;
    for (int k = 0; k < 3 && k < n; k++) {
        int most = k;
        for (int i = k + 1; i < n; i++)
            if (list[i].bytes > list[most].bytes)
                most = i;
        holder h = list[most];
        list[most] = list[k];
        list[k] = h;
        char size[32];
        size_t used = strlen(text);
        snprintf(text + used, room - used, "%s%s %s in %d", k ? ", " : " (most by ", h.maker, size_text(h.bytes, size),
                 h.count);
    }
    size_t used = strlen(text);
    if (n)
        snprintf(text + used, room - used, ")");
}

/* Of host memory in a device's place: its limits are the process's. */
static void report_hosted(pc__pool *pool, pc_device device, size_t bytes, const char *who)
{
    char name[PC_DEVICE_NAME_MAX], asked[32], left[32], held[32], cached[32], there[80] = "", most[192];
    const int64_t can_get = pc_memory_left();
    if (can_get < INT64_MAX)
        snprintf(there, sizeof there, "the process can still get %s; ", size_text(can_get, left));
    say_holders(pool, most, sizeof most);
    (void)pc__fail(PC_ERR_MEMORY,
                   "out of pinned host memory for %s: %s asked for %s; %stensors hold %s of it%s, %s are cached; free "
                   "host memory, raise the limits of the process or its container, or keep that on the device",
                   pc_device_name(device, name), who, size_text((int64_t)PC__MIN(bytes, (size_t)INT64_MAX), asked),
                   there, size_text(pool->stats.in_use, held), most, size_text(pool->stats.cached, cached));
}

static void report(pc__pool *pool, pc_device device, size_t bytes, const char *who)
{
    char name[PC_DEVICE_NAME_MAX], asked[32], held[32], cached[32], there[160] = "", most[192];
    const pc__backend *backend = pc__backend_of(device.type);
    pc__memory_info info;
    if (backend->memory && backend->memory(device.index, &info) == PC_OK) {
        char free[32], total[32], largest[32];
        snprintf(there, sizeof there, "%s of %s are free, %s the largest piece; ", size_text(info.free, free),
                 size_text(info.total, total), size_text(info.largest, largest));
    }
    say_holders(pool, most, sizeof most);
    (void)pc__fail(
        PC_ERR_MEMORY,
        "out of memory on %s: %s asked for %s; %stensors hold %s%s, %s are cached; a smaller batch needs less",
        pc_device_name(device, name), who, size_text((int64_t)PC__MIN(bytes, (size_t)INT64_MAX), asked), there,
        size_text(pool->stats.in_use, held), most, size_text(pool->stats.cached, cached));
}

void pc__pool_report(pc__pool *pool, const pc__storage *like, size_t bytes, const char *who)
{
    (pc__is_hosted(like) ? report_hosted : report)(pool, like->device, bytes, who);
}

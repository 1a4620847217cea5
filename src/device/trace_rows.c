/* trace_rows.c: the rows of a trace: one for each host thread, stream, and lane of an engine. */
#include "device/trace_write.h"

#include <pthread.h>

enum {
    SLOTS = 8192, /* twice the rows that get names */
    COLLECTIVES = 2,
    FIRST_DEVICE = 10,
    DEVICES_OF_A_TYPE = 1000,
    LANES = 1000,
    ENGINES = 1000000000 /* after all streams */
};

static uint64_t named[SLOTS]; /* rows by hash; 0: free */
static int named_rows;

static _Thread_local struct {
    uint32_t thread;
    unsigned trace; /* the number of that which knows the thread's name */
} here;
static atomic_uint threads;

void pc__trace_rows_reset(void)
{
    memset(named, 0, sizeof named);
    named_rows = 0;
}

/* Whether the row needs a name, which it has from now on. */
static bool is_new(pc__row row)
{
    uint64_t key = (uint64_t)row.process << 32 | row.thread;
    size_t slot = (key * 0x9e3779b97f4a7c15u >> 40) % SLOTS;
    for (; named[slot]; slot = (slot + 1) % SLOTS)
        if (named[slot] == key)
            return false;
    if (named_rows >= SLOTS / 2)
        return false;
    named_rows++;
    named[slot] = key;
    return true;
}

static void name_row(const char *what, pc__row row, const char *name)
{
    pc__trace_event("M", what, NULL, row, 0);
    pc__trace_args();
    pc__trace_text("name", name);
    pc__trace_finish();
}

static void place_row(const char *what, pc__row row, int64_t index)
{
    pc__trace_event("M", what, NULL, row, 0);
    pc__trace_args();
    pc__trace_integer("sort_index", index);
    pc__trace_finish();
}

pc__row pc__trace_host_row(void)
{
    if (!here.thread)
        here.thread = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) + 1;
    pc__row row = {1, here.thread};
    if (here.trace != pc__trace_number()) {
        char name[32] = "";
        here.trace = pc__trace_number();
        if (pthread_getname_np(pthread_self(), name, sizeof name) != 0 || !name[0])
            snprintf(name, sizeof name, "thread %u", here.thread);
        name_row("thread_name", row, name);
    }
    return row;
}

pc__row pc__trace_rank_row(int member)
{
    char name[32];
    pc__row row = {COLLECTIVES, (uint32_t)member + 1}, whole = {COLLECTIVES, UINT32_MAX};
    if (is_new(whole)) {
        name_row("process_name", row, "collectives");
        place_row("process_sort_index", row, COLLECTIVES);
    }
    if (is_new(row)) {
        snprintf(name, sizeof name, "rank %d", member);
        name_row("thread_name", row, name);
        place_row("thread_sort_index", row, member);
    }
    return row;
}

static int process_of(pc_device device)
{
    int process = DEVICES_OF_A_TYPE * device.type + device.index + FIRST_DEVICE;
    pc__row whole = {process, UINT32_MAX}, first = {process, 0};
    if (is_new(whole)) {
        char name[PC_DEVICE_NAME_MAX];
        name_row("process_name", first, pc_device_name(device, name));
        place_row("process_sort_index", first, process);
    }
    return process;
}

pc__row pc__trace_stream_row(pc_device device, uint32_t stream)
{
    pc__row row = {process_of(device), stream};
    if (is_new(row)) {
        char name[32];
        snprintf(name, sizeof name, "stream %u", stream);
        name_row("thread_name", row, name);
        place_row("thread_sort_index", row, stream);
    }
    return row;
}

pc__row pc__trace_engine_row(pc_device device, const char *engine, int lane)
{
    static const char *const engines[] = {"compute", "copy in", "copy out", "host"};
    uint32_t kind = 0;
    while (kind < PC__COUNT(engines) && strcmp(engines[kind], engine) != 0)
        kind++;
    pc__row row = {process_of(device), ENGINES + kind * LANES + (uint32_t)lane};
    if (is_new(row)) {
        char name[64], number[16] = "";
        if (lane)
            snprintf(number, sizeof number, " %d", lane);
        snprintf(name, sizeof name, "engine %.40s%s", engine, number);
        name_row("thread_name", row, name);
        place_row("thread_sort_index", row, row.thread);
    }
    return row;
}

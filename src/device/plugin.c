/* plugin.c: the library of the CUDA backend. It is opened once, when somebody asks for CUDA devices: a program that never
 * does pays nothing. It stays open. */
#include "device/plugin.h"

#include "device/failure.h"
#include "device/plugin_file.h"
#include "device/workspace.h"

#include <dlfcn.h>

#define FILE_NAME "libparacord-cuda.so"

static const pc__backend *backend;
static char reason[PC__PLUGIN_WHY];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static pc_status fail(const char *file, int line, pc_status status, const char *cause, const char *message)
{
    return pc__fail_at(file, line, status, cause, "%s", message);
}

static void log_line(pc_log_level level, const char *line)
{
    pc__log(level, "%s", line);
}

static const pc__host_api host = {
    .api_version = PC__BACKEND_API,
    .version = PC_VERSION,
    .try_alloc_aligned = pc__try_alloc_aligned,
    .alloc = pc__alloc,
    .calloc = pc__calloc,
    .realloc = pc__realloc,
    .free = pc__free,
    .grow = pc__grow,
    .fail = fail,
    .error_take = pc__error_take,
    .error_put = pc__error_put,
    .log = log_line,
    .site_text = pc__site_text,
    .device_name = pc_device_name,
    .trace_on = &pc__trace_on,
    .trace_work_done = pc__trace_work_done,
    .now = pc__now,
    .matmul_precision = pc_matmul_precision_get,
    .choice = pc_choice_get,
    .trace_ranges_set = pc__trace_ranges_set,
    .plan_wrote = pc__plan_wrote,
    .failure_begin = pc__failure_begin,
    .failure_told = pc__failure_told,
    .workspace = pc__workspace,
    .graph_workspace = pc__graph_workspace,
};

static bool ask(const char *path, pc__plugin_entry entry)
{
    char why[320] = "";
    const pc__backend *found = entry(&host, why, sizeof why);
    if (found && found->api_version != PC__BACKEND_API)
        snprintf(why, sizeof why, "it was built for interface %u, this library has %u", found->api_version,
                 PC__BACKEND_API);
    else if (found && found->type != PC_CUDA)
        snprintf(why, sizeof why, "it is a backend for another kind of device");
    else if (found && strcmp(found->ops, pc__op_names) != 0)
        snprintf(why, sizeof why, "it was built with other ops than this library: build both together");
    else if (found) {
        backend = found;
        return true;
    }
    snprintf(reason, sizeof reason, "%.160s: %s", path, why[0] ? why : "it gives no reason");
    return false;
}

static void load(void)
{
    pc__plugin_file file;
    pc__plugin_entry entry;
    if (!pc__plugin_find(FILE_NAME, PC__CUDA_ENTRY, true, &file, reason))
        return;
    memcpy(&entry, &file.entry, sizeof entry);
    if (!ask(file.path, entry))
        dlclose(file.library);
}

const pc__backend *pc__plugin_cuda(char *why, size_t n)
{
    pthread_once(&once, load);
    if (!backend && why && n)
        snprintf(why, n, "%s", reason);
    return backend;
}

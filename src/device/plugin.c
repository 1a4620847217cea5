/* plugin.c: finding and opening the library of the CUDA backend. It happens once, when somebody asks for CUDA devices:
 * a program that never does pays nothing. It stays open. */
#include "device/plugin.h"

#include "device/failure.h"
#include "device/workspace.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "libparacord-cuda.so"

static const pc__backend *backend;
static char reason[512];
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

/* True when the search is over: the file is there, whether it can be used or not. */
static bool try_file(const char *path)
{
    if (access(path, F_OK) != 0)
        return false;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *words = dlerror();
        snprintf(reason, sizeof reason, "%.160s cannot be opened: %.320s", path, words ? words : "no reason is given");
        return true;
    }
    pc__plugin_entry entry;
    void *symbol = dlsym(library, PC__CUDA_ENTRY);
    memcpy(&entry, &symbol, sizeof entry);
    if (!symbol)
        snprintf(reason, sizeof reason, "%.160s is no plug-in of Paracord: it has no %s", path, PC__CUDA_ENTRY);
    if (!symbol || !ask(path, entry))
        dlclose(library);
    return true;
}

static bool try_folder(const char *folder, const char *below)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s%s%s/" FILE_NAME, folder, below[0] ? "/" : "", below);
    return n > 0 && (size_t)n < sizeof path && try_file(path);
}

/* PARACORD_PLUGIN_PATH, a folder or the file, leaves nothing to search for. */
static void try_asked(const char *path)
{
    struct stat status;
    bool folder = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    if (folder ? !try_folder(path, "") : !try_file(path))
        snprintf(reason, sizeof reason, "PARACORD_PLUGIN_PATH=%.200s: there is no %s", path,
                 folder ? FILE_NAME : "such file or folder");
}

/* The folder of the file that this code is in: the shared library, or a program that it was linked into. */
static void own_folder(char folder[PATH_MAX])
{
    Dl_info info;
    folder[0] = 0;
    bool is_program = dladdr(&host, &info) == 0 || !info.dli_fname || !strchr(info.dli_fname, '/');
    if (is_program || !realpath(info.dli_fname, folder)) {
        ssize_t n = readlink("/proc/self/exe", folder, PATH_MAX - 1);
        folder[n > 0 ? n : 0] = 0;
    }
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = 0;
}

/* Beside the library; or from a program that contains it: in a build's and in an installed tree. */
static void search(void)
{
    static const char *const below[] = {"", "../lib", "..", "../../../lib"};
    char folder[PATH_MAX];
    own_folder(folder);
    for (int i = 0; folder[0] && i < PC__COUNT(below); i++)
        if (try_folder(folder, below[i]))
            return;
    if (!try_folder(PC__PLUGIN_FOLDER, ""))
        snprintf(reason, sizeof reason,
                 FILE_NAME " is not in %.160s or %.160s: this build has none, or PARACORD_PLUGIN_PATH must name its "
                           "folder",
                 folder, PC__PLUGIN_FOLDER);
}

static void load(void)
{
    int before = errno;
    const char *asked = getenv("PARACORD_PLUGIN_PATH");
    if (asked && asked[0])
        try_asked(asked);
    else
        search();
    errno = before;
}

const pc__backend *pc__plugin_cuda(char *why, size_t n)
{
    pthread_once(&once, load);
    if (!backend && why && n)
        snprintf(why, n, "%s", reason);
    return backend;
}

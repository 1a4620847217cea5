/* toolkits.c: the CUDA toolkits of the machine, and whether PATH and the loader find them. */
#include "probe/probe.h"

#include <ctype.h>
#include <stdlib.h>

/* #define CUDA_VERSION 13000: what a toolkit without its version file still tells. Conda keeps the headers apart. */
static bool read_header(pc__machine *m, const char *folder, char *version, size_t n)
{
    static const char *const headers[] = {"include/cuda.h", "targets/x86_64-linux/include/cuda.h",
                                          "targets/sbsa-linux/include/cuda.h"};
    char path[1100];
    int number = 0;
    for (int i = 0; !number && i < PC__COUNT(headers); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, headers[i]);
        char *lines = pc__root_lines(m->root, path, "#define CUDA_VERSION ");
        if (!lines || sscanf(lines, "#define CUDA_VERSION %d", &number) != 1 || number < 1000)
            number = 0;
        pc__free(lines);
    }
    if (number)
        snprintf(version, n, "%d.%d", number / 1000, number % 1000 / 10);
    return number != 0;
}

/* cuda_nvcc-12.8.93: where parts of a toolkit lie apart, the folder's name has it. */
static bool read_name(const char *folder, char *version, size_t n)
{
    const char *dash = strrchr(folder, '-');
    size_t length = dash ? strspn(dash + 1, "0123456789.") : 0;
    if (!length || dash[1 + length] || !memchr(dash, '.', length) || length >= n)
        return false;
    snprintf(version, n, "%s", dash + 1);
    return true;
}

/* "version": "13.0.1" of the entry "cuda" in version.json, or "CUDA Version 10.2.89" in version.txt. */
static bool read_version(pc__machine *m, const char *folder, char *version, size_t n)
{
    char path[1100], *found = NULL;
    snprintf(path, sizeof path, "%s/version.json", folder);
    char *text = pc__root_text(m->root, path, 65536, false);
    if (text && (found = strstr(text, "\"cuda\"")) && (found = strstr(found, "\"version\"")))
        found += strlen("\"version\"");
    if (!text) {
        snprintf(path, sizeof path, "%s/version.txt", folder);
        text = pc__root_text(m->root, path, 4096, false);
        found = text;
    }
    while (found && *found && !isdigit((unsigned char)*found))
        found++;
    size_t length = found ? strspn(found, "0123456789.") : 0;
    if (length && length < n)
        snprintf(version, n, "%.*s", (int)length, found);
    pc__free(text);
    return (length && length < n) || read_header(m, folder, version, n) || read_name(folder, version, n);
}

typedef struct first {
    pc__machine *m;
    char folder[512];
} first;

/* The folder of PATH that has nvcc first. */
static void find_nvcc(first *f)
{
    const char *path = pc__root_env(f->m->root, "PATH");
    for (char file[1024]; path && *path && !f->folder[0]; path += strcspn(path, ":"), path += *path == ':') {
        size_t n = strcspn(path, ":");
        snprintf(file, sizeof file, "%.*s/nvcc", (int)PC__MIN(n, 900), path);
        if (n && path[0] == '/' && pc__root_exists(f->m->root, file + 1))
            snprintf(f->folder, sizeof f->folder, "%.*s", (int)PC__MIN(n - 1, 500), path + 1);
    }
}

static void look_runtime(void *context, const char *name)
{
    (void)name;
    *(bool *)context = true;
}

/* Follow usr/local/cuda -> /etc/alternatives/cuda -> /usr/local/cuda-13.0 to its end. */
static void resolve(pc__machine *m, const char *path, char *end, size_t n)
{
    char target[512];
    snprintf(end, n, "%s", path);
    for (int hops = 0; hops < 8 && pc__root_link(m->root, end, target, sizeof target); hops++) {
        char *slash = strrchr(end, '/');
        if (target[0] == '/')
            snprintf(end, n, "%s", target + 1);
        else if (slash)
            snprintf(slash + 1, n - (size_t)(slash + 1 - end), "%s", target);
    }
    for (size_t length = strlen(end); length && end[length - 1] == '/'; length--)
        end[length - 1] = 0;
}

typedef struct matching {
    pc__machine *m;
    const char *folder;
    bool found;
} matching;

static bool is_folder(void *context, const char *folder)
{
    matching *x = context;
    char end[1024], cuda[1024];
    bool runtime = false;
    snprintf(cuda, sizeof cuda, "%s", folder);
    char *tail = strstr(cuda, "/targets/");
    tail = tail ? tail : strrchr(cuda, '/');
    if (tail)
        *tail = 0;
    resolve(x->m, cuda, end, sizeof end);
    size_t n = strlen(x->folder);
    bool inside = !strncmp(folder, x->folder, n) && !strncmp(folder + n, "/lib", 4);
    if (inside || (tail && !strcmp(end, x->folder))) {
        pc__root_list(x->m->root, folder, "libcudart.so", look_runtime, &runtime);
        x->found = runtime;
    }
    return !x->found;
}

static void add(pc__machine *m, const char *folder, const char *nvcc)
{
    char end[1024], version[64], bin[1024];
    resolve(m, folder, end, sizeof end);
    for (int i = 0; i < m->public.toolkit_count; i++)
        if (m->failed || !strcmp(m->public.toolkits[i].path + 1, end))
            return;
    if (!read_version(m, end, version, sizeof version))
        return;
    pc_probe_toolkit *toolkit =
        pc__more(m, &m->public.toolkits, &m->public.toolkit_count, &m->toolkit_capacity, sizeof *m->public.toolkits);
    if (!toolkit)
        return;
    matching x = {.m = m, .folder = end};
    toolkit->version = pc__keep(m, version);
    toolkit->path = pc__keepf(m, "/%s", end);
    snprintf(bin, sizeof bin, "%s", nvcc);
    char *slash = strrchr(bin, '/');
    if (slash && !strcmp(slash, "/bin")) {
        *slash = 0;
        char real[1024];
        resolve(m, bin, real, sizeof real);
        toolkit->on_path = !strcmp(real, end);
    }
    pc__loader_folders(m, is_folder, &x);
    toolkit->on_library_path = x.found;
}

typedef struct candidates {
    pc__machine *m;
    const char *nvcc, *parent;
} candidates;

static void look(void *context, const char *name)
{
    candidates *c = context;
    char folder[512];
    snprintf(folder, sizeof folder, "%s/%.200s", c->parent, name);
    add(c->m, folder, c->nvcc);
}

static int newest_first(const void *a, const void *b)
{
    return strverscmp(((const pc_probe_toolkit *)b)->version, ((const pc_probe_toolkit *)a)->version);
}

void pc__probe_toolkits(pc__machine *m)
{
    static const char *const parents[] = {"usr/local", "opt"};
    first f = {.m = m};
    find_nvcc(&f);
    for (int i = 0; i < PC__COUNT(parents); i++) {
        candidates c = {m, f.folder, parents[i]};
        pc__root_list(m->root, parents[i], "cuda", look, &c);
    }
    const char *home = pc__root_env(m->root, "CUDA_HOME");
    if (home && home[0] == '/' && strlen(home) < 500)
        add(m, home + 1, f.folder);
    char *bin = strrchr(f.folder, '/'); /* a distribution's own, or an environment's */
    if (bin && !strcmp(bin, "/bin")) {
        char parent[512];
        snprintf(parent, sizeof parent, "%.*s", (int)(bin - f.folder), f.folder);
        add(m, parent, f.folder);
    }
    if (m->public.toolkit_count)
        qsort(m->public.toolkits, (size_t)m->public.toolkit_count, sizeof *m->public.toolkits, newest_first);
}

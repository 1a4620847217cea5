/* libraries.c: where the loader looks, and the libraries that parts of Paracord open when they need them. */
#include "probe/probe.h"

#include <stdlib.h>

typedef bool (*each_folder)(void *context, const char *folder);

/* "a:b::c" one by one. False when `each` had enough. */
static bool each_of(const char *list, each_folder each, void *context)
{
    char folder[1024];
    for (; list && *list; list += strcspn(list, ":"), list += *list == ':') {
        size_t n = strcspn(list, ":");
        while (n > 1 && list[n - 1] == '/')
            n--;
        snprintf(folder, sizeof folder, "%.*s", (int)PC__MIN(n, sizeof folder - 1), list);
        if (folder[0] == '/' && !each(context, folder + 1))
            return false;
        list += n;
    }
    return true;
}

typedef struct files {
    pc__machine *m;
    each_folder each;
    void *context;
    bool enough;
} files;

static void read_conf(void *context, const char *name)
{
    files *f = context;
    char path[512], *rest;
    if (f->enough || strlen(name) < 5 || strcmp(name + strlen(name) - 5, ".conf"))
        return;
    snprintf(path, sizeof path, "etc/ld.so.conf.d/%.400s", name);
    char *text = pc__root_text(f->m->root, path, 65536, false);
    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line && !f->enough; line = strtok_r(NULL, "\n", &rest))
        if (line[0] == '/')
            f->enough = !each_of(line, f->each, f->context);
    pc__free(text);
}

void pc__loader_folders(pc__machine *m, each_folder each, void *context)
{
    static const char usual[] = "/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib/aarch64-linux-gnu:"
                                "/usr/lib/aarch64-linux-gnu:/lib64:/usr/lib64:/lib:/usr/lib:/usr/lib/wsl/lib:"
                                "/usr/lib/aarch64-linux-gnu/nvidia:/usr/lib/aarch64-linux-gnu/tegra";
    files f = {m, each, context, false};
    if (!each_of(pc__root_env(m->root, "LD_LIBRARY_PATH"), each, context))
        return;
    pc__root_list(m->root, "etc/ld.so.conf.d", "", read_conf, &f);
    if (!f.enough)
        each_of(usual, each, context);
}

static const struct {
    const char *name, *purpose, *file; /* its soname without the number */
} wanted[] = {
    {"NVML", "state of NVIDIA GPUs", "libnvidia-ml.so.1"},
    {"CUDA driver", "computing on NVIDIA GPUs", "libcuda.so.1"},
    {"cuBLASLt", "matrix products", "libcublasLt.so."},
    {"cuDNN", "convolutions", "libcudnn.so."},
    {"NCCL", "several GPUs", "libnccl.so."},
    {"nvJPEG", "decoding pictures on GPUs", "libnvjpeg.so."},
    {"cuFile", "GPUDirect Storage", "libcufile.so."},
};

typedef struct search {
    pc__machine *m;
    pc_probe_library *library;
    const char *file, *folder;
    char name[256]; /* the best file of the folder */
    char others[512];
} search;

/* libcudnn.so.9 and libcudnn.so.9.14.0 are one library: the longest name says the most. */
static void look(void *context, const char *name)
{
    search *s = context;
    if (strlen(name) > strlen(s->name))
        snprintf(s->name, sizeof s->name, "%.255s", name);
}

/* The real file behind lib.so.1 may carry the version. */
static const char *version_of(search *s, const char *folder)
{
    char path[1024], target[512];
    const char *name = s->name;
    snprintf(path, sizeof path, "%s/%s", folder, s->name);
    if (pc__root_link(s->m->root, path, target, sizeof target)) {
        char *slash = strrchr(target, '/');
        name = pc__keep(s->m, slash ? slash + 1 : target);
    }
    const char *so = strstr(name, ".so.");
    return so ? pc__keep(s->m, so + 4) : NULL;
}

static bool in_folder(void *context, const char *folder)
{
    search *s = context;
    s->name[0] = 0;
    pc__root_list(s->m->root, folder, s->file, look, s);
    if (!s->name[0])
        return true;
    if (!s->library->path) {
        s->library->path = pc__keepf(s->m, "/%s/%s", folder, s->name);
        s->library->version = version_of(s, folder);
        s->folder = pc__keep(s->m, folder);
    } else {
        size_t used = strlen(s->others);
        /* /lib and /usr/lib are mostly one folder */
        const char *usr = !strncmp(folder, "usr/", 4) ? folder + 4 : folder;
        const char *first = !strncmp(s->folder, "usr/", 4) ? s->folder + 4 : s->folder;
        const char *version = version_of(s, folder);
        const char *entry = pc__keepf(s->m, "/%s/%s (%s)", folder, s->name, version ? version : "?");
        if (strcmp(usr, first) && !strstr(s->others, entry))
            snprintf(s->others + used, sizeof s->others - used, "%s%s", used ? " " : "", entry);
    }
    return true;
}

/* The first file that the loader's index has, if it is there. */
static bool in_cache(void *context, const char *path)
{
    search *s = context;
    char folder[512];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path - 1), path + 1);
    if (slash > path && !s->library->path && pc__root_exists(s->m->root, path + 1))
        in_folder(s, folder);
    return !s->library->path;
}

static bool until_found(void *context, const char *folder)
{
    in_folder(context, folder);
    return !((search *)context)->library->path;
}

void pc__probe_libraries(pc__machine *m)
{
    for (int i = 0; i < PC__COUNT(wanted); i++) {
        pc_probe_library *library = pc__more(m, &m->public.libraries, &m->public.library_count, &m->library_capacity,
                                             sizeof *m->public.libraries);
        if (!library)
            return;
        search s = {.m = m, .library = library, .file = wanted[i].file};
        library->name = wanted[i].name;
        library->purpose = wanted[i].purpose;
        bool driver = s.file[strlen(s.file) - 1] == '1';
        if (driver) {
            each_of(pc__root_env(m->root, "LD_LIBRARY_PATH"), until_found, &s);
            if (!library->path)
                pc__loader_cached(m, s.file, in_cache, &s);
        }
        pc__loader_folders(m, in_folder, &s);
        if (s.others[0])
            library->others = pc__keep(m, s.others);
        if (!library->path)
            library->why =
                pc__keepf(m, "no %s* in LD_LIBRARY_PATH, in the folders of /etc/ld.so.conf.d or in the usual ones",
                          wanted[i].file);
    }
}

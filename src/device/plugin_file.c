/* plugin_file.c: where plug-ins are searched for. */
#include "device/plugin_file.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct search {
    const char *file, *entry;
    pc__plugin_file *found;
    char *why;
    bool only_asked, done; /* done: the file is there, whether it can be used or not */
} search;

/* Where the last part of a library that the loader maps ends in its file; 0: its head cannot be read. */
static int64_t end_of_parts(int fd)
{
    ElfW(Ehdr) head;
    ElfW(Phdr) part;
    int64_t end = 0;
    if (pread(fd, &head, sizeof head, 0) != sizeof head || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
        return 0;
    for (size_t i = 0; i < head.e_phnum; i++)
        if (pread(fd, &part, sizeof part, (off_t)(head.e_phoff + i * sizeof part)) == sizeof part &&
            part.p_type == PT_LOAD)
            end = PC__MAX(end, (int64_t)(part.p_offset + part.p_filesz));
    return end;
}

/* Of a file that is cut off behind its head the loader maps what is not there, and the process dies of it. What else
 * may be wrong the loader says. */
static bool is_cut_off(search *s, const char *path)
{
    struct stat status;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const int64_t end = end_of_parts(fd), bytes = fstat(fd, &status) == 0 ? status.st_size : end;
    close(fd);
    if (bytes < end)
        snprintf(s->why, PC__PLUGIN_WHY, "%.160s is cut off: it has %lld of %lld bytes", path, (long long)bytes,
                 (long long)end);
    return bytes < end;
}

static void try_file(search *s, const char *path)
{
    if (s->done || access(path, F_OK) != 0)
        return;
    s->done = true;
    snprintf(s->found->path, sizeof s->found->path, "%s", path);
    if (is_cut_off(s, path))
        return;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *words = dlerror();
        snprintf(s->why, PC__PLUGIN_WHY, "%.160s cannot be opened: %.320s", path, words ? words : "no reason is given");
        return;
    }
    s->found->entry = dlsym(library, s->entry);
    if (!s->found->entry) {
        snprintf(s->why, PC__PLUGIN_WHY, "%.160s is no plug-in of Paracord: it has no %s", path, s->entry);
        dlclose(library);
        return;
    }
    s->found->library = library;
}

static void try_folder(search *s, const char *folder, const char *below)
{
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s%s%s/%s", folder, below[0] ? "/" : "", below, s->file);
    if (n > 0 && (size_t)n < sizeof path)
        try_file(s, path);
}

static void try_asked(search *s, const char *path)
{
    char folder[PATH_MAX];
    struct stat status;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const bool is_folder = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    /* A file of another name may be the one that is asked for, renamed; not where the path is meant for others too. */
    const bool of_ours = !s->only_asked || strncmp(name, "libparacord-", 12) == 0;
    const bool of_another = !is_folder && of_ours && strcmp(name, s->file) != 0;
    if (is_folder) {
        try_folder(s, path, "");
    } else if (of_another) {
        snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
        try_folder(s, folder, "");
    } else {
        try_file(s, path);
    }
    if (!s->done)
        snprintf(s->why, PC__PLUGIN_WHY, "PARACORD_PLUGIN_PATH=%.200s: there is no %s", path,
                 is_folder || of_another ? s->file : "such file or folder");
}

/* The folder of the file that this code is in: the shared library, or a program that it was linked into. */
static void own_folder(char folder[PATH_MAX])
{
    static const char here;
    Dl_info info;
    folder[0] = 0;
    const bool is_program = dladdr(&here, &info) == 0 || !info.dli_fname || !strchr(info.dli_fname, '/');
    if (is_program || !realpath(info.dli_fname, folder)) {
        const ssize_t n = readlink("/proc/self/exe", folder, PATH_MAX - 1);
        folder[n > 0 ? n : 0] = 0;
    }
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = 0;
}

/* Beside the library; or from a program that contains it: in a build's and in an installed tree. */
static void search_all(search *s)
{
    static const char *const below[] = {"", "../lib", "..", "../../../lib"};
    char folder[PATH_MAX];
    own_folder(folder);
    for (int i = 0; folder[0] && i < PC__COUNT(below); i++)
        try_folder(s, folder, below[i]);
    try_folder(s, PC__PLUGIN_FOLDER, "");
    if (!s->done)
        snprintf(s->why, PC__PLUGIN_WHY,
                 "%s is not in %.160s or %.160s: this build has none, or PARACORD_PLUGIN_PATH must name its folder",
                 s->file, folder, PC__PLUGIN_FOLDER);
}

bool pc__plugin_find(const char *file, const char *entry, bool only_asked, pc__plugin_file *found,
                     char why[PC__PLUGIN_WHY])
{
    const int before = errno;
    const char *asked = getenv("PARACORD_PLUGIN_PATH");
    *found = (pc__plugin_file){.entry = NULL};
    search s = {.file = file, .entry = entry, .only_asked = only_asked, .found = found, .why = why};
    why[0] = 0;
    if (asked && asked[0])
        try_asked(&s, asked);
    if (!s.done && !(only_asked && asked && asked[0]))
        search_all(&s);
    errno = before;
    return found->entry != NULL;
}

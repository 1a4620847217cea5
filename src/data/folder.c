/* folder.c: what picture files there are. Nothing is opened but folders. */
#include "data/folder.h"

#include "io/inside.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>

typedef struct walk {
    pc__folder *folder;
    pc__text path; /* of the folder it is in */
    size_t root_length;
    pc__inside inside;
    int label;
    bool classes_only;
} walk;

/* What people's folders call pictures, those of formats that are not read among them, so that they are told and not lost in
 * silence. What a file is shows when it is decoded. */
static bool has_picture_suffix(const char *name)
{
    static const char *const suffixes[] = {"png", "jpg", "jpeg", "jpe", "jfif", "jif",  "bmp",  "tif",  "tiff", "webp",
                                           "gif", "ppm", "pgm",  "pbm", "pnm",  "heic", "heif", "avif", "jxl",  "jp2"};
    const char *dot = strrchr(name, '.');
    for (int i = 0; dot && i < PC__COUNT(suffixes); i++)
        if (strcasecmp(dot + 1, suffixes[i]) == 0)
            return true;
    return false;
}

static pc_status add_file(walk *w)
{
    pc__folder *f = w->folder;
    if (f->count == INT32_MAX / 2)
        return pc__fail(PC_ERR_UNSUPPORTED, "%s has more than %d pictures", f->root, f->count);
    PC__TRY(pc__grow((void **)&f->files, &f->capacity, f->count, sizeof *f->files));
    char *path = pc__strdup(w->path.data + w->root_length + 1);
    if (!path)
        return PC_ERR_MEMORY;
    f->files[f->count++] = (pc__picture_file){path, w->label};
    return PC_OK;
}

static pc_status add_class(pc__folder *f, const char *name)
{
    PC__TRY(pc__grow((void **)&f->classes, &f->class_capacity, f->class_count, sizeof *f->classes));
    char *copy = pc__strdup(name);
    if (!copy)
        return PC_ERR_MEMORY;
    f->classes[f->class_count++] = copy;
    return PC_OK;
}

static pc_status walk_folder(walk *w);

/* One entry of the folder that the walk is in; w->path is the entry's. */
static pc_status visit(walk *w, const char *name)
{
    struct stat info;
    const bool is_picture = !w->classes_only && has_picture_suffix(name);
    const bool is_there = stat(w->path.data, &info) == 0;
    if (!is_there && !is_picture)
        return pc__is_nothing(w->path.data); /* it may be a folder */
    if (is_there && S_ISDIR(info.st_mode))
        return w->classes_only ? add_class(w->folder, name) : pc__is_inside(&w->inside, &info) ? PC_OK : walk_folder(w);
    /* a link to nowhere, a pipe or a device that is called .jpg is a broken picture, not nothing */
    return is_picture ? add_file(w) : PC_OK;
}

static pc_status enter(walk *w, const char *name)
{
    const size_t length = w->path.length;
    pc__text_add(&w->path, "/%s", name);
    pc_status status = w->path.failed ? PC_ERR_MEMORY : visit(w, name);
    w->path.length = length;
    w->path.data[length] = 0;
    return status;
}

/* Visit all that the folder at w->path holds, hidden things aside. */
static pc_status walk_folder(walk *w)
{
    DIR *dir = opendir(w->path.data);
    struct stat info;
    pc_status status = dir && fstat(dirfd(dir), &info) == 0
                           ? pc__go_inside(&w->inside, w->path.data, &info)
                           : pc__fail_file(errno, "cannot read the folder %s", w->path.data);
    if (status != PC_OK) {
        if (dir)
            closedir(dir);
        return status;
    }
    const struct dirent *entry;
    while (status == PC_OK && (errno = 0, entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            status = enter(w, entry->d_name);
    if (status == PC_OK && errno)
        status = pc__fail_file(errno, "cannot read the folder %s", w->path.data);
    closedir(dir);
    w->inside.depth--;
    return status;
}

static pc_status walk_class(walk *w, const char *name)
{
    struct stat info;
    if (stat(w->path.data, &info) == 0)
        PC__TRY(pc__go_inside(&w->inside, w->path.data, &info));
    return enter(w, name);
}

/* All of the root, or one class of it. */
static pc_status walk_from_root(pc__folder *folder, const char *class_name, int label, bool classes_only)
{
    walk w = {.folder = folder, .label = label, .classes_only = classes_only};
    pc__text_add(&w.path, "%s", folder->root);
    w.root_length = w.path.length;
    pc_status status = PC_ERR_MEMORY;
    if (!w.path.failed)
        status = class_name ? walk_class(&w, class_name) : walk_folder(&w);
    pc__text_free(&w.path);
    return status;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int by_label_and_path(const void *a, const void *b)
{
    const pc__picture_file *x = a, *y = b;
    return x->label != y->label ? (x->label > y->label) - (x->label < y->label) : strcmp(x->path, y->path);
}

void pc__folder_sort(pc__folder *folder)
{
    if (folder->count)
        qsort(folder->files, (size_t)folder->count, sizeof *folder->files, by_label_and_path);
}

static pc_status scan_classes(pc__folder *folder)
{
    PC__TRY(walk_from_root(folder, NULL, 0, true));
    if (folder->class_count)
        qsort(folder->classes, (size_t)folder->class_count, sizeof *folder->classes, by_name);
    for (int i = 0; i < folder->class_count; i++)
        PC__TRY(walk_from_root(folder, folder->classes[i], i, false));
    return PC_OK;
}

static pc_status scan(const char *root, bool flat, pc__folder *folder)
{
    *folder = (pc__folder){.root = pc__strdup(root)};
    if (!folder->root)
        return PC_ERR_MEMORY;
    for (size_t n = strlen(root); n > 1 && folder->root[n - 1] == '/'; n--)
        folder->root[n - 1] = 0;
    pc_status status = flat ? walk_from_root(folder, NULL, 0, false) : scan_classes(folder);
    if (status != PC_OK)
        pc__folder_free(folder);
    pc__folder_sort(folder);
    return status;
}

pc_status pc__folder_scan(const char *root, pc__folder *folder)
{
    return scan(root, false, folder);
}

pc_status pc__folder_scan_flat(const char *root, pc__folder *folder)
{
    return scan(root, true, folder);
}

char *pc__folder_path(const pc__folder *folder, int i)
{
    const char *path = folder->files[i].path;
    const size_t n = strlen(folder->root) + strlen(path) + 2;
    char *joined = pc__alloc(n);
    if (joined)
        snprintf(joined, n, "%s/%s", folder->root, path);
    return joined;
}

void pc__folder_free(pc__folder *folder)
{
    for (int i = 0; i < folder->count; i++)
        pc__free(folder->files[i].path);
    for (int i = 0; i < folder->class_count; i++)
        pc__free(folder->classes[i]);
    pc__free(folder->files);
    pc__free(folder->classes);
    pc__free(folder->root);
    *folder = (pc__folder){0};
}

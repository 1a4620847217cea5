/* root_list.c: the names in a folder of a machine. */
#include "probe/root_parts.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define NAMES_MAX 65536

static int by_version(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

typedef struct names {
    char **name;
    int count, capacity;
    bool starved;
} names;

static void add_name(names *n, const char *name, size_t length)
{
    if (n->count >= NAMES_MAX)
        return;
    bool room = pc__grow((void **)&n->name, &n->capacity, n->count, sizeof *n->name) == PC_OK;
    char *copy = room ? pc__alloc(length + 1) : NULL;
    n->starved |= !copy;
    if (!copy)
        return;
    memcpy(copy, name, length);
    copy[length] = 0;
    n->name[n->count++] = copy;
}

/* In a recording a folder is what stands before a slash. */
static bool list_recording(pc__root *root, const char *path, names *found)
{
    size_t n = strlen(path);
    bool any = false;
    for (int i = 0; i < root->count; i++) {
        const char *p = root->entries[i].path, *name = n ? p + n + 1 : p;
        if (n && (strncmp(p, path, n) || p[n] != '/'))
            continue;
        any = true;
        size_t length = strcspn(name, "/");
        const char *last = found->count ? found->name[found->count - 1] : "";
        if (length && (strncmp(last, name, length) || last[length]))
            add_name(found, name, length);
    }
    return any;
}

/* Each name of a folder with its 0; false when there is no such folder. */
static bool read_names(pc__root *root, const char *path, pc__text *all)
{
    int file = pc__root_open_in(root, path, O_RDONLY | O_DIRECTORY);
    DIR *folder = file < 0 ? NULL : fdopendir(file);
    if (!folder) {
        if (file >= 0)
            close(file);
        return false;
    }
    for (struct dirent *d; (d = readdir(folder));)
        if (strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
            pc__text_add(all, "%s%c", d->d_name, 0);
    closedir(folder);
    root->starved |= all->failed;
    return true;
}

static void add_matching(names *found, const pc__text *all, const char *prefix)
{
    size_t n = strlen(prefix);
    for (const char *name = all->data; name && name < all->data + all->length; name += strlen(name) + 1)
        if (!strncmp(name, prefix, n))
            add_name(found, name, strlen(name));
}

/* Whoever looks for a prefix comes again for another one. */
static bool list_folder(pc__root *root, const char *path, const char *prefix, names *found)
{
    pc__text all = {0};
    for (int i = 0; i < root->listing_count; i++)
        if (!strcmp(root->listings[i].path, path)) {
            add_matching(found, &root->listings[i].names, prefix);
            return true;
        }
    bool there = read_names(root, path, &all);
    add_matching(found, &all, prefix);
    bool keep = there && *prefix && root->listing_count < PC__COUNT(root->listings);
    char *copy = keep ? pc__strdup(path) : NULL;
    root->starved |= keep && !copy;
    if (copy)
        root->listings[root->listing_count++] = (pc__root_listing){copy, all};
    else
        pc__text_free(&all);
    return there;
}

/* So that the folder is in a recording even if nothing in it is read. */
static void keep_name(pc__root *root, const char *path, const char *name)
{
    char whole[1024];
    snprintf(whole, sizeof whole, "%s/%s", path, name);
    pc__root_entry entry = {.path = whole, .has_status = true, .mode = 0444, .total = -1, .free = -1};
    pc__root_keep(root, &entry, 'n');
}

int pc__root_list(pc__root *root, const char *path, const char *prefix, pc__root_each each, void *context)
{
    names found = {0};
    bool there = root->folder < 0 ? list_recording(root, path, &found) : list_folder(root, path, prefix, &found);
    int count = 0;
    const char *last = "";
    root->starved |= found.starved;
    if (found.count)
        qsort(found.name, (size_t)found.count, sizeof *found.name, by_version);
    for (int i = 0; i < found.count; i++) {
        if (strncmp(found.name[i], prefix, strlen(prefix)) || !strcmp(last, found.name[i]))
            continue;
        last = found.name[i];
        if (root->recording)
            keep_name(root, path, last);
        each(context, last);
        count++;
    }
    for (int i = 0; i < found.count; i++)
        pc__free(found.name[i]);
    pc__free(found.name);
    return there ? count : -1;
}

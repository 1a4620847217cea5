/* read.c: a file or a folder as one text. */
#include "io/file.h"
#include "io/inside.h"

#include <paracord/text.h>

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

static pc_status add_folder(const char *path, const struct stat *info, pc__inside *inside, pc__text *out, int *files);

static pc_status add_file(const char *path, pc__text *out, int *files)
{
    uint8_t *bytes;
    size_t n;
    PC__TRY(pc__file_read(path, &bytes, &n));
    if (!memchr(bytes, 0, n)) {
        if (n && out->length && out->data[out->length - 1] != '\n') /* else two words of two files would be one */
            pc__text_append(out, "\n", 1);
        pc__text_append(out, (const char *)bytes, n);
        ++*files;
    }
    pc__free(bytes);
    return out->failed ? PC_ERR_MEMORY : PC_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names from pc__alloc, in order. */
static pc_status list_names(const char *path, char ***names, int *count)
{
    int room = 0;
    DIR *folder = opendir(path);
    if (!folder)
        return pc__fail_file(errno, "cannot read the folder %s", path);
    pc_status status = PC_OK;
    const struct dirent *entry = NULL;
    while (status == PC_OK && (errno = 0, entry = readdir(folder))) {
        if (entry->d_name[0] == '.')
            continue;
        status = pc__grow((void **)names, &room, *count, sizeof **names);
        char *name = status == PC_OK ? pc__strdup(entry->d_name) : NULL;
        if (name)
            (*names)[(*count)++] = name;
        else
            status = PC_ERR_MEMORY;
    }
    if (status == PC_OK && errno)
        status = pc__fail_file(errno, "cannot read the folder %s", path);
    closedir(folder);
    if (*count)
        qsort(*names, (size_t)*count, sizeof **names, by_name);
    return status;
}

static pc_status add_entry(const char *folder, const char *name, pc__inside *inside, pc__text *out, int *files)
{
    struct stat info;
    pc__text path = {0};
    pc__text_add(&path, "%s/%s", folder, name);
    pc_status status = PC_OK;
    if (path.failed)
        status = PC_ERR_MEMORY;
    else if (stat(path.data, &info) != 0)
        status = pc__is_nothing(path.data);
    else if (S_ISDIR(info.st_mode))
        status = pc__is_inside(inside, &info) ? PC_OK : add_folder(path.data, &info, inside, out, files);
    else if (S_ISREG(info.st_mode))
        status = add_file(path.data, out, files);
    pc__text_free(&path);
    return status;
}

static pc_status add_folder(const char *path, const struct stat *info, pc__inside *inside, pc__text *out, int *files)
{
    char **names = NULL;
    int count = 0;
    PC__TRY(pc__go_inside(inside, path, info));
    pc_status status = list_names(path, &names, &count);
    for (int i = 0; i < count; i++) {
        if (status == PC_OK)
            status = add_entry(path, names[i], inside, out, files);
        pc__free(names[i]);
    }
    pc__free(names);
    inside->depth--;
    return status;
}

char *pc_text_read(const char *path, size_t *bytes)
{
    PC__NEED_OR(NULL, path);
    PC__NEED_OR(NULL, bytes);
    struct stat info;
    int files = 0;
    *bytes = 0;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) {
        uint8_t *file;
        return pc__file_read(path, &file, bytes) == PC_OK ? (char *)file : NULL;
    }
    pc__text out = {0};
    pc__inside inside = {.depth = 0};
    pc__text_append(&out, "", 0);
    pc_status status = add_folder(path, &info, &inside, &out, &files);
    if (status == PC_OK && !files)
        status = pc__fail(PC_ERR_NOT_FOUND, "there is no text in the folder %s", path);
    if (status != PC_OK || out.failed) {
        pc__text_free(&out);
        return NULL;
    }
    *bytes = out.length;
    return out.data;
}

/* check.c: which pictures below a folder cannot be decoded, or are damaged. */
#include "data/pictures.h"

#include <stdlib.h>

/* What the parts of a set of pictures are called; the classes are in them. */
static bool is_part(const char *name, size_t n)
{
    static const char *const parts[] = {"train", "training", "training_set", "test",          "test_set",
                                        "val",   "valid",    "validation",   "validation_set"};
    for (int i = 0; i < PC__COUNT(parts); i++)
        if (strlen(parts[i]) == n && memcmp(parts[i], name, n) == 0)
            return true;
    return false;
}

typedef struct word {
    const char *text;
    size_t n;
} word;

/* The class of a file is the first folder in its path that is no part; an empty word when it is in none. */
static word class_of(const char *path)
{
    const char *slash = strchr(path, '/');
    if (slash && is_part(path, (size_t)(slash - path)))
        path = slash + 1, slash = strchr(path, '/');
    return (word){path, slash ? (size_t)(slash - path) : 0};
}

static int by_text(const void *a, const void *b)
{
    const word *x = a, *y = b;
    const int order = memcmp(x->text, y->text, PC__MIN(x->n, y->n));
    return order ? order : (x->n > y->n) - (x->n < y->n);
}

static pc_status count_classes(const pc__folder *folder, int *classes)
{
    word *words = pc__alloc((size_t)folder->count * sizeof *words);
    if (!words)
        return PC_ERR_MEMORY;
    for (int i = 0; i < folder->count; i++)
        words[i] = class_of(folder->files[i].path);
    qsort(words, (size_t)folder->count, sizeof *words, by_text);
    for (int i = 0; i < folder->count; i++)
        *classes += words[i].n && (i == 0 || by_text(&words[i - 1], &words[i]) != 0);
    pc__free(words);
    return PC_OK;
}

static pc_status check(const pc__folder *folder, const pc__decode_options *options, pc_folder_report *report)
{
    if (folder->count == 0)
        return PC_OK;
    PC__TRY(count_classes(folder, &report->classes));
    pc__decoded *decoded = pc__alloc((size_t)folder->count * sizeof *decoded);
    if (!decoded)
        return PC_ERR_MEMORY;
    pc_status status = pc__pictures_decode(folder, options, NULL, 0, decoded);
    report->pictures = folder->count;
    for (int i = 0; status == PC_OK && i < folder->count; i++) {
        report->broken += decoded[i] == PC__DECODED_BROKEN;
        report->damaged += decoded[i] == PC__DECODED_DAMAGED;
    }
    pc__free(decoded);
    return status;
}

pc_status pc_pictures_check(const char *folder, const pc_folder_callbacks *callbacks, pc_folder_report *report)
{
    pc_folder_report made = {0};
    if (report)
        *report = made;
    PC__NEED(folder);
    if (!*folder)
        return pc__fail(PC_ERR_ARGUMENT, "cannot check pictures: no folder is given");
    pc__folder files;
    PC__TRY(pc__folder_scan_flat(folder, &files));
    const pc__decode_options options = {.frame = {64, 64, 3},
                                        .broken = callbacks ? callbacks->broken : NULL,
                                        .damaged = callbacks ? callbacks->damaged : NULL,
                                        .context = callbacks ? callbacks->context : NULL};
    pc_status status = check(&files, &options, &made);
    pc__folder_free(&files);
    if (status == PC_OK && report)
        *report = made;
    return status;
}

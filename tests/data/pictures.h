/* pictures.h: folders of small pictures for tests, made in a temporary folder. */
#ifndef PC_TEST_PICTURES_H
#define PC_TEST_PICTURES_H

#include "device.h"

#include <dirent.h>
#include <ftw.h>
#include <paracord/image.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct test_path {
    char s[4096];
} test_path;

static inline test_path joined(const char *root, const char *name)
{
    test_path path;
    assert_true(snprintf(path.s, sizeof path.s, "%s/%s", root, name) < (int)sizeof path.s);
    return path;
}

/* A new temporary folder, for the test to remove. */
static inline test_path new_root(void)
{
    test_path root = {"/tmp/paracord-test-XXXXXX"};
    assert_non_null(mkdtemp(root.s));
    return root;
}

static inline int remove_one(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info, (void)type, (void)where;
    return remove(path);
}

static inline void remove_root(test_path *root)
{
    assert_int_equal(nftw(root->s, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* How many files in the folder have that in their names. */
static inline int files_with(const char *folder, const char *part)
{
    int found = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        found += strstr(entry->d_name, part) != NULL;
    closedir(dir);
    return found;
}

/* Make the folders that lead to root/name. */
static inline test_path placed(const char *root, const char *name)
{
    test_path path = joined(root, name);
    for (char *p = path.s + strlen(root) + 1; (p = strchr(p, '/')); *p++ = '/') {
        *p = 0;
        mkdir(path.s, 0777);
    }
    return path;
}

/* A picture of noise that depends on `seed`, JPEG or PNG by its suffix. */
static inline void put_picture(const char *root, const char *name, unsigned seed)
{
    pc_image image;
    assert_ok(pc_image_new(10 + (int)(seed % 7), 9, 3, &image));
    for (int i = 0; i < image.width * image.height * 3; i++)
        image.pixels[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
    assert_ok(pc_image_write(&image, placed(root, name).s));
    pc_image_free(&image);
}

static inline void put_bytes(const char *root, const char *name, const void *bytes, size_t n)
{
    FILE *file = fopen(placed(root, name).s, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static inline void put_link(const char *root, const char *name, const char *target)
{
    assert_int_equal(symlink(target, placed(root, name).s), 0);
}

/* A link to a name that no file can have: asking what it leads to fails, and not for there being nothing. */
static inline void put_bad_link(const char *root, const char *name)
{
    char target[301];
    memset(target, 'a', sizeof target - 1);
    target[sizeof target - 1] = 0;
    put_link(root, name, target);
}

/* Cut root/name to a part of its bytes. */
static inline void cut(const char *root, const char *name, double share)
{
    test_path path = joined(root, name);
    struct stat info;
    assert_int_equal(stat(path.s, &info), 0);
    assert_int_equal(truncate(path.s, (off_t)((double)info.st_size * share)), 0);
}

/* `count` pictures in each of the classes, of both formats. */
static inline void put_classes(const char *root, const char *const *classes, int class_count, int count)
{
    for (int c = 0; c < class_count; c++)
        for (int i = 0; i < count; i++) {
            char name[256];
            snprintf(name, sizeof name, "%s/%c%02d.%s", classes[c], 'a' + i % 3, i, i % 2 ? "png" : "jpg");
            put_picture(root, name, (unsigned)(c * 1000 + i));
        }
}

/* What was skipped, one line each. */
typedef struct heard {
    char lines[8192];
    int count;
} heard;

static inline void hear(void *context, const char *path, const char *why)
{
    heard *h = context;
    size_t used = strlen(h->lines);
    snprintf(h->lines + used, sizeof h->lines - used, "%s: %s\n", path, why);
    h->count++;
}

#endif

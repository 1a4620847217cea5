/* Batches of pictures when something is wrong: broken files, folders that do not fit, no memory, no thread, an early
 * end. */
#include "pictures.h"

#include <dirent.h>
#include <paracord/loader.h>
#include <paracord/memory.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/un.h>

#define TWO ((const char *[]){"cat", "dog"})

static void assert_nothing_alive(void)
{
    assert_ok(pc_memory_trim(PC_DEVICE_CPU));
    assert_int_equal(pc_allocator_live(), 0);
}

static void put_broken(const char *root)
{
    put_bytes(root, "cat/a0.jpg", "", 0);
    put_bytes(root, "cat/b0.jpg", "just some words", 15);
    put_picture(root, "dog/zz.jpg", 77);
    cut(root, "dog/zz.jpg", 0.6);
    put_picture(root, "dog/a0.png", 78);
    cut(root, "dog/a0.png", 0.6);
    put_bytes(root, "dog/b0.bmp", "BM0000000000000000", 18);
}

/* A pipe, a socket and a link to a device are told, and never opened: the pipe's writer would notice. */
static void what_is_no_file_is_skipped_and_named(void **state)
{
    (void)state;
    test_path root = new_root(), pipe = joined(root.s, "cat/b0.jpg"), place = joined(root.s, "dog/socket.png");
    put_classes(root.s, TWO, 2, 4);
    assert_int_equal(mkfifo(pipe.s, 0666), 0);
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    assert_true(snprintf(name.sun_path, sizeof name.sun_path, "%s", place.s) < (int)sizeof name.sun_path);
    const int bound = socket(AF_UNIX, SOCK_STREAM, 0), watch = inotify_init1(IN_NONBLOCK);
    assert_int_equal(bind(bound, (struct sockaddr *)&name, sizeof name), 0);
    put_link(root.s, "dog/zero.webp", "/dev/zero");
    assert_true(inotify_add_watch(watch, pipe.s, IN_OPEN) >= 0);
    heard h = {.count = 0};
    pc_loader *loader = pc_loader(root.s, .size = 8, .skipped = hear, .context = &h);
    assert_not_null_ok(loader);
    assert_int_equal(pc_loader_count(loader), 8);
    assert_int_equal(pc_loader_skipped(loader), 3);
    const char *words[] = {"cat/b0.jpg: it is a named pipe, not a regular file",
                           "dog/socket.png: it is a socket, not a regular file",
                           "dog/zero.webp: it is a device, not a regular file"};
    for (int i = 0; i < 3; i++)
        if (!strstr(h.lines, words[i]))
            fail_msg("no \"%s\" in:\n%s", words[i], h.lines);
    char event[512];
    assert_int_equal(read(watch, event, sizeof event), -1);
    pc_loader_free(loader);
    close(bound);
    close(watch);
    remove_root(&root);
    assert_nothing_alive();
}

static void broken_pictures_are_skipped_and_named(void **state)
{
    (void)state;
    test_path root = new_root();
    put_classes(root.s, TWO, 2, 4);
    put_broken(root.s);
    heard h = {.count = 0};
    pc_loader *loader = pc_loader(root.s, .size = 8, .skipped = hear, .context = &h);
    assert_not_null_ok(loader);
    assert_false(pc_failed());
    assert_int_equal(pc_loader_count(loader), 8);
    assert_int_equal(pc_loader_skipped(loader), 5);
    assert_int_equal(h.count, 5);
    const char *names[] = {"/cat/a0.jpg: is an empty file", "/cat/b0.jpg: is a text file", "/dog/a0.png: is ",
                           "/dog/b0.bmp: is truncated", "/dog/zz.jpg: is truncated"};
    const char *at = h.lines;
    for (int i = 0; i < 5; i++) {
        const char *found = strstr(at, names[i]);
        if (!found)
            fail_msg("no \"%s\" in order in:\n%s", names[i], h.lines);
        at = found + 1;
    }
    for (int64_t i = 0; i < 8; i++) {
        pc_picture picture;
        assert_ok(pc_loader_picture(loader, i, &picture));
        assert_int_equal(picture.label, i >= 4);
        assert_non_null(strstr(picture.path, i < 4 ? "cat/" : "dog/"));
        assert_int_equal(access(joined(root.s, picture.path).s, R_OK), 0);
        pc_image whole;
        assert_ok(pc_image_read(joined(root.s, picture.path).s,
                                PC_OPTIONS(pc_image_options, .channels = 3, .width = 8, .height = 8), &whole));
        assert_memory_equal(whole.pixels, picture.image.pixels, 8 * 8 * 3);
        pc_image_free(&whole);
    }
    pc_picture none;
    assert_fails(pc_loader_picture(loader, 8, &none) == PC_OK, PC_ERR_RANGE, "picture 8");
    pc_loader_free(loader);
    assert_fails(pc_loader(root.s, .size = 8, .strict = true), PC_ERR_FORMAT, "cat/a0.jpg is an empty file");
    remove_root(&root);
    assert_nothing_alive();
}

/* Suffixes say nothing about what a file is. */
static void a_png_may_be_called_jpg(void **state)
{
    (void)state;
    test_path root = new_root();
    put_classes(root.s, TWO, 2, 3);
    assert_int_equal(rename(joined(root.s, "cat/b01.png").s, joined(root.s, "cat/b01.jpg").s), 0);
    pc_loader *loader = pc_loader(root.s, .size = 8, .strict = true);
    assert_not_null_ok(loader);
    assert_int_equal(pc_loader_count(loader), 6);
    pc_loader_free(loader);
    remove_root(&root);
}

/* An error that the program has not read yet is still there after broken pictures. */
static void errors_from_before_stay(void **state)
{
    (void)state;
    test_path root = new_root();
    put_classes(root.s, TWO, 2, 4);
    put_broken(root.s);
    (void)pc_fail(PC_ERR_STATE, "from before");
    pc_loader *loader = pc_loader(root.s, .size = 8);
    assert_non_null(loader);
    pc_batch batch;
    assert_true(pc_loader_next(loader, &batch));
    assert_string_equal(pc_error_last()->message, "from before");
    assert_int_equal(pc_error_last()->suppressed, 0);
    pc_error_clear();
    pc_loader_free(loader);
    remove_root(&root);
}

static void folders_must_fit(void **state)
{
    (void)state;
    test_path root = new_root();
    assert_fails(pc_loader(root.s), PC_ERR_NOT_FOUND, "no class folders");
    assert_fails(pc_loader(joined(root.s, "gone").s), PC_ERR_FILE, "gone");
    put_picture(root.s, "cat/1.jpg", 1);
    assert_fails(pc_loader(root.s), PC_ERR_NOT_FOUND, "one class only, cat");
    assert_fails(pc_loader(joined(root.s, "cat/1.jpg").s), PC_ERR_FILE, "cat/1.jpg");
    put_bytes(root.s, "dog/readme.txt", "no picture", 10);
    assert_fails(pc_loader(root.s), PC_ERR_NOT_FOUND, "class dog has no pictures");
    put_bytes(root.s, "dog/1.jpg", "no picture", 10);
    put_bytes(root.s, "dog/2.jpg", "", 0);
    assert_fails(pc_loader(root.s), PC_ERR_NOT_FOUND, "class dog has no picture that can be decoded");
    put_picture(root.s, "dog/3.jpg", 2);
    pc_loader *loader = pc_loader(root.s);
    assert_not_null_ok(loader);
    assert_int_equal(pc_loader_count(loader), 2);
    pc_loader_free(loader);
    assert_fails(pc_loader(root.s, .class_names = (const char *[]){"cat", "cow"}, .class_count = 2), PC_ERR_NOT_FOUND,
                 "cow");
    put_picture(root.s, "elk/1.jpg", 3);
    assert_fails(pc_loader(root.s, .class_names = TWO, .class_count = 2), PC_ERR_NOT_FOUND, "elk");
    assert_fails(pc_loader(root.s, .split = PC_SPLIT_VALIDATION, .validation_share = 0.5), PC_ERR_NOT_FOUND,
                 "validation");
    remove_root(&root);
    assert_nothing_alive();
}

static void options_must_make_sense(void **state)
{
    (void)state;
    assert_fails(pc_loader(NULL), PC_ERR_ARGUMENT, "folder is NULL");
    assert_fails(pc_loader("x", .size = -1), PC_ERR_ARGUMENT, "size -1");
    assert_fails(pc_loader("x", .size = 100000), PC_ERR_ARGUMENT, "size 100000");
    assert_fails(pc_loader("x", .batch = -2), PC_ERR_ARGUMENT, "-2");
    assert_fails(pc_loader("x", .prefetch = -2), PC_ERR_ARGUMENT, "-2");
    assert_fails(pc_loader("x", .resize = (pc_resize)7), PC_ERR_ARGUMENT, "7");
    assert_fails(pc_loader("x", .split = (pc_split)7), PC_ERR_ARGUMENT, "7");
    assert_fails(pc_loader("x", .split = PC_SPLIT_TRAINING, .validation_share = 1), PC_ERR_ARGUMENT, "share");
    assert_fails(pc_loader("x", .augment = {.shear = -1}), PC_ERR_ARGUMENT, "shear");
    assert_fails(pc_loader("x", .class_names = TWO, .class_count = 1), PC_ERR_ARGUMENT, "two or more");
    assert_fails(pc_loader("x", .class_names = (const char *[]){"a", NULL}, .class_count = 2), PC_ERR_ARGUMENT, "NULL");
    assert_fails(pc_loader("x", .device = {-1, 0}), PC_ERR_DEVICE, "");
    pc_batch batch;
    assert_fails(pc_loader_next(NULL, &batch), PC_ERR_ARGUMENT, "NULL");
    pc_loader_free(NULL);
    assert_fails(pc_loader_count(NULL) == 0, PC_ERR_ARGUMENT, "loader is NULL");
}

/* Threads of this process that a loader started. */
static int loader_threads(void)
{
    int found = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (struct dirent *entry; (entry = readdir(tasks));) {
        char path[512], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file) {
            found += fgets(name, sizeof name, file) && strcmp(name, "pc-loader\n") == 0;
            fclose(file);
        }
    }
    closedir(tasks);
    return found;
}

/* Whether no loader's thread is left. The kernel tells a join that a thread has ended shortly before it takes the
 * thread off the list, so that one which has just been joined may be listed for a moment more. */
static bool loader_threads_are_gone(void)
{
    enum { PAUSE_US = 1000, PAUSES = 20000 };
    for (int i = 0; i < PAUSES && loader_threads(); i++)
        usleep(PAUSE_US);
    return loader_threads() == 0;
}

/* At every moment of an epoch and of what is made ahead. */
static void it_can_be_freed_at_any_moment(void **state)
{
    (void)state;
    test_path root = new_root();
    put_classes(root.s, TWO, 2, 6);
    for (int round = 0; round < 60; round++) {
        pc_loader *loader = pc_loader(root.s, .size = 32, .batch = 2, .prefetch = round % 4 - 1, .shuffle = true);
        assert_not_null_ok(loader);
        assert_true(loader_threads_are_gone());
        pc_batch batch;
        for (int i = 0; i < round % 9; i++)
            (void)pc_loader_next(loader, &batch);
        if (round % 9)
            assert_int_equal(loader_threads(), round % 4 ? 1 : 0);
        if (round % 5 == 0)
            assert_ok(pc_loader_seek(loader, round, 1));
        if (round % 3 == 0)
            usleep(300);
        pc_loader_free(loader);
        assert_true(loader_threads_are_gone());
        assert_false(pc_failed());
        assert_nothing_alive();
    }
    remove_root(&root);
}

/* An allocator that fails: call number `at` alone, or all from there on. */
static atomic_long calls;
static long fail_at;
static bool fail_after;

static bool is_failing(void)
{
    const long call = atomic_fetch_add(&calls, 1);
    return fail_after ? call >= fail_at : call == fail_at;
}

static void *failing_alloc(void *context, size_t bytes, size_t alignment)
{
    (void)context;
    return is_failing() ? NULL : aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void *failing_resize(void *context, void *block, size_t bytes)
{
    (void)context;
    return is_failing() ? NULL : realloc(block, bytes);
}

static void failing_free(void *context, void *block)
{
    (void)context;
    free(block);
}

/* An epoch with a broken picture and a jump. True when an allocation failed on the way. */
static bool run_with_faults(const char *root, int prefetch)
{
    heard h = {.count = 0};
    pc_loader *loader = pc_loader(root, .size = 8, .batch = 3, .prefetch = prefetch, .skipped = hear, .context = &h,
                                  .class_names = TWO, .class_count = 2);
    int batches = 0, tries = 0;
    pc_batch batch;
    bool failed = !loader;
    while (loader && tries++ < 40) {
        if (pc_loader_next(loader, &batch)) {
            assert_int_equal(batch.first, batches++ * 3);
            continue;
        }
        if (!pc_failed())
            break;
        assert_int_equal(pc_error_last()->status, PC_ERR_MEMORY);
        failed = true;
        pc_error_clear(); /* the same batch comes again */
    }
    if (loader && !fail_after)
        assert_int_equal(batches, 3);
    if (!loader)
        assert_int_equal(pc_error_last()->status, PC_ERR_MEMORY);
    pc_loader_free(loader);
    pc_error_clear();
    return failed;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    test_path root = new_root();
    put_classes(root.s, TWO, 2, 3);
    put_bytes(root.s, "cat/z.jpg", "", 0);
    put_picture(root.s, "dog/z.png", 3);
    const pc_allocator failing = {failing_alloc, failing_resize, failing_free, NULL};
    assert_nothing_alive();
    assert_ok(pc_allocator_set(&failing));
    for (int mode = 0; mode < 4; mode++) {
        fail_after = mode / 2;
        int failures = 0;
        for (fail_at = 0; fail_at == 0 || atomic_load(&calls) >= fail_at; fail_at++) {
            assert_true(fail_at < 5000);
            atomic_store(&calls, 0);
            failures += run_with_faults(root.s, mode % 2 ? 2 : -1);
            assert_nothing_alive();
        }
        assert_in_range(failures, 50, fail_at);
    }
    assert_ok(pc_allocator_set(NULL));
    remove_root(&root);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#include <dlfcn.h>
#include <errno.h>

static bool threads_are_out;

/* Stands before the C library's. */
int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes, void *(*start)(void *),
                   void *restrict argument)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    return threads_are_out ? EAGAIN : real(thread, attributes, start, argument);
}

static void without_threads_it_works_too(void **state)
{
    (void)state;
    test_path root = new_root();
    put_classes(root.s, TWO, 2, 6);
    pc_loader *loader = pc_loader(root.s, .size = 8, .batch = 5);
    assert_not_null_ok(loader);
    threads_are_out = true;
    pc_batch batch;
    for (int epoch = 0; epoch < 2; epoch++) {
        int n = 0;
        while (pc_loader_next(loader, &batch))
            n += (int)batch.n;
        assert_int_equal(n, 12);
    }
    assert_ok(pc_loader_seek(loader, 0, 2));
    assert_true(pc_loader_next(loader, &batch));
    assert_int_equal(batch.first, 10);
    assert_int_equal(loader_threads(), 0);
    threads_are_out = false;
    pc_loader_free(loader);
    remove_root(&root);
    assert_nothing_alive();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_pictures_are_skipped_and_named),
        cmocka_unit_test(what_is_no_file_is_skipped_and_named),
        cmocka_unit_test(a_png_may_be_called_jpg),
        cmocka_unit_test(errors_from_before_stay),
        cmocka_unit_test(folders_must_fit),
        cmocka_unit_test(options_must_make_sense),
        cmocka_unit_test(it_can_be_freed_at_any_moment),
        cmocka_unit_test(every_allocation_may_fail),
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        cmocka_unit_test(without_threads_it_works_too),
#endif
    };
    return cmocka_run_group_tests_name("data.loader_faults", tests, NULL, NULL);
}

/* A training whose process dies at its first, second, third, ... change to the disk, in the middle of it where it is a
 * write, goes on and ends with the same network bit for bit. */
#include "folder.h"

#include <paracord-tools/report.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

static long changes, fatal = -1; /* changes so far; the number of the one that kills */

static bool is_fatal(void)
{
    return changes++ == fatal;
}

static void die(void)
{
    kill(getpid(), SIGKILL);
}

/* These stand before the C library's. */
ssize_t write(int fd, const void *bytes, size_t n)
{
    if (is_fatal()) {
        (void)!syscall(SYS_write, fd, bytes, n / 2);
        die();
    }
    return syscall(SYS_write, fd, bytes, n);
}

int fsync(int fd)
{
    if (is_fatal())
        die();
    return (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to)
{
    if (is_fatal())
        die();
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlink(const char *path)
{
    if (is_fatal())
        die();
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

static test_path root, data;

static int prepare(void **state)
{
    (void)state;
    root = folder_in_memory();
    data = joined(root.s, "data");
    put_classes(placed(root.s, "data/train/").s, (const char *[]){"cat", "dog"}, 2, 4);
    put_classes(placed(root.s, "data/test/").s, (const char *[]){"cat", "dog"}, 2, 2);
    return 0;
}

static int tidy(void **state)
{
    (void)state;
    remove_root(&root);
    return 0;
}

/* In a process of its own, whose change number `dies_at` is its last. True when it came to its end. */
static bool train(const test_path *out, int epochs, bool resume, long dies_at)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        pc_train_options settings = {.data = data.s,
                                     .out = out->s,
                                     .epochs = epochs,
                                     .batch = 4,
                                     .size = 10,
                                     .zoom = 0.2,
                                     .flip = true,
                                     .resume = resume,
                                     .report = pc_report_page};
        pc_train_summary summary;
        changes = 0;
        fatal = dies_at;
        _exit(pc_train_folder(settings, &summary) == PC_OK ? 0 : pc_report(stderr) + 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) ? WEXITSTATUS(status) != 0 : WTERMSIG(status) != SIGKILL)
        fail_msg("dying at change %ld: status %x", dies_at, (unsigned)status);
    return WIFEXITED(status);
}

static void assert_same_model(const test_path *a, const test_path *b)
{
    static char x[1 << 20], y[1 << 20];
    FILE *one = fopen(joined(a->s, "model.h5").s, "rb"), *two = fopen(joined(b->s, "model.h5").s, "rb");
    assert_non_null(one);
    assert_non_null(two);
    size_t n = fread(x, 1, sizeof x, one), m = fread(y, 1, sizeof y, two);
    fclose(one);
    fclose(two);
    assert_true(n > 0 && n < sizeof x && n == m);
    assert_memory_equal(x, y, n);
    assert_int_equal(access(joined(b->s, "report.html").s, R_OK), 0);
}

static void a_new_run(void **state)
{
    (void)state;
    test_path alone = joined(root.s, "alone"), out = joined(root.s, "out");
    assert_true(train(&alone, 2, false, -1));
    long at = 0;
    for (; !train(&out, 2, false, at); at++) {
        assert_true(train(&out, 2, true, -1));
        assert_same_model(&alone, &out);
        remove_root(&out);
    }
    print_message("%ld changes\n", at);
    assert_in_range(at, 20, 500);
    remove_root(&out);
    remove_root(&alone);
}

/* A run that has ended is begun again in its folder, or goes on for longer, and dies: resuming ends it. */
static void over_a_finished_one(bool resume)
{
    test_path alone = joined(root.s, "alone"), out = joined(root.s, "out");
    assert_true(train(&alone, 3, false, -1));
    for (long at = 0, dies = true; dies; at++) {
        assert_true(train(&out, resume ? 2 : 3, false, -1));
        dies = !train(&out, 3, resume, at);
        if (dies)
            assert_true(train(&out, 3, true, -1));
        assert_same_model(&alone, &out);
        remove_root(&out);
    }
    remove_root(&alone);
}

static void begun_again(void **state)
{
    (void)state;
    over_a_finished_one(false);
}

static void made_longer(void **state)
{
    (void)state;
    over_a_finished_one(true);
}

/* It dies at the first change, then at the second of the process that goes on, and so on. */
static void again_and_again(void **state)
{
    (void)state;
    test_path alone = joined(root.s, "alone"), out = joined(root.s, "out");
    assert_true(train(&alone, 2, false, -1));
    for (long at = 0; !train(&out, 2, true, at); at++)
        assert_true(at < 500);
    assert_same_model(&alone, &out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_new_run), cmocka_unit_test(begun_again),
                                       cmocka_unit_test(made_longer), cmocka_unit_test(again_and_again)};
    return cmocka_run_group_tests_name("train.crash", tests, prepare, tidy);
}

#else /* sanitizers stand before the C library themselves */

int main(void)
{
    print_message("not under a sanitizer\n");
    return 0;
}

#endif

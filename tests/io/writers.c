/* Several writers of one file, and what becomes of its mode, its links and its neighbours. */
#include "../data/pictures.h"

#include "io/file.h"

#include <paracord/memory.h>
#include <signal.h>
#include <sys/wait.h>

static test_path root;

static int prepare(void **state)
{
    (void)state;
    root = new_root();
    return 0;
}

static int tidy(void **state)
{
    (void)state;
    remove_root(&root);
    assert_int_equal(pc_allocator_live(), 0);
    return 0;
}

static void assert_holds(const char *path, const char *want)
{
    uint8_t *bytes;
    size_t have;
    assert_ok(pc__file_read(path, &bytes, &have));
    assert_int_equal(have, strlen(want));
    assert_memory_equal(bytes, want, have);
    pc__free(bytes);
}

enum { ROUNDS = 200, BYTES = 40000 };

/* This process writes its letter, again and again. */
static _Noreturn void write_all(const char *path, char letter)
{
    static char bytes[2 * BYTES];
    memset(bytes, letter, sizeof bytes);
    int failed = 0;
    for (int i = 0; i < ROUNDS; i++)
        failed += pc__file_write(path, bytes, letter == 'a' ? BYTES : 2 * BYTES) != PC_OK;
    _exit(failed ? 1 : 0);
}

static void assert_whole(const char *path)
{
    uint8_t *bytes;
    size_t n;
    assert_ok(pc__file_read(path, &bytes, &n));
    assert_int_equal(n, *bytes == 'a' ? BYTES : 2 * BYTES);
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != *bytes)
            fail_msg("a file of two writers: %c and %c", *bytes, bytes[i]);
    pc__free(bytes);
}

static void of_several_writers_the_last_is_whole(void **state)
{
    (void)state;
    const test_path path = joined(root.s, "shared");
    pid_t writers[3];
    for (int i = 0; i < PC__COUNT(writers); i++) {
        writers[i] = fork();
        if (writers[i] == 0)
            write_all(path.s, (char)('a' + i));
    }
    for (int left = PC__COUNT(writers), status; left;) {
        if (access(path.s, F_OK) == 0)
            assert_whole(path.s);
        const pid_t ended = waitpid(-1, &status, WNOHANG);
        if (ended > 0) {
            assert_true(WIFEXITED(status));
            assert_int_equal(WEXITSTATUS(status), 0);
            left--;
        }
    }
    assert_whole(path.s);
    assert_int_equal(files_with(root.s, ".tmp"), 0);
}

/* Killed while it writes. */
static void leave_half(const char *path)
{
    const pid_t child = fork();
    if (child == 0) {
        pc__draft draft;
        if (pc__file_begin(path, &draft) == PC_OK && pc__file_put(draft.fd, "half", 4) == 0)
            raise(SIGKILL);
        _exit(1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
}

/* What a killed writer has left goes; a living one's file stays. */
static void killed_and_living_writers(void **state)
{
    (void)state;
    pc__draft living;
    const test_path path = joined(root.s, "half");
    for (int i = 0; i < 3; i++) {
        leave_half(path.s);
        assert_int_equal(files_with(root.s, "half.paracord-"), 1);
    }
    assert_ok(pc__file_write(path.s, "whole", 5));
    assert_int_equal(files_with(root.s, "half.paracord-"), 0);
    assert_ok(pc__file_begin(path.s, &living));
    leave_half(path.s);
    assert_int_equal(files_with(root.s, "half.paracord-"), 2);
    assert_ok(pc__file_sweep(path.s));
    assert_int_equal(files_with(root.s, "half.paracord-"), 1);
    assert_ok(pc__file_write(path.s, "other", 5));
    assert_holds(path.s, "other");
    assert_int_equal(pc__file_put(living.fd, "living", 6), 0);
    assert_ok(pc__file_commit(&living, path.s));
    assert_holds(path.s, "living");
    assert_int_equal(files_with(root.s, "half.paracord-"), 0);
}

/* Where hosts do not see each other's locks. */
static void a_file_that_was_taken_away(void **state)
{
    (void)state;
    pc__draft draft;
    const test_path path = joined(root.s, "kept");
    assert_ok(pc__file_write(path.s, "old", 3));
    assert_ok(pc__file_begin(path.s, &draft));
    assert_int_equal(unlink(draft.temporary), 0);
    put_bytes(root.s, "kept.paracord-0.tmp", "another's", 9);
    assert_fails(pc__file_commit(&draft, path.s), PC_ERR_FILE, path.s);
    assert_holds(path.s, "old");
    assert_holds(joined(root.s, "kept.paracord-0.tmp").s, "another's");
    assert_int_equal(unlink(joined(root.s, "kept.paracord-0.tmp").s), 0);
}

static mode_t mode_of(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_mode & 07777;
}

static void modes(void **state)
{
    (void)state;
    static const mode_t kept[] = {0600, 0400, 0664, 0755};
    const test_path path = joined(root.s, "mode");
    const mode_t before = umask(027);
    assert_ok(pc__file_write(path.s, "new", 3));
    assert_int_equal(mode_of(path.s), 0640);
    for (int i = 0; i < PC__COUNT(kept); i++) {
        assert_int_equal(chmod(path.s, kept[i]), 0);
        assert_ok(pc__file_write(path.s, "again", 5));
        assert_int_equal(mode_of(path.s), kept[i]);
    }
    pc__draft draft;
    assert_int_equal(chmod(path.s, 0600), 0);
    assert_ok(pc__file_begin(path.s, &draft));
    assert_int_equal(mode_of(draft.temporary), 0600); /* nobody else reads it meanwhile */
    pc__file_drop(&draft);
    pc__file_drop(&draft);
    assert_int_equal(files_with(root.s, ".tmp"), 0);
    umask(before);
}

static void links_that_lead_to_nothing_yet(void **state)
{
    (void)state;
    struct stat info;
    const test_path link = joined(root.s, "link");
    assert_ok(pc__folder_make(joined(root.s, "far/on").s));
    put_link(root.s, "link", "far/second");
    put_link(root.s, "far/second", "on/file");
    assert_ok(pc__file_write(link.s, "new", 3));
    assert_holds(joined(root.s, "far/on/file").s, "new");
    assert_int_equal(lstat(link.s, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    put_link(root.s, "round", "about");
    put_link(root.s, "about", "round");
    assert_fails(pc__file_write(joined(root.s, "round").s, "new", 3), PC_ERR_FILE, "round");
    assert_int_equal(lstat(joined(root.s, "round").s, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
}

static void names(void **state)
{
    (void)state;
    char longest[256];
    memset(longest, 'n', 255);
    longest[255] = 0;
    put_bytes(root.s, "mine.tmp", "somebody's", 10);
    assert_ok(pc__file_write(joined(root.s, "mine").s, "new", 3));
    assert_holds(joined(root.s, "mine.tmp").s, "somebody's");
    assert_ok(pc__file_write(joined(root.s, longest).s, "new", 3));
    assert_holds(joined(root.s, longest).s, "new");
    assert_true(pc__file_is_temporary("a.paracord-12.tmp", 1));
    assert_false(pc__file_is_temporary("a.tmp", 1));
    assert_false(pc__file_is_temporary("a.paracord-1x.tmp", 1));
    assert_false(pc__file_is_temporary("a", 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_several_writers_the_last_is_whole), cmocka_unit_test(killed_and_living_writers),
        cmocka_unit_test(a_file_that_was_taken_away),           cmocka_unit_test(modes),
        cmocka_unit_test(links_that_lead_to_nothing_yet),       cmocka_unit_test(names),
    };
    return cmocka_run_group_tests_name("io.writers", tests, prepare, tidy);
}

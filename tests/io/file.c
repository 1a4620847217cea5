/* Whole files: a write is there whole or not at all, whatever stops it. */
#include "../data/pictures.h"

#include "io/file.h"

#include <fcntl.h>
#include <paracord/memory.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

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

static void assert_holds(const char *path, const char *want, size_t n)
{
    uint8_t *bytes;
    size_t have;
    assert_ok(pc__file_read(path, &bytes, &have));
    assert_int_equal(have, n);
    assert_memory_equal(bytes, want, n);
    assert_int_equal(bytes[n], 0); /* one zero byte behind the end */
    pc__free(bytes);
}

static void assert_no_temporary(void)
{
    assert_int_equal(files_with(root.s, ".paracord-"), 0);
}

static void writes_and_reads(void **state)
{
    (void)state;
    test_path path = joined(root.s, "file");
    assert_ok(pc__file_write(path.s, "first\0one", 9));
    assert_holds(path.s, "first\0one", 9);
    assert_ok(pc__file_write(path.s, "2", 1));
    assert_holds(path.s, "2", 1);
    assert_ok(pc__file_write(path.s, NULL, 0));
    assert_holds(path.s, "", 0);
    assert_no_temporary();
    put_bytes(root.s, "file.paracord-0.tmp", "left by a kill, and longer than the new content", 48);
    assert_ok(pc__file_write(path.s, "new", 3));
    assert_holds(path.s, "new", 3);
    assert_no_temporary();
}

/* A disk that is full after 64 KiB: the old file stays. */
static void a_full_disk(void **state)
{
    (void)state;
    test_path path = joined(root.s, "kept");
    char *large = calloc(1, 1 << 20);
    assert_ok(pc__file_write(path.s, "old", 3));
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 1 << 16;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    pc_status status = pc__file_write(path.s, large, 1 << 20);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    free(large);
    assert_int_equal(status, PC_ERR_FILE);
    assert_non_null(strstr(pc_error_last()->message, path.s));
    assert_string_equal(pc_error_last()->cause, "File too large");
    pc_error_clear();
    assert_holds(path.s, "old", 3);
    assert_no_temporary();
}

/* A link stays one; what is no regular file stays what it is. */
static void what_is_written_through(void **state)
{
    (void)state;
    struct stat info;
    const test_path fifo = joined(root.s, "way"), link = joined(root.s, "link"), far = joined(root.s, "far/file");
    assert_int_equal(mkfifo(fifo.s, 0600), 0);
    assert_fails(pc__file_write(fifo.s, "x", 1), PC_ERR_FILE, "it is a named pipe, not a regular file");
    assert_int_equal(stat(fifo.s, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    pc__draft draft;
    assert_int_equal(unlink(fifo.s), 0);
    assert_ok(pc__file_begin(fifo.s, &draft));
    assert_int_equal(mkfifo(fifo.s, 0600), 0);
    assert_fails(pc__file_commit(&draft, fifo.s), PC_ERR_FILE, "it is a named pipe, not a regular file");
    assert_no_temporary();
    assert_int_equal(stat(fifo.s, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    put_bytes(root.s, "far/file", "old", 3);
    put_link(root.s, "link", "far/file");
    assert_ok(pc__file_write(link.s, "new", 3));
    assert_holds(far.s, "new", 3);
    assert_int_equal(lstat(link.s, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_no_temporary();
}

static void what_cannot_be_written_or_read(void **state)
{
    (void)state;
    uint8_t *bytes;
    size_t n;
    test_path folder = joined(root.s, "folder"), inside = joined(root.s, "nowhere/file");
    assert_ok(pc__folder_make(folder.s));
    assert_fails(pc__file_write(folder.s, "x", 1), PC_ERR_FILE, folder.s);
    assert_no_temporary();
    assert_fails(pc__file_write(inside.s, "x", 1), PC_ERR_FILE, inside.s);
    assert_fails(pc__file_read(inside.s, &bytes, &n), PC_ERR_FILE, inside.s);
    assert_null(bytes);
    assert_fails(pc__file_read(folder.s, &bytes, &n), PC_ERR_FILE, "regular");
    assert_fails(pc__file_read("/dev/null", &bytes, &n), PC_ERR_FILE, "regular");
    if (geteuid() != 0) { /* root may write everywhere */
        assert_int_equal(chmod(folder.s, 0500), 0);
        assert_fails(pc__file_write(joined(folder.s, "x").s, "x", 1), PC_ERR_FILE, "folder/x");
    }
}

/* Nobody will ever write into this pipe, nor read from that socket. */
static void what_is_not_waited_for(void **state)
{
    (void)state;
    uint8_t *bytes;
    size_t n;
    const test_path fifo = joined(root.s, "fifo");
    assert_int_equal(mkfifo(fifo.s, 0600), 0);
    assert_fails(pc__file_read(fifo.s, &bytes, &n), PC_ERR_FILE, "it is a named pipe, not a regular file");
    assert_fails(pc__file_read("/dev/zero", &bytes, &n), PC_ERR_FILE, "it is a device");
    assert_fails(pc__file_read("/dev/fd/999", &bytes, &n), PC_ERR_FILE, "cannot open /dev/fd/999");
    assert_fails(pc__file_read("/dev/fd/", &bytes, &n), PC_ERR_FILE, "/dev/fd/");
    assert_null(bytes);
}

enum { STREAMED = 200001 };

static void *write_slowly(void *context)
{
    static char letters[STREAMED];
    for (int i = 0; i < STREAMED; i++)
        letters[i] = (char)('a' + i % 26);
    assert_int_equal(pc__file_put(*(int *)context, letters, 1), 0);
    usleep(20000);
    assert_int_equal(pc__file_put(*(int *)context, letters + 1, STREAMED - 1), 0);
    close(*(int *)context);
    return NULL;
}

static char *name_of(int fd, char name[32])
{
    snprintf(name, 32, "/dev/fd/%d", fd);
    return name;
}

/* A pipe that is open already, of others who do not wait; a file by its descriptor, from its beginning. */
static void open_descriptors(void **state)
{
    (void)state;
    int ends[2];
    uint8_t *bytes;
    size_t n;
    char name[32];
    pthread_t writer;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(pthread_create(&writer, NULL, write_slowly, &ends[1]), 0);
    assert_ok(pc__file_read(name_of(ends[0], name), &bytes, &n));
    pthread_join(writer, NULL);
    assert_int_equal(n, STREAMED);
    for (int i = 0; i < STREAMED; i++)
        assert_int_equal(bytes[i], 'a' + i % 26);
    assert_int_equal(bytes[n], 0);
    pc__free(bytes);
    assert_ok(pc__file_read(name, &bytes, &n)); /* at its end */
    assert_int_equal(n, 0);
    pc__free(bytes);
    close(ends[0]);

    const test_path path = joined(root.s, "by-number");
    assert_ok(pc__file_write(path.s, "whole", 5));
    const int fd = open(path.s, O_RDONLY | O_CLOEXEC);
    assert_int_equal(lseek(fd, 2, SEEK_SET), 2);
    assert_holds(name_of(fd, name), "whole", 5);
    assert_holds(name, "whole", 5);
    close(fd);
}

static void folders_with_parents(void **state)
{
    (void)state;
    test_path deep = joined(root.s, "a/b//c/"), file = joined(root.s, "plain");
    char vast[5000];
    assert_ok(pc__folder_make(deep.s));
    assert_ok(pc__folder_make(deep.s));
    assert_int_equal(access(joined(root.s, "a/b/c").s, F_OK), 0);
    assert_ok(pc__file_write(file.s, "", 0));
    assert_fails(pc__folder_make(file.s), PC_ERR_FILE, "plain");
    assert_fails(pc__folder_make(joined(file.s, "below").s), PC_ERR_FILE, "plain");
    memset(vast, 'x', sizeof vast);
    vast[sizeof vast - 1] = 0;
    assert_fails(pc__folder_make(vast), PC_ERR_FILE, "too long");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_and_reads),        cmocka_unit_test(a_full_disk),
        cmocka_unit_test(what_is_written_through), cmocka_unit_test(what_cannot_be_written_or_read),
        cmocka_unit_test(what_is_not_waited_for),  cmocka_unit_test(open_descriptors),
        cmocka_unit_test(folders_with_parents),
    };
    return cmocka_run_group_tests_name("io.file", tests, prepare, tidy);
}

/* full_disk.c: trainings in several ranks whose disk is full when the first one saves: all ranks end, it is told why, the last
 * checkpoint is kept, and with room again the training goes on from there to what it would have become. */
#include "job.h"

#include "base/base.h"

#include <sched.h>
#include <sys/mount.h>

static test_path root, disk;

static void resize(long bytes)
{
    char options[64];
    snprintf(options, sizeof options, "size=%ld", bytes);
    if (mount("tmpfs", disk.s, "tmpfs", MS_REMOUNT, options) != 0)
        fail_msg("the disk does not become one of %ld bytes: %s", bytes, strerror(errno));
}

static int prepare(void **state)
{
    (void)state;
    root = folder_in_memory();
    disk = joined(root.s, "disk");
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mkdir(disk.s, 0700) != 0 || mount("tmpfs", disk.s, "tmpfs", 0, "size=64m") != 0) {
        print_message("skipped: no namespaces here, in which a small disk could be mounted\n");
        remove_root(&root);
        exit(77);
    }
    setenv("PARACORD_SIM", "4", 1);
    draw_pictures(joined(root.s, "pictures").s, 21, 6);
    pc__text text = {0};
    for (int i = 0; i < 300; i++)
        pc__text_add(&text, "line %d: %s and then %s\n", i, i % 3 ? "the cat sat" : "a dog ran",
                     i % 7 ? "went home" : "slept");
    put_bytes(root.s, "text", text.data, text.length);
    pc__text_free(&text);
    return 0;
}

static int tidy(void **state)
{
    (void)state;
    umount(disk.s);
    remove_root(&root);
    return 0;
}

static void empty_disk(void)
{
    umount(disk.s);
    assert_int_equal(mount("tmpfs", disk.s, "tmpfs", 0, "size=64m"), 0);
}

static long size_of(const char *folder, const char *name)
{
    struct stat about;
    return stat(joined(folder, name).s, &about) == 0 ? (long)about.st_size : 0;
}

/* The bytes of a disk that has these files and no more, in whole pages, and one for the folder's sake. */
static long pages(long bytes)
{
    return (bytes / 4096 + 1) * 4096;
}

static void assert_full(const job_end *e, const char *name)
{
    if (e->status != 1 || !strstr(e->err, ": No space left on device") || !strstr(e->err, name))
        fail_msg("exit status %d and \"%s\", without \"%s\"", e->status, e->err, name);
}

#define TRAIN(out, epochs)                                                                                             \
    "train", joined(root.s, "pictures").s, "--size", "16", "--batch", "8", "--devices", "sim:0,sim:1,sim:2",           \
        "--resume", "--threads", "1", "--out", (out), "--epochs", (epochs)

static void pictures(void **state)
{
    (void)state;
    static job_end e;
    size_t n, m;
    const test_path alone = joined(root.s, "alone"), out = joined(disk.s, "run");
    run(&e, TRAIN(alone.s, "4"));
    assert_went_well(&e);
    run(&e, TRAIN(out.s, "2"));
    assert_went_well(&e);
    char *before = content(out.s, "checkpoint", &n);
    long used = 0;
    static const char *const names[] = {"checkpoint", "metrics.jsonl", "model.h5", "report.html"};
    for (int i = 0; i < 4; i++)
        used += pages(size_of(out.s, names[i]));
    resize(used + 2 * 4096);
    run(&e, TRAIN(out.s, "4"));
    assert_full(&e, out.s);
    char *after = content(out.s, "checkpoint", &m);
    assert_int_equal(n, m);
    assert_memory_equal(before, after, n);
    free(before);
    free(after);
    resize(64 << 20);
    run(&e, TRAIN(out.s, "4"));
    assert_went_well(&e);
    assert_same_runs(out.s, alone.s);
}

#define GPT(out)                                                                                                       \
    "gpt", "train", joined(root.s, "text").s, "--resume", "--out", (out), "--layers", "2", "--heads", "2", "--width",  \
        "32", "--context", "32", "--batch", "12", "--steps", "80", "--test-every", "20", "--test-batches", "2",        \
        "--sample", "0", "--threads", "1"

/* The second checkpoint finds no room beside the first. */
static void small(const char *alone)
{
    resize(pages(size_of(alone, "checkpoint") * 3 / 2) + pages(2 * size_of(alone, "model.safetensors")) +
           pages(size_of(alone, "report.html")) + 8 * 4096);
}

static void assert_same_gpt(const char *a, const char *b)
{
    assert_same_file(a, b, "model.safetensors");
    assert_no_temporaries(a);
}

static void text(void **state)
{
    (void)state;
    static job_end e;
    const test_path alone = joined(root.s, "gpt"), out = joined(disk.s, "gpt");
    run(&e, GPT(alone.s), "--devices", "sim:0,sim:1,sim:2");
    assert_went_well(&e);
    empty_disk();
    small(alone.s);
    run(&e, GPT(out.s), "--devices", "sim:0,sim:1,sim:2");
    assert_full(&e, joined(out.s, "checkpoint").s);
    assert_true(exists(out.s, "checkpoint"));
    assert_no_temporaries(out.s);
    resize(64 << 20);
    run(&e, GPT(out.s), "--devices", "sim:0,sim:1,sim:2");
    assert_went_well(&e);
    assert_non_null(strstr(e.out, "step 40/80")); /* it went on behind the first checkpoint */
    assert_null(strstr(e.out, "step 20/80"));
    assert_same_gpt(out.s, alone.s);
}

/* The same as processes: the launcher says it, too, tries again, and does not take it for a failure of the rank's device. */
static void processes(void **state)
{
    (void)state;
    static job_end e;
    const test_path alone = joined(root.s, "gpt3"), out = joined(disk.s, "gpt3");
    resize(64 << 20);
    leaks_of_children(false);
    run(&e, "launch", "-n", "3", "--", binary(), GPT(alone.s), "--device", "sim");
    if (e.status) {
        print_message("ranks as processes go by MPI, which is not here: %s\n", e.err);
        skip();
    }
    empty_disk();
    small(alone.s);
    run(&e, "launch", "-n", "3", "--elastic", "--max-restarts", "1", "--", binary(), GPT(out.s), "--device", "sim");
    assert_full(&e, joined(out.s, "checkpoint").s);
    assert_non_null(strstr(e.err, "rank 0 says: rank 0 failed: cannot write"));
    assert_non_null(strstr(e.err, "restart 1 of 1"));
    assert_null(strstr(e.err, "going on"));
    assert_true(exists(out.s, "checkpoint"));
    resize(64 << 20);
    run(&e, "launch", "-n", "3", "--", binary(), GPT(out.s), "--device", "sim");
    assert_went_well(&e);
    assert_same_gpt(out.s, alone.s);
    leaks_of_children(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pictures), cmocka_unit_test(text), cmocka_unit_test(processes)};
    return cmocka_run_group_tests(tests, prepare, tidy);
}

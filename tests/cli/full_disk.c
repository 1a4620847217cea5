/* full_disk.c: trainings in several ranks whose disk is full, or fails in one of them, when they save: all ranks end, it is told
 * why, the last checkpoint is kept, and with room again the training goes on from there to what it would have become. */
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

/* Also where each rank writes its pieces. */
static void text(void **state)
{
    (void)state;
    static job_end e;
    static const char *const stages[] = {"0", "3"};
    for (int i = 0; i < 2; i++) {
        const test_path alone = joined(root.s, i ? "gpt shared out" : "gpt"), out = joined(disk.s, "gpt");
        run(&e, GPT(alone.s), "--devices", "sim:0,sim:1,sim:2", "--zero", stages[i]);
        assert_went_well(&e);
        empty_disk();
        small(alone.s);
        run(&e, GPT(out.s), "--devices", "sim:0,sim:1,sim:2", "--zero", stages[i]);
        assert_full(&e, joined(out.s, "checkpoint").s);
        assert_true(exists(out.s, "checkpoint"));
        assert_no_temporaries(out.s);
        resize(64 << 20);
        run(&e, GPT(out.s), "--devices", "sim:0,sim:1,sim:2", "--zero", stages[i]);
        assert_went_well(&e);
        assert_non_null(strstr(e.out, "step 40/80")); /* it went on behind the first checkpoint */
        assert_null(strstr(e.out, "step 20/80"));
        assert_same_gpt(out.s, alone.s);
    }
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
    assert_non_null(strstr(e.err, " says: cannot write"));
    assert_non_null(strstr(e.err, "restart 1 of 1"));
    assert_null(strstr(e.err, "going on"));
    assert_true(exists(out.s, "checkpoint"));
    resize(64 << 20);
    run(&e, "launch", "-n", "3", "--", binary(), GPT(out.s), "--device", "sim");
    assert_went_well(&e);
    assert_same_gpt(out.s, alone.s);
    leaks_of_children(true);
}

/* A shell that runs what follows, and in rank $BAD makes the folder $D one that cannot be written to, once a checkpoint is there. */
#define GOES_BAD                                                                                                       \
    "sh", "-c",                                                                                                        \
        "test \"$RANK\" != \"$BAD\" || exec unshare -m sh -c 'mkdir -p \"$D\" && mount --bind \"$D\" \"$D\" && "       \
        "{ until test -e \"$D/checkpoint\" && mount -o remount,bind,ro \"$D\"; do sleep 0.005; done 2>/dev/null & "    \
        "exec \"$@\"; }' sh \"$@\"; exec \"$@\"",                                                                      \
        "sh"

/* The others have told whose file it was, on which host, and why, and the launcher blames that rank. A checkpoint's temporary
 * may be left: the first rank cannot remove it from a disk that it cannot write to, nor when it is stopped first. */
static void assert_told_of(const job_end *e, const char *rank, const char *folder)
{
    char host[64], words[512];
    int times = 0;
    gethostname(host, sizeof host);
    host[sizeof host - 1] = 0;
    assert_int_equal(e->status, 1);
    snprintf(words, sizeof words, "rank %s on %s says: cannot write %s/", rank, host, folder);
    for (const char *at = e->err; (at = strstr(at, words)); times++) {
        at += strlen(words);
        assert_memory_equal(at + strcspn(at, ":"), ": Read-only file system", 23);
    }
    snprintf(words, sizeof words, "paracord launch: rank %s (process ", rank);
    if (times < 2 ||
        !strstr(e->err, words)) /* the launcher, and ranks that were not stopped before they could say it */
        fail_msg("told %d times: %s", times, e->err);
    assert_true(exists(folder, "checkpoint"));
}

#define OFTEN "--device", "cpu", "--zero", "3", "--test-every", "4"

/* The disk of one rank's host fails while others' do not: what is there is whole, and the training goes on from it. */
static void one_of_the_ranks(void **state)
{
    (void)state;
    static job_end e;
    static const char *const bad[] = {"0", "1"};
    const test_path alone = joined(root.s, "gpt4");
    leaks_of_children(false);
    run(&e, "launch", "-n", "3", "--", binary(), GPT(alone.s), OFTEN);
    if (e.status) {
        print_message("ranks as processes go by MPI, which is not here: %s\n", e.err);
        skip();
    }
    for (int i = 0; i < 2; i++) {
        const test_path out = joined(root.s, i ? "gpt5" : "gpt6");
        setenv("D", out.s, 1);
        setenv("BAD", bad[i], 1);
        run(&e, "launch", "-n", "3", "--", GOES_BAD, binary(), GPT(out.s), OFTEN);
        assert_told_of(&e, bad[i], out.s);
        run(&e, "launch", "-n", "3", "--", binary(), GPT(out.s), OFTEN);
        assert_went_well(&e);
        assert_null(strstr(e.out, "step  4/80"));
        assert_same_gpt(out.s, alone.s);
    }
    leaks_of_children(true);
}

#define SHARED_OUT(out)                                                                                                \
    "train", joined(root.s, "pictures").s, "--size", "16", "--batch", "8", "--resume", "--threads", "1", "--device",   \
        "cpu", "--zero", "2", "--epochs", "8", "--out", (out)

/* Of pictures the first rank alone writes. */
static void the_first_rank(void **state)
{
    (void)state;
    static job_end e;
    const test_path alone = joined(root.s, "two"), out = joined(root.s, "bad two");
    leaks_of_children(false);
    run(&e, "launch", "-n", "3", "--", binary(), SHARED_OUT(alone.s));
    if (e.status) {
        print_message("ranks as processes go by MPI, which is not here: %s\n", e.err);
        skip();
    }
    setenv("D", out.s, 1);
    setenv("BAD", "0", 1);
    run(&e, "launch", "-n", "3", "--", GOES_BAD, binary(), SHARED_OUT(out.s));
    assert_told_of(&e, "0", out.s);
    run(&e, "launch", "-n", "3", "--", binary(), SHARED_OUT(out.s));
    assert_went_well(&e);
    assert_same_runs(out.s, alone.s);
    leaks_of_children(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pictures), cmocka_unit_test(text), cmocka_unit_test(processes),
                                       cmocka_unit_test(one_of_the_ranks), cmocka_unit_test(the_first_rank)};
    return cmocka_run_group_tests(tests, prepare, tidy);
}

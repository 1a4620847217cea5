/* Loaders of tar shards: plain, compressed and in every format that tar writes; samples that are not whole; files that
 * are broken. */
#include "device.h"

#include <paracord.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { COUNT = 7, SIDE = 6 };

static char root[64];

/* tar's words, in the folder. */
static void shell(const char *words)
{
    char command[1024];
    snprintf(command, sizeof command, "cd %s && %s", root, words);
    assert_int_equal(system(command), 0);
}

static void put(const char *name, const void *bytes, size_t n)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void put_sample(int i)
{
    char path[256], label[16];
    pc_image image;
    assert_ok(pc_image_new(SIDE, SIDE, 3, &image));
    memset(image.pixels, 10 * i, SIDE * SIDE * 3);
    snprintf(path, sizeof path, "%s/all/%04d.png", root, i);
#ifdef PC_HAVE_PNG
    assert_ok(pc_image_write(&image, path));
#endif
    pc_image_free(&image);
    snprintf(path, sizeof path, "all/%04d.cls", i);
    snprintf(label, sizeof label, "%d\n", i % 3);
    put(path, label, strlen(label));
    snprintf(path, sizeof path, "%s/all/%04d.npy", root, i);
    PC_SCOPE {
        assert_ok(pc_npy_save(pc_full(PC_SHAPE(2, 3), i, PC_F32, PC_DEVICE_CPU), path));
    }
}

static int make(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/paracord-tar-%d", (int)getpid());
    char command[128];
    snprintf(command, sizeof command, "mkdir -p %s/all", root);
    if (system(command) != 0)
        return -1;
    for (int i = 0; i < COUNT; i++)
        put_sample(i);
    shell("cd all && tar --sort=name -cf ../a-0.tar 000[0-3].* && tar --sort=name -cf ../a-1.tar 000[4-6].*");
    return 0;
}

static int tidy(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

static const char *in(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void needs_libraries(void)
{
    pc_loader *loader = pc_loader_from_tar(in("a-0.tar"), PC_OPTIONS(pc_tar_options, .x = "npy"));
    const bool is_there = pc_error_last()->status != PC_ERR_UNSUPPORTED;
    pc_loader_free(loader);
    pc_error_clear();
#ifdef PC_HAVE_PNG
    if (is_there)
        return;
#endif
    (void)is_there;
    skip();
}

static void check(pc_loader *loader, int64_t count, bool pictures)
{
    pc_batch b;
    int64_t seen = 0;
    assert_not_null_ok(loader);
    assert_int_equal(pc_loader_count(loader), count);
    while (pc_loader_next(loader, &b)) {
        float x[COUNT * 3 * SIDE * SIDE];
        int64_t y[COUNT];
        assert_int_equal(pc_tensor_ndim(b.x), pictures ? 4 : 3);
        assert_ok(pc_read(b.x, x, (size_t)pc_tensor_count(b.x) * sizeof *x));
        assert_ok(pc_read(b.y, y, (size_t)b.n * sizeof *y));
        const int64_t each = pc_tensor_count(b.x) / b.n;
        for (int64_t i = 0; i < b.n; i++) {
            assert_int_equal(y[i], b.sample[i] % 3);
            for (int64_t k = 0; k < each; k++)
                assert_close((double)x[i * each + k], pictures ? (double)b.sample[i] * 10 / 255 : (double)b.sample[i],
                             1e-6);
        }
        seen += b.n;
    }
    assert_ok(pc_error_last()->status);
    assert_int_equal(seen, count);
    pc_loader_free(loader);
}

#define OPEN(name, ...)                                                                                                \
    pc_loader_from_tar(in(name), PC_OPTIONS(pc_tar_options, __VA_ARGS__), .batch = 3, .shuffle = true,                 \
                       .device = test_device())

static void pictures_and_arrays_come_with_their_labels(void **state)
{
    (void)state;
    needs_libraries();
    check(OPEN("a-*.tar", .x = "png", .height = SIDE, .width = SIDE), COUNT, true);
    check(OPEN("a-*.tar", .x = "jpg;npy"), COUNT, false);
    check(OPEN("a-0.tar", .x = "npy"), 4, false);
    pc_loader *alone = OPEN("a-1.tar", .x = "png", .y = "", .channels = 1);
    assert_not_null_ok(alone);
    pc_field field;
    assert_int_equal(pc_loader_fields(alone, &field, 1), 1);
    assert_int_equal(field.shape.dim[0], 1);
    assert_int_equal(field.shape.dim[1], 64);
    pc_loader_free(alone);
}

static void every_format_is_read(void **state)
{
    (void)state;
    needs_libraries();
    static const char *const formats[] = {"v7", "ustar", "gnu", "pax"};
    for (int i = 0; i < 4; i++) {
        char words[512];
        const char *end = i < 2 ? ""
                                : "/a-folder-with-a-long-name-beyond-one-hundred-characters-as-tar-files-have-them-in-"
                                  "another-header-of-their-own";
        snprintf(words, sizeof words, "rm -rf long && mkdir -p long%s && cp all/* long%s", end, end);
        shell(words);
        snprintf(words, sizeof words, "tar --sort=name --format=%s -cf f.tar long", formats[i]);
        shell(words);
        check(OPEN("f.tar", .x = "png", .height = SIDE, .width = SIDE), COUNT, true);
        shell("gzip -kf f.tar");
        check(OPEN("f.tar.gz", .x = "npy"), COUNT, false);
    }
}

static void what_is_not_whole_is_left_out(void **state)
{
    (void)state;
    needs_libraries();
    shell("rm -rf part && cp -r all part && rm part/0001.cls part/0006.npy part/0006.cls && tar --sort=name -cf "
          "part.tar part");
    pc_loader *loader = OPEN("part.tar", .x = "npy");
    assert_not_null_ok(loader);
    assert_int_equal(pc_loader_count(loader), 5);
    assert_int_equal(pc_loader_skipped(loader), 1); /* of 6 nothing is left that was asked for */
    pc_loader_free(loader);
    shell("echo x >part/0002.cls && tar --sort=name -cf part.tar part");
    assert_fails(OPEN("part.tar", .x = "npy"), PC_ERR_FORMAT, "part/0002.cls in");
    static const char *const wrong[] = {"9999999999999999999", "3\\0junk", "", "3 4"};
    for (int i = 0; i < 4; i++) {
        char command[128];
        snprintf(command, sizeof command, "printf '%s' >part/0002.cls && tar --sort=name -cf part.tar part", wrong[i]);
        shell(command);
        assert_fails(OPEN("part.tar", .x = "npy"), PC_ERR_FORMAT, "is no whole number");
    }
    shell("echo 1 >part/0002.cls && cp part/0002.png part/0003.png && head -c 60 part/0002.png >part/0000.png && "
          "tar --sort=name -cf part.tar part");
    loader = pc_loader_from_tar(in("part.tar"), PC_OPTIONS(pc_tar_options, .x = "png"), .batch = 9,
                                .resident = PC_RESIDENCE_NO, .prefetch = -1);
    pc_batch b;
    assert_not_null_ok(loader);
    assert_fails(pc_loader_next(loader, &b), PC_ERR_FORMAT, "part/0000.png in");
    pc_loader_free(loader);
}

/* A file whose name reads like a pattern is that file. */
static void names_are_no_patterns(void **state)
{
    (void)state;
    needs_libraries();
    shell("rm -rf one && mkdir one && cp all/0000.npy one && echo 5 >one/0000.cls && tar -cf d1.tar one && "
          "echo 7 >one/0000.cls && tar -cf 'd[1].tar' one");
    pc_loader *loader = OPEN("d[1].tar", .x = "npy");
    assert_not_null_ok(loader);
    pc_batch b;
    int64_t y;
    assert_true(pc_loader_next(loader, &b));
    assert_ok(pc_read(b.y, &y, sizeof y));
    assert_int_equal(y, 7);
    pc_loader_free(loader);
}

static void broken_files_are_refused(void **state)
{
    (void)state;
    needs_libraries();
    assert_fails(OPEN("nothing-*.tar", .x = "npy"), PC_ERR_NOT_FOUND, "there is no file");
    assert_fails(OPEN("a-*.tar", .x = "flac"), PC_ERR_NOT_FOUND, "none has a member that ends in flac");
    assert_fails(OPEN("a-*.tar", .height = 3), PC_ERR_ARGUMENT, "height 3");
    assert_fails(OPEN("a-*.tar", .channels = 2), PC_ERR_ARGUMENT, "2 channels");
    put("none.tar", "this is no tar file, whatever its name may say", 40);
    assert_fails(OPEN("none.tar", .x = "npy"), PC_ERR_FORMAT, "is no tar file");
    shell("head -c 1200 a-0.tar >short.tar && head -c 200 f.tar.gz >short.tar.gz");
    assert_fails(OPEN("short.tar", .x = "npy"), PC_ERR_FORMAT, "truncated");
    assert_fails(OPEN("short.tar.gz", .x = "npy"), PC_ERR_FORMAT, "truncated");
    shell("rm -rf odd && cp -r all odd && cp odd/0001.png odd/0003.npy && tar --sort=name -cf odd.tar odd");
    pc_loader *loader =
        pc_loader_from_tar(in("odd.tar"), PC_OPTIONS(pc_tar_options, .x = "npy"), .batch = 9, .prefetch = -1);
    pc_batch b;
    assert_not_null_ok(loader);
    assert_fails(pc_loader_next(loader, &b), PC_ERR_FORMAT, "odd/0003.npy in");
    pc_loader_free(loader);
}

/* Nothing of a file is lost without a word: what is cut off between two members, what stands behind the end of a first
 * archive, what comes twice. */
static void all_of_a_file_counts(void **state)
{
    (void)state;
    needs_libraries();
    shell("cat a-0.tar a-1.tar >both.tar && gzip -kf both.tar");
    check(OPEN("both.tar", .x = "npy"), COUNT, false);
    check(OPEN("both.tar.gz", .x = "npy"), COUNT, false);
    check(OPEN("a-{0..1}.tar", .x = "npy"), COUNT, false);
    check(OPEN("{a-0,a-1}.tar", .x = "npy"), COUNT, false);
    assert_fails(OPEN("a-{0..2}.tar", .x = "npy"), PC_ERR_NOT_FOUND, "a-2.tar");
}

static void what_is_cut_off_is_told(void **state)
{
    (void)state;
    needs_libraries();
    shell("cd all && tar --format=ustar -cf ../cut.tar 0000.npy 0000.cls 0001.npy 0001.cls && cd .. && "
          "head -c 2048 cut.tar >two.tar && head -c 2560 cut.tar >three.tar && cp two.tar ended.tar && "
          "truncate -s +1024 ended.tar");
    assert_fails(OPEN("two.tar", .x = "npy"), PC_ERR_FORMAT, "two.tar is truncated: there is no end mark");
    assert_fails(OPEN("three.tar", .x = "npy"), PC_ERR_FORMAT, "truncated");
    check(OPEN("ended.tar", .x = "npy"), 1, false);
}

static void samples_have_a_member_once(void **state)
{
    (void)state;
    needs_libraries();
    shell("cd all && tar -cf ../again.tar 0000.npy 0000.cls && tar -rf ../again.tar 0000.npy 0000.cls");
    assert_fails(OPEN("again.tar", .x = "npy"), PC_ERR_FORMAT, "again.tar: a sample has 0000.npy twice");
    shell("rm -rf many && cp -r all many && for i in many/*.npy; do cp many/0003.npy ${i%.npy}.a.npy; done && "
          "cd many && tar --sort=name -cf ../many.tar .");
    check(OPEN("many.tar", .x = "npy;a.npy"), COUNT, false); /* in the file a.npy is the first */
    pc_loader *other = OPEN("many.tar", .x = "a.npy;npy");
    pc_batch b;
    assert_not_null_ok(other);
    assert_true(pc_loader_next(other, &b));
    PC_SCOPE {
        assert_true(pc_item(pc_sum(b.x)) == 3.0 * (double)pc_tensor_count(b.x));
    }
    pc_loader_free(other);
}

/* A link has the bytes of what it leads to, wherever that is; one that leads to nothing of a sample is one sample less. */
static void hard_links_are_members(void **state)
{
    (void)state;
    needs_libraries();
    shell("rm -rf hard && mkdir hard && cd hard && cp ../all/0002.npy ../all/0002.cls . && ln 0002.npy 0005.npy && "
          "ln 0002.cls 0005.cls && ln 0002.cls 0006.cls && cp ../all/0002.npy 0006.npy && cp 0002.npy 0000.flac && "
          "ln 0000.flac 0007.npy && ln 0002.cls 0007.cls && tar --sort=name -cf ../hard.tar * && gzip -kf ../hard.tar");
    static const char *const names[] = {"hard.tar", "hard.tar.gz"};
    for (int i = 0; i < 2; i++) {
        pc_loader *loader = pc_loader_from_tar(in(names[i]), PC_OPTIONS(pc_tar_options, .x = "npy"), .batch = 9);
        pc_batch b;
        float x[3 * 6];
        int64_t y[3];
        assert_not_null_ok(loader);
        assert_int_equal(pc_loader_count(loader), 3);
        assert_int_equal(pc_loader_skipped(loader), 1);
        assert_true(pc_loader_next(loader, &b));
        assert_ok(pc_read(b.x, x, sizeof x));
        assert_ok(pc_read(b.y, y, sizeof y));
        for (int k = 0; k < 3 * 6; k++)
            assert_true(x[k] == 2);
        for (int k = 0; k < 3; k++)
            assert_int_equal(y[k], 2);
        pc_loader_free(loader);
    }
}

/* One that leads nowhere leaves the sample what it has, and one may lead to the member whose place it takes. */
static void hard_links_beside_members(void **state)
{
    (void)state;
    needs_libraries();
    shell(
        "rm -rf beside && mkdir beside && cd beside && cp ../all/0002.npy 0001.b.npy && cp ../all/0002.cls 0001.cls && "
        "cp 0001.cls 0001.b.cls && cp 0001.b.npy 0000.flac && ln 0000.flac 0001.c.npy && cp 0001.cls 0000.flac2 && "
        "ln 0000.flac2 0001.d.cls && cp 0001.cls 0002.b.cls && ln 0002.b.cls 0002.cls && cp 0001.b.npy 0002.b.npy && "
        "ln 0002.b.npy 0002.c.npy && tar --sort=name -cf ../beside.tar * && gzip -kf ../beside.tar");
    static const char *const names[] = {"beside.tar", "beside.tar.gz"};
    for (int i = 0; i < 2; i++) {
        pc_loader *loader = OPEN(names[i], .x = "c.npy;b.npy", .y = "d.cls;cls;b.cls");
        pc_batch b;
        assert_not_null_ok(loader);
        assert_int_equal(pc_loader_count(loader), 2);
        assert_int_equal(pc_loader_skipped(loader), 0);
        assert_true(pc_loader_next(loader, &b));
        PC_SCOPE {
            assert_true(pc_item(pc_min(b.x)) == 2 && pc_item(pc_max(b.x)) == 2);
        }
        int64_t y[2];
        assert_ok(pc_read(b.y, y, sizeof y));
        assert_true(y[0] == 2 && y[1] == 2);
        pc_loader_free(loader);
    }
}

/* Members of a file that is not compressed are read where they are. */
static void a_file_that_shrinks_is_an_error_of_its_batch(void **state)
{
    (void)state;
    needs_libraries();
    shell("cp a-0.tar shrinks.tar");
    pc_loader *loader =
        pc_loader_from_tar(in("shrinks.tar"), PC_OPTIONS(pc_tar_options, .x = "npy"), .batch = 9, .prefetch = -1);
    pc_batch b;
    assert_not_null_ok(loader);
    assert_int_equal(truncate(in("shrinks.tar"), 600), 0);
    assert_fails(pc_loader_next(loader, &b), PC_ERR_FILE, "became shorter");
    pc_loader_free(loader);
}

/* Shards, each of one sample: floats of its number, and a label. */
static void put_shards(int count)
{
    static char bytes[16 << 10];
    shell("cd all && tar -b 1 --format=ustar -cf ../many-shards.tar 0001.npy 0001.cls && mkdir -p ../shards");
    FILE *f = fopen(in("many-shards.tar"), "rb");
    assert_non_null(f);
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    assert_int_equal(fclose(f), 0);
    for (int i = 0; i < count; i++) {
        char name[64];
        const float number = (float)i;
        for (int k = 0; k < 6; k++)
            memcpy(bytes + 512 + 128 + 4 * k, &number, 4); /* behind the headers of tar and npy */
        snprintf(name, sizeof name, "shards/%03d.tar", i);
        put(name, bytes, n);
    }
}

/* More shards than a process may have files open; opened again, they must be what they were. */
static void shards_are_not_all_open_at_once(void **state)
{
    (void)state;
    needs_libraries();
    enum { SHARDS = 200, ROOM = 140 };
    struct rlimit limit, before;
    put_shards(SHARDS);
    const int next = dup(STDERR_FILENO);
    assert_int_equal(close(next) | getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = (struct rlimit){(rlim_t)next + ROOM, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    pc_loader *loader = pc_loader_from_tar(in("shards/*.tar"), PC_OPTIONS(pc_tar_options, .x = "npy"), .batch = 50,
                                           .shuffle = true, .resident = PC_RESIDENCE_NO, .prefetch = -1);
    assert_not_null_ok(loader);
    pc_batch b;
    for (int n = 0; n < 2 * SHARDS; n += 50) {
        float x[50 * 6];
        while (!pc_loader_next(loader, &b)) /* the end of an epoch */
            assert_ok(pc_error_last()->status);
        assert_ok(pc_read(b.x, x, sizeof x));
        for (int i = 0; i < 50 * 6; i++)
            assert_true(x[i] == (float)b.sample[i / 6]);
        if (!n) /* other inodes alone are no change */
            shell("cp -rp shards same && mv same/* shards");
    }
    shell("for i in shards/*.tar; do echo >>$i; done");
    while (pc_loader_next(loader, &b)) {
    }
    assert_fails(pc_loader_next(loader, &b), PC_ERR_FILE, ".tar was changed since");
    pc_loader_free(loader);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* Any bytes of a file changed: an answer or an error. */
static void changed_bytes_do_no_harm(void **state)
{
    (void)state;
    needs_libraries();
    static char bytes[64 << 10];
    FILE *f = fopen(in("a-0.tar"), "rb");
    assert_non_null(f);
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    assert_int_equal(fclose(f), 0);
    uint32_t seed = 1;
    for (int round = 0; round < 300; round++) {
        char kept[4];
        size_t at[4];
        for (int i = 0; i < 4; i++) {
            seed = seed * 1664525 + 1013904223;
            at[i] = (seed >> 8) % (i < 2 ? 512 : n);
            kept[i] = bytes[at[i]];
            bytes[at[i]] = (char)(seed >> 24);
        }
        put("changed.tar", bytes, n);
        pc_loader *loader =
            pc_loader_from_tar(in("changed.tar"), PC_OPTIONS(pc_tar_options, .x = "npy"), .prefetch = -1);
        pc_batch b;
        while (loader && pc_loader_next(loader, &b)) {
        }
        pc_loader_free(loader);
        pc_error_clear();
        for (int i = 3; i >= 0; i--)
            bytes[at[i]] = kept[i];
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_and_arrays_come_with_their_labels),
        cmocka_unit_test(every_format_is_read),
        cmocka_unit_test(what_is_not_whole_is_left_out),
        cmocka_unit_test(names_are_no_patterns),
        cmocka_unit_test(broken_files_are_refused),
        cmocka_unit_test(all_of_a_file_counts),
        cmocka_unit_test(what_is_cut_off_is_told),
        cmocka_unit_test(samples_have_a_member_once),
        cmocka_unit_test(hard_links_are_members),
        cmocka_unit_test(hard_links_beside_members),
        cmocka_unit_test(a_file_that_shrinks_is_an_error_of_its_batch),
        cmocka_unit_test(shards_are_not_all_open_at_once),
        cmocka_unit_test(changed_bytes_do_no_harm),
    };
    return cmocka_run_group_tests(tests, make, tidy);
}

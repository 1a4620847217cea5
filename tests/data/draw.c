/* Drawn pictures: the same for a seed, two kinds, the folders as promised, errors instead of half sets. */
#include "base/base.h"
#include "support.h"

#include <dirent.h>
#include <ftw.h>
#include <paracord-tools/draw.h>
#include <paracord/threads.h>
#include <paracord/memory.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define EDGE 48

static char folder[64];

static int make_temporary(void **state)
{
    (void)state;
    pc_error_clear();
    snprintf(folder, sizeof folder, "/tmp/paracord-draw-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info, (void)type, (void)where;
    return remove(path);
}

static int remove_temporary(void **state)
{
    (void)state;
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *inside(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int count_files(const char *name)
{
    DIR *dir = opendir(inside(name));
    if (!dir)
        return -1;
    int n = 0;
    for (struct dirent *entry; (entry = readdir(dir));)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

static void needs_jpeg(void)
{
#ifndef PC_HAVE_JPEG
    skip();
#endif
}

/* A number for the bytes of a file (FNV-1a); 0 when it cannot be read or is no JPEG. */
static uint64_t digest(const char *name)
{
    FILE *file = fopen(inside(name), "rb");
    if (!file)
        return 0;
    uint64_t sum = 14695981039346656037u;
    int first = fgetc(file), second = fgetc(file);
    for (int byte; (byte = fgetc(file)) != EOF;)
        sum = (sum ^ (uint64_t)byte) * 1099511628211u;
    fclose(file);
    return first == 0xff && second == 0xd8 ? sum : 0;
}

/* Mean absolute difference of two faces, 0 to 255. */
static double difference(pc_draw_kind kind_a, uint64_t seed_a, uint64_t index_a, pc_draw_kind kind_b, uint64_t seed_b,
                         uint64_t index_b)
{
    pc_image a, b;
    assert_ok(pc_draw_face(kind_a, seed_a, index_a, EDGE, EDGE + 3, &a));
    assert_ok(pc_draw_face(kind_b, seed_b, index_b, EDGE, EDGE + 3, &b));
    assert_int_equal(a.width, EDGE);
    assert_int_equal(a.height, EDGE + 3);
    assert_int_equal(a.channels, 3);
    long sum = 0;
    int n = EDGE * (EDGE + 3) * 3;
    for (int i = 0; i < n; i++)
        sum += abs(a.pixels[i] - b.pixels[i]);
    pc_image_free(&a);
    pc_image_free(&b);
    return (double)sum / n;
}

static void a_face_depends_on_kind_seed_and_index(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 8; i++) {
        assert_close(difference(PC_DRAW_CAT, 5, i, PC_DRAW_CAT, 5, i), 0, 0);
        assert_close(difference(PC_DRAW_DOG, 5, i, PC_DRAW_DOG, 5, i), 0, 0);
        assert_true(difference(PC_DRAW_CAT, 5, i, PC_DRAW_DOG, 5, i) > 3);
        assert_true(difference(PC_DRAW_CAT, 5, i, PC_DRAW_CAT, 6, i) > 3);
        assert_true(difference(PC_DRAW_DOG, 5, i, PC_DRAW_DOG, 5, i + 1) > 3);
    }
}

static void extreme_sizes_draw(void **state)
{
    (void)state;
    const int sizes[][2] = {{16, 16}, {16, 400}, {400, 16}, {700, 650}};
    for (int i = 0; i < PC__COUNT(sizes); i++)
        for (uint64_t index = 0; index < 4; index++) {
            pc_image image;
            assert_ok(pc_draw_face((pc_draw_kind)(index % 2), 1, index, sizes[i][0], sizes[i][1], &image));
            pc_image_free(&image);
        }
}

static void bad_arguments_are_named(void **state)
{
    (void)state;
    pc_image image;
    assert_fails(!pc_draw_face((pc_draw_kind)7, 0, 0, 64, 64, &image), PC_ERR_ARGUMENT, "kind 7");
    assert_null(image.pixels);
    assert_fails(!pc_draw_face(PC_DRAW_CAT, 0, 0, 8, 64, &image), PC_ERR_ARGUMENT, "8 x 64");
    assert_fails(!pc_draw_face(PC_DRAW_CAT, 0, 0, 64, 5000, &image), PC_ERR_ARGUMENT, "64 x 5000");
    assert_fails(!pc_draw_picture_set("", PC_OPTIONS(pc_draw_options, .train = 1)), PC_ERR_ARGUMENT, "no folder");
    assert_fails(!pc_draw_picture_set(folder, PC_OPTIONS(pc_draw_options, .train = -2)), PC_ERR_ARGUMENT, "-2");
    assert_fails(!pc_draw_picture_set(folder, PC_OPTIONS(pc_draw_options, .size = 3)), PC_ERR_ARGUMENT, "size 3");
    assert_fails(!pc_draw_picture_set(folder, PC_OPTIONS(pc_draw_options, .quality = 101)), PC_ERR_ARGUMENT, "101");
    assert_int_equal(count_files("train"), -1);
    assert_string_equal(pc_draw_kind_name(PC_DRAW_DOG), "dog");
    assert_string_equal(pc_draw_kind_name((pc_draw_kind)-1), "unknown");
}

static void a_set_has_the_promised_files(void **state)
{
    (void)state;
    needs_jpeg();
    pc_draw_options options = PC_OPTIONS(pc_draw_options, .train = 5, .test = 2, .size = EDGE, .seed = 9);
    pc_threads_set(1);
    assert_ok(pc_draw_picture_set(inside("a"), options));
    pc_threads_set(4);
    assert_int_equal(count_files("a"), 2);
    assert_int_equal(count_files("a/train/cat"), 5);
    assert_int_equal(count_files("a/train/dog"), 5);
    assert_int_equal(count_files("a/test/cat"), 2);
    assert_int_equal(count_files("a/test/dog"), 2);
    uint64_t first = digest("a/train/cat/cat.000.jpg"), last = digest("a/train/dog/dog.004.jpg");
    assert_true(first != 0 && last != 0 && first != last);
    assert_true(digest("a/test/cat/cat.000.jpg") != first);

    assert_ok(pc_draw_picture_set(inside("a"), options)); /* again, over the old files */
    assert_int_equal(count_files("a/train/cat"), 5);
    assert_true(digest("a/train/cat/cat.000.jpg") == first);
    assert_true(digest("a/train/dog/dog.004.jpg") == last);

    options.train = 3, options.test = -1; /* a smaller set begins with the same pictures */
    assert_ok(pc_draw_picture_set(inside("b"), options));
    assert_int_equal(count_files("b"), 1);
    assert_int_equal(count_files("b/train/dog"), 3);
    assert_true(digest("b/train/cat/cat.000.jpg") == first);
    options.seed = 10;
    assert_ok(pc_draw_picture_set(inside("b"), options));
    assert_true(digest("b/train/cat/cat.000.jpg") != first);
    first = digest("b/train/cat/cat.000.jpg");
    options.seed = 9, options.train = 2; /* a third one would stay of those of seed 10 */
    assert_fails(pc_draw_picture_set(inside("b"), options), PC_ERR_STATE, "has cat.002.jpg in it");
    options.train = 3;
    char was[256];
    snprintf(was, sizeof was, "%s", inside("b/train/dog/dog.002.jpg"));
    assert_int_equal(rename(was, inside("b/train/dog/dog.2.jpg")), 0);
    assert_fails(pc_draw_picture_set(inside("b"), options), PC_ERR_STATE, "train/dog has dog.2.jpg in it");
    assert_true(digest("b/train/cat/cat.000.jpg") == first);
}

static void unwritable_places_are_named(void **state)
{
    (void)state;
    needs_jpeg();
    pc_draw_options options = PC_OPTIONS(pc_draw_options, .train = 6, .test = -1, .size = 24);
    FILE *file = fopen(inside("plain"), "w");
    assert_non_null(file);
    fclose(file);
    assert_fails(!pc_draw_picture_set(inside("plain/set"), options), PC_ERR_FILE, "plain");

    for (int round = 0; round < 10; round++) { /* whichever thread draws it, the caller hears of it */
        assert_int_equal(mkdir(inside("c"), 0777) | mkdir(inside("c/train"), 0777), round ? -1 : 0);
        if (!round) {
            assert_int_equal(mkdir(inside("c/train/dog"), 0777), 0);
            assert_int_equal(mkdir(inside("c/train/dog/dog.003.jpg"), 0777), 0);
        }
        assert_fails(!pc_draw_picture_set(inside("c"), options), PC_ERR_FILE, "dog.003.jpg");
    }
    assert_int_equal(pc_allocator_live(), 0);
}

typedef struct watch {
    int calls, stop_at, total, wrong;
} watch;

static bool on_picture(void *context, int done, int total)
{
    watch *w = context;
    w->calls++;
    w->total = total;
    w->wrong += done != w->calls;
    return done != w->stop_at;
}

static void progress_counts_and_stops(void **state)
{
    (void)state;
    needs_jpeg();
    watch w = {0};
    pc_draw_options options = PC_OPTIONS(pc_draw_options, .train = 5, .test = 1, .size = 24, .progress = on_picture);
    options.context = &w;
    assert_ok(pc_draw_picture_set(inside("d"), options));
    assert_int_equal(w.calls, 12);
    assert_int_equal(w.total, 12);
    assert_int_equal(w.wrong, 0);
    w = (watch){.stop_at = 3};
    assert_fails(!pc_draw_picture_set(inside("d"), options), PC_ERR_INTERRUPTED, "3 of 12");
    assert_int_equal(w.calls, 3);
}

static int allocations_left;

static void *sparse_alloc(void *context, size_t bytes, size_t alignment)
{
    (void)context;
    void *block = NULL;
    if (allocations_left-- <= 0 || posix_memalign(&block, alignment, bytes) != 0)
        return NULL;
    return block;
}

static void *sparse_resize(void *context, void *block, size_t bytes)
{
    (void)context;
    return allocations_left-- > 0 ? realloc(block, bytes) : NULL;
}

static void sparse_free(void *context, void *block)
{
    (void)context;
    free(block);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    const pc_allocator sparse = {sparse_alloc, sparse_resize, sparse_free, NULL};
    assert_ok(pc_allocator_set(&sparse));
    int tries = 0;
    for (pc_status status = PC_ERR_MEMORY; status != PC_OK; tries++) {
        pc_image image;
        allocations_left = tries;
        pc_error_clear();
        status = pc_draw_face(PC_DRAW_DOG, 1, 2, EDGE, EDGE, &image);
        if (status == PC_OK) {
            pc_image_free(&image);
        } else {
            assert_int_equal(status, PC_ERR_MEMORY);
            assert_int_equal(pc_error_last()->status, PC_ERR_MEMORY);
            assert_null(image.pixels);
        }
        assert_int_equal(pc_allocator_live(), 0);
        assert_true(tries < 50);
    }
    assert_true(tries > 2);
    pc_error_clear();
    assert_ok(pc_allocator_set(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_face_depends_on_kind_seed_and_index),
        cmocka_unit_test(extreme_sizes_draw),
        cmocka_unit_test_setup_teardown(bad_arguments_are_named, make_temporary, remove_temporary),
        cmocka_unit_test_setup_teardown(a_set_has_the_promised_files, make_temporary, remove_temporary),
        cmocka_unit_test_setup_teardown(unwritable_places_are_named, make_temporary, remove_temporary),
        cmocka_unit_test_setup_teardown(progress_counts_and_stops, make_temporary, remove_temporary),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("data.draw", tests, NULL, NULL);
}

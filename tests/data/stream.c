/* Pictures that are decoded again whenever they are needed: the bits of those that are kept, in every way of making
 * batches, and an error where a file has gone. */
#include "pictures.h"

#include "device.h"

#include <paracord/loader.h>
#include <paracord/threads.h>

enum { SIZE = 8, PIXELS = SIZE * SIZE * 3, COUNT = 22, EPOCHS = 2, FLOATS = EPOCHS * COUNT * PIXELS };

static test_path root;

static int make_pictures(void **state)
{
    (void)state;
    root = new_root();
    put_classes(root.s, (const char *[]){"cat", "dog"}, 2, COUNT / 2);
    return 0;
}

static int remove_pictures(void **state)
{
    (void)state;
    remove_root(&root);
    return 0;
}

static pc_loader *open_with(int64_t cache, int prefetch, pc_residence resident)
{
    pc_loader *loader = pc_loader(root.s, .size = SIZE, .batch = 5, .shuffle = true, .seed = 4, .flip = true,
                                  .augment = {.rotation = 30}, .device = test_device(), .cache = cache,
                                  .prefetch = prefetch, .resident = resident);
    assert_not_null_ok(loader);
    return loader;
}

/* The batches from number `start` on, one behind the other; their labels in front. */
static float *run_from(pc_loader *loader, int start)
{
    float *all = calloc(EPOCHS * COUNT + FLOATS, sizeof *all), *labels = all, *pixels = all + EPOCHS * COUNT;
    assert_non_null(all);
    const int batches = (int)pc_loader_batches(loader);
    assert_ok(pc_loader_seek(loader, start / batches, start % batches));
    for (int e = start / batches; e < EPOCHS; e++) {
        pc_batch batch;
        while (pc_loader_next(loader, &batch)) {
            const int64_t at = e * COUNT + batch.first;
            assert_ok(pc_read(batch.x, pixels + at * PIXELS, (size_t)batch.n * PIXELS * sizeof *pixels));
            assert_ok(pc_read(batch.y, labels + at, (size_t)batch.n * sizeof *labels));
        }
        assert_false(pc_failed());
    }
    return all;
}

static void the_same_bits(void **state)
{
    (void)state;
    static const int64_t caches[] = {-1, PIXELS, 7 * PIXELS + 3, COUNT * PIXELS, 0};
    static const int streamed[] = {COUNT, COUNT - 1, COUNT - 7, 0, 0};
    pc_loader *whole = open_with(1 << 20, 0, PC_RESIDENCE_AUTO);
    float *want = run_from(whole, 0);
    pc_loader_free(whole);
    for (int i = 0; i < 5; i++)
        for (int way = 0; way < 6; way++) {
            pc_loader *loader = open_with(caches[i], way % 3 - 1, way < 3 ? PC_RESIDENCE_AUTO : PC_RESIDENCE_NO);
            assert_int_equal(pc_loader_streamed(loader), streamed[i]);
            assert_int_equal(pc_loader_count(loader), COUNT);
            pc_threads_set(way % 2 ? 1 : 3);
            float *got = run_from(loader, 0);
            assert_memory_equal(got, want, (EPOCHS * COUNT + FLOATS) * sizeof *want);
            free(got);
            got = run_from(loader, 3); /* as a run that goes on */
            assert_memory_equal(got + EPOCHS * COUNT + 15 * PIXELS, want + EPOCHS * COUNT + 15 * PIXELS,
                                (FLOATS - 15 * PIXELS) * sizeof *want);
            free(got);
            pc_loader_free(loader);
        }
    pc_threads_set(0);
    free(want);
}

static void a_picture_by_number(void **state)
{
    (void)state;
    pc_loader *kept = open_with(1 << 20, 0, PC_RESIDENCE_AUTO),
              *streaming = open_with(3 * PIXELS, 0, PC_RESIDENCE_AUTO);
    for (int64_t i = 0; i < COUNT; i++) {
        pc_picture a, b;
        assert_ok(pc_loader_picture(kept, i, &a));
        assert_ok(pc_loader_picture(streaming, i, &b));
        assert_string_equal(a.path, b.path);
        assert_int_equal(a.label, b.label);
        assert_memory_equal(a.image.pixels, b.image.pixels, PIXELS);
    }
    assert_true(pc_loader_fingerprint(kept) == pc_loader_fingerprint(streaming));
    pc_loader_free(kept);
    pc_loader_free(streaming);
}

/* Names the file; when it is back the same batch is made. On a device that has all pictures nobody misses it. */
static void a_file_that_goes_away(void **state)
{
    (void)state;
    const test_path file = joined(root.s, "dog/a06.jpg"), away = joined(root.s, "dog/a06.gone");
    for (int prefetch = -1; prefetch < 2; prefetch++) {
        pc_loader *loader = open_with(-1, prefetch, PC_RESIDENCE_NO);
        pc_batch batch;
        int64_t seen = 0;
        assert_int_equal(rename(file.s, away.s), 0);
        while (pc_loader_next(loader, &batch))
            seen += batch.n;
        assert_true(pc_failed() && pc_error_last()->status == PC_ERR_FILE);
        assert_non_null(strstr(pc_error_last()->message, "dog/a06.jpg"));
        pc_error_clear();
        assert_int_equal(rename(away.s, file.s), 0);
        while (pc_loader_next(loader, &batch))
            seen += batch.n;
        assert_false(pc_failed());
        assert_int_equal(seen, COUNT);
        pc_loader_free(loader);
    }
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    assert_fails(pc_loader(root.s, .cache = -2), PC_ERR_ARGUMENT, "a cache of -2 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bits),
        cmocka_unit_test(a_picture_by_number),
        cmocka_unit_test(a_file_that_goes_away),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests_name("data.stream", tests, make_pictures, remove_pictures);
}

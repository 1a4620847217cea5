/* Batches of pictures: what is in them depends on seed, epoch and sample, and on nothing else. */
#include "pictures.h"

#include "device.h"

#include <paracord/loader.h>
#include <paracord/ops.h>
#include <paracord/memory.h>

#define TWO ((const char *[]){"cat", "dog"})
#define THREE ((const char *[]){"ant", "bee", "cow"})
#define MIXED .size = 8, .batch = 4, .shuffle = true, .seed = 5, .flip = true, .augment = {.shear = 20, .rotation = 30}

enum { SIZE = 8, PIXELS = SIZE * SIZE * 3 };

/* All that some epochs gave, one batch after the other. */
typedef struct record {
    float *pixels;
    float labels[512];
    int64_t samples[512];
    int count, batches;
} record;

static record new_record(void)
{
    record r = {.pixels = calloc(512 * PIXELS, sizeof(float))};
    assert_non_null(r.pixels);
    return r;
}

static void note(record *r, const pc_batch *batch)
{
    assert_true(r->count + batch->n <= 512);
    PC_SCOPE {
        /* channels last: the memory in its order */
        assert_ok(pc_read(pc_permute(batch->x, PC_SHAPE(0, 2, 3, 1)), r->pixels + (size_t)r->count * PIXELS,
                          (size_t)batch->n * PIXELS * sizeof(float)));
        assert_ok(pc_read(pc_cast(batch->y, PC_F32), r->labels + r->count, (size_t)batch->n * sizeof(float)));
    }
    memcpy(r->samples + r->count, batch->sample, (size_t)batch->n * sizeof *r->samples);
    r->count += (int)batch->n;
    r->batches++;
}

static void run_epochs(pc_loader *loader, int epochs, record *r)
{
    pc_batch batch;
    for (int e = 0; e < epochs; e++) {
        while (pc_loader_next(loader, &batch))
            note(r, &batch);
        if (pc_failed())
            fail_msg("%s", pc_error_last()->message);
    }
}

static void assert_same(const record *a, const record *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->batches, b->batches);
    assert_memory_equal(a->samples, b->samples, sizeof a->samples);
    assert_memory_equal(a->labels, b->labels, sizeof a->labels);
    assert_memory_equal(a->pixels, b->pixels, (size_t)a->count * PIXELS * sizeof(float));
}

static test_path root;

static int make_pictures(void **state)
{
    (void)state;
    root = new_root();
    put_classes(placed(root.s, "two/").s, TWO, 2, 9);
    put_classes(placed(root.s, "three/").s, THREE, 3, 5);
    return 0;
}

static int remove_pictures(void **state)
{
    (void)state;
    remove_root(&root);
    return 0;
}

#define OPEN(which, ...) pc_loader(joined(root.s, which).s, .device = test_device(), __VA_ARGS__)

static void without_augmentation_it_is_the_pictures(void **state)
{
    (void)state;
    pc_loader *loader = OPEN("two", .size = SIZE, .batch = 4);
    assert_not_null_ok(loader);
    assert_int_equal(pc_loader_count(loader), 18);
    assert_int_equal(pc_loader_batches(loader), 5);
    assert_int_equal(pc_loader_skipped(loader), 0);
    record r = new_record();
    run_epochs(loader, 1, &r);
    assert_int_equal(r.count, 18);
    for (int i = 0; i < r.count; i++) {
        pc_picture picture;
        assert_ok(pc_loader_picture(loader, i, &picture));
        assert_int_equal(r.samples[i], i);
        assert_int_equal(picture.label, i >= 9);
        assert_true(r.labels[i] == (float)picture.label);
        assert_int_equal(picture.image.width, SIZE);
        assert_int_equal(picture.image.channels, 3);
        pc_image read;
        char path[256];
        snprintf(path, sizeof path, "two/%s", picture.path);
        assert_ok(pc_image_read(joined(root.s, path).s,
                                PC_OPTIONS(pc_image_options, .channels = 3, .width = SIZE, .height = SIZE), &read));
        assert_memory_equal(picture.image.pixels, read.pixels, PIXELS);
        for (int k = 0; k < PIXELS; k++)
            assert_close(r.pixels[i * PIXELS + k], read.pixels[k] / 255.0, 1e-6);
        pc_image_free(&read);
    }
    free(r.pixels);
    pc_loader_free(loader);
}

static void batches_have_their_shapes(void **state)
{
    (void)state;
    pc_loader *loader = OPEN("two", .size = SIZE, .batch = 5);
    assert_not_null_ok(loader);
    pc_batch batch;
    for (int i = 0; i < 4; i++) {
        assert_true(pc_loader_next(loader, &batch));
        assert_int_equal(batch.n, i < 3 ? 5 : 3);
        assert_int_equal(batch.first, i * 5);
        pc_shape x = pc_tensor_shape(batch.x), y = pc_tensor_shape(batch.y);
        assert_int_equal(x.ndim, 4);
        assert_int_equal(x.dim[0], batch.n);
        assert_int_equal(x.dim[1], 3);
        assert_int_equal(x.dim[3], SIZE);
        assert_int_equal(pc_tensor_stride(batch.x, 1), 1);
        assert_int_equal(pc_tensor_stride(batch.x, 3), 3);
        assert_int_equal(y.ndim, 2);
        assert_int_equal(y.dim[0], batch.n);
        assert_int_equal(y.dim[1], 1);
        assert_int_equal(pc_tensor_dtype(batch.y), PC_F32);
    }
    assert_false(pc_loader_next(loader, &batch));
    assert_null(batch.x);
    assert_false(pc_failed());
    pc_loader_free(loader);

    loader = OPEN("three", .size = SIZE, .batch = 100);
    assert_not_null_ok(loader);
    assert_int_equal(pc_loader_class_count(loader), 3);
    assert_string_equal(pc_loader_class_name(loader, 1), "bee");
    assert_null(pc_loader_class_name(loader, 3));
    assert_true(pc_loader_next(loader, &batch));
    assert_int_equal(batch.n, 15);
    assert_int_equal(pc_tensor_ndim(batch.y), 1);
    assert_int_equal(pc_tensor_dtype(batch.y), PC_I64);
    int64_t labels[15];
    assert_ok(pc_read(batch.y, labels, sizeof labels));
    assert_int_equal(labels[14], 2);
    pc_loader_free(loader);
}

static void prefetching_changes_nothing(void **state)
{
    (void)state;
    const int ahead[] = {-1, 0, 1, 3, 40, 3};
    record first = new_record();
    for (int i = 0; i < 6; i++) {
        pc_loader *loader = OPEN("two", MIXED, .prefetch = ahead[i]);
        assert_not_null_ok(loader);
        record r = new_record();
        run_epochs(loader, 3, i ? &r : &first);
        if (i)
            assert_same(&r, &first);
        free(r.pixels);
        pc_loader_free(loader);
    }
    free(first.pixels);
}

/* Each epoch has every sample once, in an order and with changes of its own. */
static void epochs_differ(void **state)
{
    (void)state;
    pc_loader *loader = OPEN("two", MIXED);
    assert_not_null_ok(loader);
    record r = new_record();
    run_epochs(loader, 3, &r);
    int moved = 0, changed = 0;
    for (int e = 0; e < 3; e++) {
        bool seen[18] = {false};
        for (int i = 0; i < 18; i++) {
            const int64_t sample = r.samples[e * 18 + i];
            assert_false(seen[sample]);
            seen[sample] = true;
            assert_true(r.labels[e * 18 + i] == (sample >= 9));
            moved += e && sample != r.samples[i];
            for (int k = 0; e && k < 18; k++)
                changed += r.samples[k] == sample &&
                           memcmp(&r.pixels[k * PIXELS], &r.pixels[(e * 18 + i) * PIXELS], PIXELS * sizeof(float)) != 0;
        }
    }
    assert_in_range(moved, 20, 36);
    assert_in_range(changed, 30, 36);
    free(r.pixels);
    pc_loader_free(loader);
}

static void seeds_differ(void **state)
{
    (void)state;
    record r[2];
    for (int i = 0; i < 2; i++) {
        pc_loader *loader = OPEN("two", .size = SIZE, .shuffle = true, .seed = (uint64_t)i);
        assert_not_null_ok(loader);
        r[i] = new_record();
        run_epochs(loader, 1, &r[i]);
        pc_loader_free(loader);
    }
    assert_memory_not_equal(r[0].samples, r[1].samples, sizeof r[0].samples);
    free(r[0].pixels);
    free(r[1].pixels);
}

/* From any batch on, all is as if the loader had run there: a new loader, and one that stopped elsewhere. */
static void seeking_goes_on_as_running(void **state)
{
    (void)state;
    for (int prefetch = -1; prefetch < 3; prefetch++) {
        pc_loader *through = OPEN("two", MIXED, .prefetch = prefetch);
        pc_loader *jumping = OPEN("two", MIXED, .prefetch = prefetch);
        assert_not_null_ok(through);
        assert_not_null_ok(jumping);
        for (int start = 0; start <= 10; start++) {
            record a = new_record(), b = new_record();
            assert_ok(pc_loader_seek(through, 0, 0));
            run_epochs(through, 3, &a);
            assert_ok(pc_loader_seek(jumping, start / 5, start % 5));
            run_epochs(jumping, 3 - start / 5, &b);
            const int skipped = start / 5 * 18 + start % 5 * 4;
            assert_int_equal(b.count, a.count - skipped);
            assert_memory_equal(a.samples + skipped, b.samples, (size_t)b.count * sizeof *b.samples);
            assert_memory_equal(a.pixels + skipped * PIXELS, b.pixels, (size_t)b.count * PIXELS * sizeof(float));
            free(a.pixels);
            free(b.pixels);
            pc_batch batch; /* leave it somewhere inside an epoch */
            for (int i = 0; i < start % 4; i++)
                assert_true(pc_loader_next(jumping, &batch));
        }
        pc_batch batch;
        assert_ok(pc_loader_seek(jumping, 4, 5));
        assert_false(pc_loader_next(jumping, &batch));
        assert_true(pc_loader_next(jumping, &batch));
        assert_int_equal(batch.first, 0);
        assert_fails(pc_loader_seek(jumping, 0, 6) == PC_OK, PC_ERR_RANGE, "batch 6");
        assert_fails(pc_loader_seek(jumping, -1, 0) == PC_OK, PC_ERR_RANGE, "epoch -1");
        pc_loader_free(through);
        pc_loader_free(jumping);
    }
}

static void both_parts_are_the_whole(void **state)
{
    (void)state;
    pc_loader *train = OPEN("two", .size = SIZE, .split = PC_SPLIT_TRAINING, .validation_share = 0.25);
    pc_loader *rest = OPEN("two", .size = SIZE, .split = PC_SPLIT_VALIDATION, .validation_share = 0.25);
    pc_loader *all = OPEN("two", .size = SIZE);
    assert_not_null_ok(train);
    assert_not_null_ok(rest);
    assert_not_null_ok(all);
    assert_int_equal(pc_loader_count(train), 14);
    assert_int_equal(pc_loader_count(rest), 4);
    for (int64_t i = 0, t = 0, v = 0; i < 18; i++) {
        pc_picture a, b;
        assert_ok(pc_loader_picture(all, i, &a));
        assert_ok(i % 9 < 2 ? pc_loader_picture(rest, v++, &b) : pc_loader_picture(train, t++, &b));
        assert_string_equal(a.path, b.path);
        assert_memory_equal(a.image.pixels, b.image.pixels, PIXELS);
    }
    assert_true(pc_loader_fingerprint(train) != pc_loader_fingerprint(all));
    pc_loader *again = OPEN("two", .size = SIZE, .shuffle = true);
    assert_true(pc_loader_fingerprint(again) == pc_loader_fingerprint(all));
    pc_loader *turned = OPEN("two", .size = SIZE, .class_names = (const char *[]){"dog", "cat"}, .class_count = 2);
    assert_not_null_ok(turned);
    assert_true(pc_loader_fingerprint(turned) != pc_loader_fingerprint(all));
    assert_string_equal(pc_loader_class_name(turned, 0), "dog");
    pc_loader *loaders[] = {train, rest, all, again, turned};
    for (int i = 0; i < 5; i++)
        pc_loader_free(loaders[i]);
}

static void tensors_can_be_kept(void **state)
{
    (void)state;
    pc_loader *loader = OPEN("two", MIXED);
    assert_not_null_ok(loader);
    pc_batch batch;
    pc_tensor *kept = NULL;
    float before[4 * PIXELS], after[4 * PIXELS];
    PC_SCOPE {
        assert_true(pc_loader_next(loader, &batch));
        kept = pc_tensor_retain(batch.x);
        assert_ok(pc_read(kept, before, sizeof before));
    }
    PC_SCOPE {
        assert_true(pc_loader_next(loader, &batch));
    }
    assert_true(batch.x != kept);
    assert_int_equal(pc_tensor_size(batch.x, 0), 4); /* no scope took it */
    pc_loader_free(loader);
    assert_ok(pc_read(kept, after, sizeof after));
    assert_memory_equal(before, after, sizeof before);
    pc_tensor_free(kept);
}

/* Two loaders at once, one of them in the middle: neither draws from the other's randomness. */
static void loaders_do_not_meet(void **state)
{
    (void)state;
    pc_loader *a = OPEN("two", MIXED), *b = OPEN("two", MIXED), *other = OPEN("three", MIXED);
    assert_not_null_ok(a);
    assert_not_null_ok(b);
    assert_not_null_ok(other);
    record ra = new_record(), rb = new_record();
    pc_batch batch;
    while (pc_loader_next(a, &batch)) {
        note(&ra, &batch);
        if (!pc_loader_next(other, &batch))
            assert_false(pc_failed());
    }
    run_epochs(b, 1, &rb);
    assert_same(&ra, &rb);
    free(ra.pixels);
    free(rb.pixels);
    pc_loader_free(a);
    pc_loader_free(b);
    pc_loader_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_augmentation_it_is_the_pictures),
        cmocka_unit_test(batches_have_their_shapes),
        cmocka_unit_test(prefetching_changes_nothing),
        cmocka_unit_test(epochs_differ),
        cmocka_unit_test(seeds_differ),
        cmocka_unit_test(seeking_goes_on_as_running),
        cmocka_unit_test(both_parts_are_the_whole),
        cmocka_unit_test(tensors_can_be_kept),
        cmocka_unit_test(loaders_do_not_meet),
    };
    return cmocka_run_group_tests_name("data.loader", tests, make_pictures, remove_pictures);
}

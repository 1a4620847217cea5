/* Loaders of data of one's own: tensors and functions. The order of folders, the same bits on every device, and errors
 * that say which sample. */
#include "device.h"

#include <paracord.h>
#include <stdlib.h>
#include <unistd.h>

enum { COUNT = 23, WIDTH = 5 };

static pc_tensor *numbers(void)
{
    return pc_reshape(pc_arange(0, COUNT * WIDTH, 1, PC_F32, PC_DEVICE_CPU), PC_SHAPE(COUNT, WIDTH));
}

static pc_tensor *labels(void)
{
    return pc_arange(100, 100 + COUNT, 1, PC_I64, PC_DEVICE_CPU);
}

/* What an epoch gave. */
typedef struct record {
    float x[COUNT * WIDTH];
    int64_t y[COUNT], samples[COUNT], count;
    int batches;
} record;

static void note(record *r, const pc_batch *b)
{
    assert_true(r->count + b->n <= COUNT);
    assert_int_equal(b->first, r->count);
    assert_ok(pc_read(b->x, r->x + r->count * WIDTH, (size_t)b->n * WIDTH * sizeof(float)));
    assert_ok(pc_read(b->y, r->y + r->count, (size_t)b->n * sizeof(int64_t)));
    memcpy(r->samples + r->count, b->sample, (size_t)b->n * sizeof(int64_t));
    r->count += b->n;
    r->batches++;
}

static record epoch_of(pc_loader *loader)
{
    record r = {.count = 0};
    pc_batch b;
    while (pc_loader_next(loader, &b))
        note(&r, &b);
    assert_ok(pc_error_last()->status);
    return r;
}

static void assert_rows(const record *r)
{
    for (int64_t i = 0; i < r->count; i++) {
        assert_int_equal(r->y[i], 100 + r->samples[i]);
        for (int k = 0; k < WIDTH; k++)
            assert_true(r->x[i * WIDTH + k] == (float)(r->samples[i] * WIDTH + k));
    }
}

static void rows_of_tensors_come_with_their_labels(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_loader *loader = pc_loader_from_tensors(numbers(), labels(), .batch = 4, .device = test_device());
        assert_not_null_ok(loader);
        assert_int_equal(pc_loader_count(loader), COUNT);
        assert_int_equal(pc_loader_batches(loader), 6);
        const record r = epoch_of(loader);
        assert_int_equal(r.count, COUNT);
        assert_int_equal(r.batches, 6);
        for (int i = 0; i < COUNT; i++)
            assert_int_equal(r.samples[i], i);
        assert_rows(&r);
        pc_field fields[4];
        assert_int_equal(pc_loader_fields(loader, fields, 4), 2);
        assert_int_equal(fields[0].shape.dim[0], WIDTH);
        assert_int_equal(fields[1].dtype, PC_I64);
        assert_int_equal(fields[1].shape.ndim, 0);
        assert_int_equal(pc_loader_class_count(loader), 0);
        pc_loader_free(loader);
    }
}

/* A view with strides, and a tensor that is on the device already. */
static void any_tensor_will_do(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *turned = pc_transpose(pc_contiguous(pc_transpose(numbers(), 0, 1)), 0, 1);
        assert_false(pc_tensor_is_contiguous(turned));
        pc_tensor *there = pc_to(labels(), test_device(), PC_I64, true);
        pc_loader *loader = pc_loader_from_tensors(turned, there, .batch = 7, .shuffle = true, .device = test_device());
        assert_not_null_ok(loader);
        const record r = epoch_of(loader);
        assert_int_equal(r.count, COUNT);
        assert_rows(&r);
        pc_loader_free(loader);
    }
}

static void an_order_follows_from_seed_and_epoch(void **state)
{
    (void)state;
    PC_SCOPE {
        for (int way = 0; way < 4; way++) {
            pc_loader *a = pc_loader_from_tensors(numbers(), labels(), .batch = 4, .shuffle = true, .seed = 9);
            pc_loader *b = pc_loader_from_tensors(numbers(), labels(), .batch = 4, .shuffle = true, .seed = 9,
                                                  .device = test_device(), .prefetch = way & 1 ? -1 : 3,
                                                  .resident = way & 2 ? PC_RESIDENCE_NO : PC_RESIDENCE_AUTO);
            assert_not_null_ok(a);
            assert_not_null_ok(b);
            char why[256];
            assert_int_equal(pc_loader_resident(b, why, sizeof why),
                             test_device().type != PC_CPU && !(way & 2) && !getenv("PARACORD_RESIDENT"));
            record first = epoch_of(a), second = epoch_of(a);
            assert_rows(&first);
            assert_memory_not_equal(first.samples, second.samples, sizeof first.samples);
            record r = epoch_of(b);
            assert_memory_equal(&r, &first, sizeof r);
            r = epoch_of(b);
            assert_memory_equal(&r, &second, sizeof r);
            pc_loader_free(a);
            pc_loader_free(b);
        }
    }
}

static void it_goes_on_anywhere(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_loader *loader =
            pc_loader_from_tensors(numbers(), labels(), .batch = 4, .shuffle = true, .device = test_device());
        (void)epoch_of(loader);
        const record second = epoch_of(loader);
        pc_batch b;
        int64_t y[4];
        assert_ok(pc_loader_seek(loader, 1, 3));
        assert_true(pc_loader_next(loader, &b));
        assert_int_equal(b.first, 12);
        assert_int_equal(b.epoch, 1);
        assert_ok(pc_read(b.y, y, sizeof y));
        assert_memory_equal(y, second.y + 12, sizeof y);
        assert_fails(pc_loader_seek(loader, 0, 7), PC_ERR_RANGE, "no batch 7");
        pc_loader_free(loader);
    }
}

static void the_last_part_of_a_batch_can_be_dropped(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_loader *loader = pc_loader_from_tensors(numbers(), labels(), .batch = 4, .drop_last = true);
        const record r = epoch_of(loader);
        assert_int_equal(r.batches, 5);
        assert_int_equal(r.count, 20);
        pc_loader_free(loader);
        assert_fails(pc_loader_from_tensors(numbers(), labels(), .batch = 24, .drop_last = true), PC_ERR_NOT_FOUND,
                     "no whole batch of 24");
    }
}

/* Both parts together are all, and do not depend on the seed. */
static void a_share_is_held_back(void **state)
{
    (void)state;
    PC_SCOPE {
        bool seen[COUNT] = {false};
        pc_batch b;
        for (int part = 0; part < 2; part++) {
            pc_loader *loader = pc_loader_from_tensors(
                numbers(), labels(), .batch = 3, .seed = (uint64_t)part, .shuffle = true, .device = test_device(),
                .split = part ? PC_SPLIT_VALIDATION : PC_SPLIT_TRAINING, .validation_share = 0.2);
            assert_not_null_ok(loader);
            assert_int_equal(pc_loader_count(loader), part ? 4 : 19);
            while (pc_loader_next(loader, &b)) {
                int64_t y[3];
                float x[3 * WIDTH];
                assert_ok(pc_read(b.y, y, (size_t)b.n * sizeof *y));
                assert_ok(pc_read(b.x, x, (size_t)b.n * WIDTH * sizeof *x));
                for (int i = 0; i < b.n; i++) {
                    assert_false(seen[y[i] - 100]);
                    seen[y[i] - 100] = true;
                    assert_true(x[i * WIDTH] == (float)((y[i] - 100) * WIDTH));
                }
            }
            pc_loader_free(loader);
        }
        for (int i = 0; i < COUNT; i++)
            assert_true(seen[i]);
        assert_fails(
            pc_loader_from_tensors(numbers(), labels(), .split = PC_SPLIT_VALIDATION, .validation_share = 0.01),
            PC_ERR_NOT_FOUND, "0.01");
        assert_fails(pc_loader_from_tensors(numbers(), labels(), .split = PC_SPLIT_TRAINING, .validation_share = 1),
                     PC_ERR_ARGUMENT, "below 1");
    }
}

static void what_makes_no_rows_is_refused(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = numbers(), *none = pc_zeros(PC_SHAPE(0, 3), PC_F32, PC_DEVICE_CPU);
        assert_fails(pc_loader_from_tensors(x, pc_zeros(PC_SHAPE(22), PC_F32, PC_DEVICE_CPU)), PC_ERR_SHAPE,
                     "23 rows in tensor 0, and 22");
        assert_fails(pc_loader_from_tensors(none, NULL), PC_ERR_NOT_FOUND, "no samples");
        assert_fails(pc_loader_from_tensors(pc_scalar(1, PC_F32, PC_DEVICE_CPU), NULL), PC_ERR_SHAPE, "no rows");
        assert_fails(pc_loader_from_tensors(x, NULL, .batch = -1), PC_ERR_ARGUMENT, "-1 samples");
        assert_fails(pc_loader_from_tensors(x, NULL, .prefetch = 5000), PC_ERR_ARGUMENT, "5000");
        assert_fails(pc_loader_new_tensors(&x, 9, (pc_batch_options){0}), PC_ERR_ARGUMENT, "9 tensors");
        pc_loader *alone = pc_loader_from_tensors(x, NULL);
        assert_not_null_ok(alone);
        pc_batch b;
        pc_picture picture;
        assert_true(pc_loader_next(alone, &b));
        assert_null(b.y);
        assert_int_equal(b.tensors, 1);
        assert_fails(pc_loader_picture(alone, 0, &picture), PC_ERR_UNSUPPORTED, "not of a folder");
        assert_int_equal(pc_loader_skipped(alone) + pc_loader_damaged(alone) + pc_loader_streamed(alone), 0);
        pc_loader_free(alone);
    }
}

/* --- functions --- */

static int released;

static void release(void *context)
{
    released += context == &released;
}

static pc_status sample(void *context, int64_t i, int64_t epoch, void *const *to)
{
    (void)context, (void)epoch;
    for (int k = 0; k < WIDTH; k++)
        ((float *)to[0])[k] = (float)(i * WIDTH + k);
    *(int64_t *)to[1] = 100 + i;
    return PC_OK;
}

static pc_status batch(void *context, const int64_t *samples, int64_t n, int64_t epoch, void *const *to)
{
    for (int64_t i = 0; i < n; i++) {
        void *row[2] = {(float *)to[0] + i * WIDTH, (int64_t *)to[1] + i};
        (void)!sample(context, samples[i], epoch, row);
    }
    return PC_OK;
}

static pc_samples spec(void)
{
    return (pc_samples){.count = COUNT,
                        .fields = 2,
                        .field = {{PC_F32, PC_SHAPE(WIDTH)}, {.dtype = PC_I64}},
                        .sample = sample,
                        .context = &released,
                        .release = release};
}

static void functions_write_samples(void **state)
{
    (void)state;
    for (int way = 0; way < 6; way++) {
        pc_samples s = spec();
        s.threads = way == 1;
        s.by_epoch = way >= 3;
        if (way % 3 == 2) {
            s.sample = NULL;
            s.batch = batch;
        }
        released = 0;
        pc_loader *loader = pc_loader_from_samples(&s, .batch = 4, .shuffle = true, .seed = 9, .device = test_device());
        assert_not_null_ok(loader);
        const record r = epoch_of(loader);
        assert_int_equal(r.count, COUNT);
        assert_rows(&r);
        assert_int_equal(released, 0);
        pc_loader_free(loader);
        assert_int_equal(released, 1);
    }
}

static pc_status by_epoch(void *context, int64_t i, int64_t epoch, void *const *to)
{
    (void)context;
    *(float *)to[0] = (float)(1000 * epoch + i);
    return PC_OK;
}

static void samples_may_differ_from_epoch_to_epoch(void **state)
{
    (void)state;
    pc_samples s = {.count = 6, .fields = 1, .field = {{.dtype = PC_F32}}, .sample = by_epoch, .by_epoch = true};
    pc_loader *loader = pc_loader_from_samples(&s, .batch = 4, .device = test_device());
    assert_not_null_ok(loader);
    for (int epoch = 0; epoch < 3; epoch++) {
        pc_batch b;
        while (pc_loader_next(loader, &b)) {
            float x[4];
            assert_int_equal(pc_tensor_ndim(b.x), 1);
            assert_ok(pc_read(b.x, x, (size_t)b.n * sizeof *x));
            assert_true(x[0] == (float)(1000 * epoch + b.first));
        }
    }
    pc_loader_free(loader);
}

static bool broken;

static pc_status fails_at_9(void *context, int64_t i, int64_t epoch, void *const *to)
{
    if (i == 9 && broken)
        return pc_fail(PC_ERR_FORMAT, "sample nine is damaged");
    return sample(context, i, epoch, to);
}

static pc_status fails_silently(void *context, int64_t i, int64_t epoch, void *const *to)
{
    return i == 9 ? PC_ERR_FORMAT : sample(context, i, epoch, to);
}

static void a_failure_is_that_of_its_batch(void **state)
{
    (void)state;
    for (int threads = 0; threads < 2; threads++) {
        pc_samples s = spec();
        pc_batch b;
        s.by_epoch = true; /* else a device has them all before */
        s.threads = threads;
        s.sample = fails_at_9;
        broken = true;
        pc_loader *loader = pc_loader_from_samples(&s, .batch = 4, .device = test_device());
        assert_not_null_ok(loader);
        assert_true(pc_loader_next(loader, &b));
        assert_true(pc_loader_next(loader, &b));
        assert_fails(pc_loader_next(loader, &b), PC_ERR_FORMAT, "sample nine is damaged");
        broken = false; /* it tries the same batch again */
        int64_t y[4];
        assert_true(pc_loader_next(loader, &b));
        assert_ok(pc_read(b.y, y, sizeof y));
        assert_int_equal(y[1], 109);
        pc_loader_free(loader);
        s.sample = fails_silently;
        loader = pc_loader_from_samples(&s, .batch = 40, .prefetch = -1, .device = test_device());
        assert_fails(pc_loader_next(loader, &b), PC_ERR_FORMAT, "sample 9 of 23");
        pc_loader_free(loader);
    }
}

static int hiccups[24]; /* by sample: it fails so many times more */

static pc_status fails_for_a_while(void *context, int64_t i, int64_t epoch, void *const *to)
{
    usleep(1000); /* so that all threads have some */
    if (__atomic_load_n(&hiccups[i], __ATOMIC_RELAXED) > 0) {
        __atomic_fetch_sub(&hiccups[i], 1, __ATOMIC_RELAXED);
        return pc_fail(PC_ERR_FILE, "sample %d hiccups", (int)i);
    }
    return sample(context, i, epoch, to);
}

/* Samples that fail once, as those of a file server may: an error, then the same batch, whole. */
static void check_hiccups(bool threads, bool by_epoch, int prefetch, int first, int second)
{
    pc_samples s = spec();
    pc_batch b;
    s.sample = fails_for_a_while, s.threads = threads, s.by_epoch = by_epoch;
    memset(hiccups, 0, sizeof hiccups);
    hiccups[first] = hiccups[second] = 1;
    int failures = 0, batches = 0;
    pc_loader *loader;
    while (!(loader = pc_loader_from_samples(&s, .batch = 8, .prefetch = prefetch, .device = test_device()))) {
        assert_non_null(strstr(pc_error_last()->message, "hiccups")); /* a device has them all before */
        pc_error_clear();
        assert_true(++failures < 5);
    }
    while (batches < 3 && failures < 5) {
        int64_t y[8];
        if (!pc_loader_next(loader, &b)) {
            assert_non_null(strstr(pc_error_last()->message, "hiccups"));
            pc_error_clear();
            failures++;
            continue;
        }
        assert_false(pc_failed());
        assert_int_equal(b.first, 8 * batches++);
        assert_ok(pc_read(b.y, y, (size_t)b.n * sizeof *y));
        for (int i = 0; i < b.n; i++)
            assert_int_equal(y[i], 100 + b.first + i);
    }
    assert_int_equal(batches, 3);
    assert_true(failures > 0);
    pc_loader_free(loader);
}

static void what_failed_is_made_again(void **state)
{
    (void)state;
    for (int way = 0; way < 8; way++) {
        const bool threads = way & 1, by_epoch = way & 2;
        const int prefetch = way & 4 ? -1 : 2;
        check_hiccups(threads, by_epoch, prefetch, 2, 5);
        check_hiccups(threads, by_epoch, prefetch, 8, 15);
        check_hiccups(threads, by_epoch, prefetch, 0, 0);
    }
}

static void a_definition_that_makes_no_sense_is_refused(void **state)
{
    (void)state;
    struct {
        pc_samples s;
        pc_status status;
        const char *words;
    } wrong[8];
    for (int i = 0; i < 8; i++)
        wrong[i].s = spec(), wrong[i].status = PC_ERR_ARGUMENT;
    wrong[0].s.fields = 9, wrong[0].words = "9 fields";
    wrong[1].s.sample = NULL, wrong[1].words = "one function";
    wrong[2].s.batch = batch, wrong[2].words = "one function";
    wrong[3].s.field[1].dtype = (pc_dtype)77, wrong[3].status = PC_ERR_DTYPE, wrong[3].words = "77";
    wrong[4].s.field[0].shape.ndim = 8, wrong[4].status = PC_ERR_SHAPE, wrong[4].words = "8 dimensions";
    wrong[5].s.field[0].shape.dim[0] = 0, wrong[5].status = PC_ERR_SHAPE, wrong[5].words = "no numbers";
    wrong[6].s.count = -1, wrong[6].words = "-1 samples";
    wrong[7].s.class_names = (const char *const[]){"a", NULL}, wrong[7].s.class_count = 2, wrong[7].words = "NULL";
    for (int i = 0; i < 8; i++) {
        released = 0;
        assert_fails(pc_loader_from_samples(&wrong[i].s), wrong[i].status, wrong[i].words);
        assert_int_equal(released, 1);
    }
}

static void classes_have_names(void **state)
{
    (void)state;
    pc_samples s = spec();
    s.class_names = (const char *const[]){"a", "b"};
    s.class_count = 2;
    pc_loader *loader = pc_loader_from_samples(&s);
    assert_int_equal(pc_loader_class_count(loader), 2);
    assert_string_equal(pc_loader_class_name(loader, 1), "b");
    assert_null(pc_loader_class_name(loader, 2));
    const uint64_t before = pc_loader_fingerprint(loader);
    pc_loader_free(loader);
    s.fingerprint = 1;
    loader = pc_loader_from_samples(&s);
    assert_true(pc_loader_fingerprint(loader) != before);
    pc_loader_free(loader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_tensors_come_with_their_labels),
        cmocka_unit_test(any_tensor_will_do),
        cmocka_unit_test(an_order_follows_from_seed_and_epoch),
        cmocka_unit_test(it_goes_on_anywhere),
        cmocka_unit_test(the_last_part_of_a_batch_can_be_dropped),
        cmocka_unit_test(a_share_is_held_back),
        cmocka_unit_test(what_makes_no_rows_is_refused),
        cmocka_unit_test(functions_write_samples),
        cmocka_unit_test(samples_may_differ_from_epoch_to_epoch),
        cmocka_unit_test(a_failure_is_that_of_its_batch),
        cmocka_unit_test(what_failed_is_made_again),
        cmocka_unit_test(a_definition_that_makes_no_sense_is_refused),
        cmocka_unit_test(classes_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

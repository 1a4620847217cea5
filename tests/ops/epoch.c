/* The ops of pictures that stay on the device: order and table of an epoch as the host has them, bit for bit, and
 * batches as pc_augment_batch makes them. */
#include "device.h"

#include "data/augment.h"
#include "ops/epoch.h"

#include <paracord/augment.h>
#include <paracord/ops.h>

enum { SIDE = 36, PIXELS = SIDE * SIDE * 3 }; /* several tiles */

/* Of the pictures at hand: SIDE, or one less, whose pictures begin at any byte. */
static int side = SIDE;

static const pc_augment everything = {.rotation = 400,
                                      .crop_low = 0.2,
                                      .crop_high = 0.9,
                                      .pad = 3,
                                      .jitter_brightness = 0.5,
                                      .jitter_contrast = 0.5,
                                      .jitter_saturation = 0.5,
                                      .jitter_hue = 0.2,
                                      .erase = 0.5,
                                      .mean = {1, 2, 3},
                                      .std = {2, 3, 0},
                                      .width_shift = 0.3,
                                      .height_shift = 2,
                                      .shear = 30,
                                      .zoom_low = 0.7,
                                      .zoom_high = 1.4,
                                      .flip_horizontal = true,
                                      .flip_vertical = true,
                                      .channel_shift = 20,
                                      .brightness_low = 0.5,
                                      .brightness_high = 1.5,
                                      .fill = PC_FILL_REFLECT};

static pc__epoch_attributes attributes_of(const pc_augment *plan, uint64_t seed, uint64_t epoch, bool shuffle)
{
    return (pc__epoch_attributes){.plan = pc__augment_plan_of(plan, seed, epoch, side, side), .shuffle = shuffle};
}

typedef struct epoch {
    pc_tensor *order, *keys, *table;
} epoch;

static epoch epoch_of(int64_t n)
{
    const pc_device device = test_device();
    return (epoch){pc_empty(PC_SHAPE(n), PC_I64, device), pc_empty(PC_SHAPE(n), PC_I64, device),
                   pc_empty(PC_SHAPE(n, PC__AUGMENT_COLUMNS), PC_F64, device)};
}

static void *contents(const pc_tensor *t, size_t each)
{
    const size_t bytes = (size_t)pc_tensor_count(t) * each;
    void *all = malloc(bytes);
    assert_non_null(all);
    assert_ok(pc_read(t, all, bytes));
    return all;
}

static void assert_is_sorted(const int64_t *order, int64_t n, uint64_t seed, uint64_t number)
{
    bool *seen = calloc((size_t)n, sizeof *seen);
    assert_non_null(seen);
    for (int64_t i = 0; i < n; i++) {
        assert_in_range(order[i], 0, n - 1);
        assert_false(seen[order[i]]);
        seen[order[i]] = true;
        if (i > 0)
            assert_true(pc__shuffle_key(seed, number, order[i - 1]) <= pc__shuffle_key(seed, number, order[i]));
    }
    free(seen);
}

/* Around the sizes at which a device sorts in another way. */
static void orders_are_sorted_by_keys(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1,    2,    3,    31,   32,   33,   1000, 2047,  2048,
                                    2049, 4095, 4096, 4097, 6144, 6145, 8193, 40000, 131073};
    for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++)
        PC_SCOPE {
            const int64_t n = sizes[i];
            const pc__epoch_attributes attributes = attributes_of(&everything, 5, (uint64_t)i, true);
            const epoch e = epoch_of(n);
            assert_ok(pc__epoch(e.order, e.keys, e.table, &attributes));
            int64_t *order = contents(e.order, sizeof *order);
            pc__augment_row *table = contents(e.table, sizeof(double)), *rows = malloc((size_t)n * sizeof *rows);
            assert_non_null(rows);
            assert_is_sorted(order, n, 5, (uint64_t)i);
            pc__epoch_table(&attributes.plan, order, n, rows);
            assert_memory_equal(table, rows, (size_t)n * sizeof *rows);
            free(order);
            free(table);
            free(rows);
        }
    assert_no_leak();
}

static void without_shuffle_samples_come_in_order(void **state)
{
    (void)state;
    enum { N = 300 };
    PC_SCOPE {
        const pc__epoch_attributes attributes = attributes_of(&(pc_augment){.flip_horizontal = true}, 5, 6, false);
        const epoch e = epoch_of(N);
        assert_ok(pc__epoch(e.order, e.keys, e.table, &attributes));
        int64_t *order = contents(e.order, sizeof *order);
        for (int64_t i = 0; i < N; i++)
            assert_int_equal(order[i], i);
        free(order);
    }
    assert_no_leak();
}

/* Every permutation of a few comes as often as any other: chi-squared, 23 degrees of freedom, 1 in 1000 beyond 49.7. */
static void shuffles_are_uniform(void **state)
{
    (void)state;
    only_on_the_cpu();
    enum { DRAWS = 24000 };
    int counts[256] = {0};
    for (uint64_t i = 0; i < DRAWS; i++) {
        int64_t order[4];
        uint64_t keys[4];
        pc__epoch_order(77, i, 4, order, keys);
        counts[order[0] << 6 | order[1] << 4 | order[2] << 2 | order[3]]++;
    }
    double chi = 0;
    int met = 0;
    for (int i = 0; i < 256; i++) {
        met += counts[i] > 0;
        chi += counts[i] ? (counts[i] - DRAWS / 24.0) * (counts[i] - DRAWS / 24.0) / (DRAWS / 24.0) : 0;
    }
    assert_int_equal(met, 24);
    assert_true(chi < 49.7);
}

static void sines_are_sines(void **state)
{
    (void)state;
    only_on_the_cpu();
    for (int i = -100000; i <= 100000; i++) {
        double degrees = i % 2 ? i * 0.0137 : i * 10.0, sine, cosine; /* whole turns come off exactly */
        pc__sine_cosine(degrees, &sine, &cosine);
        double radians = remainder(degrees, 360) * (3.14159265358979323846 / 180);
        assert_true(fabs(sine - sin(radians)) < 1e-15 && fabs(cosine - cos(radians)) < 1e-15);
    }
    double sine, cosine;
    pc__sine_cosine(0, &sine, &cosine);
    assert_true(sine == 0 && cosine == 1);
    pc__sine_cosine(-90, &sine, &cosine);
    assert_true(sine == -1 && cosine == 0);
}

/* --- batches --- */

enum { TOTAL = 23, BATCH = 5 };

typedef struct set {
    pc__epoch_tensors on;
    epoch e;
    pc__epoch_batch_attributes batch;
    pc_tensor *x, *y;
} set;

static set set_of(const pc_augment *plan, pc_dtype labels, int64_t n)
{
    const pc_device device = test_device();
    static uint8_t bytes[TOTAL * PIXELS];
    for (int i = 0; i < TOTAL * PIXELS; i++)
        bytes[i] = (uint8_t)(pc_uniform(1, 2, (uint64_t)i) * 256);
    set s = {.e = epoch_of(TOTAL)};
    s.on = (pc__epoch_tensors){pc_from_data(bytes, PC_SHAPE(TOTAL, side, side, 3), PC_U8, device),
                               pc_to(pc_arange(0, TOTAL, 1, PC_I64, device), device, labels, false), s.e.order,
                               s.e.table, pc_full(PC_SHAPE(1), 0, PC_I64, device)};
    pc_augment scaled = *plan;
    scaled.rescale = 1 / 255.0;
    s.batch.augment = pc__augment_attributes_of(&scaled);
    s.batch.at = -1;
    s.x = pc_permute(pc_empty(PC_SHAPE(n, side, side, 3), PC_F32, device), PC_SHAPE(0, 3, 1, 2));
    s.y = pc_empty(PC_SHAPE(n, 1), labels, device);
    const pc__epoch_attributes attributes = attributes_of(plan, 3, 4, true);
    assert_ok(pc__epoch(s.e.order, s.e.keys, s.e.table, &attributes));
    return s;
}

/* As the host makes each picture. */
static void assert_is_batch(const set *s, const pc_augment *plan, int64_t first, int64_t n)
{
    int64_t *order = contents(s->e.order, sizeof *order);
    uint8_t *pictures = contents(s->on.pictures, 1);
    const int64_t size = (int64_t)side * side * 3;
    pc_augment scaled = *plan;
    scaled.rescale = 1 / 255.0;
    PC_SCOPE {
        float *x = contents(pc_permute(s->x, PC_SHAPE(0, 2, 3, 1)), sizeof *x), expected[PIXELS];
        float *y = contents(pc_to(s->y, test_device(), PC_F32, false), sizeof *y);
        for (int64_t i = 0; i < n; i++) {
            const int64_t sample = order[first + i];
            const pc_augment_values values = pc_augment_draw(&scaled, 3, 4, (uint64_t)sample, side, side);
            assert_ok(pc_augment_apply(&scaled, &values, pictures + sample * size, side, side, 3, expected));
            assert_memory_equal(x + i * size, expected, (size_t)size * sizeof *x);
            assert_true(y[i] == (float)sample);
        }
        free(x);
        free(y);
    }
    free(pictures);
    free(order);
}

static void batches_are_augmented_ones(void **state)
{
    (void)state;
    const pc_augment plans[] = {
        {.reserved_ = 0}, {.shear = 20, .zoom_low = 0.8, .zoom_high = 1.2, .flip_horizontal = true}, everything};
    const pc_dtype labels[] = {PC_F32, PC_I64, PC_U8};
    for (int k = 0; k < 6; k++)
        PC_SCOPE {
            const int i = k % 3;
            side = SIDE - k / 3;
            set s = set_of(&plans[i], labels[i], BATCH);
            for (int64_t first = 0; first + BATCH <= TOTAL; first += BATCH) {
                assert_ok(pc__epoch_batch(&s.on, s.x, s.y, &s.batch));
                assert_is_batch(&s, &plans[i], first, BATCH);
            }
            s.batch.at = 7; /* said by the host, and counted on from there */
            assert_ok(pc__epoch_batch(&s.on, s.x, s.y, &s.batch));
            assert_is_batch(&s, &plans[i], 7, BATCH);
            s.batch.at = -1;
            assert_ok(pc__epoch_batch(&s.on, s.x, s.y, &s.batch));
            assert_is_batch(&s, &plans[i], 7 + BATCH, BATCH);
        }
    side = SIDE;
    assert_no_leak();
}

static void launches_of_a_recording_go_on(void **state)
{
    (void)state;
    PC_SCOPE {
        set s = set_of(&everything, PC_I64, BATCH);
        pc_stream *stream = pc_stream_current(test_device());
        assert_ok(pc_graph_begin(stream));
        assert_ok(pc__epoch_batch(&s.on, s.x, s.y, &s.batch));
        pc_graph *graph = pc_graph_end(stream);
        assert_not_null_ok(graph);
        for (int64_t first = 0; first + BATCH <= TOTAL; first += BATCH) {
            assert_ok(pc_graph_launch(graph, NULL));
            assert_is_batch(&s, &everything, first, BATCH);
        }
        for (int i = 0; i < 3; i++) { /* the rest is no whole batch */
            assert_ok(pc_graph_launch(graph, NULL));
            assert_true(pc_item(s.on.place) == TOTAL / BATCH * BATCH);
            assert_is_batch(&s, &everything, (TOTAL / BATCH - 1) * BATCH, BATCH);
        }
        assert_ok(pc_fill(s.on.place, 1));
        assert_ok(pc_graph_launch(graph, NULL));
        assert_is_batch(&s, &everything, 1, BATCH);
        pc_graph_free(graph);
    }
    assert_no_leak();
}

static void what_is_not_there_is_named(void **state)
{
    (void)state;
    PC_SCOPE {
        set s = set_of(&everything, PC_I64, BATCH);
        s.batch.at = TOTAL - BATCH + 1;
        assert_fails_on_device(pc__epoch_batch(&s.on, s.x, s.y, &s.batch) == PC_OK, PC_ERR_RANGE, "epoch_batch");
        s.batch.at = -1;
        assert_ok(pc_fill(s.on.place, -1));
        assert_fails_on_device(pc__epoch_batch(&s.on, s.x, s.y, &s.batch) == PC_OK, PC_ERR_RANGE, "epoch_batch");
        s.batch.at = 0;
        assert_ok(pc_fill(s.on.order, TOTAL));
        assert_fails_on_device(pc__epoch_batch(&s.on, s.x, s.y, &s.batch) == PC_OK, PC_ERR_RANGE, "epoch_batch");
        assert_fails(pc__epoch_batch(&s.on, s.x, s.e.order, &s.batch) == PC_OK, PC_ERR_SHAPE, "labels");
        assert_fails(pc__epoch_batch(&s.on, s.e.table, s.y, &s.batch) == PC_OK, PC_ERR_SHAPE, "channels last");
        pc__epoch_tensors other = s.on;
        other.table = s.x;
        assert_fails(pc__epoch_batch(&other, s.x, s.y, &s.batch) == PC_OK, PC_ERR_SHAPE, "a table");
        const pc__epoch_attributes attributes = attributes_of(&everything, 3, 4, true);
        assert_fails(pc__epoch(s.e.order, s.e.table, s.e.table, &attributes) == PC_OK, PC_ERR_SHAPE, "keys");
    }
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_are_sorted_by_keys),  cmocka_unit_test(without_shuffle_samples_come_in_order),
        cmocka_unit_test(shuffles_are_uniform),       cmocka_unit_test(sines_are_sines),
        cmocka_unit_test(batches_are_augmented_ones), cmocka_unit_test(launches_of_a_recording_go_on),
        cmocka_unit_test(what_is_not_there_is_named),
    };
    return cmocka_run_group_tests_name("ops.epoch", tests, NULL, NULL);
}

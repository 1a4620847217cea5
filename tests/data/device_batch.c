/* Batches for a device, here sim:0: the bits of the CPU's, made while the device works on the one before; and what goes
 * wrong on the way stays an error and nothing else. */
#include "pictures.h"

#include "data/gather.h"

#include <paracord/loader.h>
#include <paracord/memory.h>
#include <paracord/ops.h>
#include <paracord/sim.h>
#include <paracord/stream.h>
#include <stdatomic.h>

#define TWO ((const char *[]){"cat", "dog"})
#define THREE ((const char *[]){"ant", "bee", "cow"})

enum { SIZE = 16, PIXELS = SIZE * SIZE * 3, BATCH = 4, BATCHES = 5 };

static test_path root;
static const pc_device sim = {PC_SIM, 0};

/* Stands for the C library's from the start, so that a test can let it fail. Call number fail_at fails. */
static atomic_long calls;
static atomic_long fail_at = -1;

static bool is_failing(void)
{
    return atomic_fetch_add(&calls, 1) == atomic_load(&fail_at);
}

static void *alloc(void *context, size_t bytes, size_t alignment)
{
    (void)context;
    return is_failing() ? NULL : aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void *resize(void *context, void *block, size_t bytes)
{
    (void)context;
    return is_failing() ? NULL : realloc(block, bytes);
}

static void release(void *context, void *block)
{
    (void)context;
    free(block);
}

static int set_up(void **state)
{
    (void)state;
    const pc_allocator allocator = {alloc, resize, release, NULL};
    root = new_root();
    put_classes(root.s, TWO, 2, 9);
    return pc_allocator_set(&allocator) == PC_OK &&
                   pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 1, .memory = 64 << 20)) == PC_OK
               ? 0
               : -1;
}

static int tear_down(void **state)
{
    (void)state;
    remove_root(&root);
    return pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 0)) == PC_OK ? 0 : -1;
}

static void assert_nothing_left(void)
{
    pc_memory_stats stats;
    if (pc_device_synchronize(sim) != PC_OK)
        pc_error_clear();
    assert_ok(pc_memory_query(sim, &stats));
    assert_int_equal(stats.in_use, 0);
    assert_ok(pc_memory_query(PC_DEVICE_CPU, &stats));
    assert_int_equal(stats.in_use, 0);
}

/* Where the pictures are, for tests that run both ways. */
static pc_residence residence;

static int on_the_device(void **state)
{
    (void)state;
    residence = PC_RESIDENCE_AUTO;
    return 0;
}

static int on_the_host(void **state)
{
    (void)state;
    residence = PC_RESIDENCE_NO;
    return 0;
}

static pc_loader *open_on(pc_device device, int prefetch)
{
    pc_loader *loader = pc_loader(root.s, .size = SIZE, .batch = BATCH, .shuffle = true, .seed = 9, .flip = true,
                                  .augment = {.shear = 20,
                                              .rotation = 30,
                                              .zoom_low = 0.8,
                                              .zoom_high = 1.2,
                                              .channel_shift = 20,
                                              .brightness_low = 0.6,
                                              .brightness_high = 1.3},
                                  .device = device, .prefetch = prefetch, .resident = residence);
    return loader;
}

typedef struct contents {
    float pixels[BATCH * PIXELS], labels[BATCH];
    int64_t samples[BATCH];
} contents;

/* PC_OK and what is in the batch, from any device. */
static pc_status read_batch(const pc_batch *batch, contents *c)
{
    memset(c, 0, sizeof *c);
    memcpy(c->samples, batch->sample, (size_t)batch->n * sizeof *c->samples);
    pc_status status = PC_OK;
    PC_SCOPE {
        status =
            pc_read(pc_permute(batch->x, PC_SHAPE(0, 2, 3, 1)), c->pixels, (size_t)batch->n * PIXELS * sizeof(float));
        if (status == PC_OK)
            status = pc_read(batch->y, c->labels, (size_t)batch->n * sizeof(float));
    }
    return status;
}

/* Two epochs as the CPU makes them. */
static const contents *expected(void)
{
    static contents all[2 * BATCHES];
    static bool there;
    if (there)
        return all;
    pc_loader *loader = open_on(PC_DEVICE_CPU, -1);
    assert_not_null_ok(loader);
    pc_batch batch;
    for (int i = 0; i < 2 * BATCHES; i++) {
        while (!pc_loader_next(loader, &batch))
            assert_false(pc_failed());
        assert_ok(read_batch(&batch, &all[i]));
    }
    pc_loader_free(loader);
    there = true;
    return all;
}

static void the_same_as_on_the_cpu(void **state)
{
    (void)state;
    const contents *want = expected();
    static contents got;
    for (int prefetch = -1; prefetch < 4; prefetch++) {
        pc_loader *loader = open_on(sim, prefetch);
        assert_not_null_ok(loader);
        pc_batch batch;
        for (int i = 0; i < 2 * BATCHES; i++) {
            while (!pc_loader_next(loader, &batch))
                assert_false(pc_failed());
            assert_true(pc_device_equal(pc_tensor_device(batch.x), sim));
            assert_true(pc_device_equal(pc_tensor_device(batch.y), sim));
            assert_int_equal(pc_tensor_stride(batch.x, 1), 1);
            assert_ok(read_batch(&batch, &got));
            assert_memory_equal(&got, &want[i], sizeof got);
        }
        pc_loader_free(loader);
        assert_nothing_left();
    }
}

/* A program that never waits, far ahead of its device: no place of the ring is filled before it has been copied. */
static void the_program_may_run_ahead(void **state)
{
    (void)state;
    enum { KEPT = 2 * BATCHES };
    const contents *want = expected();
    static contents got;
    assert_ok(pc_sim_configure(
        PC_OPTIONS(pc_sim_options, .devices = 1, .memory = 64 << 20, .bandwidth = 2e6, .kernel_time = 2e-3)));
    for (int prefetch = -1; prefetch < 3; prefetch++) {
        pc_loader *loader = open_on(sim, prefetch);
        assert_not_null_ok(loader);
        const pc_sync_policy before = pc_sync_policy_set(PC_SYNC_REFUSE); /* nor does the loader in its place */
        pc_batch batch, kept[KEPT];
        int64_t samples[KEPT][BATCH];
        for (int i = 0; i < KEPT; i++) {
            while (!pc_loader_next(loader, &batch))
                assert_false(pc_failed());
            kept[i] = batch;
            kept[i].sample = memcpy(samples[i], batch.sample, (size_t)batch.n * sizeof(int64_t));
            (void)pc_tensor_retain(batch.x);
            (void)pc_tensor_retain(batch.y);
        }
        pc_loader_free(loader);
        (void)pc_sync_policy_set(before);
        for (int i = 0; i < KEPT; i++) {
            assert_ok(read_batch(&kept[i], &got));
            assert_memory_equal(&got, &want[i], sizeof got);
            pc_tensor_free(kept[i].x);
            pc_tensor_free(kept[i].y);
        }
        assert_nothing_left();
    }
    assert_ok(pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 1, .memory = 64 << 20)));
}

/* Two epochs; what fails is tried again, as the header says. Every batch that can be read is what it should be.
 * True when something failed on the way. */
static bool run_through(int prefetch)
{
    const contents *want = expected();
    static contents got;
    pc_loader *loader = open_on(sim, prefetch);
    bool failed = !loader;
    int tries = 0;
    pc_batch batch;
    for (int i = 0; loader && i < 2 * BATCHES && tries < 100; tries++) {
        if (pc_loader_next(loader, &batch)) {
            assert_int_equal(batch.first, i % BATCHES * BATCH);
            if (read_batch(&batch, &got) == PC_OK)
                assert_memory_equal(&got, &want[i], sizeof got);
            i++;
        }
        failed |= pc_failed();
        pc_error_clear();
    }
    assert_true(tries < 100);
    pc_loader_free(loader);
    failed |= pc_device_synchronize(sim) != PC_OK;
    pc_error_clear();
    assert_nothing_left();
    return failed;
}

static void every_operation_may_fail(void **state)
{
    (void)state;
    const pc_sim_fault faults[] = {PC_SIM_FAIL_KERNEL, PC_SIM_FAIL_COPY};
    const int64_t wanted[] = {10, residence == PC_RESIDENCE_NO ? 30 : 22}; /* kernels, copies; reading copies too */
    for (int f = 0; f < 2; f++)
        for (int64_t n = 1; n <= wanted[f]; n++)
            for (int prefetch = -1; prefetch < 3; prefetch += 2) {
                assert_ok(pc_sim_inject(sim, faults[f], n));
                assert_true(run_through(prefetch));
                assert_ok(pc_sim_inject(sim, PC_SIM_NO_FAULT, 0));
            }
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    (void)expected();
    for (int prefetch = -1; prefetch < 3; prefetch += 2) {
        (void)run_through(prefetch); /* what stays: streams, records */
        int failures = 0;
        for (long n = 0; n == 0 || atomic_load(&calls) >= n; n++) {
            assert_true(n < 5000);
            assert_ok(pc_memory_trim(sim));
            assert_ok(pc_memory_trim(PC_DEVICE_CPU));
            atomic_store(&calls, 0);
            atomic_store(&fail_at, n);
            failures += run_through(prefetch);
            atomic_store(&fail_at, -1);
        }
        assert_true(failures > 50);
    }
}

static void device_memory_may_run_out(void **state)
{
    (void)state;
    for (int64_t n = 1; n < 12; n++) {
        assert_ok(pc_memory_trim(sim));
        assert_ok(pc_sim_inject(sim, PC_SIM_FAIL_MEMORY, n));
        pc_loader *loader = open_on(sim, 0);
        assert_not_null_ok(loader);
        pc_batch batch;
        bool failed = false;
        for (int i = 0; i < BATCHES && !failed; i++)
            failed = !pc_loader_next(loader, &batch);
        if (failed)
            assert_int_equal(pc_error_last()->status, PC_ERR_MEMORY);
        pc_error_clear();
        assert_ok(pc_sim_inject(sim, PC_SIM_NO_FAULT, 0));
        if (failed)
            (void)pc_loader_next(loader, &batch); /* one more may have failed ahead */
        pc_error_clear();
        assert_true(pc_loader_next(loader, &batch) || !pc_failed());
        pc_loader_free(loader);
        assert_nothing_left();
    }
}

/* Where pictures live, and the line that says why. */
static bool live_there(pc_residence wanted, char why[256])
{
    residence = wanted;
    pc_loader *loader = open_on(sim, 0);
    assert_not_null_ok(loader);
    const bool resident = pc_loader_resident(loader, why, 256);
    contents got;
    pc_batch batch;
    assert_true(pc_loader_next(loader, &batch));
    assert_ok(read_batch(&batch, &got));
    assert_memory_equal(&got, &expected()[0], sizeof got); /* either way */
    pc_loader_free(loader);
    assert_nothing_left();
    return resident;
}

/* 18 pictures of 768 bytes, 80 for order and table and 4 for the label: 15336 bytes, half of 30672. */
static void pictures_live_where_they_fit(void **state)
{
    (void)state;
    char why[256];
    assert_true(live_there(PC_RESIDENCE_AUTO, why));
    assert_non_null(strstr(why, "live on sim:0"));
    assert_false(live_there(PC_RESIDENCE_NO, why));
    assert_non_null(strstr(why, ".resident"));
    assert_int_equal(setenv("PARACORD_RESIDENT", "no", 1), 0);
    assert_false(live_there(PC_RESIDENCE_AUTO, why));
    assert_non_null(strstr(why, "PARACORD_RESIDENT=no"));
    assert_int_equal(unsetenv("PARACORD_RESIDENT"), 0);
    for (int64_t more = -1024; more <= 1024; more += 2048) {
        assert_ok(pc_memory_trim(sim));
        assert_ok(pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 1, .memory = 30720 + more * 4)));
        assert_int_equal(live_there(PC_RESIDENCE_AUTO, why), more > 0);
        assert_non_null(strstr(why, more > 0 ? "live on sim:0" : "more than half"));
    }
    assert_ok(pc_memory_trim(sim));
    assert_ok(pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 1, .memory = 64 << 20)));
    assert_false(pc_loader_resident(NULL, why, sizeof why));
    pc_loader *loader = open_on(PC_DEVICE_CPU, 0);
    assert_false(pc_loader_resident(loader, NULL, 0));
    pc_loader_free(loader);
    assert_fails(pc_loader(root.s, .device = sim, .resident = (pc_residence)2), PC_ERR_ARGUMENT, "place");
}

/* Batches that a recorded step makes itself are the loader's, in any mixture, from any batch on. */
static void passed_batches_are_the_same(void **state)
{
    (void)state;
    const contents *want = expected();
    contents got;
    pc_loader *loader = open_on(sim, 0);
    assert_not_null_ok(loader);
    for (int from = 0; from < 2 * BATCHES; from++) {
        assert_ok(pc_loader_seek(loader, from / BATCHES, from % BATCHES));
        pc_batch batch;
        for (int i = from; i < 2 * BATCHES; i++) {
            const bool passes = (i + from) % 3 != 0;
            while (!(passes ? pc__loader_pass(loader, &batch) : pc_loader_next(loader, &batch)))
                assert_false(pc_failed());
            assert_int_equal(batch.first, i % BATCHES * BATCH);
            if (passes) {
                assert_ok(pc__loader_room(loader, batch.n, &batch.x, &batch.y));
                assert_ok(pc__loader_gather(loader, batch.x, batch.y));
                batch.sample = want[i].samples; /* nothing is said of them */
            }
            assert_ok(read_batch(&batch, &got));
            assert_memory_equal(&got, &want[i], sizeof got);
            if (passes) {
                pc_tensor_free(batch.x);
                pc_tensor_free(batch.y);
            }
        }
    }
    pc_loader_free(loader);
    assert_nothing_left();
}

/* In place of what is queued there. */
static void record_next(pc_loader *loader, pc_tensor *x, pc_tensor *y, pc_graph **graph)
{
    assert_ok(pc_graph_begin(pc_stream_current(sim)));
    assert_ok(pc__loader_gather_next(loader, x, y));
    *graph = pc_graph_end(pc_stream_current(sim));
    assert_not_null_ok(*graph);
}

/* Batches made ahead, by plain calls and by launches of one recording, from any batch on: as far as they are whole. */
static void next_batches_are_the_same(void **state)
{
    (void)state;
    const contents *want = expected();
    contents got;
    pc_loader *loader = open_on(sim, 0);
    assert_not_null_ok(loader);
    pc_tensor *x, *y, *next_x, *next_y;
    pc_graph *graph = NULL;
    assert_ok(pc__loader_room(loader, BATCH, &x, &y));
    assert_ok(pc__loader_room(loader, BATCH, &next_x, &next_y));
    for (int from = 0; from < 2 * BATCHES; from++) {
        assert_ok(pc_loader_seek(loader, from / BATCHES, from % BATCHES));
        pc_batch batch;
        bool there = false;
        for (int i = from; i < 2 * BATCHES; i++) {
            while (!pc__loader_pass(loader, &batch))
                assert_false(pc_failed());
            if (batch.n < BATCH)
                continue;
            if (!there)
                assert_ok(pc__loader_gather(loader, x, y));
            there = pc__loader_has_next(loader);
            assert_int_equal(there, i % BATCHES < BATCHES - 2); /* the last one is short */
            if (!graph)
                record_next(loader, next_x, next_y, &graph);
            assert_ok(pc_fill(next_x, -1));
            assert_ok((i + from) % 3 ? pc_graph_launch(graph, NULL) : pc__loader_gather_next(loader, next_x, next_y));
            batch = (pc_batch){.x = next_x, .y = next_y, .n = BATCH, .sample = want[i].samples};
            assert_ok(read_batch(&batch, &got));
            if (there)
                assert_memory_equal(got.pixels, want[i + 1].pixels, sizeof got.pixels);
            else
                assert_true(got.pixels[0] == -1);
        }
    }
    pc_tensor *const all[] = {x, y, next_x, next_y};
    for (int i = 0; i < 4; i++)
        pc_tensor_free(all[i]);
    pc_graph_free(graph);
    pc_loader_free(loader);
    assert_nothing_left();
}

static void three_classes_have_whole_numbers(void **state)
{
    (void)state;
    test_path three = new_root();
    put_classes(three.s, THREE, 3, 3);
    pc_loader *loader = pc_loader(three.s, .size = 8, .batch = 100, .device = sim);
    assert_not_null_ok(loader);
    pc_batch batch;
    assert_true(pc_loader_next(loader, &batch));
    assert_int_equal(pc_tensor_ndim(batch.y), 1);
    assert_int_equal(pc_tensor_dtype(batch.y), PC_I64);
    int64_t labels[9];
    assert_ok(pc_read(batch.y, labels, sizeof labels));
    for (int i = 0; i < 9; i++)
        assert_int_equal(labels[i], i / 3);
    pc_loader_free(loader);
    remove_root(&three);
}

#define ON_THE_DEVICE(test)                                                                                            \
    {                                                                                                                  \
#test " (pictures on the device)", test, on_the_device, NULL, NULL                                             \
    }
#define ON_THE_HOST(test)                                                                                              \
    {                                                                                                                  \
#test " (pictures on the host)", test, on_the_host, NULL, NULL                                                 \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_THE_DEVICE(the_same_as_on_the_cpu),           ON_THE_HOST(the_same_as_on_the_cpu),
        ON_THE_DEVICE(the_program_may_run_ahead),        ON_THE_HOST(the_program_may_run_ahead),
        ON_THE_DEVICE(every_operation_may_fail),         ON_THE_HOST(every_operation_may_fail),
        ON_THE_DEVICE(every_allocation_may_fail),        ON_THE_HOST(every_allocation_may_fail),
        ON_THE_DEVICE(device_memory_may_run_out),        ON_THE_HOST(device_memory_may_run_out),
        ON_THE_DEVICE(three_classes_have_whole_numbers), ON_THE_HOST(three_classes_have_whole_numbers),
        cmocka_unit_test(pictures_live_where_they_fit),  ON_THE_DEVICE(passed_batches_are_the_same),
        ON_THE_DEVICE(next_batches_are_the_same),
    };
    return cmocka_run_group_tests_name("data.device_batch", tests, set_up, tear_down);
}

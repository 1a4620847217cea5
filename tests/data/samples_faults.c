/* Loaders of data of one's own when something fails: every allocation, every piece of a device's work. An error, then the
 * right batch, and nothing left behind. */
#include "failing.h"
#include "support.h"

#include <paracord.h>
#include <stdio.h>
#include <unistd.h>

enum { COUNT = 14, BATCH = 4, BATCHES = 4, WIDTH = 3 };

static char npy[64], csv[64], tar[64];
static const pc_device sim = {PC_SIM, 0};

/* A member of a ustar file. */
static void put_member(FILE *f, const char *name, const void *bytes, size_t n)
{
    char block[512] = {0};
    unsigned sum = 0;
    snprintf(block, 100, "%s", name);
    memcpy(block + 100, "0000644\0000000000\0000000000", 24);
    snprintf(block + 124, 12, "%011zo", n);
    memcpy(block + 136, "00000000000", 11);
    memset(block + 148, ' ', 8);
    block[156] = '0';
    memcpy(block + 257, "ustar\00000", 8);
    for (size_t i = 0; i < sizeof block; i++)
        sum += (unsigned char)block[i];
    snprintf(block + 148, 8, "%06o", sum);
    fwrite(block, 1, sizeof block, f);
    fwrite(bytes, 1, n, f);
    static const char zeros[1024];
    fwrite(zeros, 1, (512 - n % 512) % 512, f);
}

static void put_files(const float *x)
{
    FILE *table = fopen(csv, "w"), *shard = fopen(tar, "wb");
    assert_true(table && shard);
    fprintf(table, "a,b,c\n");
    for (int i = 0; i < COUNT; i++) {
        char name[16], array[128], header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }\n";
        fprintf(table, "%g,%g,%g\n", (double)x[3 * i], (double)x[3 * i + 1], (double)x[3 * i + 2]);
        memcpy(array, "\x93NUMPY\1\0\0\0", 10);
        array[8] = (char)(sizeof header - 1);
        memcpy(array + 10, header, sizeof header - 1);
        memcpy(array + 10 + sizeof header - 1, x + 3 * i, 12);
        snprintf(name, sizeof name, "%04d.npy", i);
        put_member(shard, name, array, 10 + sizeof header - 1 + 12);
    }
    static const char end[1024];
    fwrite(end, 1, sizeof end, shard);
    assert_int_equal(fclose(table) + fclose(shard), 0);
}

static float values[COUNT * WIDTH];

static int make(void **state)
{
    (void)state;
    char *const paths[] = {npy, csv, tar};
    static const char *const endings[] = {"npy", "csv", "tar"};
    for (int i = 0; i < 3; i++)
        snprintf(paths[i], sizeof npy, "/tmp/paracord-faults-%d.%s", (int)getpid(), endings[i]);
    if (pc_allocator_set(&failing) != PC_OK)
        return -1;
    for (int i = 0; i < COUNT * WIDTH; i++)
        values[i] = (float)i;
    put_files(values);
    PC_SCOPE {
        assert_ok(pc_npy_save(pc_from_data(values, PC_SHAPE(COUNT, WIDTH), PC_F32, PC_DEVICE_CPU), npy));
    }
    return pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 1, .memory = 8 << 20)) == PC_OK ? 0 : -1;
}

static int tidy(void **state)
{
    (void)state;
    return unlink(npy) | unlink(csv) | unlink(tar) | (pc_sim_configure((pc_sim_options){0}) != PC_OK);
}

static pc_status write_row(void *context, int64_t i, int64_t epoch, void *const *to)
{
    (void)context, (void)epoch;
    memcpy(to[0], values + i * WIDTH, WIDTH * sizeof(float));
    return PC_OK;
}

enum kind { TENSORS, FUNCTION, NPY, CSV, TAR, KINDS };

static pc_tensor *whole;

static pc_loader *begin(enum kind kind, pc_batch_options o)
{
    const pc_samples samples = {
        .count = COUNT, .fields = 1, .field = {{PC_F32, PC_SHAPE(WIDTH)}}, .sample = write_row, .by_epoch = true};
    return kind == TENSORS    ? pc_loader_new_pair(whole, NULL, o)
           : kind == FUNCTION ? pc_loader_new_samples(&samples, o)
           : kind == NPY      ? pc_loader_new_npy(npy, NULL, o)
           : kind == CSV      ? pc_loader_new_csv(csv, (pc_csv_options){0}, o)
                              : pc_loader_new_tar(tar, PC_OPTIONS(pc_tar_options, .x = "npy", .y = ""), o);
}

/* One epoch, in which what fails is tried again. True when something failed on the way. */
static bool run_through(enum kind kind, pc_batch_options o)
{
    pc_loader *loader = begin(kind, o);
    bool failed = !loader;
    int tries = 0;
    pc_batch batch;
    for (int i = 0; loader && i < BATCHES && tries < 60; tries++) {
        float x[BATCH * WIDTH];
        if (pc_loader_next(loader, &batch)) {
            assert_int_equal(batch.first, i * BATCH);
            if (pc_read(batch.x, x, (size_t)batch.n * WIDTH * sizeof *x) == PC_OK)
                for (int64_t k = 0; k < batch.n * WIDTH; k++)
                    assert_true(x[k] == values[batch.sample[k / WIDTH] * WIDTH + k % WIDTH]);
            i++;
        }
        failed |= pc_failed();
        pc_error_clear();
    }
    assert_true(tries < 60);
    pc_loader_free(loader);
    if (o.device.type == PC_SIM)
        failed |= pc_device_synchronize(sim) != PC_OK;
    pc_error_clear();
    return failed;
}

static void assert_nothing_left(void)
{
    pc_memory_stats stats;
    assert_ok(pc_memory_query(sim, &stats));
    assert_int_equal(stats.in_use, 0);
}

static pc_batch_options options_of(int way)
{
    return (pc_batch_options){.batch = BATCH,
                              .shuffle = true,
                              .device = way ? sim : PC_DEVICE_CPU,
                              .resident = way == 2 ? PC_RESIDENCE_NO : PC_RESIDENCE_AUTO,
                              .prefetch = -1};
}

static bool has_tar(void)
{
    pc_loader *loader = begin(TAR, options_of(0));
    const bool is_there = pc_error_last()->status != PC_ERR_UNSUPPORTED;
    pc_loader_free(loader);
    pc_error_clear();
    return is_there;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    PC_SCOPE {
        whole = pc_from_data(values, PC_SHAPE(COUNT, WIDTH), PC_F32, PC_DEVICE_CPU);
        for (int kind = 0; kind < KINDS - !has_tar(); kind++)
            for (int way = 0; way < 3; way++) {
                (void)run_through((enum kind)kind, options_of(way)); /* what stays: streams, records */
                int failures = 0, n = 0;
                for (bool failed = true; failed; n++) {
                    assert_true(n < 2000);
                    assert_ok(pc_memory_trim(sim));
                    assert_ok(pc_memory_trim(PC_DEVICE_CPU));
                    countdown = n;
                    failed = run_through((enum kind)kind, options_of(way)) || countdown < 0;
                    failures += failed;
                    countdown = -1;
                    assert_nothing_left();
                }
                assert_true(failures > 3);
            }
    }
}

static void every_operation_may_fail(void **state)
{
    (void)state;
    static const pc_sim_fault faults[] = {PC_SIM_FAIL_KERNEL, PC_SIM_FAIL_COPY, PC_SIM_FAIL_MEMORY};
    PC_SCOPE {
        whole = pc_from_data(values, PC_SHAPE(COUNT, WIDTH), PC_F32, PC_DEVICE_CPU);
        for (int way = 1; way < 3; way++)
            for (int f = 0; f < 3; f++)
                for (int n = 1; n <= 12; n++)
                    for (int prefetch = -1; prefetch < 3; prefetch += 2) {
                        pc_batch_options o = options_of(way);
                        o.prefetch = prefetch;
                        assert_ok(pc_memory_trim(sim));
                        assert_ok(pc_sim_inject(sim, faults[f], n));
                        if (faults[f] == PC_SIM_FAIL_MEMORY) { /* refused from then on: an error, whenever it comes */
                            pc_batch batch;
                            pc_loader *loader = begin(TENSORS, o);
                            while (loader && pc_loader_next(loader, &batch)) {
                            }
                            assert_ok(pc_sim_inject(sim, PC_SIM_NO_FAULT, 0));
                            pc_loader_free(loader);
                            pc_error_clear();
                        } else {
                            (void)run_through(TENSORS, o);
                            assert_ok(pc_sim_inject(sim, PC_SIM_NO_FAULT, 0));
                        }
                        assert_nothing_left();
                    }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(every_operation_may_fail),
    };
    return cmocka_run_group_tests(tests, make, tidy);
}

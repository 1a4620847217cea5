/* Batches for a device, here sim:0, are copied there while it computes on earlier ones: its timeline shows it. */
#include "pictures.h"

#include <paracord/loader.h>
#include <paracord/ops.h>
#include <paracord/sim.h>
#include <paracord/stream.h>
#include <paracord/trace.h>

enum { SIZE = 16, PIXELS = SIZE * SIZE * 3, BATCH = 4, PICTURES = 20, STEPS = 20, MOST_BARS = 1000 };
static const pc_device sim = {PC_SIM, 0};

/* What an engine did: microseconds from its start to its end. */
typedef struct bar {
    double start, end;
} bar;

typedef struct timeline {
    bar copies[MOST_BARS], kernels[MOST_BARS];
    int copy_count, kernel_count;
} timeline;

static double number_in(const char *line, const char *key)
{
    const char *at = strstr(line, key);
    assert_non_null(at);
    return strtod(at + strlen(key), NULL);
}

static void read_timeline(const char *path, timeline *t)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (char line[8192]; fgets(line, sizeof line, file);) {
        if (!strstr(line, "\"cat\":\"engine\"") || strstr(line, " on host\""))
            continue;
        const bool is_copy = strstr(line, "\"name\":\"copy ");
        int *count = is_copy ? &t->copy_count : &t->kernel_count;
        assert_true(*count < MOST_BARS);
        bar *b = &(is_copy ? t->copies : t->kernels)[(*count)++];
        b->start = number_in(line, "\"ts\":");
        b->end = b->start + number_in(line, "\"dur\":");
    }
    fclose(file);
}

static double length_of(const bar *bars, int n)
{
    double length = 0;
    for (int i = 0; i < n; i++)
        length += bars[i].end - bars[i].start;
    return length;
}

static double time_side_by_side(const timeline *t)
{
    double both = 0;
    for (int i = 0; i < t->copy_count; i++)
        for (int k = 0; k < t->kernel_count; k++) {
            const bar a = t->copies[i], b = t->kernels[k];
            const double start = a.start > b.start ? a.start : b.start, end = a.end < b.end ? a.end : b.end;
            both += end > start ? end - start : 0;
        }
    return both;
}

/* Copying a batch takes as long as computing on it. One after the other they would never be side by side; how much of
 * the time they are depends on when a loaded machine lets the threads of the device run. */
static void copies_go_beside_the_work(void **state)
{
    (void)state;
    const double each = 0.02;
    const double bytes = BATCH * (PIXELS + 64 + 4); /* bytes of the pictures, and what their labels are packed to */
    test_path pictures = new_root(), traces = new_root(), file = joined(traces.s, "trace.json");
    put_classes(pictures.s, (const char *[]){"cat", "dog"}, 2, PICTURES / 2);
    assert_ok(pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 1, .memory = 64 << 20, .bandwidth = bytes / each,
                                          .kernel_time = each / 3)));
    pc_loader *loader =
        pc_picture_folder(pictures.s, .size = SIZE, .batch = BATCH, .device = sim, .resident = PC_RESIDENT_NO);
    assert_not_null_ok(loader);
    assert_ok(pc_trace_start(file.s));
    pc_batch batch;
    for (int step = 0; step < STEPS; step++) {
        while (!pc_loader_next(loader, &batch)) /* two kernels: pictures, labels */
            assert_false(pc_failed());
        PC_SCOPE {
            assert_non_null(pc_neg(batch.x)); /* the training: a third */
        }
    }
    assert_ok(pc_device_synchronize(sim));
    pc_loader_free(loader);
    assert_ok(pc_trace_stop());

    static timeline t;
    read_timeline(file.s, &t);
    const double copies = length_of(t.copies, t.copy_count), kernels = length_of(t.kernels, t.kernel_count);
    const double both = time_side_by_side(&t), shorter = copies < kernels ? copies : kernels;
    print_message("copies take %.0f ms, kernels %.0f ms, %.0f ms of it side by side\n", copies * 1e-3, kernels * 1e-3,
                  both * 1e-3);
    assert_true(copies > 0.9e6 * STEPS * each && kernels > 0.9e6 * STEPS * each); /* or this shows nothing */
    assert_true(both > 0.3 * shorter);
    assert_ok(pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 0)));
    remove_root(&pictures);
    remove_root(&traces);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_go_beside_the_work),
    };
    return cmocka_run_group_tests_name("data.device_overlap", tests, NULL, NULL);
}

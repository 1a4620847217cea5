/* Batches for a device, here sim:0, are copied there while it computes on earlier ones: its timeline shows it. */
#include "pictures.h"
#include "timeline.h"

#include <paracord/loader.h>
#include <paracord/ops.h>
#include <paracord/sim.h>
#include <paracord/stream.h>

enum { SIZE = 16, PIXELS = SIZE * SIZE * 3, BATCH = 4, PICTURES = 20, STEPS = 20 };
static const pc_device sim = {PC_SIM, 0};

/* Copying a batch takes as long as computing on it. One after the other they would never be side by side; how much of
 * the time they are depends on when a loaded machine lets the threads of the device run. */
static void copies_go_beside_the_work(void **state)
{
    (void)state;
    const double each = 0.02;
    const double bytes = BATCH * (PIXELS + 64 + 4); /* bytes of the pictures, and what their labels are packed to */
    test_path pictures = new_root();
    put_classes(pictures.s, (const char *[]){"cat", "dog"}, 2, PICTURES / 2);
    assert_ok(pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 1, .memory = 64 << 20, .kernels = 1,
                                          .bandwidth = bytes / each, .kernel_time = each / 3)));
    pc_loader *loader = pc_loader(pictures.s, .size = SIZE, .batch = BATCH, .device = sim, .resident = PC_RESIDENCE_NO);
    assert_not_null_ok(loader);
    start_timeline();
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

    const timeline *t = stop_timeline();
    const double copies = ms_of(t, true), kernels = ms_of(t, false), both = copies + kernels - ms_busy(t);
    print_message("copies take %.0f ms, kernels %.0f ms, %.0f ms of it side by side\n", copies, kernels, both);
    assert_true(copies > 0.9e3 * STEPS * each && kernels > 0.9e3 * STEPS * each); /* or this shows nothing */
    assert_true(both > 0.3 * (copies < kernels ? copies : kernels));
    assert_ok(pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 0)));
    remove_root(&pictures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_go_beside_the_work),
    };
    return cmocka_run_group_tests_name("data.device_overlap", tests, NULL, NULL);
}

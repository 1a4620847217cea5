/* The memory of a training: counted as the networks have it, compared before anything is read, told with a way out. */
#include "folder.h"

#include "device.h"
#include "train/arch.h"
#include "train/need.h"
#include "train/summary.h"

#include <paracord/memory.h>
#include <paracord/train.h>
#include <sys/resource.h>

static const char *const archs[] = {"article", "two-conv", "mlp", "lenet"};

/* Parameters exactly; activations as the layers' outputs are, flattening aside, and the largest again. */
static void networks_are_counted(void **state)
{
    (void)state;
    static const pc__frame frames[] = {{16, 16, 3}, {28, 45, 1}, {64, 33, 3}};
    for (int a = 0; a < 4; a++)
        for (int f = 0; f < 3; f++) {
            pc__arch_size size;
            pc__layer_row *rows;
            int count;
            double outputs = 0, largest = 0;
            assert_ok(pc__arch_measure(archs[a], frames[f], 5, &size));
            pc_module *net = pc__arch_new(archs[a], frames[f], 5, PC_INIT_GLOROT);
            assert_not_null_ok(net);
            assert_ok(pc__summary_rows(net, frames[f], &rows, &count));
            assert_true(size.parameters == (double)pc_module_parameter_elements(net));
            for (int i = 0; i < count; i++) {
                double n = 1;
                for (int d = 0; d < rows[i].output.ndim; d++)
                    n *= (double)rows[i].output.dim[d];
                outputs += strcmp(rows[i].kind, "Flatten") ? n : 0;
                largest = strcmp(rows[i].kind, "Flatten") && n > largest ? n : largest;
            }
            assert_true(size.activations == outputs + largest);
            pc_text_free((char *)rows);
            pc_module_free(net);
        }
}

static void too_large_is_told_at_once(void **state)
{
    (void)state;
    test_path root = folder_in_memory(), out = joined(root.s, "out");
    put_classes(placed(root.s, "data/").s, (const char *[]){"cat", "dog"}, 2, 4);
    const test_path data = joined(root.s, "data");
    pc_train_options settings = {.data = data.s, .out = out.s, .arch = "mlp", .device = "cpu", .epochs = 1};
    pc_train_summary summary;
    settings.size = 4096; /* 12.9 billion weights: 206 GB with adam */
    assert_fails(pc_train_folder(settings, &summary), PC_ERR_MEMORY,
                 "million weights of mlp on 4096 x 4096 pixels with gradients, adam and checkpoint");
    struct stat info;
    assert_true(stat(out.s, &info) != 0);
    settings.arch = "article", settings.size = 64, settings.batch = 1 << 20;
    assert_fails(pc_train_folder(settings, &summary), PC_ERR_MEMORY, "--batch ");
    remove_root(&root);
}

/* Of a batch in parts layers keep those of a part; of ranks each has its share of what a stage shares out. */
static void parts_take_less(void **state)
{
    (void)state;
    pc_group *groups[4];
    pc__need whole, parts, shared[4];
    assert_ok(pc_group_threads(4, groups));
    pc__run run = {.arch = "article",
                   .device = {PC_SIM, 0},
                   .s = {.optimizer = "adam", .keep = "best", .height = 64, .width = 64, .channels = 3, .batch = 32}};
    assert_ok(pc__need_of(&run, 1, &whole));
    run.fit.accumulate = 5; /* of 7 pictures at most */
    assert_ok(pc__need_of(&run, 1, &parts));
    assert_true(whole.picture == whole.input + whole.kept);
    assert_close(parts.picture * 32, whole.input * 32 + whole.kept * 7, 1e-6);
    assert_true(parts.network == whole.network && whole.network == whole.parameters * 4 * 4);
    run.fit.group = groups[0];
    for (run.s.zero = 0; run.s.zero < 4; run.s.zero++)
        assert_ok(pc__need_of(&run, 1, &shared[run.s.zero]));
    const double numbers[4] = {1 + 1 + 2, 1 + 1.25 + 0.5, 1 + 0.25 + 0.5, 1 + 0.25 + 0.5};
    for (int i = 0; i < 4; i++)
        assert_close(shared[i].network / (4 * whole.parameters), numbers[i], 1e-9);
    assert_close(shared[0].picture * 8, whole.input * 8 + whole.kept * 2, 1e-6); /* 8 of a rank, in 5 parts */
    for (int i = 0; i < 4; i++)
        pc_group_free(groups[i]);
}

static void numbers_are_checked(void **state)
{
    (void)state;
    pc_train_summary summary;
    assert_fails(pc_train_folder((pc_train_options){.data = "nowhere", .zero = 4}, &summary), PC_ERR_ARGUMENT,
                 "zero is 4; it must be 0 to 3");
    assert_fails(pc_train_folder((pc_train_options){.data = "nowhere", .accumulate = -1}, &summary), PC_ERR_ARGUMENT,
                 "accumulate is -1; it must be 1 to ");
}

/* What a limit leaves, and no more than the machine has. */
static void memory_that_is_left(void **state)
{
    (void)state;
    struct rlimit before, lower;
    assert_true(pc_memory_left() > 1 << 20);
    assert_int_equal(getrlimit(RLIMIT_DATA, &before), 0);
    lower = before;
    lower.rlim_cur = (rlim_t)1 << 30;
    assert_int_equal(setrlimit(RLIMIT_DATA, &lower), 0);
    const int64_t left = pc_memory_left();
    assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0);
    assert_true(left < 1 << 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_are_counted), cmocka_unit_test(too_large_is_told_at_once),
        cmocka_unit_test(parts_take_less),      cmocka_unit_test(numbers_are_checked),
        cmocka_unit_test(memory_that_is_left),
    };
    return cmocka_run_group_tests_name("train.need", tests, NULL, NULL);
}

/* The memory of a training: counted as the networks have it, compared before anything is read, told with a way out. */
#include "folder.h"

#include "device.h"
#include "train/arch.h"
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
        cmocka_unit_test(networks_are_counted),
        cmocka_unit_test(too_large_is_told_at_once),
        cmocka_unit_test(memory_that_is_left),
    };
    return cmocka_run_group_tests_name("train.need", tests, NULL, NULL);
}

/* What kernels work in is the device's memory like any other: counted while it is used, given back when it is trimmed, and
 * part of what a recording says that it needs. */
#include "device.h"

#include <paracord.h>

enum { N = 1 << 20 };

static pc_memory_stats stats(void)
{
    pc_memory_stats s;
    assert_ok(pc_memory_query(test_device(), &s));
    return s;
}

static bool has_workspaces(void) /* a sum of a million numbers is added up in parts there */
{
    return test_device().type == PC_CUDA;
}

static void of_a_call_it_goes_back_to_the_cache(void **state)
{
    (void)state;
    pc_tensor *x = pc_full(PC_SHAPE(N), 1, PC_F32, test_device());
    assert_not_null_ok(x);
    assert_ok(pc_memory_trim(test_device()));
    const pc_memory_stats before = stats();
    pc_tensor *sum = pc_sum(x);
    assert_true(pc_item(sum) == N);
    const pc_memory_stats after = stats();
    assert_int_equal(after.requests - before.requests, has_workspaces() ? 2 : 1);
    pc_tensor_free(sum);
    assert_int_equal(stats().in_use, before.in_use);
    assert_ok(pc_device_synchronize(test_device()));
    assert_ok(pc_memory_trim(test_device()));
    assert_int_equal(stats().cached, 0);
    pc_tensor_free(x);
}

static void of_a_recording_it_is_the_recordings(void **state)
{
    (void)state;
    pc_tensor *x = pc_full(PC_SHAPE(N), 1, PC_F32, test_device());
    const int64_t before = stats().in_use;
    assert_ok(pc_graph_begin(NULL));
    pc_tensor *sum = pc_sum(x);
    pc_graph *graph = pc_graph_end(NULL);
    assert_not_null_ok(graph);
    const int64_t memory = pc_graph_memory(graph);
    assert_true(has_workspaces() ? memory > 1000 : memory < 1000);
    if (test_device().type != PC_CPU)
        assert_in_range(stats().in_use - before, memory, memory + 1024); /* blocks are rounded up */
    for (int i = 0; i < 3; i++)
        assert_ok(pc_graph_launch(graph, NULL));
    pc_graph_free(graph); /* under way, maybe */
    pc_tensor *other = pc_full(PC_SHAPE(N), 3, PC_F32, test_device()), *more = pc_sum(other);
    assert_true(pc_item(sum) == N);
    assert_true(pc_item(more) == 3. * N);
    pc_tensor_free(more);
    pc_tensor_free(other);
    pc_tensor_free(sum);
    assert_int_equal(stats().in_use, before);
    pc_tensor_free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_call_it_goes_back_to_the_cache),
        cmocka_unit_test(of_a_recording_it_is_the_recordings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Which calls write what is copied into memory that is there, in its place. */
#include "device.h"
#include "plans.h"

#include <paracord/ops.h>

enum { ROW = 64 }; /* numbers of a place: on 256 bytes */

static pc_tensor *place(pc_tensor *flat, int i, pc_shape shape)
{
    int64_t n = 1;
    for (int d = 0; d < shape.ndim; d++)
        n *= shape.dim[d];
    return pc_reshape(pc_slice(flat, 0, i * ROW, i * ROW + n, 1), shape);
}

static void assert_row(pc_tensor *flat, int i, int n, float want)
{
    float got[8 * ROW];
    assert_ok(pc_read(flat, got, sizeof got));
    for (int k = 0; k < n; k++)
        assert_close(got[i * ROW + k], want, 0);
}

/* Products, sums and what is not element by element; another row of the same memory is written meanwhile. */
static void results_go_to_their_places(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *flat = pc_zeros(PC_SHAPE(8 * ROW), PC_F32, test_device()),
                  *a = pc_ones(PC_SHAPE(4, 8), PC_F32, test_device());
        begin();
        PC_SCOPE {
            pc_tensor *product = pc_matmul(a, pc_transpose(a, 0, 1)), *sum = pc_sum_dims(a, PC_SHAPE(0), false);
            assert_ok(pc_copy(place(flat, 1, PC_SHAPE(8)), sum));
            assert_ok(pc_copy(place(flat, 0, PC_SHAPE(4, 4)), product));
            assert_ok(pc_copy(place(flat, 2, PC_SHAPE(2, 8)),
                              pc_reshape(pc_matmul(a, pc_transpose(a, 0, 1)), PC_SHAPE(2, 8))));
        }
        pc_graph *graph = ended();
        if (!plain())
            says(graph, "taken out: places");
        assert_ok(pc_fill(a, 2));
        assert_ok(pc_graph_launch(graph, NULL));
        assert_row(flat, 0, 16, 32);
        assert_row(flat, 1, 8, 8);
        assert_row(flat, 2, 16, 32);
        pc_graph_free(graph);
    }
    assert_no_leak();
}

/* The place is read or written between the call and the copy, or the result is read by others too. */
static void what_is_in_the_way(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *flat = pc_zeros(PC_SHAPE(8 * ROW), PC_F32, test_device()),
                  *a = pc_ones(PC_SHAPE(4, 8), PC_F32, test_device()),
                  *seen = pc_zeros(PC_SHAPE(16), PC_F32, test_device());
        pc_tensor *kept = NULL;
        begin();
        PC_SCOPE {
            pc_tensor *product = pc_matmul(a, pc_transpose(a, 0, 1));
            assert_ok(pc_copy(seen, place(flat, 0, PC_SHAPE(16)))); /* what was there before */
            assert_ok(pc_copy(place(flat, 0, PC_SHAPE(4, 4)), product));
            pc_tensor *other = pc_matmul(a, pc_transpose(a, 0, 1));
            assert_ok(pc_copy(place(flat, 1, PC_SHAPE(4, 4)), other));
            kept = pc_keep(pc_neg(other));
            pc_tensor *late = pc_matmul(a, pc_transpose(a, 0, 1));
            assert_ok(pc_fill(place(flat, 2, PC_SHAPE(16)), 5)); /* is written over */
            assert_ok(pc_copy(place(flat, 2, PC_SHAPE(4, 4)), late));
        }
        pc_graph *graph = ended();
        assert_ok(pc_fill(flat, 3));
        assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_min(seen)), 3, 0);
        assert_close(pc_item(pc_max(kept)), -8, 0);
        for (int i = 0; i < 3; i++)
            assert_row(flat, i, 16, 8);
        assert_row(flat, 3, ROW, 3);
        pc_graph_free(graph);
    }
    assert_no_leak();
}

/* Another stream still reads the place: the copy waits for it, and so would the call have to. */
static void other_streams_are_waited_for(void **state)
{
    (void)state;
    pc_stream *other = pc_stream(test_device());
    PC_SCOPE {
        pc_tensor *flat = pc_zeros(PC_SHAPE(8 * ROW), PC_F32, test_device()),
                  *a = pc_ones(PC_SHAPE(4, 8), PC_F32, test_device()),
                  *seen = pc_zeros(PC_SHAPE(16), PC_F32, test_device());
        begin();
        PC_SCOPE {
            assert_ok(pc_fill(place(flat, 0, PC_SHAPE(16)), 1));
            PC_WITH_STREAM(other) {
                assert_ok(pc_copy(seen, place(flat, 0, PC_SHAPE(16))));
            }
            assert_ok(pc_copy(place(flat, 0, PC_SHAPE(4, 4)), pc_matmul(a, pc_transpose(a, 0, 1))));
        }
        pc_graph *graph = ended();
        for (int i = 0; i < 5; i++) {
            assert_ok(pc_graph_launch(graph, NULL));
            assert_close(pc_item(pc_max(seen)), 1, 0);
            assert_row(flat, 0, 16, 8);
        }
        pc_graph_free(graph);
    }
    pc_stream_free(other);
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_go_to_their_places),
        cmocka_unit_test(what_is_in_the_way),
        cmocka_unit_test(other_streams_are_waited_for),
    };
    return cmocka_run_group_tests_name("plan.places", tests, NULL, NULL);
}

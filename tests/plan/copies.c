/* Which copies an element-by-element call makes itself. */
#include "device.h"
#include "plans.h"

#include <paracord/ops.h>

/* A call writes where the copy behind it would: in another order, and broadcast; not where something is in the way. */
static void copies_are_made_at_once(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_reshape(pc_arange(0, 6, 1, PC_F32, test_device()), PC_SHAPE(2, 3));
        pc_tensor *turned = pc_zeros(PC_SHAPE(3, 2), PC_F32, test_device()),
                  *wide = pc_zeros(PC_SHAPE(4, 2, 3), PC_F32, test_device()),
                  *late = pc_zeros(PC_SHAPE(3, 2), PC_F32, test_device());
        begin();
        PC_SCOPE {
            assert_ok(pc_copy(turned, pc_transpose(pc_mul_scalar(x, 2), 0, 1)));
            assert_ok(pc_copy(wide, pc_expand(pc_add(x, pc_slice(x, 0, 1, 2, 1)), PC_SHAPE(4, 2, 3))));
            pc_tensor *before = pc_neg(x);
            assert_ok(pc_fill(x, 7));
            assert_ok(pc_copy(late, pc_transpose(before, 0, 1)));
        }
        pc_graph *graph = ended();
        if (!plain())
            says(graph, "2 copies");
        assert_ok(pc_graph_launch(graph, NULL));
        float got[24];
        assert_ok(pc_read(turned, got, 6 * sizeof *got));
        for (int i = 0; i < 6; i++)
            assert_close(got[i], 2 * (i % 2 * 3 + i / 2), 0);
        assert_ok(pc_read(wide, got, sizeof got));
        for (int i = 0; i < 24; i++)
            assert_close(got[i], i % 6 + 3 + i % 3, 0);
        assert_ok(pc_read(late, got, 6 * sizeof *got));
        for (int i = 0; i < 6; i++)
            assert_close(got[i], -(i % 2 * 3 + i / 2), 0);
        pc_graph_free(graph);
    }
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(copies_are_made_at_once)};
    return cmocka_run_group_tests_name("plan.copies", tests, NULL, NULL);
}

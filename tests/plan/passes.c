/* What passes take out of plans, and what memory plans need: the shapes of it that random programs do not count. */
#include "device.h"
#include "plans.h"

#include <math.h>
#include <paracord/autograd.h>
#include <paracord/ops.h>

enum { N = 4000, BYTES = N * 4 };

static void twice_and_for_nobody(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(N), .5, PC_F32, test_device()),
                  *out = pc_zeros(PC_SHAPE(N), PC_F32, test_device());
        begin();
        PC_SCOPE {
            pc_tensor *a = pc_softmax(x, 0), *b = pc_softmax(x, 0);
            assert_not_null_ok(pc_softmax(b, 0)); /* nobody looks at it */
            assert_ok(pc_copy(out, pc_sub(a, b)));
        }
        pc_graph *graph = ended();
        if (!plain())
            says(graph, "taken out: 1 duplicates, 1 dead");
        assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_sum(out)), 0, 0);
        pc_graph_free(graph);
    }
    assert_no_leak();
}

/* Dimensions of one element are in nobody's way: a sum over them and another is one call. So is a mean. */
static void sums_over_ones_are_one_call(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(1, 15, 2, 1), PC_F32, test_device()),
                  *wide = pc_ones(PC_SHAPE(3, 1, 5, 1), PC_F32, test_device());
        begin();
        pc_tensor *a = pc_sum_dims(x, PC_SHAPE(0, 2), true), *b = pc_sum_dims(wide, PC_SHAPE(0, 1, 3), false);
        pc_tensor *mean = pc_mean_dims(pc_cast(x, PC_F16), PC_SHAPE(0, 1), false);
        pc_graph *graph = ended();
        says(graph, "4 nodes recorded");
        assert_ok(pc_graph_launch(graph, NULL));
        assert_int_equal(pc_tensor_size(a, 1), 15);
        assert_int_equal(pc_tensor_size(b, 0), 5);
        assert_close(pc_item(pc_sum(a)), 30, 0);
        assert_close(pc_item(pc_sum(b)), 15, 0);
        assert_close(pc_item(pc_max(mean)), 1, 0);
        pc_graph_free(graph);
    }
    assert_no_leak();
}

/* What is computed twice is not the same where something was written in between. */
static void not_what_has_changed(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(4), 1, PC_F32, test_device()),
                  *out = pc_zeros(PC_SHAPE(4), PC_F32, test_device());
        begin();
        PC_SCOPE {
            pc_tensor *before = pc_sum_dims(x, PC_SHAPE(0), true);
            assert_ok(pc_fill(x, 2));
            assert_ok(pc_copy(out, pc_sub(pc_sum_dims(x, PC_SHAPE(0), true), before)));
            assert_ok(pc_fill(x, 1));
        }
        pc_graph *graph = ended();
        for (int i = 0; i < 2; i++)
            assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_max(out)), 4, 0);
        pc_graph_free(graph);
    }
    assert_no_leak();
}

/* A chain is one call: with a broadcast row, a 16-bit stretch, and a result in the middle that the program keeps. */
static void chains_are_one_call(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(20, N / 20), .5, PC_F32, test_device()),
                  *row = pc_full(PC_SHAPE(N / 20), .25, PC_F32, test_device());
        pc_tensor *out = pc_zeros(PC_SHAPE(20, N / 20), PC_F32, test_device()), *middle = NULL;
        begin();
        PC_SCOPE {
            middle = pc_tensor_retain(pc_mul(pc_add(x, row), x));
            pc_tensor *half = pc_gelu(pc_cast(middle, PC_BF16));
            assert_ok(pc_copy(out, pc_tanh(pc_cast(half, PC_F32))));
        }
        pc_graph *graph = ended();
        if (!plain())
            says(graph, "= add, mul, cast, gelu, cast, tanh");
        assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_max(middle)), .375, 0);
        assert_close(pc_item(pc_mean(out)), tanh(.2421875), 1e-6); /* gelu(.375) = .242185, in bfloat16 */
        pc_graph_free(graph);
        pc_tensor_free(middle);
    }
    assert_no_leak();
}

static pc_graph *chain(pc_tensor *out, pc_tensor *x, bool other)
{
    begin();
    PC_SCOPE {
        assert_ok(pc_copy(out, pc_tanh(other ? pc_sub(x, x) : pc_add(x, x))));
    }
    return ended();
}

static void other_chains_are_other_work(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(N), .5, PC_F32, test_device()),
                  *y = pc_full(PC_SHAPE(N), 0, PC_F32, test_device()),
                  *out = pc_zeros(PC_SHAPE(N), PC_F32, test_device());
        pc_graph *graph = chain(out, x, false), *same = chain(out, y, false), *other = chain(out, x, true);
        assert_fails(pc_graph_update(graph, other), PC_ERR_SHAPE, "pc_graph_update: op 0");
        assert_ok(pc_graph_update(graph, same));
        assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_max(out)), 0, 0);
        pc_graph_free(graph);
        pc_graph_free(same);
        pc_graph_free(other);
    }
    assert_no_leak();
}

/* A number is a part of the call that computes with it, and of the step that this call becomes. */
static void numbers_are_parts_of_calls(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(N), .5, PC_F32, test_device()), *narrow = pc_cast(x, PC_BF16),
                  *out = pc_zeros(PC_SHAPE(N), PC_F32, test_device());
        begin();
        pc_tensor *kept = pc_mul_scalar(x, .5), *rounded = pc_mul_scalar(narrow, .1);
        pc_graph *graph = ended();
        says(graph, "2 nodes recorded");
        says(graph, " 0.5 -> ");
        assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_max(kept)), .25, 0);
        assert_close(pc_item(pc_max(rounded)), .050048828125, 0);
        pc_graph_free(graph);
        begin();
        PC_SCOPE {
            pc_tensor *a = pc_softmax(pc_div_scalar(x, 3), 0), *b = pc_softmax(pc_div_scalar(x, 3), 0);
            assert_ok(pc_copy(out, pc_tanh(pc_add_scalar(pc_mul_scalar(pc_sub(a, b), 7), 1.5))));
        }
        graph = ended();
        if (!plain()) {
            says(graph, "taken out: 2 duplicates");
            says(graph, "= sub, mul 7, add 1.5, tanh");
        }
        assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_max(out)), tanh(1.5), 1e-6);
        pc_graph_free(graph);
    }
    assert_no_leak();
}

static pc_graph *scaled(pc_tensor *out, pc_tensor *x, double number)
{
    begin();
    PC_SCOPE {
        assert_ok(pc_copy(out, pc_neg(pc_relu(pc_mul_scalar(x, number)))));
    }
    return ended();
}

/* Another number, a learning rate say, is the same work. */
static void numbers_can_be_updated(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(N), .5, PC_F32, test_device()),
                  *out = pc_zeros(PC_SHAPE(N), PC_F32, test_device());
        pc_graph *graph = scaled(out, x, 3), *other = scaled(out, x, 5);
        if (!plain())
            says(graph, "= mul 3, relu, neg");
        assert_ok(pc_graph_update(graph, other));
        assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_max(out)), -2.5, 0);
        pc_graph_free(graph);
        pc_graph_free(other);
    }
    assert_no_leak();
}

/* Ten temporaries one after the other need the memory of two; what is kept has its own. */
static void temporaries_share_memory(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(N), .5, PC_F32, test_device()), *kept = NULL;
        begin();
        PC_SCOPE {
            pc_tensor *y = x;
            for (int i = 0; i < 10; i++)
                y = pc_softmax(y, 0);
            kept = pc_tensor_retain(y);
        }
        pc_graph *graph = ended();
        const int64_t bytes = pc_graph_memory(graph),
                      most = test_device().type == PC_CUDA ? 8 : 3; /* backend.h's span */
        assert_true(bytes >= 2 * BYTES);
        if (!plain() && !getenv("PARACORD_CACHE"))
            assert_true(bytes <= (most + 1) * (BYTES + 256));
        assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_sum(kept)), 1, 1e-4);
        pc_tensor_free(kept);
        pc_graph_free(graph);
    }
    assert_no_leak();
}

/* So do those that two streams use, as far as the streams wait for each other. */
static void streams_share_memory(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(N), .5, PC_F32, test_device()), *kept = NULL;
        pc_stream *side = pc_stream(test_device());
        begin();
        PC_SCOPE {
            pc_tensor *y = x;
            for (int i = 0; i < 20; i++)
                PC_WITH_STREAM(i % 2 ? side : pc_stream_current(test_device())) {
                    y = pc_softmax(y, 0);
                }
            kept = pc_tensor_retain(pc_add_scalar(y, 0));
        }
        pc_graph *graph = ended();
        const int64_t bytes = pc_graph_memory(graph);
        if (!plain() && !getenv("PARACORD_CACHE") && test_device().type != PC_CPU)
            assert_true(bytes <= 10 * (BYTES + 256));
        assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_sum(kept)), 1, 1e-4);
        pc_tensor_free(kept);
        pc_graph_free(graph);
        pc_stream_free(side);
    }
    assert_no_leak();
}

/* A tensor of a recording that was dropped, or that nothing in it has used, can be used all the same. */
static void memory_for_who_asks(void **state)
{
    (void)state;
    PC_SCOPE {
        begin();
        pc_tensor *unused = pc_empty(PC_SHAPE(N), PC_F32, test_device());
        pc_graph_free(ended());
        assert_ok(pc_fill(unused, 3));
        assert_close(pc_item(pc_max(unused)), 3, 0);
        pc_stream *stream = pc_stream(test_device());
        pc_tensor *left = NULL;
        PC_WITH_STREAM(stream) {
            assert_ok(pc_graph_begin(stream));
            left = pc_add(unused, unused);
        }
        pc_stream_free(stream);
        assert_not_null_ok(left);
        assert_ok(pc_fill(left, 4));
        assert_close(pc_item(pc_max(left)), 4, 0);
    }
    assert_no_leak();
}

/* Two tensors of one memory of the program's: a call is not put behind one that writes it under the other name. */
static void one_memory_under_two_names(void **state)
{
    (void)state;
    static float numbers[N];
    only_on_the_cpu();
    PC_SCOPE {
        pc_tensor *a = pc_from_memory(numbers, PC_SHAPE(N), PC_F32, NULL, NULL),
                  *b = pc_from_memory(numbers, PC_SHAPE(N), PC_F32, NULL, NULL);
        pc_tensor *out = pc_zeros(PC_SHAPE(N), PC_F32, test_device());
        for (int i = 0; i < N; i++)
            numbers[i] = 1;
        begin();
        PC_SCOPE {
            pc_tensor *sum = pc_add(a, a);
            assert_ok(pc_fill(b, 5));
            assert_ok(pc_copy(out, pc_neg(sum)));
        }
        pc_graph *graph = ended();
        assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_max(out)), -2, 0);
        pc_graph_free(graph);
        begin();
        PC_SCOPE {
            assert_ok(pc_copy(a, pc_neg(out)));
            assert_ok(pc_copy(out, pc_sum_dims(b, PC_SHAPE(0), true)));
        }
        graph = ended();
        assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_max(out)), 2 * N, 0);
        pc_graph_free(graph);
    }
    assert_no_leak();
}

/* The text names streams that may be gone. */
static void text_outlives_streams(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(N), 2, PC_F32, test_device()), *y = NULL;
        pc_stream *stream = pc_stream(test_device()), *side = pc_stream(test_device());
        assert_ok(pc_graph_begin(stream));
        PC_WITH_STREAM(stream) {
            assert_ok(pc_saxpy(x, 1, x));
        }
        PC_WITH_STREAM(side) {
            y = test_device().type == PC_CPU ? x : pc_add(x, x);
        }
        pc_graph *graph = pc_graph_end(stream);
        assert_not_null_ok(graph);
        assert_not_null_ok(y);
        pc_stream_free(side);
        pc_stream_free(stream);
        says(graph, test_device().type == PC_CPU ? "saxpy" : "wait for stream");
        pc_graph_free(graph);
    }
    assert_no_leak();
}

/* Who goes around the order of data hears what he does. */
static void work_that_joins_nothing(void **state)
{
    (void)state;
    if (test_device().type == PC_CPU)
        skip(); /* there work is done at once, on whatever memory has */
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(N), 2, PC_F32, test_device());
        pc_stream *stream = pc_stream(test_device());
        begin();
        pc_tensor *y = pc_add(x, x);
        PC_MANUAL_ORDER {
            PC_WITH_STREAM(stream) {
                assert_fails(pc_add(y, y), PC_ERR_STATE, "a recording that has not ended");
            }
        }
        pc_graph *graph = ended();
        assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_max(y)), 4, 0);
        pc_graph_free(graph);
        pc_stream_free(stream);
    }
    assert_no_leak();
}

/* Forward and backward of one op, whose gradient the program keeps as the leaf's: one call, also of a leaf in another
 * memory order, and where the two share nothing but their shape. On CUDA two such calls are faster. */
static void with_their_gradients(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_detach(
                      pc_permute(pc_full(PC_SHAPE(8, 5, 100), -.5, PC_F32, test_device()), PC_SHAPE(0, 2, 1))),
                  *z = pc_full(PC_SHAPE(N), .5, PC_F32, test_device()),
                  *g = pc_full(PC_SHAPE(N), 3, PC_F32, test_device());
        pc_tensor *gx = pc_mul_scalar(x, -4), *y = NULL, *sum = NULL;
        assert_ok(pc_require_grad(x, true));
        assert_ok(pc_require_grad(z, true));
        begin();
        PC_SCOPE {
            y = pc_tensor_retain(pc_tanh(x));
            assert_ok(pc_backward_with(y, gx));
        }
        pc_graph *first = ended();
        begin();
        PC_SCOPE {
            sum = pc_tensor_retain(pc_add(z, g));
            assert_ok(pc_backward_with(sum, g));
        }
        pc_graph *second = ended();
        if (!plain()) {
            const bool apart = test_device().type == PC_CUDA;
            says(first, apart ? "2 nodes recorded, 2 run" : "2 nodes recorded, 1 run");
            says(first, apart ? "tanh_backward x" : "= tanh, tanh_backward");
            says(second, apart ? "2 nodes recorded, 2 run" : "2 nodes recorded, 1 run");
            says(second, apart ? "copy x" : "= add, cast");
        }
        assert_ok(pc_graph_launch(first, NULL));
        assert_ok(pc_graph_launch(second, NULL));
        assert_close(pc_item(pc_max(y)), tanh(-.5), 1e-6);
        assert_close(pc_item(pc_max(pc_grad(x))), 2 * (1 - tanh(.5) * tanh(.5)), 1e-6);
        assert_close(pc_item(pc_max(sum)), 3.5, 0);
        assert_close(pc_item(pc_max(pc_grad(z))), 3, 0);
        pc_graph_free(first);
        pc_graph_free(second);
        pc_tensor_free(y);
        pc_tensor_free(sum);
    }
    assert_no_leak();
}

/* The gradient of what was broadcast is the leaf's as it was summed, through whatever views. */
static void sums_are_gradients(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_permute(pc_full(PC_SHAPE(2, 3, 4, 5), 1, PC_F32, test_device()), PC_SHAPE(0, 3, 1, 2)),
                  *bias = pc_full(PC_SHAPE(5, 1, 1), 2, PC_F32, test_device()), *g = pc_mul_scalar(x, 3);
        assert_ok(pc_require_grad(bias, true));
        begin();
        pc_tensor *y = pc_add(x, bias);
        assert_ok(pc_backward_with(y, g));
        pc_graph *graph = ended();
        says(graph, "2 nodes recorded");
        assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_max(pc_grad(bias))), 72, 0);
        pc_graph_free(graph);
    }
    assert_no_leak();
}

/* Casts of tensors that have only their shape in common with what is near are a list's, not a region's. */
static void casts_are_left_to_lists(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x[4], *narrow[4];
        for (int i = 0; i < 4; i++)
            x[i] = pc_full(PC_SHAPE(N), i + .5, PC_F32, test_device());
        begin();
        narrow[0] = pc_cast(x[0], PC_BF16);
        pc_tensor *y = pc_neg(x[3]);
        narrow[3] = pc_cast(y, PC_BF16);
        for (int i = 1; i < 3; i++)
            narrow[i] = pc_cast(x[i], PC_BF16);
        pc_graph *graph = ended();
        if (!plain())
            says(graph, "1 into regions, 2 into lists of casts");
        assert_ok(pc_graph_launch(graph, NULL));
        for (int i = 0; i < 4; i++)
            assert_close(pc_item(pc_max(narrow[i])), i < 3 ? i + .5 : -3.5, 0);
        pc_graph_free(graph);
    }
    assert_no_leak();
}

/* More results that stay than one call can have: the others make calls together, too. */
static void many_results_stay(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(N), .5, PC_F32, test_device()), *kept[9];
        begin();
        for (int i = 0; i < 9; i++)
            kept[i] = pc_add_scalar(x, i);
        pc_graph *graph = ended();
        if (!plain())
            says(graph, "9 nodes recorded, 3 run");
        assert_ok(pc_graph_launch(graph, NULL));
        for (int i = 0; i < 9; i++)
            assert_close(pc_item(pc_max(kept[i])), i + .5, 0);
        pc_graph_free(graph);
    }
    assert_no_leak();
}

/* All inputs that a region can have, and then its first value once more. */
static void with_all_inputs(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *in[6], *y = NULL;
        for (int i = 0; i < 6; i++)
            in[i] = pc_full(PC_SHAPE(N), i + 1, PC_F32, test_device());
        begin();
        PC_SCOPE {
            pc_tensor *first = pc_add(in[0], in[1]), *sum = first;
            for (int i = 2; i < 6; i++)
                sum = pc_add(sum, in[i]);
            y = pc_tensor_retain(pc_sub(sum, first));
        }
        pc_graph *graph = ended();
        if (!plain())
            says(graph, "= add, add, add, add, add, sub");
        assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_max(y)), 18, 0);
        assert_close(pc_item(pc_max(pc_neg(y))), -18, 0);
        pc_graph_free(graph);
        pc_tensor_free(y);
    }
    assert_no_leak();
}

/* What is copied over a tensor of the program's is the last step of what made it; but not where that reads the tensor
 * too. */
static void copies_end_regions(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(N), .5, PC_F32, test_device()),
                  *out = pc_full(PC_SHAPE(N), 2, PC_F16, test_device());
        begin();
        PC_SCOPE {
            assert_ok(pc_copy(out, pc_neg(pc_mul_scalar(x, 3))));
        }
        pc_graph *graph = ended();
        if (!plain())
            says(graph, "= mul 3, neg, cast");
        assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_max(out)), -1.5, 0);
        pc_graph_free(graph);
        begin();
        PC_SCOPE {
            assert_ok(pc_copy(x, pc_neg(pc_mul_scalar(pc_relu(pc_abs(x)), 3))));
        }
        graph = ended();
        if (!plain())
            says(graph, "5 nodes recorded, 2 run");
        for (int i = 0; i < 2; i++)
            assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_max(x)), -4.5, 0);
        pc_graph_free(graph);
    }
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twice_and_for_nobody),     cmocka_unit_test(sums_over_ones_are_one_call),
        cmocka_unit_test(not_what_has_changed),     cmocka_unit_test(chains_are_one_call),
        cmocka_unit_test(temporaries_share_memory), cmocka_unit_test(streams_share_memory),
        cmocka_unit_test(memory_for_who_asks),      cmocka_unit_test(other_chains_are_other_work),
        cmocka_unit_test(work_that_joins_nothing),  cmocka_unit_test(one_memory_under_two_names),
        cmocka_unit_test(text_outlives_streams),    cmocka_unit_test(numbers_are_parts_of_calls),
        cmocka_unit_test(numbers_can_be_updated),   cmocka_unit_test(with_their_gradients),
        cmocka_unit_test(sums_are_gradients),       cmocka_unit_test(casts_are_left_to_lists),
        cmocka_unit_test(many_results_stay),        cmocka_unit_test(copies_end_regions),
        cmocka_unit_test(with_all_inputs),
    };
    return cmocka_run_group_tests_name("plan.passes", tests, NULL, NULL);
}

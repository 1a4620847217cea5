/* What goes wrong with ops that the program registers: what their rules and kernels say is told with the op's name, and
 * what makes no sense is refused. */
#include "device.h"
#include "ops/registered.h"

#include <paracord/ladder.h>

static pc_status never(const pc_op_run *run)
{
    (void)run;
    return PC_OK;
}

static pc_status wrong_gradient(const pc_op_gradient *g)
{
    g->in_grad[0] = pc_ones(PC_SHAPE(7), PC_F32, g->device);
    return PC_OK;
}

static pc_status failing_gradient(const pc_op_gradient *g)
{
    g->in_grad[0] = pc_add(g->out_grad[0], pc_ones(PC_SHAPE(3), PC_F32, g->device)); /* NULL flows */
    return PC_OK;
}

static void gradient_rules_that_fail(void **state)
{
    (void)state;
    pc_op_spec spec = {.name = "test.wrong_gradient",
                       .inputs = 2,
                       .outputs = 1,
                       .attribute_bytes = sizeof(blend_attributes),
                       .gradient = wrong_gradient,
                       .cpu = blend_kernel,
                       .cuda = on_cuda("own_blend")};
    const pc_op *wrong = pc_op_register(&spec);
    spec.name = "test.failing_gradient";
    spec.gradient = failing_gradient;
    const pc_op *fails = pc_op_register(&spec);
    PC_SCOPE {
        pc_tensor *x = wave(PC_SHAPE(5), 1, PC_F32), *y, *in[] = {x, x};
        assert_ok(pc_require_grad(x, true));
        assert_ok(pc_op_call(wrong, in, 2, &(blend_attributes){1, 1}, &y));
        assert_fails(pc_backward(pc_sum(y)), PC_ERR_SHAPE, "test.wrong_gradient: its gradient rule made float32 [7]");
        assert_ok(pc_op_call(fails, in, 2, &(blend_attributes){1, 1}, &y));
        assert_fails(pc_backward(pc_sum(y)), PC_ERR_SHAPE, "test.failing_gradient: add");
    }
}

static pc_status broken(const pc_op_run *run)
{
    return *(const int *)run->attributes ? pc_fail(PC_ERR_RANGE, "no such luck") : PC_ERR_STATE;
}

static const pc_op *broken_op(void)
{
    const pc_op *op = pc_op_find("test.broken");
    if (!op)
        op = pc_op_register(&(pc_op_spec){.name = "test.broken",
                                          .inputs = 1,
                                          .outputs = 1,
                                          .attribute_bytes = sizeof(int),
                                          .cpu = broken,
                                          .cuda = broken});
    return op;
}

static pc_status break_now(int words)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(4), PC_F32, test_device()), *y = x;
        status = pc_op_call(broken_op(), &x, 1, &words, &y);
        assert_true(status == PC_OK || !y);
    }
    return status;
}

static void kernels_that_fail(void **state)
{
    (void)state;
    pc_stream *side = pc_stream(test_device()); /* so that nothing of other tests hears of it */
    PC_WITH_STREAM(side) {
        assert_fails(break_now(1) || pc_stream_synchronize(side), PC_ERR_RANGE, "test.broken: no such luck");
        assert_fails(break_now(0) || pc_stream_synchronize(side), PC_ERR_STATE,
                     "test.broken: its kernel returned 8 (state) and has not said why");
        if (test_device().type == PC_SIM) {
            assert_ok(break_now(1));
            assert_fails(pc_stream_synchronize(side), PC_ERR_RANGE, "test.broken, queued at register_wrong.c:");
        }
    }
    pc_stream_free(side);
}

static void what_failed_stays_so_where_it_is_read(void **state)
{
    (void)state;
    if (test_device().type != PC_SIM)
        skip(); /* elsewhere a kernel that fails makes nothing */
    pc_stream *side = pc_stream(test_device());
    PC_WITH_STREAM(side) {
        PC_SCOPE {
            pc_tensor *x = pc_ones(PC_SHAPE(768), PC_F32, test_device()), *y = NULL;
            assert_ok(pc_op_call(broken_op(), &x, 1, &(int){1}, &y));
            assert_fails(pc_stream_synchronize(side), PC_ERR_RANGE, "no such luck");
            assert_fails(pc_ladder_fma(y, 1), PC_ERR_RANGE, "no such luck");
            assert_ok(pc_ladder_climb(PC_LADDER_ADD, 0, x, x, y)); /* which writes all of it */
            assert_close(pc_item(pc_sum(y)), 2 * 768, 0);
        }
    }
    pc_stream_free(side);
}

/* The library registers some of its own in the same way, which leave names to the program. */
static void ops_of_the_library(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *counts = pc_zeros(PC_SHAPE(8, 8), PC_I32, test_device());
        assert_ok(pc_mandelbrot(counts, (pc_mandelbrot_options){0}));
        assert_null(pc_op_find("paracord.mandelbrot"));
        assert_non_null(pc_op_register(
            &(pc_op_spec){.name = "mandelbrot", .inputs = 1, .outputs = 1, .cpu = never, .cuda = never}));
        assert_fails(pc_op_register(&(pc_op_spec){
                         .name = "paracord.mandelbrot", .inputs = 1, .outputs = 1, .cpu = never, .cuda = never}),
                     PC_ERR_ARGUMENT, "there is an op paracord.mandelbrot already");
    }
}

static pc_status strange_shape(const pc_op_meta *in, const void *attributes, pc_op_meta *out)
{
    (void)in;
    out->shape = *(const pc_shape *)attributes;
    out->dtype = out->shape.ndim == 99 ? (pc_dtype)77 : PC_F32;
    return PC_OK;
}

static void calls_that_make_no_sense(void **state)
{
    (void)state;
    const pc_op *strange = pc_op_register(&(pc_op_spec){.name = "test.strange",
                                                        .inputs = 1,
                                                        .outputs = 1,
                                                        .attribute_bytes = sizeof(pc_shape),
                                                        .shape = strange_shape,
                                                        .cpu = never,
                                                        .cuda = never});
    PC_SCOPE {
        pc_tensor *x = wave(PC_SHAPE(5), 1, PC_F32), *y = wave(PC_SHAPE(6), 1, PC_F32), *out = x;
        assert_fails(blend(x, y, 1, 1), PC_ERR_SHAPE, "test.blend: both inputs must be alike");
        assert_fails(blend(pc_cast(x, PC_F16), pc_cast(x, PC_F16), 1, 1), PC_ERR_DTYPE, "test.blend: float16; it has");
        assert_fails(blend(x, NULL, 1, 1), PC_ERR_ARGUMENT, "test.blend: input 1 is NULL");
        assert_fails(blend(pc_add(x, y), x, 1, 1), PC_ERR_SHAPE, "add"); /* the first error is kept */
        assert_fails(pc_op_call(blend_op(), &x, 1, &(blend_attributes){0}, &out), PC_ERR_ARGUMENT,
                     "test.blend: 1 inputs; it takes 2");
        assert_null(out);
        pc_tensor *in[] = {x, x};
        assert_fails(pc_op_call(blend_op(), in, 2, NULL, &out), PC_ERR_ARGUMENT, "attributes is NULL");
        assert_fails(pc_op_call(blend_op(), in, 2, &(blend_attributes){0}, NULL), PC_ERR_ARGUMENT, "outputs is NULL");
        assert_fails(pc_op_call(NULL, in, 2, NULL, &out), PC_ERR_ARGUMENT, "op is NULL");
        assert_fails(pc_op_call(strange, in, 1, &(pc_shape){9, {1}}, &out), PC_ERR_SHAPE, "test.strange");
        assert_fails(pc_op_call(strange, in, 1, &(pc_shape){1, {-4}}, &out), PC_ERR_SHAPE, "test.strange");
        assert_fails(pc_op_call(strange, in, 1, &(pc_shape){99, {0}}, &out), PC_ERR_DTYPE, "the dtype 77");
    }
}

static void devices_without_a_kernel(void **state)
{
    (void)state;
    const bool gpu = test_device().type == PC_CUDA;
    pc_op_spec spec = {.name = "test.elsewhere", .inputs = 1, .outputs = 1};
    *(gpu ? &spec.cpu : &spec.cuda) = never;
    const pc_op *op = pc_op_register(&spec);
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(4), PC_F16, test_device()), *y;
        char words[80];
        snprintf(words, sizeof words, "test.elsewhere of float16 has no kernel on %s", test_device_name());
        assert_fails(pc_op_call(op, &x, 1, NULL, &y), PC_ERR_UNSUPPORTED, words);
        if (test_device().type != PC_CPU) {
            pc_tensor *both[] = {wave(PC_SHAPE(4), 1, PC_F32), pc_ones(PC_SHAPE(4), PC_F32, PC_DEVICE_CPU)};
            assert_fails(pc_op_call(blend_op(), both, 2, &(blend_attributes){0}, &y), PC_ERR_DEVICE,
                         "test.blend: the inputs are on");
        }
    }
}

static void refused(pc_op_spec spec, const char *words)
{
    assert_fails(pc_op_register(&spec), PC_ERR_ARGUMENT, words);
}

static void specs_that_make_no_sense(void **state)
{
    (void)state;
    assert_non_null(blend_op());
    const pc_op_spec fine = {.name = "test.fine", .inputs = 1, .outputs = 1, .cpu = never};
    pc_op_spec s = fine;
#define REFUSED(member, value, words) (s = fine, s.member = (value), refused(s, (words)))
    REFUSED(name, NULL, "name is NULL");
    REFUSED(name, "", "is no name");
    REFUSED(name, "two words", "\"two words\" is no name");
    REFUSED(name, "a.name.of.forty-eight.letters.is.longer.than.any-", "is no name");
    REFUSED(name, "test.blend", "there is an op test.blend already");
    REFUSED(name, "softmax", "there is an op softmax already");
    REFUSED(inputs, 0, "test.fine: 0 inputs; an op has 1 to 8");
    REFUSED(inputs, 9, "test.fine: 9 inputs");
    REFUSED(outputs, 4, "test.fine: 4 outputs; an op has 1 to 3");
    REFUSED(outputs, 0, "test.fine: 0 outputs");
    REFUSED(attribute_bytes, SIZE_MAX, "bytes of attributes; they are 4096 at most");
    REFUSED(writes, (pc_op_writes)9, "writes is 9");
    REFUSED(saves, PC_OP_SAVE_INPUT(1), "saves names an input or output");
    REFUSED(saves, PC_OP_SAVE_OUTPUT(1), "saves names an input or output");
    REFUSED(cpu, NULL, "it has no kernel");
    s = fine, s.writes = PC_OP_UPDATES, s.gradient = blend_gradient;
    refused(s, "what writes in place has no gradient");
    assert_null(pc_op_find("test.fine"));
    assert_fails(pc_op_register(NULL), PC_ERR_ARGUMENT, "spec is NULL");
}

/* The last test: no room is left after it. */
static void more_than_there_is_room_for(void **state)
{
    (void)state;
    const pc_op *op = blend_op();
    for (int i = 0; op && i <= PC_OPS_MAX; i++) {
        char name[40];
        snprintf(name, sizeof name, "test.many.%d", i);
        op = pc_op_register(&(pc_op_spec){.name = name, .inputs = 1, .outputs = 1, .cpu = never});
        assert_true(!op || pc_op_find(name) == op);
    }
    assert_null(op);
    assert_fails(pc_op_register(&(pc_op_spec){.name = "test.last", .inputs = 1, .outputs = 1, .cpu = never}),
                 PC_ERR_UNSUPPORTED, "test.last: a process has 256 ops of its own at most");
    assert_non_null(pc_op_find("test.blend"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(gradient_rules_that_fail, nothing_left),
        cmocka_unit_test_teardown(kernels_that_fail, nothing_left),
        cmocka_unit_test_teardown(what_failed_stays_so_where_it_is_read, nothing_left),
        cmocka_unit_test_teardown(ops_of_the_library, nothing_left),
        cmocka_unit_test_teardown(calls_that_make_no_sense, nothing_left),
        cmocka_unit_test_teardown(devices_without_a_kernel, nothing_left),
        cmocka_unit_test_teardown(specs_that_make_no_sense, nothing_left),
        cmocka_unit_test_teardown(more_than_there_is_room_for, nothing_left),
    };
    assert_ok(pc_device_set_current(test_device()));
    return cmocka_run_group_tests_name("ops.register_wrong", tests, NULL, NULL);
}

/* The host side of convolutions on cuda, where the GPU and cuDNN are played by loops (conv_play.h): whoever does a
 * product, its result is the CPU's. */
#ifdef PC_TEST_CUDA
#include "cuda/conv/cudnn.h"
#endif
#if defined(PC_TEST_CUDA) && PC__HAVE_CUDNN

#include "conv_calls.h"

static const layer many[] = {
    {1, 3, 6, 5, 4, 3, 3, 1, 1, 1, PC_ACTIVATION_RELU, true}, {1, 3, 6, 5, 4, 3, 3, 1, 1, 1, PC_ACTIVATION_RELU, false},
    {1, 3, 6, 5, 4, 3, 3, 1, 1, 1, PC_ACTIVATION_NONE, true}, {1, 3, 6, 5, 4, 3, 3, 1, 1, 1, PC_ACTIVATION_NONE, false},
    {2, 5, 4, 4, 3, 1, 1, 1, 0, 1, PC_ACTIVATION_RELU, true}, {2, 1, 7, 6, 3, 3, 2, 2, 1, 1, PC_ACTIVATION_RELU, true},
    {2, 4, 7, 6, 1, 2, 3, 1, 0, 1, PC_ACTIVATION_RELU, true},
};

static void whoever_does_it(void **state)
{
    (void)state;
    for (int i = 0; i < PC__COUNT(many); i++)
        for (int kind = 0; kind < 4; kind++) { /* each shape is planned once */
            play_again();
            (void)pc_choice_set(kind ? PC_CHOICE_CUDNN : PC_CHOICE_OWN);
            layer l = many[i];
            l.n = 1 + 4 * i + kind;
            play.bare = kind == 2;
            play.workspace = kind == 3 ? 0 : 1000;
            is_right(&l);
            by(kind == 0, kind > 0);
            assert_int_equal(play.planned, kind ? 3 : 0);
            is_right(&l);
            assert_int_equal(play.planned, kind ? 3 : 0); /* no more */
        }
}

/* What is pooled behind cuDNN's product is so in the same call, and its gradient goes back in one pass. */
static void pooled(void **state)
{
    static const layer layers[] = {
        {1, 3, 6, 5, 4, 3, 3, 1, 1, 2, PC_ACTIVATION_RELU, true},
        {1, 3, 6, 5, 3, 3, 3, 1, 1, 2, PC_ACTIVATION_RELU, false},
        {1, 3, 7, 7, 4, 3, 3, 1, 1, 3, PC_ACTIVATION_TANH, true},
        {2, 5, 4, 4, 3, 1, 1, 1, 0, 2, PC_ACTIVATION_NONE, true},
        {2, 1, 9, 10, 3, 3, 2, 2, 1, 2, PC_ACTIVATION_RELU, true},
    };
    (void)state;
    for (int i = 0; i < PC__COUNT(layers); i++)
        for (int kind = 0; kind < 2; kind++) {
            play_again();
            (void)pc_choice_set(PC_CHOICE_CUDNN);
            play.bare = kind;
            layer l = layers[i];
            l.n = 400 + 2 * i + kind;
            is_right(&l);
            by(0, 1);
            assert_int_equal(play.pooled, 1);
            assert_int_equal(play.unpooled, 1); /* for both gradients */
        }
}

/* Weights that lie channels last are cuDNN's as they are; for kernels of ours they are turned. */
static void weights_lie_channels_last(void **state)
{
    (void)state;
    for (int i = 0; i < PC__COUNT(many); i++)
        for (int kind = 0; kind < 4; kind++) {
            const bool fours = kind == 2;
            play_again();
            (void)pc_choice_set(kind ? PC_CHOICE_CUDNN : PC_CHOICE_OWN);
            (void)pc_matmul_precision_set(fours ? PC_PRECISION_TF32 : PC_PRECISION_F32);
            play.workspace = kind == 3 ? 0 : 1000;
            layer l = many[i];
            l.n = 700 + 4 * i + kind;
            weights_last = true;
            is_right(&l);
            weights_last = false;
            by(kind == 0, kind > 0);
            if (kind && !fours)
                assert_int_equal(play.turned, 0);
        }
    (void)pc_matmul_precision_set(PC_PRECISION_F32);
}

/* One product is cuDNN's and the others are ours, and gradients that nobody wants are left alone. */
static void weights_that_are_turned_for_some(void **state)
{
    (void)state;
    for (int needs = 1; needs < 8; needs++)
        for (int own = 0; own < 2; own++)
            PC_SCOPE {
                layer l = plain(800 + 2 * needs + own);
                play_again();
                (void)pc_choice_set(own ? PC_CHOICE_OWN : PC_CHOICE_CUDNN);
                pc_tensor *out[3];
                const known k = know(&l);
                weights_last = true;
                assert_ok(backward(&l, &k, needs, out));
                weights_last = false;
                if (needs & 1)
                    near(out[0], k.dx);
                if (needs & 2)
                    near(out[1], k.dweight);
                else
                    assert_close(pc_item(pc_max(pc_mul(out[1], out[1]))), 0, 0);
                if (needs & 4)
                    near(out[2], k.dbias);
            }
}

/* TF32's matrix units take channels in fours: others are padded, and come back. */
static void channels_are_padded(void **state)
{
    (void)state;
    (void)pc_matmul_precision_set(PC_PRECISION_TF32);
    (void)pc_choice_set(PC_CHOICE_CUDNN);
    for (int i = 0; i < PC__COUNT(many); i++)
        for (int bare = 0; bare < 2; bare++) {
            layer l = many[i];
            const bool whole = l.c % 4 == 0 && l.o % 4 == 0;
            play_again();
            play.bare = bare;
            l.n = 20 + 2 * i + bare;
            is_right(&l);
            by(0, 1);
            assert_int_equal(play.format[PC__CONV_AS_IS], whole ? 3 : 0);
            assert_int_equal(play.format[PC__CONV_PADDED], whole ? 0 : 3);
            assert_int_equal(play.turned > 0, !whole);
        }
    (void)pc_matmul_precision_set(PC_PRECISION_F32);
}

/* Where measuring says so, pictures are turned to planes for cuDNN, and back. */
static void planes(void **state)
{
    (void)state;
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME"); /* nowhere to remember it */
    (void)pc_choice_set(PC_CHOICE_MEASURED);
    for (int i = 0; i < PC__COUNT(many); i++)
        for (int bare = 0; bare < 2; bare++) {
            layer l = many[i];
            play_again();
            play.bare = bare;
            play.best = PC__CONV_PLANS + 1;
            l.n = 40 + 2 * i + bare;
            is_right(&l);
            by(0, 1);
            assert_int_equal(play.format[PC__CONV_PLANES], 3);
        }
}

/* A stride whose places are channels for cuDNN: windows that are whole steps and not, padding that is not, both strides. */
static void strides_are_folded(void **state)
{
    static const layer layers[] = {{1, 3, 9, 10, 4, 7, 7, 2, 3, 1, PC_ACTIVATION_RELU, true},
                                   {2, 3, 8, 8, 5, 4, 4, 4, 0, 1, PC_ACTIVATION_NONE, true},
                                   {1, 1, 11, 7, 4, 3, 3, 2, 1, 1, PC_ACTIVATION_NONE, false},
                                   {2, 2, 7, 12, 3, 5, 3, 3, 2, 1, PC_ACTIVATION_RELU, true}};
    (void)state;
    (void)pc_matmul_precision_set(PC_PRECISION_TF32);
    (void)pc_choice_set(PC_CHOICE_MEASURED);
    for (int i = 0; i < PC__COUNT(layers); i++)
        for (int last = 0; last < 2; last++)
            PC_SCOPE {
                layer l = layers[i];
                pc_tensor *y, *out[3];
                play_again();
                play.best = 3 * PC__CONV_PLANS + 1;
                l.n = 60 + 2 * i + last;
                const known k = know(&l);
                weights_last = last;
                assert_ok(forward(&l, &k, &y));
                assert_ok(backward(&l, &k, l.bias ? 6 : 2, out));
                weights_last = false;
                near(y, k.y);
                near(out[1], k.dweight);
                if (l.bias)
                    near(out[2], k.dbias);
                assert_int_equal(play.format[PC__CONV_FOLDED], 2);
            }
    (void)pc_matmul_precision_set(PC_PRECISION_F32);
}

static void only_what_is_wanted(void **state)
{
    (void)state;
    const layer l = plain(100);
    (void)pc_choice_set(PC_CHOICE_CUDNN);
    for (int needs = 1; needs < 8; needs++)
        PC_SCOPE {
            pc_tensor *out[3];
            const known k = know(&l);
            play_again();
            face.note = NULL; /* as where work is queued */
            assert_ok(backward(&l, &k, needs, out));
            static const char *const notes[8] = {NULL,
                                                 "the input's gradient by cuDNN",
                                                 "the weights' gradient by cuDNN",
                                                 "both gradients by cuDNN",
                                                 "the weights' gradient by tile",
                                                 "the input's gradient by cuDNN, the weights' by tile",
                                                 "the weights' gradient by cuDNN",
                                                 "both gradients by cuDNN"};
            assert_non_null(face.note);
            assert_string_equal(face.note, notes[needs]);
            near(out[0], needs & 1 ? k.dx : pc_mul_scalar(k.dx, 0));
            near(out[1], needs & 2 ? k.dweight : pc_mul_scalar(k.dweight, 0));
            near(out[2], needs & 4 ? k.dbias : pc_mul_scalar(k.dbias, 0));
            assert_int_equal(play.cudnn[PC__CONV_INPUT], needs & 1);
            assert_int_equal(play.cudnn[PC__CONV_WEIGHTS], needs >> 1 & 1);
            assert_int_equal(play.own[PC__CONV_WEIGHTS], needs >> 1 == 2); /* a bias's gradient alone */
        }
}

static void what_cudnn_cannot(void **state)
{
    (void)state;
    play_again();
    (void)pc_choice_set(PC_CHOICE_CUDNN);
    layer l = plain(200);
    l.activation = PC_ACTIVATION_TANH;
    PC_SCOPE {
        pc_tensor *y;
        const known k = know(&l);
        assert_ok(forward(&l, &k, &y));
    }
    l.activation = PC_ACTIVATION_RELU;
    face.scratch_level = 1; /* inside a conversion */
    is_right(&l);
    face.scratch_level = 0;
    PC_SCOPE {
        pc_tensor *y;
        known k = know(&l);
        pc_tensor *more = pc_zeros(PC_SHAPE(l.o + 1), PC_F32, PC_DEVICE_CPU);
        k.bias = pc_slice(more, 0, 1, l.o + 1, 1); /* not on 16 bytes */
        assert_ok(forward(&l, &k, &y));
    }
    assert_int_equal(play.planned, 0);
    assert_int_equal(play.own[PC__CONV_FORWARD], 3);
}

static void no_way_for_a_shape(void **state)
{
    (void)state;
    play_again();
    (void)pc_choice_set(PC_CHOICE_CUDNN);
    play.ways = 0;
    const layer l = plain(300);
    is_right(&l);
    by(1, 0);
    assert_int_equal(play.planned, 3);
    play.ways = PC__CONV_WAYS;
    is_right(&l); /* it is not asked again */
    by(2, 0);
    assert_int_equal(play.planned, 3);
}

static void refused_when_run(void **state)
{
    (void)state;
    play_again();
    (void)pc_choice_set(PC_CHOICE_CUDNN);
    play.status = CUDNN_STATUS_NOT_SUPPORTED;
    const layer l = plain(400);
    is_right(&l);
    by(1, 0);
    play.status = CUDNN_STATUS_SUCCESS;
    is_right(&l);
    by(2, 0);
}

static void failed_when_run(void **state)
{
    (void)state;
    play_again();
    (void)pc_choice_set(PC_CHOICE_CUDNN);
    play.status = CUDNN_STATUS_EXECUTION_FAILED;
    const layer l = plain(500);
    PC_SCOPE {
        pc_tensor *y;
        const known k = know(&l);
        assert_fails(forward(&l, &k, &y) == PC_OK, PC_ERR_BACKEND, "PARACORD_CHOICE=own does without");
    }
    play.status = CUDNN_STATUS_SUCCESS;
    is_right(&l);
    by(0, 1);
}

static void too_little_memory(void **state)
{
    (void)state;
    play_again();
    (void)pc_choice_set(PC_CHOICE_CUDNN);
    play.memory = 500; /* enough for our kernels */
    const layer l = plain(600);
    is_right(&l);
    by(1, 0);
    assert_false(pc_failed());
    play.memory = SIZE_MAX;
    is_right(&l);
    by(1, 1);
    play.memory = 10;
    PC_SCOPE {
        pc_tensor *y;
        const known k = know(&l);
        assert_fails(forward(&l, &k, &y) == PC_OK, PC_ERR_MEMORY, "too little memory");
    }
}

/* The table has an end. What comes after it is ours, and right. */
static void more_shapes_than_the_table_has(void **state)
{
    (void)state;
    play_again();
    (void)pc_choice_set(PC_CHOICE_CUDNN);
    for (int w = 3; w < 1300; w++)
        PC_SCOPE {
            const layer l = {1, 1, 1, w, 1, 1, 3, 1, 0, 1, PC_ACTIVATION_NONE, false};
            pc_tensor *y;
            known k = {.x = as_channels_last(pc_ones(PC_SHAPE(1, 1, 1, w), PC_F32, PC_DEVICE_CPU)),
                       .weight = pc_ones(PC_SHAPE(1, 1, 1, 3), PC_F32, PC_DEVICE_CPU),
                       .y = pc_zeros(PC_SHAPE(1, 1, 1, w - 2), PC_F32, PC_DEVICE_CPU),
                       .argmax = pc_zeros(PC_SHAPE(0), PC_U8, PC_DEVICE_CPU)};
            assert_ok(forward(&l, &k, &y));
            assert_close(pc_item(pc_sum(y)), 3.0 * (w - 2), 1e-3);
        }
    assert_true(play.cudnn[PC__CONV_FORWARD] > 400);
    assert_true(play.own[PC__CONV_FORWARD] > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_does_it),
        cmocka_unit_test(weights_lie_channels_last),
        cmocka_unit_test(weights_that_are_turned_for_some),
        cmocka_unit_test(pooled),
        cmocka_unit_test(channels_are_padded),
        cmocka_unit_test(planes),
        cmocka_unit_test(strides_are_folded),
        cmocka_unit_test(only_what_is_wanted),
        cmocka_unit_test(what_cudnn_cannot),
        cmocka_unit_test(no_way_for_a_shape),
        cmocka_unit_test(refused_when_run),
        cmocka_unit_test(failed_when_run),
        cmocka_unit_test(too_little_memory),
        cmocka_unit_test(more_shapes_than_the_table_has),
    };
    return cmocka_run_group_tests_name("device.conv_host", tests, NULL, NULL);
}

#else
#include "no_plug_in.h"
#endif

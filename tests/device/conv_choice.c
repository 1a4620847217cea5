/* Who does a convolution: the rule, the names that measurements have, and the thread's setting. */
#include "support.h"

#include "cuda/conv/choice.h"

#include <paracord/device.h>
#include <paracord/tensor.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static pc__conv_shape plain(int direction, pc_dtype dtype, bool tf32, int n, int side, int c, int o, int kernel)
{
    pc__conv_shape s;
    memset(&s, 0, sizeof s);
    s.n = n, s.h = s.w = s.oh = s.ow = side, s.c = c, s.o = o, s.kh = s.kw = kernel, s.sh = s.sw = 1;
    s.ph = s.pw = kernel / 2, s.direction = direction, s.dtype = dtype, s.tf32 = tf32;
    return s;
}

/* --- the rule --- */

static bool stays(pc_dtype dtype, bool tf32, int side, int c, int o)
{
    pc__conv_shape s = plain(PC__CONV_FORWARD, dtype, tf32, 13, side, c, o, 3);
    s.planes = true;
    return pc__conv_keeps_planes(&s);
}

static void planes_that_stay(void **state)
{
    (void)state;
    assert_true(stays(PC_F32, false, 64, 2, 310));
    assert_false(stays(PC_F32, false, 64, 128, 310)); /* long sums */
    assert_false(stays(PC_F32, false, 64, 2, 8));
    assert_false(stays(PC_F32, true, 64, 2, 310));
    assert_false(stays(PC_BF16, false, 64, 2, 310));
}

static bool rule(int direction, pc_dtype dtype, bool tf32, int n, int side, int c, int o, int kernel)
{
    const pc__conv_shape s = plain(direction, dtype, tf32, n, side, c, o, kernel);
    return pc__conv_rule(&s, true) >= 0;
}

static int format_of(int direction, pc_dtype dtype, bool tf32, bool native, int c, int o)
{
    const pc__conv_shape s = plain(direction, dtype, tf32, 32, 56, c, o, 3);
    return pc__conv_rule(&s, native);
}

static void in_16_bits(int direction, pc_dtype dtype)
{
    assert_true(rule(direction, dtype, false, 32, 56, 128, 128, 3));
    assert_true(rule(direction, dtype, false, 32, 56, 64, 256, 1));
    assert_true(rule(direction, dtype, false, 4, 56, 64, 64, 3));
    assert_true(rule(direction, dtype, false, 32, 28, 32, 64, 5));
    assert_int_equal(rule(direction, dtype, false, 4, 16, 8, 16, 3), direction != PC__CONV_FORWARD);
    assert_false(rule(direction, dtype, false, 32, 62, 3, 32, 3) && direction != PC__CONV_INPUT);
    assert_int_equal(format_of(direction, dtype, false, true, 128, 128), PC__CONV_AS_IS);
    assert_int_equal(format_of(direction, dtype, false, false, 12, 24), PC__CONV_PADDED); /* ours would convert */
    assert_int_equal(format_of(direction, dtype, false, true, 100, 136), PC__CONV_PADDED);
    const pc__conv_shape flat = plain(direction, dtype, false, 32, 32, 57, 57, 1); /* a product, whatever its rows */
    assert_int_equal(pc__conv_rule(&flat, true), PC__CONV_AS_IS);
    assert_false(rule(direction, dtype, false, 26, 56, 112, 8, 5) && direction == PC__CONV_INPUT);
}

static void in_tf32(int direction)
{
    assert_true(rule(direction, PC_F32, true, 32, 56, 128, 128, 3));
    assert_int_equal(rule(direction, PC_F32, true, 512, 62, 3, 32, 3), direction == PC__CONV_INPUT);
    assert_true(rule(direction, PC_F32, true, 32, 112, 3, 64, 7));   /* a first layer */
    assert_false(rule(direction, PC_F32, true, 224, 16, 12, 12, 3)); /* too little to do for matrix units */
    assert_false(rule(direction, PC_F32, true, 7, 32, 22, 16, 7) && direction != PC__CONV_WEIGHTS);
    assert_int_equal(format_of(direction, PC_F32, true, true, 64, 66), PC__CONV_PADDED);
    assert_int_equal(format_of(direction, PC_F32, true, true, 64, 68), PC__CONV_AS_IS);
    assert_int_equal(format_of(direction, PC_F32, true, true, 100, 10) == PC__CONV_PADDED, direction != PC__CONV_INPUT);
}

static void in_float32(int direction)
{
    assert_int_equal(rule(direction, PC_F32, false, 32, 112, 3, 64, 7), direction == PC__CONV_INPUT);
    assert_false(rule(direction, PC_F32, false, 128, 56, 64, 64, 3));
    assert_int_equal(rule(direction, PC_F32, false, 128, 56, 128, 128, 3), direction == PC__CONV_WEIGHTS);
    const pc__conv_shape few = plain(direction, PC_F32, false, 16, 7, 128, 128, 3);
    assert_int_equal(pc__conv_rule(&few, true), direction == PC__CONV_WEIGHTS ? (int)PC__CONV_AS_IS : -1);
    const pc__conv_shape tiny = plain(direction, PC_F32, false, 2, 8, 64, 64, 3);
    assert_int_equal(pc__conv_rule(&tiny, true), direction == PC__CONV_WEIGHTS ? (int)PC__CONV_AS_IS : -1);
    assert_int_equal(rule(direction, PC_F32, false, 16, 34, 68, 68, 7), false); /* large kernels */
    assert_int_equal(rule(direction, PC_F32, false, 24, 60, 64, 64, 5), false);
}

static void the_rule_follows_what_was_measured(void **state)
{
    (void)state;
    for (int direction = 0; direction < PC__CONV_DIRECTIONS; direction++) {
        in_16_bits(direction, PC_F16);
        in_16_bits(direction, PC_BF16);
        in_tf32(direction);
        in_float32(direction);
        assert_false(rule(direction, PC_F64, false, 32, 56, 128, 128, 3));
    }
}

/* A layer that cuDNN does a little faster keeps its pooling on the way; without kernels of ours there is no such way. */
static void small_layers_stay_whole(void **state)
{
    (void)state;
    const pc__conv_shape small = plain(PC__CONV_FORWARD, PC_BF16, false, 32, 29, 32, 64, 3),
                         large = plain(PC__CONV_FORWARD, PC_BF16, false, 32, 29, 64, 64, 3);
    assert_true(pc__conv_rule(&small, true) >= 0);
    assert_false(pc__conv_is_worth_more_calls(&small, true));
    assert_true(pc__conv_is_worth_more_calls(&small, false));
    assert_true(pc__conv_is_worth_more_calls(&large, true));
}

/* Few channels to few are ours in every product, as long as there are kernels for their dtype. */
static void few_channels(void **state)
{
    (void)state;
    for (int direction = 0; direction < PC__CONV_DIRECTIONS; direction++)
        for (int kind = 0; kind < 4; kind++) {
            const pc_dtype dtype = kind == 0 ? PC_F16 : kind == 1 ? PC_BF16 : PC_F32;
            const bool tf32 = kind == 3;
            assert_false(rule(direction, dtype, tf32, 160, 144, 4, 4, 5));
            assert_false(rule(direction, dtype, tf32, 160, 144, 1, 4, 5));
            assert_false(rule(direction, dtype, tf32, 64, 112, 3, 8, 3));
            const pc__conv_shape s = plain(direction, dtype, tf32, 160, 144, 4, 4, 5);
            assert_true(dtype == PC_F32 || pc__conv_rule(&s, false) >= 0);
        }
    const pc__conv_shape few = plain(PC__CONV_FORWARD, PC_BF16, false, 160, 144, 4, 8, 5);
    assert_true(pc__conv_is_few(&few));
    pc__conv_shape s = few;
    s.c = s.o = 8; /* matrix units take them as they are */
    s.direction = PC__CONV_WEIGHTS, s.kh = s.kw = 3;
    assert_false(pc__conv_is_few(&s));
    s.dtype = PC_F32;
    assert_true(pc__conv_is_few(&s));
    s.c = 9;
    assert_false(pc__conv_is_few(&s));
    s = few, s.o = 10, s.kh = s.kw = 3; /* of these the gradient of the weights alone */
    assert_false(pc__conv_is_few(&s));
    s.direction = PC__CONV_WEIGHTS;
    assert_true(pc__conv_is_few(&s));
    s.o = 13;
    assert_false(pc__conv_is_few(&s));
    s = few, s.n = 2; /* too few places for all multiprocessors */
    assert_false(pc__conv_is_few(&s));
    s = few, s.kh = s.kw = 11; /* so much work that cuDNN wins */
    assert_false(pc__conv_is_few(&s));
    s = few, s.dtype = PC_F64;
    assert_false(pc__conv_is_few(&s));
}

/* A stride becomes channels where matrix units gain by it: patches, and the weights of a first layer with much to do. */
static void first_layers(void **state)
{
    (void)state;
    pc__conv_shape stem = plain(PC__CONV_WEIGHTS, PC_BF16, false, 64, 224, 3, 64, 7), patches = stem;
    stem.sh = stem.sw = 2, stem.ph = stem.pw = 3, stem.oh = stem.ow = 112;
    assert_int_equal(pc__conv_rule(&stem, true), PC__CONV_FOLDED);
    stem.format = PC__CONV_FOLDED;
    const pc__conv_shape made = pc__conv_in_format(&stem);
    assert_int_equal(made.kh, 4);
    assert_int_equal(made.h, 115);
    assert_int_equal(made.c, 16);
    assert_int_equal(made.sh + made.ph, 1);
    stem.direction = PC__CONV_FORWARD;
    assert_int_equal(pc__conv_rule(&stem, true), -1);
    stem.direction = PC__CONV_INPUT;
    assert_false(pc__conv_can_fold(&stem));
    patches.kh = patches.kw = patches.sh = patches.sw = 16, patches.oh = patches.ow = 14;
    for (patches.direction = PC__CONV_FORWARD; patches.direction < PC__CONV_DIRECTIONS; patches.direction++)
        assert_int_equal(pc__conv_rule(&patches, true) == PC__CONV_FOLDED, patches.direction != PC__CONV_INPUT);
    patches.format = PC__CONV_FOLDED;
    assert_int_equal(pc__conv_in_format(&patches).c, 768);
    assert_int_equal(pc__conv_in_format(&patches).kw, 1);
    patches.dtype = PC_F32;
    assert_false(pc__conv_can_fold(&patches));
}

/* Channels are padded to 16 bytes, in the shape that cuDNN sees and nowhere else. */
static void formats(void **state)
{
    (void)state;
    pc__conv_shape s = plain(PC__CONV_FORWARD, PC_BF16, false, 2, 9, 3, 20, 3);
    assert_int_equal(pc__conv_usual_format(&s), PC__CONV_PADDED);
    assert_int_equal(pc__conv_in_format(&s).c, 3);
    s.format = PC__CONV_PADDED;
    assert_int_equal(pc__conv_in_format(&s).c, 8);
    assert_int_equal(pc__conv_in_format(&s).o, 24);
    s.dtype = PC_F32;
    assert_int_equal(pc__conv_usual_format(&s), PC__CONV_AS_IS); /* no matrix units in float32 */
    assert_int_equal(pc__conv_in_format(&s).c, 3);
    s.tf32 = true;
    assert_int_equal(pc__conv_usual_format(&s), PC__CONV_PADDED);
    assert_int_equal(pc__conv_in_format(&s).c, 4);
    assert_int_equal(pc__conv_in_format(&s).o, 20);
}

/* Every member makes another name, so that no measurement is taken for another's. */
static void names_tell_shapes_apart(void **state)
{
    (void)state;
    static char texts[32][PC__CHOICE_TEXT];
    int count = 0;
    const pc__conv_shape s = plain(PC__CONV_INPUT, PC_F32, false, 32, 56, 128, 64, 3);
    pc__conv_text(texts[count++], "NVIDIA H200", 132, 91900, &s);
    assert_string_equal(texts[0], "NVIDIA H200/132 cudnn 91900 input float32 x 32 128 56 56 w 64 3 3 stride 1 1 "
                                  "padding 1 1");
    pc__conv_text(texts[count++], "NVIDIA H100", 132, 91900, &s);
    pc__conv_text(texts[count++], "NVIDIA H200", 131, 91900, &s);
    pc__conv_text(texts[count++], "NVIDIA H200", 132, 91901, &s);
    pc__conv_shape other = s;
    other.n = 33;
    pc__conv_text(texts[count++], "NVIDIA H200", 132, 91900, &other);
    int32_t pc__conv_shape_members[] = {
        offsetof(pc__conv_shape, h),    offsetof(pc__conv_shape, w),     offsetof(pc__conv_shape, c),
        offsetof(pc__conv_shape, o),    offsetof(pc__conv_shape, kh),    offsetof(pc__conv_shape, kw),
        offsetof(pc__conv_shape, sh),   offsetof(pc__conv_shape, sw),    offsetof(pc__conv_shape, ph),
        offsetof(pc__conv_shape, pw),   offsetof(pc__conv_shape, tf32),  offsetof(pc__conv_shape, relu),
        offsetof(pc__conv_shape, bias), offsetof(pc__conv_shape, planes)};
    for (size_t i = 0; i < sizeof pc__conv_shape_members / sizeof *pc__conv_shape_members; i++) {
        other = s;
        ++*(int32_t *)(void *)((char *)&other + pc__conv_shape_members[i]);
        pc__conv_text(texts[count++], "NVIDIA H200", 132, 91900, &other);
    }
    for (int direction = PC__CONV_FORWARD; direction <= PC__CONV_WEIGHTS; direction += 2) {
        other = s, other.direction = direction;
        pc__conv_text(texts[count++], "NVIDIA H200", 132, 91900, &other);
    }
    for (pc_dtype dtype = PC_F16; dtype <= PC_BF16; dtype++) {
        other = s, other.dtype = dtype;
        pc__conv_text(texts[count++], "NVIDIA H200", 132, 91900, &other);
    }
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(texts[i], texts[k]);
}

/* The longest name fits, and no name makes two lines of one. */
static void any_name_is_one_row(void **state)
{
    (void)state;
    char gpu[256], text[PC__CHOICE_TEXT];
    memset(gpu, 'G', sizeof gpu - 1);
    gpu[sizeof gpu - 1] = 0;
    memcpy(gpu, "a\nb=\t", 5);
    pc__conv_shape s;
    memset(&s, 0x7f, sizeof s);
    s.direction = PC__CONV_WEIGHTS, s.dtype = PC_BF16, s.bias = s.relu = s.tf32 = 1;
    pc__conv_text(text, gpu, INT_MAX, SIZE_MAX, &s);
    assert_true(strlen(text) < PC__CHOICE_TEXT - 1);
    assert_non_null(strstr(text, " bias relu"));
    assert_null(strpbrk(text, "\n=\t"));
}

/* --- the setting --- */

static void *in_a_thread(void *context)
{
    (void)context;
    return (void *)(uintptr_t)(pc_choice_get() == PC_CHOICE_RULE && pc_choice_set(PC_CHOICE_CUDNN) == PC_CHOICE_RULE);
}

static void threads_choose_for_themselves(void **state)
{
    (void)state;
    pthread_t thread;
    void *fine = NULL;
    assert_int_equal(pc_choice_get(), PC_CHOICE_RULE);
    assert_int_equal(pc_choice_set(PC_CHOICE_MEASURED), PC_CHOICE_RULE);
    assert_int_equal(pc_choice_set(PC_CHOICE_OWN), PC_CHOICE_MEASURED);
    assert_int_equal(pthread_create(&thread, NULL, in_a_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, &fine), 0);
    assert_non_null(fine);
    assert_int_equal(pc_choice_set((pc_choice)77), PC_CHOICE_OWN); /* no such choice: the rule */
    assert_int_equal(pc_choice_set((pc_choice)-1), PC_CHOICE_RULE);
    assert_int_equal(pc_choice_get(), PC_CHOICE_RULE);
}

/* The environment is asked once, so each case is this program again. */
static int said_to_a_child(const char *said)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("PARACORD_CHOICE", said, 1);
        execl("/proc/self/exe", "test.device.conv_choice", "ask", (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void the_environment_is_where_threads_start(void **state)
{
    (void)state;
    assert_int_equal(said_to_a_child("own"), PC_CHOICE_OWN);
    assert_int_equal(said_to_a_child("rule"), PC_CHOICE_RULE);
    assert_int_equal(said_to_a_child("measured"), PC_CHOICE_MEASURED);
    assert_int_equal(said_to_a_child("cudnn"), PC_CHOICE_CUDNN);
    assert_int_equal(said_to_a_child(""), PC_CHOICE_RULE);
    assert_int_equal(said_to_a_child("faster"), PC_CHOICE_RULE);
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "ask"))
        return (int)pc_choice_get();
    unsetenv("PARACORD_CHOICE");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rule_follows_what_was_measured),
        cmocka_unit_test(formats),
        cmocka_unit_test(planes_that_stay),
        cmocka_unit_test(small_layers_stay_whole),
        cmocka_unit_test(few_channels),
        cmocka_unit_test(first_layers),
        cmocka_unit_test(names_tell_shapes_apart),
        cmocka_unit_test(any_name_is_one_row),
        cmocka_unit_test(threads_choose_for_themselves),
        cmocka_unit_test(the_environment_is_where_threads_start),
    };
    return cmocka_run_group_tests_name("device.conv_choice", tests, NULL, NULL);
}

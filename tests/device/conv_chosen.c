/* Who does a convolution on cuda is as it was chosen, with the GPU and cuDNN played by loops (conv_play.h). */
#ifdef PC_TEST_CUDA
#include "cuda/conv/cudnn.h"
#endif
#if defined(PC_TEST_CUDA) && PC__HAVE_CUDNN

#include "cuda/conv/rows.h"

#include "conv_calls.h"
#include "ops/table.h"

#include <sys/wait.h>
#include <unistd.h>

/* A call that makes y, announced. */
static void announce(const layer *l)
{
    PC_SCOPE {
        const known k = know(l);
        pc__conv2d_attributes a = attributes_of(l);
        const pc_call call = {.op = &pc__ops[PC__OP_conv2d],
                              .in = (pc_tensor *[]){k.x, k.weight, k.bias},
                              .n_in = 3,
                              .n_out = 2,
                              .out = {k.y, pc_zeros(PC_SHAPE(0), PC_U8, PC_DEVICE_CPU)},
                              .attributes = &a};
        assert_ok(pc__conv_prepare(&stream, &call));
    }
}

/* And one that makes all gradients. */
static void announce_backward(const layer *l)
{
    PC_SCOPE {
        const known k = know(l);
        pc__conv2d_attributes a = attributes_of(l);
        a.needs[0] = a.needs[1] = a.needs[2] = true;
        const pc_call call = {
            .op = &pc__ops[PC__OP_conv2d_backward],
            .in = (pc_tensor *[]){k.x, k.weight, k.y, pc_zeros(PC_SHAPE(0), PC_U8, PC_DEVICE_CPU), k.dy},
            .n_in = 5,
            .n_out = 3,
            .out = {k.dx, k.dweight, k.dbias},
            .attributes = &a};
        assert_ok(pc__conv_prepare(&stream, &call));
    }
}

/* What a recording announces is planned before it is captured. */
static void announced(void **state)
{
    (void)state;
    play_again();
    (void)pc_choice_set(PC_CHOICE_CUDNN);
    const layer l = plain(710);
    announce(&l);
    assert_int_equal(play.planned, 1);
    announce_backward(&l);
    assert_int_equal(play.planned, 3);
    by(0, 0);
    face.branch = (void *)&play;
    is_right(&l);
    face.branch = NULL;
    by(0, 1);
    assert_int_equal(play.planned, 3);
}

static void a_captured_stream_meets_it_first(void **state)
{
    (void)state;
    play_again();
    (void)pc_choice_set(PC_CHOICE_CUDNN);
    const layer l = plain(700), other = plain(701);
    is_right(&other);
    face.branch = (void *)&play;
    is_right(&l);
    is_right(&other); /* what is known is recorded */
    face.branch = NULL;
    by(1, 2);
    is_right(&l); /* the same bits as in the recording */
    by(2, 2);
}

static void the_rule(void **state)
{
    (void)state;
    play_again();
    play.missing = "nobody may ask";
    (void)pc_choice_set(PC_CHOICE_RULE);
    const layer l = plain(5000); /* large, of few channels */
    is_right(&l);
    by(1, 0);
    assert_int_equal(play.opened + play.planned + play.measured, 0);
}

static int warnings;
static char warned[256];

static void listen(void *context, pc_log_level level, const char *line)
{
    (void)context;
    if (level == PC_LOG_WARNING)
        snprintf(warned, sizeof warned, "%s", line), warnings++;
}

static void no_cudnn(void **state)
{
    (void)state;
    play_again();
    play.missing = "cuDNN is of version 8, this build needs 9";
    pc_log_set(listen, NULL, PC_LOG_WARNING);
    (void)pc_choice_set(PC_CHOICE_MEASURED);
    const layer l = plain(900);
    is_right(&l);
    is_right(&l);
    pc_log_set(NULL, NULL, PC_LOG_WARNING);
    by(2, 0);
    assert_int_equal(warnings, 1);
    assert_string_equal(warned, "conv2d: our kernels alone: cuDNN is of version 8, this build needs 9");
}

enum { DIRECT = 8 }; /* in place of a plan's number */

static int chosen_in_a_process(const layer *l, int best, pc_status failure)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        play_again();
        play.best = best, play.failure = failure;
        play.directly = true;
        PC_SCOPE {
            pc_tensor *y;
            const known k = know(l);
            last_way = 0;
            for (int i = 0; i < 2; i++) {
                const pc_status made = forward(l, &k, &y);
                if ((made != PC_OK) != (i == 0 && failure != PC_OK)) /* it fails once */
                    _exit(100);
                pc_error_clear();
            }
            near(y, k.y);
        }
        if (play.measured > 1 || play.planned - play.freed > play.planned)
            _exit(101);
        _exit(play.measured * 10 + (play.direct == 2 ? DIRECT : last_way));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void measured_once_and_remembered(void **state)
{
    (void)state;
    char folder[] = "/tmp/paracord-conv-XXXXXX", path[PATH_MAX], command[64];
    assert_non_null(mkdtemp(folder));
    assert_int_equal(setenv("XDG_CACHE_HOME", folder, 1), 0);
    (void)pc_choice_set(PC_CHOICE_MEASURED);
    layer l = plain(1);
    assert_int_equal(chosen_in_a_process(&l, 3, PC_OK), 13); /* measured, the third */
    assert_int_equal(chosen_in_a_process(&l, 2, PC_OK), 3);  /* the same, not measured again */
    l.n = 2;
    assert_int_equal(chosen_in_a_process(&l, 0, PC_OK), 10); /* ours */
    assert_int_equal(chosen_in_a_process(&l, 2, PC_OK), 0);
    l.n = 4;
    assert_int_equal(chosen_in_a_process(&l, -1, PC_OK), 10 + DIRECT); /* ours, by a row that the rule does not pick */
    assert_int_equal(chosen_in_a_process(&l, 2, PC_OK), DIRECT);
    l.n = 3;
    assert_int_equal(chosen_in_a_process(&l, LITTLE_MEMORY, PC_OK),
                     10); /* too little memory to measure: nothing is known */
    assert_int_equal(chosen_in_a_process(&l, 2, PC_ERR_LOST), 10);
    assert_int_equal(chosen_in_a_process(&l, 1, PC_OK), 11);
    assert_true(pc__choices_file(path));
    FILE *file = fopen(path, "w"); /* broken: anew */
    assert_non_null(file);
    fputs("nonsense\n", file);
    fclose(file);
    assert_int_equal(chosen_in_a_process(&l, 4, PC_OK), 14);
    assert_int_equal(chosen_in_a_process(&l, 5, PC_OK), 4);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME"); /* nowhere to remember it */
    assert_int_equal(chosen_in_a_process(&l, PC__CONV_PLANS + 1, PC_OK),
                     10 + 2 * PC__CONV_PLANS + 1); /* behind the plans for channels last those for planes */
    assert_int_equal(chosen_in_a_process(&l, PC__CONV_PLANS + 2, PC_OK), 10 + 2 * PC__CONV_PLANS + 2);
}

static pc_status in_planes(pc_tensor *x, pc_tensor *weight, pc_tensor *bias, pc_tensor *y, pc_tensor *none)
{
    const pc__conv2d_attributes a = {.spec = {.stride = {1, 1}, .pool = 1}, .planes = true};
    const pc_call call = {.op = &pc__ops[PC__OP_conv2d],
                          .in = (pc_tensor *[]){x, weight, bias},
                          .n_in = bias ? 3 : 2,
                          .n_out = 2,
                          .out = {y, none},
                          .attributes = &a,
                          .attribute_bytes = sizeof a};
    assert_int_equal(pc__cuda_keeps_planes(&call), !bias);
    return pc__cuda_op_conv2d(&stream, &call);
}

/* Results of short sums are made of pictures in C order and lie in C order themselves, but where a bias follows, which would
 * have to be added to planes. */
static void planes_that_stay(void **state)
{
    (void)state;
    (void)pc_matmul_precision_set(PC_PRECISION_F32);
    for (int c = 1; c <= 2; c++)
        for (int turn = 0; turn < (c == 1 ? 4 : 2); turn++)
            PC_SCOPE {
                const int refused = turn % 2, biased = turn / 2;
                pc_tensor *x = pc_randn(PC_SHAPE(4 + turn, c, 30, 32), PC_F32, PC_DEVICE_CPU);
                pc_tensor *weight = pc_randn(PC_SHAPE(320, c, 3, 3), PC_F32, PC_DEVICE_CPU);
                pc_tensor *y = pc_zeros(PC_SHAPE(4 + turn, 320, 28, 30), PC_F32, PC_DEVICE_CPU);
                pc_tensor *bias = biased ? pc_randn(PC_SHAPE(320), PC_F32, PC_DEVICE_CPU) : NULL;
                play_again();
                play.bare = true;
                (void)pc_choice_set(c == 1 ? PC_CHOICE_MEASURED : PC_CHOICE_RULE);
                play.best = 1;
                play.status = refused ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS;
                assert_ok(in_planes(x, weight, bias, y, pc_zeros(PC_SHAPE(0), PC_U8, PC_DEVICE_CPU)));
                near(y, pc_fn_conv2d(x, weight, bias, (pc_fn_conv2d_options){0}));
                assert_int_equal(play.format[PC__CONV_PLANES], !refused && !biased);
            }
}

/* Large windows stay in C order where they are measured, as by Fourier's transform: their bias and activation are calls of their
 * own then. */
static void large_windows_stay(void **state)
{
    (void)state;
    for (int turn = 0; turn < 4; turn++)
        PC_SCOPE {
            const bool measured = turn % 2, large = turn / 2;
            pc_tensor *in[3] = {pc_zeros(PC_SHAPE(80, 32, 26, 26), PC_F32, PC_DEVICE_CPU),
                                pc_zeros(PC_SHAPE(16, 32, large ? 7 : 5, large ? 7 : 5), PC_F32, PC_DEVICE_CPU),
                                pc_zeros(PC_SHAPE(16), PC_F32, PC_DEVICE_CPU)};
            const pc__conv2d_attributes a = {
                .spec = {.stride = {1, 1}, .padding = {3, 3}, .pool = 1, .activation = PC_ACTIVATION_RELU},
                .planes = true};
            const pc_call call = {
                .op = &pc__ops[PC__OP_conv2d], .in = in, .n_in = 3, .attributes = &a, .attribute_bytes = sizeof a};
            (void)pc_choice_set(measured ? PC_CHOICE_MEASURED : PC_CHOICE_RULE);
            assert_int_equal(pc__cuda_keeps_planes(&call), measured && large);
        }
}

/* Rows of ours take no groups: it is measured among cuDNN's plans alone. */
static void groups_are_measured(void **state)
{
    (void)state;
    static _Alignas(16) float x[2 * 8 * 8 * 8], weight[8 * 4 * 3 * 3], y[2 * 8 * 6 * 6];
    const pc_call call = {.op = &op};
    (void)pc_choice_set(PC_CHOICE_MEASURED);
    for (int best = 1; best < 4; best++) {
        pc__conv_piece p = {.s = {.dtype = PC_F32,
                                  .n = 2,
                                  .h = 8,
                                  .w = 8,
                                  .c = 8,
                                  .o = 8,
                                  .kh = 3,
                                  .kw = 3,
                                  .sh = 1,
                                  .sw = best, /* another shape each time */
                                  .oh = 6,
                                  .ow = 5 / best + 1,
                                  .pool = 1,
                                  .groups = 2},
                            .direction = PC__CONV_FORWARD,
                            .dilation = {1, 1},
                            .groups = 2,
                            .x = x,
                            .weight = weight,
                            .result = y};
        play_again();
        play.best = best;
        assert_ok(pc__conv_choose(&stream, &call, &p));
        assert_int_equal(play.measured, 1);
        assert_non_null(p.way);
        assert_int_equal((uintptr_t)p.way->plan.plan, best);
    }
}

static void only(const char *name)
{
    for (int d = 0; d < PC__CONV_DIRECTIONS; d++) {
        pc__conv_rows[d].only = NULL;
        for (int i = 0; name && i < pc__conv_rows[d].count; i++)
            if (strcmp(pc__conv_rows[d].row[i].name, name) == 0)
                pc__conv_rows[d].only = &pc__conv_rows[d].row[i];
    }
}

/* Channels as few as the rule says: nobody asks cuDNN, and all three products of pictures large enough are the direct kernels'. */
static void few_channels(void **state)
{
    (void)state;
    layer l = plain(2500);
    play_again();
    play.missing = "nobody may ask";
    play.directly = play.colours = true;
    (void)pc_choice_set(PC_CHOICE_RULE);
    (void)pc_matmul_precision_set(PC_PRECISION_TF32);
    l.c = 5, l.kh = l.kw = 5, l.padding = 2;
    is_right(&l);
    assert_int_equal(play.direct, 2); /* but for the weights' of pictures that fill no tile */
    l.n = 600, l.h = 16, l.w = 8;
    is_right(&l);
    assert_int_equal(play.direct, 2 + 3);
    (void)pc_matmul_precision_set(PC_PRECISION_F32);
    l.c = 9;
    is_right(&l);
    assert_int_equal(play.direct, 2 + 3);
}

/* A row in front of the others is stronger than the choice, where it takes the shape. */
static void a_row_in_front(void **state)
{
    (void)state;
    layer l = plain(900);
    play_again();
    play.colours = true;
    (void)pc_choice_set(PC_CHOICE_OWN);
    only(NULL);
    is_right(&l);
    by(1, 0);
    assert_int_equal(play.few, 2); /* the input's gradient is the tiles' */
    only("tile");
    is_right(&l);
    by(2, 0);
    assert_int_equal(play.few, 2);
    only("cudnn");
    is_right(&l);
    by(2, 1);
    only("tile");
    play.directly = true;
    is_right(&l); /* it would be few channels */
    by(3, 1);
    assert_int_equal(play.direct, 0);
    (void)pc_choice_set(PC_CHOICE_CUDNN);
    only("direct");
    is_right(&l);
    by(4, 1);
    assert_int_equal(play.direct, 3);
    play.directly = false;
    (void)pc_choice_set(PC_CHOICE_CUDNN);
    only("colours");
    is_right(&l);
    assert_int_equal(play.few, 4);
    assert_int_equal(play.cudnn[PC__CONV_FORWARD], 1);
    assert_int_equal(play.cudnn[PC__CONV_INPUT], 2); /* of which there is no such row */
    l.kh = 1, l.n = 901;
    is_right(&l); /* nor for that shape */
    assert_int_equal(play.few, 4);
    assert_int_equal(play.cudnn[PC__CONV_FORWARD], 2);
    only(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(announced),
        cmocka_unit_test(a_row_in_front),
        cmocka_unit_test(few_channels),
        cmocka_unit_test(a_captured_stream_meets_it_first),
        cmocka_unit_test(the_rule),
        cmocka_unit_test(no_cudnn),
        cmocka_unit_test(measured_once_and_remembered),
        cmocka_unit_test(planes_that_stay),
        cmocka_unit_test(large_windows_stay),
        cmocka_unit_test(groups_are_measured),
    };
    return cmocka_run_group_tests_name("device.conv_chosen", tests, NULL, NULL);
}

#else
#include "no_plug_in.h"
#endif

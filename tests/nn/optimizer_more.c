/* AdamW, RMSprop, Lion, clipping, groups and schedules against PyTorch (golden/nn.txt), and the same in recorded steps. */
#include "nn/networks.h"
#include "nn/optimizer.h"

#include <paracord/schedule.h>
#include <paracord/step.h>

enum { N = 5, STEPS = 6 };

static pc_tensor *times(pc_module *module, pc_tensor *x)
{
    return pc_mul(x, pc_module_parameter(module, "w"));
}

static const pc_module_class weight_class = {.name = "Weight", .forward = times};

static pc_module *weight(const double *start, pc_dtype dtype)
{
    pc_module *module = pc_module_new(&weight_class, 0);
    PC_SCOPE {
        pc_tensor *w = pc_cast(pc_from_data(start, PC_SHAPE(N), PC_F64, test_device()), dtype);
        assert_ok(pc_module_add_parameter(module, "w", w));
    }
    return module;
}

typedef struct rule {
    char name[32], kind[16];
    double lr, momentum, clip, decay, beta1, beta2, epsilon, start[N];
    int steps;
} rule;

static pc_optimizer *made(const rule *c, pc_module *module)
{
    const pc_adam_options adam = {0, c->lr, c->beta1, c->beta2, c->epsilon, c->decay};
    pc_optimizer *o = strcmp(c->kind, "sgd") == 0
                          ? pc_sgd(module, .lr = c->lr, .momentum = c->momentum, .weight_decay = c->decay)
                      : strcmp(c->kind, "adam") == 0  ? pc_adam_new(module, adam)
                      : strcmp(c->kind, "adamw") == 0 ? pc_adamw_new(module, adam)
                      : strcmp(c->kind, "lion") == 0
                          ? pc_lion(module, .lr = c->lr, .beta1 = c->beta1, .beta2 = c->beta2, .weight_decay = c->decay)
                          : pc_rmsprop(module, .lr = c->lr, .alpha = c->beta2, .epsilon = c->epsilon,
                                       .momentum = c->momentum, .weight_decay = c->decay);
    assert_not_null_ok(o);
    if (c->clip != 0)
        assert_ok(pc_optimizer_set_clip(o, c->clip > 0 ? PC_CLIP_NORM : PC_CLIP_VALUE, fabs(c->clip)));
    return o;
}

static void read_numbers(FILE *file, double *values)
{
    for (int i = 0; i < N; i++)
        assert_int_equal(fscanf(file, "%lf", &values[i]), 1);
}

static void give(pc_tensor *w, const double *values)
{
    PC_SCOPE {
        assert_ok(
            pc_backward_with(w, pc_cast(pc_from_data(values, PC_SHAPE(N), PC_F64, test_device()), pc_tensor_dtype(w))));
    }
}

static void check_norm(const rule *c, const pc_optimizer *o, const double *gradient, double tolerance)
{
    double norm = NAN, want = 0;
    if (c->clip <= 0) {
        assert_fails(pc_optimizer_gradient_norm(o, &norm), PC_ERR_STATE, "PC_CLIP_NORM");
        return;
    }
    for (int k = 0; k < N; k++)
        want += gradient[k] * gradient[k];
    assert_ok(pc_optimizer_gradient_norm(o, &norm));
    assert_close(norm, sqrt(want), tolerance);
}

static void follow(FILE *file, const rule *c, pc_dtype dtype, double tolerance)
{
    pc_module *module = weight(c->start, dtype);
    pc_tensor *w = pc_module_parameter(module, "w");
    pc_optimizer *o = made(c, module);
    for (int i = 0; i < c->steps; i++) {
        double values[N], want[N];
        char word[8];
        const bool none = fscanf(file, " step %7[none]", word) == 1;
        if (!none) {
            read_numbers(file, values);
            give(w, values);
        }
        assert_int_equal(fscanf(file, " %7[|]", word), 1);
        read_numbers(file, want);
        assert_ok(pc_optimizer_step(o));
        double *got = values_of(w);
        for (int k = 0; k < N; k++)
            if (!(fabs(got[k] - want[k]) <= tolerance * (1 + fabs(want[k]))))
                fail_msg("%s, step %d, element %d: got %.12g, want %.12g", c->name, i, k, got[k], want[k]);
        free(got);
        if (!none)
            check_norm(c, o, values, dtype == PC_F64 ? 1e-14 : 1e-6);
    }
    pc_optimizer_free(o);
    pc_module_free(module);
}

static void steps_as_pytorch(void **state)
{
    (void)state;
    FILE *file = golden_open();
    char line[256];
    int cases = 0;
    while (fgets(line, sizeof line, file)) {
        rule c;
        if (sscanf(line, "more %31s %15s %lf %lf %lf %lf %lf %lf %lf %d", c.name, c.kind, &c.lr, &c.momentum, &c.clip,
                   &c.decay, &c.beta1, &c.beta2, &c.epsilon, &c.steps) != 10)
            continue;
        assert_int_equal(fscanf(file, " start"), 0);
        read_numbers(file, c.start);
        const long at = ftell(file);
        follow(file, &c, PC_F64, 1e-13);
        fseek(file, at, SEEK_SET);
        follow(file, &c, PC_F32, 3e-6);
        cases++;
    }
    fclose(file);
    assert_int_equal(cases, 8);
    assert_nothing_left();
}

static void schedules_as_pytorch(void **state)
{
    (void)state;
    static const char *const kinds[] = {"constant", "step", "linear", "cosine", "one_cycle"};
    FILE *file = golden_open();
    char line[1024], word[16];
    int cases = 0, used = 0;
    while (fgets(line, sizeof line, file)) {
        pc_schedule s = {0};
        long warmup, steps, every;
        if (sscanf(line, "schedule %15s %lf %lf %ld %ld %ld %lf |%n", word, &s.lr, &s.least, &warmup, &steps, &every,
                   &s.gamma, &used) != 7)
            continue;
        while (strcmp(word, kinds[s.kind]) != 0)
            s.kind++;
        s.warmup = warmup, s.steps = steps, s.every = every;
        const char *rest = line + used;
        for (int i = 0; i < 10; i++) {
            char *end;
            assert_close(pc_schedule_lr(&s, i), strtod(rest, &end), 1e-12);
            rest = end;
        }
        cases++;
    }
    fclose(file);
    assert_int_equal(cases, 6);
}

static void schedules_warm_up_and_end(void **state)
{
    (void)state;
    const pc_schedule s = {PC_SCHEDULE_COSINE, .lr = 1, .least = 0.25, .warmup = 3, .steps = 11};
    for (int i = 0; i < 3; i++)
        assert_close(pc_schedule_lr(&s, i), (i + 1) / 4.0, 1e-15);
    assert_close(pc_schedule_lr(&s, 3), 1, 0);
    assert_close(pc_schedule_lr(&s, 7), 0.625, 1e-15);
    assert_close(pc_schedule_lr(&s, 11), 0.25, 1e-15);
    assert_close(pc_schedule_lr(&s, 1000), 0.25, 1e-15);
    const pc_schedule wrong[] = {{PC_SCHEDULE_COSINE, .lr = 1},
                                 {PC_SCHEDULE_CONSTANT, .lr = -1},
                                 {PC_SCHEDULE_STEP, .lr = 1},
                                 {PC_SCHEDULE_LINEAR, .lr = 1, .warmup = 3, .steps = 2},
                                 {(pc_schedule_kind)9, .lr = 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_fails(isnan(pc_schedule_lr(&wrong[i], 0)), PC_ERR_ARGUMENT, "pc_schedule_lr");
    assert_fails(isnan(pc_schedule_lr(&s, -1)), PC_ERR_ARGUMENT, "step -1");
    assert_fails(isnan(pc_schedule_lr(NULL, 0)), PC_ERR_ARGUMENT, "NULL");
}

/* --- whole steps --- */

typedef struct job {
    pc_module *net;
    pc_optimizer *optimizer;
    pc_tensor *x, *y;
} job;

static pc_status learn(void *user)
{
    job *j = user;
    pc_status status = PC_OK;
    PC_SCOPE {
        status = pc_backward(pc_mse(pc_forward(j->net, j->x), j->y));
        if (status == PC_OK)
            status = pc_optimizer_step(j->optimizer);
    }
    return status;
}

static job job_of(int kind, bool clips, bool groups)
{
    static const rule rules[] = {{.kind = "sgd", .lr = 0.1, .momentum = 0.9, .decay = 0.01},
                                 {.kind = "adamw", .lr = 0.01, .decay = 0.1},
                                 {.kind = "rmsprop", .lr = 0.01, .momentum = 0.5},
                                 {.kind = "lion", .lr = 0.01, .decay = 0.1}};
    job j;
    pc_seed(11);
    j.net = on_device(pc_sequential(pc_linear(3, 40, .activation = PC_ACTIVATION_TANH), pc_linear(40, 2)));
    j.x = pc_randn(PC_SHAPE(8, 3), PC_F32, test_device());
    j.y = pc_randn(PC_SHAPE(8, 2), PC_F32, test_device());
    j.optimizer = made(&rules[kind], j.net);
    if (clips)
        assert_ok(pc_optimizer_set_clip(j.optimizer, PC_CLIP_NORM, 0.25));
    if (groups) {
        assert_ok(pc_optimizer_group(j.optimizer, "*", .max_dims = 1, .no_decay = true));
        assert_ok(pc_optimizer_group(j.optimizer, "1.*", .lr_scale = 0.5, .weight_decay = 0.3));
    }
    return j;
}

static void job_free(job *j)
{
    pc_optimizer_free(j->optimizer);
    pc_module_free(j->net);
    pc_tensor_free(j->x);
    pc_tensor_free(j->y);
}

/* Rates change between steps; a recording reads them where it runs. */
static void recorded_steps_are_the_same(void **state)
{
    (void)state;
    const pc_schedule s = {PC_SCHEDULE_COSINE, .lr = 0.02, .warmup = 2, .steps = STEPS};
    for (int kind = 0; kind < 4; kind++)
        for (int way = 0; way < 4; way++) {
            job a = job_of(kind, way & 1, way & 2), b = job_of(kind, way & 1, way & 2);
            pc_step *step = pc_step_new(learn, &b, b.optimizer);
            for (int i = 0; i < STEPS; i++) {
                pc_optimizer_set_lr(a.optimizer, pc_schedule_lr(&s, i));
                pc_optimizer_set_lr(b.optimizer, pc_schedule_lr(&s, i));
                assert_ok(learn(&a));
                assert_ok(pc_step_run(step));
            }
            assert_null(pc_step_why(step));
            for (int p = 0; p < 4; p++) {
                static const char *const names[] = {"0.weight", "0.bias", "1.weight", "1.bias"};
                assert_true(distance(pc_module_parameter(a.net, names[p]), pc_module_parameter(b.net, names[p])) <=
                            1e-6);
            }
            pc_step_free(step);
            job_free(&a);
            job_free(&b);
        }
    assert_nothing_left();
}

/* As two optimisers, each over its part, with its own settings. */
static void groups_are_optimisers_of_their_own(void **state)
{
    (void)state;
    pc_module *whole[2], *part[2];
    pc_seed(5);
    for (int i = 0; i < 2; i++)
        whole[i] = on_device(pc_linear(3, 3)), part[i] = on_device(pc_linear(3, 3));
    for (int i = 0; i < 2; i++) {
        PC_NO_GRAD {
            for (int p = 0; p < 2; p++) {
                const char *name = p ? "bias" : "weight";
                assert_ok(pc_copy(pc_module_parameter(part[i], name), pc_module_parameter(whole[i], name)));
            }
        }
    }
    pc_module *both = pc_sequential(whole[0], whole[1]);
    pc_optimizer *o = pc_adamw(both, .lr = 0.1, .weight_decay = 0.5),
                 *first = pc_adamw(part[0], .lr = 0.1, .weight_decay = 0.5),
                 *second = pc_adamw(part[1], .lr = 0.025, .weight_decay = 0.125);
    assert_ok(pc_optimizer_group(o, "1.*", .lr_scale = 0.25, .weight_decay = 0.125));
    for (int i = 0; i < 3; i++) {
        PC_SCOPE {
            pc_tensor *x = pc_randn(PC_SHAPE(4, 3), PC_F32, test_device());
            assert_ok(pc_backward(pc_sum(pc_square(pc_forward(both, x)))));
            assert_ok(pc_backward(pc_sum(pc_square(pc_forward(part[1], pc_forward(part[0], x))))));
        }
        assert_ok(pc_optimizer_step(o));
        assert_ok(pc_optimizer_step(first));
        assert_ok(pc_optimizer_step(second));
    }
    for (int i = 0; i < 2; i++)
        assert_true(distance(pc_module_parameter(whole[i], "weight"), pc_module_parameter(part[i], "weight")) <= 1e-6);
    pc_optimizer_free(o), pc_optimizer_free(first), pc_optimizer_free(second);
    pc_module_free(both), pc_module_free(part[0]), pc_module_free(part[1]);
    assert_nothing_left();
}

/* Gradients of several sizes and offsets, more than a kernel takes at once. */
static void norms_of_many(void **state)
{
    (void)state;
    enum { MANY = 200 };
    static const pc_module_class many_class = {.name = "Many", .forward = times};
    pc_module *module = pc_module_new(&many_class, 0);
    double want = 0;
    PC_SCOPE {
        for (int i = 0; i < MANY; i++) {
            char name[16];
            snprintf(name, sizeof name, "p%d", i);
            const int64_t n = i == 7 ? 100003 : i % 5 * 13;
            pc_tensor *p = pc_zeros(PC_SHAPE(n), i % 50 == 49 ? PC_F64 : PC_F32, test_device());
            assert_ok(pc_module_add_parameter(module, name, p));
        }
    }
    pc_optimizer *o = pc_sgd(module, .lr = 1);
    assert_ok(pc_optimizer_set_clip(o, PC_CLIP_NORM, 1));
    for (int i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        pc_tensor *p = pc_module_parameter(module, name);
        PC_SCOPE {
            assert_ok(
                pc_backward_with(p, pc_full(pc_tensor_shape(p), 0.01 * (i + 1), pc_tensor_dtype(p), test_device())));
        }
        want += (double)pc_tensor_count(p) * (0.01 * (i + 1)) * (0.01 * (i + 1));
    }
    double norm = 0;
    assert_ok(pc_optimizer_step(o));
    assert_ok(pc_optimizer_gradient_norm(o, &norm));
    assert_close(norm / sqrt(want), 1, 1e-6);
    double *got = values_of(pc_module_parameter(module, "p7"));
    assert_close(got[100002], -0.08 / sqrt(want), 1e-6);
    free(got);
    pc_optimizer_free(o);
    pc_module_free(module);
    assert_nothing_left();
}

typedef struct pull {
    pc_tensor *w;
    pc_optimizer *optimizer;
    double gradient;
} pull;

static pc_status one_pull(void *user)
{
    pull *p = user;
    pc_status status = PC_OK;
    PC_SCOPE {
        status = pc_backward(pc_sum(pc_mul_scalar(p->w, p->gradient)));
        if (status == PC_OK)
            status = pc_optimizer_step(p->optimizer);
    }
    return status;
}

/* Gradients of float64 are clipped in float64, beyond what float32 can hold: as torch.nn.utils.clip_grad_norm_, whose norm is
 * infinite, and what it leaves 0, where a square has no float64 number. */
static void norms_beyond_float32(void **state)
{
    (void)state;
    static const struct {
        double gradient, most, norm, step;
    } cases[] = {
        {3, 1, 3, 0.9999996666667778}, {1e39, 1, 1e39, 1},       {1e39, 1e10, 1e39, 1e10}, {1e120, 1e-9, 1e120, 1e-9},
        {1e-40, 1e-50, 1e-40, 1e-84},  {1e-40, 1, 1e-40, 1e-40}, {1e200, 1, INFINITY, 0},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const double start[N] = {0};
        pc_module *module = weight(start, PC_F64);
        pull p = {pc_module_parameter(module, "w"), pc_sgd(module, .lr = 1), cases[i / 2].gradient / sqrt(N)};
        assert_not_null_ok(p.optimizer);
        assert_ok(pc_optimizer_set_clip(p.optimizer, PC_CLIP_NORM, cases[i / 2].most));
        pc_step *step = i % 2 ? pc_step_new(one_pull, &p, p.optimizer) : NULL;
        assert_ok(step ? pc_step_run(step) : one_pull(&p));
        assert_true(!step || !pc_step_why(step));
        double norm = 0, *w = values_of(p.w);
        assert_ok(pc_optimizer_gradient_norm(p.optimizer, &norm));
        assert_true(norm == cases[i / 2].norm || fabs(norm / cases[i / 2].norm - 1) < 1e-14);
        for (int k = 0; k < N; k++)
            assert_close(w[k] * sqrt(N), -cases[i / 2].step, 1e-14 * cases[i / 2].step);
        free(w);
        pc_step_free(step);
        pc_optimizer_free(p.optimizer);
        pc_module_free(module);
    }
    assert_nothing_left();
}

/* Weights that get no more gradients: the averages of old ones come to 0 instead of staying next to it, where the CPU takes a
 * hundred times as long. */
static void averages_end(void **state)
{
    (void)state;
    const double ones[N] = {1, 1, 1, 1, 1}, some[N] = {1e-20, -3e-20, 0, 1, 2};
    if (test_device().type == PC_CUDA) /* as fast with them */
        skip();
    for (int kind = 0; kind < 3; kind++) {
        pc_module *net = weight(ones, PC_F32);
        pc_tensor *w = pc_module_parameter(net, "w");
        pc_optimizer *o = kind == 0   ? pc_sgd(net, .momentum = 0.9)
                          : kind == 1 ? pc_adam(net, .beta2 = 0.9)
                                      : pc_rmsprop(net, .alpha = 0.9, .momentum = 0.9);
        float kept[N];
        assert_not_null_ok(o);
        for (int i = 0; i < 1000; i++)
            PC_SCOPE {
                const double g[N] = {i ? 0 : some[0], i ? 0 : some[1], 0, i ? 0 : some[3], i ? 0 : some[4]};
                give(w, g);
                assert_ok(pc_optimizer_step(o));
            }
        for (int slot = 0; slot < o->slots; slot++) {
            assert_ok(pc_read(o->state[slot], kept, sizeof kept));
            for (int i = 0; i < N; i++)
                assert_true(kept[i] == 0);
        }
        pc_optimizer_free(o);
        pc_module_free(net);
    }
    assert_nothing_left();
}

/* An epsilon below the roots of subnormal squares: they count. */
static void least_squares_count(void **state)
{
    (void)state;
    const double ones[N] = {1, 1, 1, 1, 1}, least[N] = {1e-21, 2e-21, -3e-21, 4e-21, 1e-20};
    for (int kind = 0; kind < 2; kind++)
        PC_SCOPE {
            pc_module *net = weight(ones, PC_F32);
            pc_tensor *w = pc_module_parameter(net, "w");
            pc_optimizer *o = kind ? pc_adam(net, .lr = 0.5, .beta2 = 0.5, .epsilon = 1e-30)
                                   : pc_rmsprop(net, .lr = 0.5 * sqrt(0.5), .alpha = 0.5, .epsilon = 1e-30);
            float got[N];
            assert_not_null_ok(o);
            give(w, least);
            assert_ok(pc_optimizer_step(o));
            assert_ok(pc_read(w, got, sizeof got));
            for (int i = 0; i < N; i++)
                assert_true(fabs(got[i] - (least[i] < 0 ? 1.5 : 0.5)) < 1e-3);
            pc_optimizer_free(o);
            pc_module_free(net);
        }
    assert_nothing_left();
}

static void wrong_settings(void **state)
{
    (void)state;
    pc_module *net = pc_linear(2, 1);
    assert_fails(pc_adamw(net, .weight_decay = -1), PC_ERR_ARGUMENT, "pc_adamw");
    assert_fails(pc_rmsprop(net, .alpha = 1), PC_ERR_ARGUMENT, "alpha 1");
    assert_fails(pc_rmsprop(net, .momentum = 1), PC_ERR_ARGUMENT, "momentum 1");
    assert_fails(pc_lion(net, .beta1 = 2), PC_ERR_ARGUMENT, "beta1 2");
    assert_fails(pc_lion(NULL), PC_ERR_ARGUMENT, "NULL");
    pc_optimizer *o = pc_adamw(net);
    assert_fails(pc_optimizer_set_clip(o, PC_CLIP_NORM, 0), PC_ERR_ARGUMENT, "at most 0");
    assert_fails(pc_optimizer_set_clip(o, (pc_clip_kind)7, 1), PC_ERR_ARGUMENT, "kind 7");
    assert_fails(pc_optimizer_group(o, "none"), PC_ERR_ARGUMENT, "none of 2 parameters");
    assert_fails(pc_optimizer_group(o, "weight", .max_dims = 1), PC_ERR_ARGUMENT, "as few dimensions");
    assert_fails(pc_optimizer_group(o, "*", .lr_scale = -1), PC_ERR_ARGUMENT, "lr_scale -1");
    for (int i = 0; i < 7; i++)
        assert_ok(pc_optimizer_group(o, "bias"));
    assert_fails(pc_optimizer_group(o, "bias"), PC_ERR_ARGUMENT, "the most");
    pc_optimizer_free(o);
    pc_module_free(net);
    assert_nothing_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_as_pytorch),
        cmocka_unit_test(schedules_as_pytorch),
        cmocka_unit_test(schedules_warm_up_and_end),
        cmocka_unit_test(recorded_steps_are_the_same),
        cmocka_unit_test(groups_are_optimisers_of_their_own),
        cmocka_unit_test(norms_of_many),
        cmocka_unit_test(norms_beyond_float32),
        cmocka_unit_test(averages_end),
        cmocka_unit_test(least_squares_count),
        cmocka_unit_test(wrong_settings),
    };
    return cmocka_run_group_tests_name("nn.optimizer_more", tests, NULL, NULL);
}

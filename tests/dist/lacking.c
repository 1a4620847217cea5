/* Parameters that a rank's loss does not depend on, or no rank's: what is learnt is what one device learns with all samples, which
 * leaves alone what it has no gradient of, whatever its momentum and its decay. */
#include "dist/threads.h"
#include "number.h"

#include <math.h>

enum {
    LAYERS = 3,
    WIDTH = 32,
    ROWS = 4,
    PATTERNS = 6,
    PASSES = 2,
    NUMBERS = LAYERS * WIDTH * WIDTH + 1,
    SIZES = 4,
    OPTIMIZERS = 3
};

/* What a step uses of the second and third layer: nothing, of rank 0 alone, of the last rank alone, of all. */
typedef enum who { NOBODY, FIRST, LAST, ALL } who;

typedef struct pattern {
    who uses[PASSES][LAYERS];
    int passes;
} pattern;

static const pattern patterns[PATTERNS] = {{{{ALL, ALL, ALL}}, 1},
                                           {{{ALL, NOBODY, ALL}}, 1},
                                           {{{ALL, FIRST, NOBODY}}, 1},
                                           {{{ALL, NOBODY, LAST}}, 1},
                                           {{{ALL, NOBODY, NOBODY}, {ALL, LAST, NOBODY}}, 2},
                                           {{{ALL, FIRST, NOBODY}, {ALL, NOBODY, NOBODY}}, 2}};

static const int steps[] = {0, 1, 1, 2, 3, 4, 1, 5, 0, 4, 3, 2, 5, 1};

typedef struct way {
    const char *optimizer;
    int stage; /* 0: pc_ddp */
    bool recorded, offload, one_bucket;
    bool alike; /* what one rank uses all do: in stage 3 they make the same calls */
    double clip;
    const float *want; /* what one device learns: the layers' weights, and the scale */
} way;

typedef struct learner {
    const way *way;
    pc_module *net;
    pc_zero *zero;
    pc_ddp *ddp;
    pc_optimizer *optimizer;
    const pattern *pattern;
    pc_tensor *x;   /* by the ranks that it is: one after the other */
    int rank, size; /* of the first; how many there are in all */
    int ranks;
} learner;

static bool uses(who by, bool alike, int rank, int size)
{
    return by == ALL || (alike && by != NOBODY) || (by == FIRST && rank == 0) || (by == LAST && rank == size - 1);
}

/* Goes with the third layer, and has no dimensions. */
static pc_tensor *scale_of(const pc_module *net)
{
    return pc_module_parameter(net, "scale");
}

static pc_status learn(void *user)
{
    const learner *l = user;
    pc_status status = PC_OK;
    for (int i = 0; i < l->pattern->passes * l->ranks && status == PC_OK; i++)
        PC_SCOPE {
            const int rank = l->rank + i % l->ranks;
            pc_tensor *y = pc_slice(l->x, 0, i % l->ranks * ROWS, (i % l->ranks + 1) * ROWS, 1);
            for (int k = 0; k < LAYERS; k++)
                if (uses(l->pattern->uses[i / l->ranks][k], l->way->alike, rank, l->size))
                    y = pc_tanh(pc_forward(pc_module_child(l->net, k), k == 2 ? pc_mul(y, scale_of(l->net)) : y));
            status = pc_backward(pc_mul_scalar(pc_mean(pc_square(y)), 1.0 / l->ranks));
        }
    if (status == PC_OK)
        status = l->zero ? pc_zero_step(l->zero, l->optimizer) : pc_optimizer_step(l->optimizer);
    return status;
}

static pc_optimizer *make_optimizer(pc_module *module, const char *name)
{
    if (strcmp(name, "sgd") == 0)
        return pc_sgd(module, .lr = 0.1, .momentum = 0.9, .weight_decay = 0.1);
    if (strcmp(name, "adamw") == 0)
        return pc_adamw(module, .lr = 0.02, .weight_decay = 0.5);
    return pc_rmsprop(module, .lr = 0.001, .momentum = 0.5);
}

static pc_status begin(learner *l, pc_device device)
{
    pc_seed(12);
    l->net = pc_sequential(pc_linear(WIDTH, WIDTH), pc_linear(WIDTH, WIDTH, .no_bias = true), pc_linear(WIDTH, WIDTH));
    pc_seed(13);
    PC_SCOPE {
        pc_tensor *x = pc_randn(PC_SHAPE(l->size * ROWS, WIDTH), PC_F32, device);
        l->x = pc_tensor_retain(pc_clone(pc_slice(x, 0, l->rank * ROWS, (l->rank + l->ranks) * ROWS, 1)));
        if (pc_module_add_parameter(l->net, "scale", pc_ones(PC_SHAPE_SCALAR, PC_F32, PC_DEVICE_CPU)) != PC_OK)
            return pc_error_last()->status;
    }
    return l->net && l->x ? pc_module_to(l->net, device, PC_F32) : pc_error_last()->status;
}

static pc_status train(learner *l)
{
    l->optimizer = make_optimizer(l->zero ? pc_zero_part(l->zero) : l->net, l->way->optimizer);
    if (!l->optimizer)
        return pc_error_last()->status;
    pc_status status = l->way->clip ? pc_optimizer_set_clip(l->optimizer, PC_CLIP_NORM, l->way->clip) : PC_OK;
    learner each[PATTERNS];
    pc_step *step[PATTERNS] = {NULL};
    for (int i = 0; i < (int)(sizeof steps / sizeof *steps) && status == PC_OK; i++) {
        const int p = steps[i];
        each[p] = *l;
        each[p].pattern = &patterns[p];
        if (l->way->recorded && !step[p])
            step[p] = pc_step_new(learn, &each[p], l->optimizer);
        status = step[p] ? pc_step_run(step[p]) : learn(&each[p]);
        if (step[p] && pc_step_why(step[p]) && status == PC_OK)
            status = PC_ERR_STATE;
    }
    for (int p = 0; p < PATTERNS; p++)
        pc_step_free(step[p]);
    return status == PC_OK && l->zero ? pc_zero_gather(l->zero) : status;
}

static void end(learner *l)
{
    pc_tensor_free(l->x);
    pc_optimizer_free(l->optimizer);
    pc_ddp_free(l->ddp);
    pc_zero_free(l->zero);
    pc_module_free(l->net);
}

static pc_status read_learnt(const learner *l, float *to)
{
    pc_status status = PC_OK;
    for (int k = 0; k < LAYERS && status == PC_OK; k++)
        status = pc_read(pc_module_parameter(pc_module_child(l->net, k), "weight"), to + k * WIDTH * WIDTH,
                         WIDTH * WIDTH * sizeof *to);
    return status == PC_OK ? pc_read(scale_of(l->net), to + NUMBERS - 1, sizeof *to) : status;
}

static void compare(rank_work *r)
{
    const way *w = r->context;
    learner l = {.way = w, .rank = r->rank, .size = r->size, .ranks = 1};
    const double mb = w->one_bucket ? 0 : 1e-6;
    float got[NUMBERS];
    RANK_OK(begin(&l, r->device));
    if (w->stage)
        RANK_TRUE(l.zero = pc_zero(l.net, r->group, .stage = w->stage, .bucket_mb = mb, .offload = w->offload));
    else
        RANK_TRUE(l.ddp = pc_ddp(l.net, r->group, .bucket_mb = mb));
    RANK_OK(train(&l));
    RANK_OK(read_learnt(&l, got));
    for (int i = 0; i < NUMBERS; i++)
        RANK_TRUE(fabsf(got[i] - w->want[i]) < 3e-5f);
    end(&l);
}

/* What one device learns with the samples of so many ranks: the same for all ways to share the work. */
static const float *wanted(int optimizer, const way *w, int size)
{
    static float learnt[OPTIMIZERS][2][SIZES][NUMBERS];
    static bool known[OPTIMIZERS][2][SIZES];
    float *want = learnt[optimizer][w->alike][size - 1];
    const way plain = {.optimizer = w->optimizer, .clip = w->clip, .alike = w->alike};
    learner alone = {.way = &plain, .size = size, .ranks = size};
    if (known[optimizer][w->alike][size - 1])
        return want;
    assert_ok(begin(&alone, test_device()));
    assert_ok(train(&alone));
    assert_ok(read_learnt(&alone, want));
    end(&alone);
    known[optimizer][w->alike][size - 1] = true;
    return want;
}

static void by_all(way w)
{
    static const char *const names[OPTIMIZERS] = {"sgd", "adamw", "rmsprop"};
    const int most = ranks_most();
    for (int i = 0; i < OPTIMIZERS; i++)
        for (int k = 0; k < 4; k += for_races() ? 3 : 1) {
            w.optimizer = names[i];
            w.alike = w.stage == 3;
            w.recorded = k % 2;
            w.one_bucket = k / 2;
            w.clip = i ? 0 : 0.3;
            for (int n = 1; n <= most && n <= SIZES; n++) {
                w.want = wanted(i, &w, n);
                ranks_work(n, compare, &w);
            }
        }
}

static void ddp_leaves_them(void **state)
{
    (void)state;
    by_all((way){0});
}

static void zero_leaves_them(void **state)
{
    (void)state;
    for (int stage = 1; stage <= 3; stage++)
        by_all((way){.stage = stage});
}

static void offload_leaves_them(void **state)
{
    (void)state;
    by_all((way){.stage = 2, .offload = true});
    by_all((way){.stage = 3, .offload = true});
}

/* --- steps of one optimiser are recorded, and those of another are not --- */

typedef struct half {
    const pc_module *net;
    pc_optimizer *first; /* of the first layer */
    bool whole;          /* the loss depends on the second one too */
} half;

static pc_status learn_first(void *user)
{
    const half *h = user;
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *x =
            pc_ones(PC_SHAPE(ROWS, WIDTH), PC_F32, pc_tensor_device(pc_module_parameter(h->net, "0.weight")));
        pc_tensor *y = pc_forward(pc_module_child(h->net, 0), x);
        if (h->whole)
            y = pc_forward(pc_module_child(h->net, 1), y);
        status = pc_backward(pc_mean(pc_square(y)));
        if (status == PC_OK)
            status = pc_optimizer_step(h->first);
    }
    return status;
}

/* Launches come in another order than the recordings were made in. */
static void steps_beside_recorded_ones(rank_work *r)
{
    static const int order[] = {0, 0, 0, 1, 1, 1, 0, 1, 0};
    pc_seed(14);
    pc_module *net = pc_sequential(pc_linear(WIDTH, WIDTH), pc_linear(WIDTH, WIDTH));
    RANK_OK(pc_module_to(net, r->device, PC_F32));
    pc_ddp *ddp = pc_ddp(net, r->group);
    pc_optimizer *first = pc_sgd(pc_module_child(net, 0), .lr = 0.01);
    pc_optimizer *second = pc_sgd(pc_module_child(net, 1), .lr = 0.01, .weight_decay = 0.5);
    RANK_TRUE(ddp && first && second);
    half by[2] = {{net, first, false}, {net, first, true}};
    pc_step *step[2] = {pc_step_new(learn_first, &by[0], first), pc_step_new(learn_first, &by[1], first)};
    for (int i = 0; i < (int)(sizeof order / sizeof *order); i++)
        PC_SCOPE {
            pc_tensor *weight = pc_module_parameter(net, "1.weight"), *before = pc_clone(weight);
            RANK_OK(pc_step_run(step[order[i]]));
            RANK_OK(pc_optimizer_step(second));
            RANK_TRUE((pc_item(pc_max(pc_abs(pc_sub(weight, before)))) > 0) == order[i]);
        }
    for (int i = 0; i < 2; i++) {
        RANK_TRUE(!pc_step_why(step[i]));
        pc_step_free(step[i]);
    }
    pc_optimizer_free(first);
    pc_optimizer_free(second);
    pc_ddp_free(ddp);
    pc_module_free(net);
}

static void launches_say_what_is_lacking(void **state)
{
    (void)state;
    ranks_work(1, steps_beside_recorded_ones, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ddp_leaves_them),
        cmocka_unit_test(zero_leaves_them),
        cmocka_unit_test(offload_leaves_them),
        cmocka_unit_test(launches_say_what_is_lacking),
    };
    return cmocka_run_group_tests(tests, ranks_begin, ranks_end);
}

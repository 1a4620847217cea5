/* Random networks and steps: what pc_zero learns is what pc_ddp learns. A network has weights that are used several times, as
 * views of themselves, or not at all; parts are computed again; steps are recorded or not, of one or two passes, of one loss or
 * two, in 16 bits or 32; weights are looked at and gathered at odd moments, and passes fail.
 * PARACORD_CASES=2000 draws so many, PARACORD_SEED=N begins there. */
#include "dist/threads.h"
#include "number.h"

#include <math.h>

enum { MOST = 7, WIDTH = 16, ROWS = 3, WORDS = 76, STEPS = 5, PARAMETERS = 6 * MOST };

/* What is drawn is the same in all ranks, whatever they do. */
typedef struct drawing {
    uint64_t seed, drawn;
} drawing;

static int draw(drawing *d, int n)
{
    return (int)(pc_uniform(d->seed, 7, d->drawn++) * n);
}

typedef struct plan {
    uint64_t seed;
    int layers, kind[MOST], use[MOST], stage, ahead, ranks;
    double bucket_mb;
    pc_dtype autocast, dtype;
    bool clips, offload;
} plan;

/* One of the two that are compared. */
typedef struct learner {
    const plan *plan;
    pc_module *net, *layer[MOST];
    pc_parameter list[PARAMETERS];
    int parameters;
    pc_ddp *ddp;
    pc_zero *zero;
    pc_optimizer *optimizer;
    pc_tensor *x, *words;
    drawing step; /* what the step at hand does */
    bool steps, fails;
    float looked; /* at the loss of an evaluation */
} learner;

static pc_module *make_layer(int kind)
{
    pc_module *two[2];
    switch (kind) {
    case 0:
        return pc_layer_norm(PC_SHAPE(WIDTH));
    case 1:
        two[0] = pc_linear(WIDTH, 2 * WIDTH, .activation = PC_ACTIVATION_RELU);
        two[1] = pc_linear(2 * WIDTH, WIDTH);
        return pc_sequential_new(two, 2);
    case 2:
        two[0] = pc_linear(WIDTH, WIDTH);
        two[1] = pc_layer_norm(PC_SHAPE(WIDTH));
        two[0] = pc_sequential_new(two, 2);
        if (two[0])
            pc_module_set_checkpoint(two[0], true);
        return two[0];
    default:
        return pc_linear(WIDTH, WIDTH, .activation = PC_ACTIVATION_SIGMOID);
    }
}

static pc_tensor *weight_of(const learner *l, int layer)
{
    pc_parameter list[8];
    return pc_module_parameter_list(l->layer[layer], list, 8) > 0 ? list[0].tensor : NULL;
}

/* The layer's weights as a view of them. */
static pc_tensor *by_view(const learner *l, int layer, pc_tensor *h)
{
    pc_tensor *w = weight_of(l, layer);
    if (pc_tensor_shape(w).ndim < 2)
        return pc_mul(h, pc_slice(w, 0, 0, PC_END_OF_DIM, 1));
    return pc_tanh(pc_matmul(h, pc_slice(pc_transpose(w, 0, 1), 1, 0, WIDTH, 1)));
}

static pc_tensor *network(const learner *l, int skipped)
{
    pc_tensor *h = pc_forward(l->layer[0], l->words); /* an embedding */
    h = pc_add(pc_mul_scalar(pc_cast(l->x, pc_tensor_dtype(h)), .5), h);
    for (int i = 1; i < l->plan->layers; i++) {
        if (i == skipped)
            continue;
        pc_tensor *y = pc_tanh(pc_forward(l->layer[i], h));
        if (l->plan->use[i] == 1)
            y = pc_add(y, pc_forward(l->layer[i], y));
        if (l->plan->use[i] == 2)
            y = pc_add(y, pc_cast(by_view(l, i, y), pc_tensor_dtype(y)));
        h = pc_add(h, pc_cast(y, pc_tensor_dtype(h)));
    }
    if (l->plan->use[0]) /* tied */
        h = pc_matmul(h, pc_transpose(weight_of(l, 0), 0, 1));
    return pc_cast(h, PC_F32);
}

static pc_tensor *loss_of(const learner *l, int skipped)
{
    pc_tensor *y = pc_tanh(network(l, skipped));
    return pc_mean(pc_mul(y, y));
}

static pc_status look(learner *l)
{
    pc_status status = PC_OK;
    PC_NO_GRAD {
        pc_tensor *loss = loss_of(l, -1);
        status = pc_read(loss, &l->looked, sizeof l->looked);
    }
    return status;
}

/* Its pass fails on the way. */
static pc_status fail_on_the_way(learner *l)
{
    pc_tensor *t = pc_mul_scalar(l->x, 1), *y = pc_forward(l->layer[0], l->words);
    y = pc_add(y, pc_cast(t, pc_tensor_dtype(y)));
    for (int i = 1; i < l->plan->layers; i++) {
        pc_tensor *kept = pc_tanh(y);
        y = pc_add(y, pc_cast(pc_tanh(pc_forward(l->layer[i], kept)), pc_tensor_dtype(y)));
        if (i == l->plan->layers / 2)
            PC_NO_GRAD {
                if (pc_fill(kept, 0) != PC_OK)
                    return PC_ERR_MEMORY;
            }
    }
    const pc_status status = pc_backward(pc_mean(pc_mul(y, y)));
    if (status != PC_ERR_STATE || !strstr(pc_error_last()->message, "changed in place"))
        return PC_ERR_STATE;
    pc_error_clear();
    for (int i = 0; i < l->parameters && l->ddp; i++)
        pc_zero_grad(l->list[i].tensor);
    return PC_OK;
}

static pc_status learn(void *user)
{
    learner *l = user;
    drawing d = l->step, other = {d.seed, d.drawn + 5000};
    pc_status status = PC_OK;
    const int passes = 1 + (draw(&d, 3) == 0);
    const bool odd = draw(&d, 4) == 0 && l->steps, inside = draw(&d, 2), pair = draw(&other, 3) == 0;
    PC_AUTOCAST(l->plan->autocast) {
        for (int i = 0; i < passes && status == PC_OK; i++)
            PC_SCOPE {
                const int skipped = draw(&d, 3) ? -1 : 1 + draw(&d, l->plan->layers - 1);
                pc_tensor *loss = loss_of(l, skipped), *second = pair ? loss_of(l, -1) : NULL;
                if (odd && l->zero)
                    status = pc_zero_gather(l->zero);
                if (status == PC_OK)
                    status = loss ? pc_backward(loss) : pc_error_last()->status;
                if (pair && status == PC_OK)
                    status = second ? pc_backward(second) : pc_error_last()->status;
                if (odd && l->zero && status == PC_OK)
                    status = pc_zero_release(l->zero);
            }
        if (l->steps && inside && status == PC_OK)
            PC_SCOPE {
                status = look(l);
            }
        if (status == PC_OK)
            status = l->zero ? pc_zero_step(l->zero, l->optimizer) : pc_optimizer_step(l->optimizer);
        if (l->steps && inside && status == PC_OK)
            PC_SCOPE {
                status = look(l);
            }
    }
    return status;
}

static bool open_learner(learner *l, const rank_work *r)
{
    const plan *p = l->plan;
    pc_seed(p->seed + 1);
    l->layer[0] = pc_embedding(WORDS, WIDTH);
    for (int i = 1; i < p->layers; i++)
        l->layer[i] = make_layer(p->kind[i]);
    l->net = pc_sequential_new(l->layer, p->layers);
    if (!l->net || pc_module_to(l->net, r->device, p->dtype) != PC_OK)
        return false;
    l->parameters = pc_module_parameter_list(l->net, l->list, PARAMETERS);
    drawing d = {p->seed, 500};
    if (draw(&d, 3) == 0)
        if (pc_require_grad(l->list[1 + draw(&d, l->parameters - 1)].tensor, false) != PC_OK)
            return false;
    float numbers[ROWS * WIDTH];
    int64_t words[ROWS];
    for (int i = 0; i < ROWS * WIDTH; i++)
        numbers[i] = (float)pc_uniform(p->seed, 100 + (uint64_t)r->rank, (uint64_t)i) - .5f;
    for (int i = 0; i < ROWS; i++)
        words[i] = (int64_t)(pc_uniform(p->seed, 200 + (uint64_t)r->rank, (uint64_t)i) * WORDS);
    l->x = pc_tensor_retain(pc_from_data(numbers, PC_SHAPE(ROWS, WIDTH), PC_F32, r->device));
    l->words = pc_tensor_retain(pc_from_data(words, PC_SHAPE(ROWS), PC_I64, r->device));
    return l->x && l->words;
}

static bool share(learner *l, const rank_work *r, bool zero)
{
    const plan *p = l->plan;
    if (zero)
        l->zero = pc_zero(l->net, r->group, .stage = p->stage, .ahead = p->ahead, .bucket_mb = p->bucket_mb,
                          .offload = p->offload);
    else
        l->ddp = pc_ddp(l->net, r->group, .bucket_mb = p->bucket_mb);
    pc_module *trained = l->zero ? pc_zero_part(l->zero) : l->net;
    l->optimizer = trained ? pc_sgd(trained, .lr = .1, .momentum = .9) : NULL;
    if (l->optimizer && p->clips)
        return pc_optimizer_set_clip(l->optimizer, PC_CLIP_NORM, .05) == PC_OK;
    return l->optimizer != NULL;
}

static void close_learner(learner *l)
{
    pc_optimizer_free(l->optimizer);
    pc_ddp_free(l->ddp);
    pc_zero_free(l->zero);
    pc_tensor_free(l->x);
    pc_tensor_free(l->words);
    pc_module_free(l->net);
}

static pc_status numbers_of(const pc_tensor *t, float *numbers)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        PC_NO_GRAD {
            pc_tensor *wide = pc_cast((pc_tensor *)(uintptr_t)t, PC_F32);
            status = wide ? pc_read(wide, numbers, (size_t)pc_tensor_count(wide) * 4) : pc_error_last()->status;
        }
    }
    return status;
}

/* Numbers in 16 bits are rounded to another one now and then. */
static bool near(float a, float b, const plan *p)
{
    return fabsf(a - b) <= (p->dtype != PC_F32 ? .1f : p->autocast != PC_F32 ? .05f : 2e-5f);
}

static void compare(rank_work *r, learner *want, learner *got, const char *when, int step)
{
    enum { NUMBERS = WORDS * WIDTH };
    float a[NUMBERS], b[NUMBERS];
    for (int i = 0; i < want->parameters; i++) {
        const int64_t n = pc_tensor_count(want->list[i].tensor);
        RANK_TRUE(n <= NUMBERS);
        RANK_OK(numbers_of(want->list[i].tensor, a));
        RANK_OK(numbers_of(got->list[i].tensor, b));
        for (int k = 0; k < n; k++)
            if (!near(a[k], b[k], want->plan)) {
                r->error.status = PC_ERR_STATE;
                snprintf(r->error.message, sizeof r->error.message,
                         "PARACORD_SEED=%llu: %s step %d, %s[%d] is %g, not %g", (unsigned long long)want->plan->seed,
                         when, step, want->list[i].name, k, (double)b[k], (double)a[k]);
                return;
            }
    }
}

static void both(rank_work *r, learner *l, pc_step *const *step, int i)
{
    drawing d = {l->plan->seed, 1000 + 50 * (uint64_t)i};
    const bool recorded = draw(&d, 2), fails = draw(&d, 5) == 0, looks = draw(&d, 2), gathers = draw(&d, 3) == 0;
    const bool stays = draw(&d, 3) == 0, writes = draw(&d, 3) == 0;
    const int changed = draw(&d, l->parameters);
    for (int k = 0; k < 2; k++) {
        PC_SCOPE {
            l[k].step = (drawing){l->plan->seed, recorded ? 800 : 1020 + 50 * (uint64_t)i};
            l[k].steps = !recorded;
            if (fails)
                RANK_OK(fail_on_the_way(&l[k]));
            if (looks)
                RANK_OK(look(&l[k]));
            if (gathers && l[k].zero)
                RANK_OK(pc_zero_gather(l[k].zero));
            if (gathers && writes)
                PC_NO_GRAD {
                    RANK_OK(pc_fill(l[k].list[changed].tensor, .125));
                }
            if (gathers && !stays && l[k].zero)
                RANK_OK(pc_zero_release(l[k].zero));
            RANK_OK(recorded ? pc_step_run(step[k]) : learn(&l[k]));
            if (draw(&(drawing){l->plan->seed, 900 + (uint64_t)i}, 2) && l[k].zero)
                RANK_OK(pc_zero_release(l[k].zero));
        }
    }
    if (!near(l[0].looked, l[1].looked, l->plan)) {
        r->error.status = PC_ERR_STATE;
        snprintf(r->error.message, sizeof r->error.message, "PARACORD_SEED=%llu: step %d evaluates %g, not %g",
                 (unsigned long long)l->plan->seed, i, (double)l[1].looked, (double)l[0].looked);
        return;
    }
    if (draw(&d, 2)) {
        RANK_OK(pc_zero_gather(l[1].zero));
        compare(r, &l[0], &l[1], "behind", i);
        if (draw(&d, 3))
            RANK_OK(pc_zero_release(l[1].zero));
    } else if (l->plan->stage < 3)
        compare(r, &l[0], &l[1], "behind", i);
}

static void work(rank_work *r)
{
    const plan *p = r->context;
    learner l[2] = {{.plan = p}, {.plan = p}};
    RANK_OK(pc_group_set_timeout(r->group, 20));
    pc_step *step[2] = {NULL, NULL};
    PC_SCOPE {
        for (int k = 0; k < 2 && r->error.status == PC_OK; k++) {
            if (!open_learner(&l[k], r) || !share(&l[k], r, k == 1)) {
                r->error = *pc_error_last();
                break;
            }
            step[k] = pc_step_new(learn, &l[k], l[k].optimizer);
        }
        for (int i = 0; i < STEPS && r->error.status == PC_OK && !pc_failed(); i++)
            both(r, l, step, i);
    }
    if (pc_failed() && r->error.status == PC_OK)
        r->error = *pc_error_last();
    for (int k = 0; k < 2; k++) {
        pc_step_free(step[k]);
        close_learner(&l[k]);
    }
}

static void one_case(uint64_t seed)
{
    static const pc_dtype casts[] = {PC_F32, PC_F32, PC_BF16, PC_F16};
    static const double sizes[] = {1e-6, 1e-6, 6e-4, 2e-3, 25};
    drawing d = {seed, 0};
    plan p = {.seed = seed, .layers = 3 + draw(&d, MOST - 2)};
    for (int i = 0; i < p.layers; i++)
        p.kind[i] = draw(&d, 5), p.use[i] = draw(&d, 5);
    p.use[0] = draw(&d, 2);
    p.stage = draw(&d, 2) ? 3 : 1 + draw(&d, 2);
    p.ahead = draw(&d, 4);
    p.ranks = 1 + draw(&d, 4);
    p.bucket_mb = sizes[draw(&d, (int)(sizeof sizes / sizeof sizes[0]))];
    p.autocast = casts[draw(&d, (int)(sizeof casts / sizeof casts[0]))];
    p.dtype = p.autocast == PC_F32 && draw(&d, 4) == 0 ? PC_BF16 : PC_F32;
    p.clips = draw(&d, 4) == 0;
    p.offload = draw(&d, 2);
    rank_work ranks[RANKS_MAX];
    ranks_run(p.ranks, ranks, work, &p);
    for (int i = 0; i < p.ranks; i++)
        if (ranks[i].error.status != PC_OK)
            print_error("seed %llu, rank %d of %d, stage %d%s, %s of %s: %s\n", (unsigned long long)seed, i, p.ranks,
                        p.stage, p.offload ? " with offload" : "", pc_dtype_name(p.autocast), pc_dtype_name(p.dtype),
                        ranks[i].error.message);
    for (int i = 0; i < p.ranks; i++)
        assert_int_equal(ranks[i].error.status, PC_OK);
}

static void zero_learns_what_ddp_learns(void **state)
{
    (void)state;
    const int64_t from = number("PARACORD_SEED", 1), cases = number("PARACORD_CASES", emulated() ? 10 : 60);
    if (ranks_are_processes() || ranks_most() < 4)
        skip();
    for (int64_t i = 0; i < cases; i++)
        one_case((uint64_t)(from + i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(zero_learns_what_ddp_learns)};
    return cmocka_run_group_tests_name("dist.zero_random", tests, ranks_begin, ranks_end);
}

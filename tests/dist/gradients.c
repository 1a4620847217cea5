/* Gradients of networks that several ranks train together are those of one device with all samples: a millionth apart, over the
 * whole network. A step of SGD with so large a rate that weights do not count shows them, whoever holds which part. */
#include "dist/threads.h"
#include "number.h"

#include <math.h>

enum { SAMPLES = 8, PARAMETERS = 64, CLASSES = 10, LENGTH = 16, NUMBERS = 1 << 19 };
#define RATE 1048576.0

typedef struct way {
    const char *name;
    int stage; /* of pc_zero; 0: pc_ddp */
} way;

typedef struct subject {
    const char *name;
    pc_module *(*make)(void);
    int side; /* of pictures; 0: tokens */
    bool normalises;
} subject;

/* Of all parameters, one behind the other. */
typedef struct answer {
    float weights[NUMBERS], gradients[NUMBERS];
    int parameters;
} answer;

typedef struct comparison {
    const subject *subject;
    const answer *want; /* of one device */
    way way;
    bool recorded;
} comparison;

static pc_module *article(void)
{
    return pc_sequential(pc_conv2d(3, 32, 3, .stride = 3, .activation = PC_ACTIVATION_RELU), pc_max_pool2d(2),
                         pc_flatten(), pc_linear(3200, 128, .activation = PC_ACTIVATION_RELU), pc_linear(128, CLASSES));
}

static pc_module *two_conv(void)
{
    return pc_sequential(pc_conv2d(3, 32, 3, .activation = PC_ACTIVATION_RELU), pc_max_pool2d(2),
                         pc_conv2d(32, 64, 3, .activation = PC_ACTIVATION_RELU), pc_max_pool2d(2), pc_flatten(),
                         pc_linear(2304, 64, .activation = PC_ACTIVATION_RELU), pc_linear(64, CLASSES));
}

static pc_module *normalised(void)
{
    return pc_sequential(pc_conv2d(3, 16, 3, .padding = 1, .no_bias = true), pc_batch_norm2d(16),
                         pc_activation(PC_ACTIVATION_RELU), pc_conv2d(16, 24, 3, .stride = 2, .padding = 1),
                         pc_batch_norm2d(24), pc_activation(PC_ACTIVATION_TANH), pc_flatten(),
                         pc_linear(1536, CLASSES));
}

static pc_module *gpt(void)
{
    return pc_gpt(.layers = 2, .heads = 3, .width = 48, .context = LENGTH, .vocabulary = 40);
}

static const subject subjects[] = {{"article", article, 64, false},
                                   {"two-conv", two_conv, 32, false},
                                   {"batch norm", normalised, 16, true},
                                   {"gpt", gpt, 0, false}};

/* Rows [from, to) of all samples. */
typedef struct learner {
    pc_module *net;
    pc_tensor *x, *y;
    pc_optimizer *optimizer; /* NULL: gradients stay */
    pc_zero *zero;
} learner;

static pc_tensor *kept(const void *numbers, pc_shape shape, pc_dtype dtype, pc_device device)
{
    pc_tensor *t = NULL;
    PC_SCOPE {
        t = pc_tensor_retain(pc_from_data(numbers, shape, dtype, device));
    }
    return t;
}

static bool open_learner(learner *l, const subject *s, pc_device device, int from, int to)
{
    enum { MOST = SAMPLES * 3 * 64 * 64 };
    const int each = s->side ? 3 * s->side * s->side : LENGTH, rows = to - from;
    float *pictures = calloc(MOST, sizeof *pictures);
    int64_t tokens[2 * SAMPLES * LENGTH], *labels = tokens + SAMPLES * LENGTH;
    for (int i = 0; i < rows * each && s->side && pictures; i++)
        pictures[i] = (float)pc_uniform(5, 6, (uint64_t)(from * each + i)) * 2 - 1;
    for (int i = 0; i < rows * LENGTH; i++) {
        tokens[i] = (from * LENGTH + i) * 7 % 40;
        labels[i] = (from * LENGTH + i) * 11 % 40;
    }
    for (int i = 0; i < rows && s->side; i++)
        labels[i] = (from + i) % CLASSES;
    pc_seed(21);
    l->net = s->make();
    l->x = s->side ? kept(pictures, PC_SHAPE(rows, 3, s->side, s->side), PC_F32, device)
                   : kept(tokens, PC_SHAPE(rows, LENGTH), PC_I64, device);
    l->y = kept(labels, s->side ? PC_SHAPE(rows) : PC_SHAPE(rows, LENGTH), PC_I64, device);
    free(pictures);
    return l->net && l->x && l->y && pc_module_to(l->net, device, PC_F32) == PC_OK;
}

static pc_status learn(void *user)
{
    const learner *l = user;
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *y = pc_forward(l->net, l->x);
        pc_tensor *loss = pc_tensor_shape(l->x).ndim == 2 ? pc_gpt_loss(y, l->y) : pc_cross_entropy(y, l->y);
        status = loss ? pc_backward(loss) : pc_error_last()->status;
        if (status == PC_OK && l->optimizer)
            status = l->zero ? pc_zero_step(l->zero, l->optimizer) : pc_optimizer_step(l->optimizer);
    }
    return status;
}

/* Of one parameter: what a step made of weights `w`, whose gradients are to be `g`. */
static pc_status add_difference(pc_tensor *stepped, const float *w, const float *g, double *difference, double *all)
{
    const int64_t n = pc_tensor_count(stepped);
    float *after = malloc((size_t)n * sizeof *after);
    const pc_status status = after ? pc_read(stepped, after, (size_t)n * sizeof *after) : PC_ERR_MEMORY;
    for (int64_t i = 0; i < n && status == PC_OK; i++) {
        const double off = ((double)w[i] - (double)after[i]) / RATE - (double)g[i];
        *difference += off * off;
        *all += (double)g[i] * (double)g[i];
    }
    free(after);
    return status;
}

static void close_learner(learner *l)
{
    pc_optimizer_free(l->optimizer);
    pc_zero_free(l->zero);
    pc_tensor_free(l->x);
    pc_tensor_free(l->y);
    pc_module_free(l->net);
}

/* One step of a network that is trained by all. */
static pc_status step_together(const comparison *c, rank_work *r, learner *l)
{
    pc_ddp *ddp = c->way.stage ? NULL : pc_ddp(l->net, r->group, .bucket_mb = 0.1);
    l->zero = c->way.stage ? pc_zero(l->net, r->group, .stage = c->way.stage, .bucket_mb = 0.1) : NULL;
    l->optimizer = ddp || l->zero ? pc_sgd(l->zero ? pc_zero_part(l->zero) : l->net, .lr = RATE) : NULL;
    pc_status status = l->optimizer ? PC_OK : pc_error_last()->status;
    pc_step *step = c->recorded && status == PC_OK ? pc_step_new(learn, l, l->optimizer) : NULL;
    if (status == PC_OK)
        status = step ? pc_step_run(step) : learn(l);
    if (status == PC_OK && l->zero)
        status = pc_zero_gather(l->zero);
    pc_step_free(step);
    pc_ddp_free(ddp);
    return status;
}

static void work(rank_work *r)
{
    const comparison *c = r->context;
    pc_parameter got[PARAMETERS];
    learner part = {0};
    double difference = 0, all = 0;
    RANK_TRUE(
        open_learner(&part, c->subject, r->device, SAMPLES * r->rank / r->size, SAMPLES * (r->rank + 1) / r->size));
    RANK_TRUE(pc_sync_batch_norm(part.net, r->group) == (c->subject->normalises ? 2 : 0));
    RANK_OK(step_together(c, r, &part));
    RANK_TRUE(pc_module_parameter_list(part.net, got, PARAMETERS) == c->want->parameters);
    int64_t at = 0;
    for (int i = 0; i < c->want->parameters; at += pc_tensor_count(got[i++].tensor))
        RANK_OK(add_difference(got[i].tensor, c->want->weights + at, c->want->gradients + at, &difference, &all));
    if (!(sqrt(difference) <= 1e-6 * sqrt(all))) {
        r->error.status = PC_ERR_RANGE;
        snprintf(r->error.message, sizeof r->error.message, "%s by %s%s: gradients are %g of their norm apart",
                 c->subject->name, c->way.name, c->recorded ? ", recorded" : "", sqrt(difference / all));
    }
    close_learner(&part);
}

/* One device with all samples: the same for all ways and numbers of ranks. */
static const answer *wanted(const subject *s)
{
    static answer want;
    pc_parameter list[PARAMETERS];
    learner alone = {0};
    assert_true(open_learner(&alone, s, test_device(), 0, SAMPLES));
    assert_ok(learn(&alone));
    want.parameters = pc_module_parameter_list(alone.net, list, PARAMETERS);
    assert_in_range(want.parameters, 1, PARAMETERS);
    int64_t at = 0;
    for (int i = 0; i < want.parameters; i++)
        PC_SCOPE {
            const int64_t n = pc_tensor_count(list[i].tensor);
            assert_in_range(at + n, 1, NUMBERS);
            assert_ok(pc_read(list[i].tensor, want.weights + at, (size_t)n * sizeof *want.weights));
            pc_tensor *gradient = pc_contiguous(pc_grad(list[i].tensor));
            assert_ok(pc_read(gradient, want.gradients + at, (size_t)n * sizeof *want.gradients));
            at += n;
        }
    close_learner(&alone);
    return &want;
}

static void of_subject(const subject *s)
{
    static const way ways[] = {{"pc_ddp", 0}, {"ZeRO 1", 1}, {"ZeRO 2", 2}, {"ZeRO 3", 3}};
    const int most = ranks_most();
    const answer *want = wanted(s);
    for (int i = 0; i < 4 * 2; i++)
        for (int ranks = for_races() && i / 2 % 2 ? 4 : 2; ranks <= most && ranks <= 4; ranks *= for_races() ? 4 : 2)
            ranks_work(ranks, work, &(comparison){s, want, ways[i / 2], i % 2});
}

static void are_those_of_one_device(void **state)
{
    (void)state;
    for (int i = emulated() ? 2 : 0; i < 4; i++)
        of_subject(&subjects[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(are_those_of_one_device)};
    return cmocka_run_group_tests_name("dist.gradients", tests, ranks_begin, ranks_end);
}

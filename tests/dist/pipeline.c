/* Pipelines: stages on ranks, with a batch in pieces, end with the weights of one device with the whole batch. */
#include "dist/threads.h"

#include <math.h>

enum { STEPS = 4, SAMPLES = 24, SIDE = 8, CLASSES = 4, LAYERS = 6, PARAMETERS = 2 * LAYERS, MOST = 4096 };

typedef struct job {
    const char *network; /* "mlp", "cnn" */
    int samples, microbatches;
    pc_pipeline_schedule schedule;
    double clip;
    bool share_loss;
    int pipelines; /* beside each other, each with a part of the batch; 0: 1 */
    int smaller;   /* the last steps' batch; 0: as the others */
    bool recorded;
} job;

/* What one device ends with. */
typedef struct answer {
    float weights[MOST], loss[STEPS];
    pc_parameter name[PARAMETERS];
    int64_t count[PARAMETERS];
    int parameters;
} answer;

static answer want;

static pc_module *network(const char *name)
{
    pc_seed(3);
    if (strcmp(name, "cnn") == 0)
        return pc_sequential(pc_conv2d(1, 6, 3, .padding = 1, .activation = PC_ACTIVATION_RELU), pc_max_pool2d(2),
                             pc_conv2d(6, 8, 3, .activation = PC_ACTIVATION_RELU), pc_flatten(),
                             pc_linear(8 * 2 * 2, 12, .activation = PC_ACTIVATION_TANH), pc_linear(12, CLASSES));
    return pc_sequential(pc_flatten(), pc_linear(SIDE * SIDE, 24, .activation = PC_ACTIVATION_RELU),
                         pc_linear(24, 16, .activation = PC_ACTIVATION_TANH), pc_linear(16, 16),
                         pc_activation(PC_ACTIVATION_SIGMOID), pc_linear(16, CLASSES));
}

/* Samples of step `step`, the same for all who ask. */
static void fill(float *x, int64_t *labels, int step)
{
    uint32_t state = (uint32_t)step * 977 + 1;
    for (int i = 0; i < SAMPLES * SIDE * SIDE; i++) {
        state = state * 1664525 + 1013904223;
        x[i] = (float)(state >> 8) / (float)(1 << 24) - 0.5f;
    }
    for (int i = 0; i < SAMPLES; i++)
        labels[i] = (i * 5 + step) % CLASSES;
}

static pc_status take(pc_tensor *x, pc_tensor *labels, int step, int from)
{
    float numbers[SAMPLES * SIDE * SIDE];
    int64_t classes[SAMPLES];
    const int64_t n = pc_tensor_shape(x).dim[0];
    fill(numbers, classes, step);
    pc_status status = PC_OK;
    PC_SCOPE {
        status = pc_copy(
            x, pc_from_data(numbers + from * SIDE * SIDE, PC_SHAPE(n, 1, SIDE, SIDE), PC_F32, pc_tensor_device(x)));
        if (status == PC_OK)
            status = pc_copy(labels, pc_from_data(classes + from, PC_SHAPE(n), PC_I64, pc_tensor_device(x)));
    }
    return status;
}

static pc_optimizer *optimizer_of(const job *j, pc_module *net)
{
    pc_optimizer *sgd = pc_sgd(net, .lr = 0.1, .momentum = 0.9);
    if (sgd && j->clip > 0 && pc_optimizer_set_clip(sgd, PC_CLIP_NORM, j->clip) != PC_OK) {
        pc_optimizer_free(sgd);
        return NULL;
    }
    return sgd;
}

static int samples_of(const job *j, int step)
{
    return j->smaller && step >= STEPS / 2 ? j->smaller : j->samples;
}

static pc_status learn_alone(const job *j, pc_module *net, pc_optimizer *sgd, int step)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        const int n = samples_of(j, step);
        pc_tensor *x = pc_zeros(PC_SHAPE(n, 1, SIDE, SIDE), PC_F32, test_device());
        pc_tensor *labels = pc_zeros(PC_SHAPE(n), PC_I64, test_device());
        status = take(x, labels, step, 0);
        pc_tensor *loss = status == PC_OK ? pc_cross_entropy(pc_forward(net, x), labels) : NULL;
        status = loss ? pc_backward(loss) : pc_error_last()->status;
        if (status == PC_OK)
            status = pc_optimizer_step(sgd);
        if (status == PC_OK)
            status = pc_read(loss, &want.loss[step], sizeof *want.loss);
    }
    return status;
}

static void one_device(const job *j)
{
    pc_module *net = network(j->network);
    assert_ok(pc_module_to(net, test_device(), PC_F32));
    pc_optimizer *sgd = optimizer_of(j, net);
    assert_non_null(sgd);
    for (int step = 0; step < STEPS; step++)
        assert_ok(learn_alone(j, net, sgd, step));
    want.parameters = pc_module_parameter_list(net, want.name, PARAMETERS);
    int64_t at = 0;
    for (int i = 0; i < want.parameters; i++) {
        want.count[i] = pc_tensor_count(want.name[i].tensor);
        assert_ok(pc_read(want.name[i].tensor, want.weights + at, (size_t)want.count[i] * sizeof(float)));
        at += want.count[i];
    }
    pc_optimizer_free(sgd);
    pc_module_free(net);
}

static bool is_near(double a, double b, double scale)
{
    return fabs(a - b) <= 1e-6 * scale;
}

/* The parameter of that name, to 1e-6 of its largest number. */
static bool is_right(const pc_parameter *p)
{
    float got[MOST];
    double largest = 0;
    int64_t at = 0;
    int i = 0;
    while (i < want.parameters && strcmp(want.name[i].name, p->name) != 0)
        at += want.count[i++];
    if (i == want.parameters || pc_tensor_count(p->tensor) != want.count[i] ||
        pc_read(p->tensor, got, (size_t)want.count[i] * sizeof *got) != PC_OK)
        return false;
    for (int64_t k = 0; k < want.count[i]; k++)
        largest = fmax(largest, fabs(want.weights[at + k]));
    for (int64_t k = 0; k < want.count[i]; k++)
        if (!is_near(got[k], want.weights[at + k], largest))
            return false;
    return true;
}

static pc_tensor *loss_of(void *context, pc_tensor *y, pc_tensor *target)
{
    (void)context;
    return pc_cross_entropy(y, target);
}

/* This rank's part of the network. */
static pc_module *stage_of(const char *name, int stages, int stage, pc_device device)
{
    int first[PC_PIPELINE_STAGES + 1];
    pc_module *net = network(name);
    if (net && pc_pipeline_balance(net, stages, first) == PC_OK &&
        pc_pipeline_cut(net, first[stage], first[stage + 1]) == PC_OK && pc_module_to(net, device, PC_F32) == PC_OK)
        return net;
    pc_module_free(net);
    return NULL;
}

typedef struct learner {
    pc_pipeline *pipe;
    pc_optimizer *sgd;
    pc_tensor *x, *labels, *loss;
} learner;

static pc_status learn(void *user)
{
    const learner *l = user;
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *mean = NULL;
        status = pc_pipeline_step(l->pipe, l->x, l->labels, &mean);
        if (status == PC_OK)
            status = pc_pipeline_update(l->pipe, l->sgd);
        if (status == PC_OK && mean)
            PC_NO_GRAD {
                status = pc_copy(l->loss, mean);
            }
    }
    return status;
}

typedef struct place {
    pc_group *pipe, *others; /* of this rank's pipeline; of the ranks with the same stage */
    int number, stage, stages;
} place;

static pc_status split(rank_work *r, int pipelines, place *at)
{
    *at = (place){.stages = r->size / pipelines};
    at->number = r->rank / at->stages;
    at->stage = r->rank % at->stages;
    const pc_status status = pc_group_split(r->group, at->number, 0, &at->pipe);
    return status == PC_OK ? pc_group_split(r->group, at->stage, 0, &at->others) : status;
}

/* The same tensors in each step, which is recorded. */
static void recorded_steps(rank_work *r, const job *j, const place *at, learner *l)
{
    const int n = j->samples / (j->pipelines ? j->pipelines : 1);
    PC_SCOPE {
        l->x = pc_zeros(PC_SHAPE(n, 1, SIDE, SIDE), PC_F32, r->device);
        l->labels = pc_zeros(PC_SHAPE(n), PC_I64, r->device);
        l->loss = pc_full(PC_SHAPE_SCALAR, -1, PC_F32, r->device);
        pc_step *one = pc_step_new(learn, l, l->sgd);
        for (int step = 0; step < STEPS; step++) {
            RANK_OK(take(l->x, l->labels, step, at->number * n));
            RANK_OK(pc_step_run(one));
        }
        RANK_TRUE(!pc_step_why(one));
        pc_step_free(one);
    }
}

static void all_steps(rank_work *r, const job *j, const place *at, learner *l)
{
    const int pipelines = j->pipelines ? j->pipelines : 1;
    for (int step = 0; step < STEPS; step++)
        PC_SCOPE {
            const int n = samples_of(j, step) / pipelines;
            if (j->smaller && step == STEPS / 2)
                pc_pipeline_forget_shapes(l->pipe);
            l->x = pc_zeros(PC_SHAPE(n, 1, SIDE, SIDE), PC_F32, r->device);
            l->labels = pc_zeros(PC_SHAPE(n), PC_I64, r->device);
            l->loss = pc_full(PC_SHAPE_SCALAR, -1, PC_F32, r->device);
            RANK_OK(take(l->x, l->labels, step, at->number * n));
            RANK_OK(learn(l));
            float loss;
            RANK_OK(pc_read(l->loss, &loss, sizeof loss));
            const bool told = j->share_loss || at->stage == at->stages - 1;
            RANK_TRUE(told || loss == -1);
            RANK_TRUE(!told || pipelines > 1 || is_near(loss, want.loss[step], 1));
        }
}

static void learned(rank_work *r, const pc_module *net)
{
    pc_parameter list[PARAMETERS];
    const int count = pc_module_parameter_list(net, list, PARAMETERS);
    for (int i = 0; i < count; i++)
        RANK_TRUE(is_right(&list[i]));
}

static void work(rank_work *r)
{
    const job *j = r->context;
    place at;
    RANK_OK(split(r, j->pipelines ? j->pipelines : 1, &at));
    pc_module *net = stage_of(j->network, at.stages, at.stage, r->device);
    RANK_TRUE(net);
    pc_ddp *ddp = j->pipelines > 1 ? pc_ddp(net, at.others) : NULL;
    RANK_TRUE(ddp || j->pipelines <= 1);
    learner l = {.pipe = pc_pipeline(net, at.pipe, loss_of, NULL, .microbatches = j->microbatches,
                                     .schedule = j->schedule, .share_loss = j->share_loss, .ddp = ddp),
                 .sgd = optimizer_of(j, net)};
    RANK_TRUE(l.pipe && l.sgd);
    if (j->recorded)
        recorded_steps(r, j, &at, &l);
    else
        all_steps(r, j, &at, &l);
    learned(r, net);
    pc_optimizer_free(l.sgd);
    pc_pipeline_free(l.pipe);
    pc_ddp_free(ddp);
    pc_module_free(net);
    pc_group_free(at.pipe);
    pc_group_free(at.others);
}

static void learns_what_one_learns(job j, int ranks)
{
    if (ranks <= ranks_most())
        ranks_work(ranks, work, &j);
}

static void stages_learn_what_one_learns(job j)
{
    one_device(&j);
    for (int stages = 1; stages <= 4; stages++)
        for (j.microbatches = 1; j.microbatches <= 8; j.microbatches += for_races() ? 3 : 1)
            learns_what_one_learns(j, stages);
}

static void stages_and_microbatches(void **state)
{
    (void)state;
    stages_learn_what_one_learns((job){.network = "mlp", .samples = SAMPLES, .share_loss = true});
    stages_learn_what_one_learns((job){.network = "cnn", .samples = SAMPLES});
}

static void uneven_microbatches(void **state)
{
    (void)state;
    stages_learn_what_one_learns((job){.network = "mlp", .samples = 19});
    stages_learn_what_one_learns((job){.network = "cnn", .samples = 13, .share_loss = true});
}

static void gpipe(void **state)
{
    (void)state;
    stages_learn_what_one_learns((job){.network = "mlp", .samples = 21, .schedule = PC_PIPELINE_GPIPE});
}

static void one_norm_of_all_stages(void **state)
{
    (void)state;
    stages_learn_what_one_learns((job){.network = "cnn", .samples = SAMPLES, .clip = 0.05});
}

static void batches_of_two_sizes(void **state)
{
    (void)state;
    stages_learn_what_one_learns((job){.network = "mlp", .samples = SAMPLES, .smaller = 9});
}

static void two_pipelines_of_two_stages(void **state)
{
    (void)state;
    for (int clip = 0; clip < 2; clip++) {
        job j = {.network = "cnn", .samples = SAMPLES, .pipelines = 2, .clip = clip ? 0.05 : 0, .share_loss = true};
        one_device(&j);
        for (j.microbatches = 1; j.microbatches <= 6; j.microbatches++)
            learns_what_one_learns(j, 4);
    }
}

static void steps_that_are_recorded(void **state)
{
    (void)state;
    stages_learn_what_one_learns((job){.network = "cnn", .samples = SAMPLES, .recorded = true, .clip = 0.05});
    job j = {.network = "mlp", .samples = SAMPLES, .pipelines = 2, .recorded = true, .microbatches = 3};
    one_device(&j);
    learns_what_one_learns(j, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_and_microbatches),
        cmocka_unit_test(uneven_microbatches),
        cmocka_unit_test(gpipe),
        cmocka_unit_test(one_norm_of_all_stages),
        cmocka_unit_test(batches_of_two_sizes),
        cmocka_unit_test(two_pipelines_of_two_stages),
        cmocka_unit_test(steps_that_are_recorded),
    };
    return cmocka_run_group_tests(tests, ranks_begin, ranks_end);
}

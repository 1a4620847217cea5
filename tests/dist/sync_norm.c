/* Batch normalisations by the samples of all ranks: values, running statistics and gradients are those of one device with the
 * whole batch, which each rank computes beside its part. */
#include "dist/threads.h"

#include <math.h>

enum { CHANNELS = 5, ROOM = 8192, BATCH = 13, STEPS = 4 };

/* The largest difference, over the largest number. */
static double apart(pc_tensor *want, pc_tensor *got)
{
    double a[ROOM], b[ROOM], most = 0, off = 0;
    const int64_t n = want && got ? pc_tensor_count(want) : -1;
    if (n < 0 || n > ROOM || n != pc_tensor_count(got))
        return INFINITY;
    pc_status status = PC_OK;
    PC_NO_GRAD {
        status = pc_read(pc_cast(pc_contiguous(want), PC_F64), a, (size_t)n * sizeof *a);
        if (status == PC_OK)
            status = pc_read(pc_cast(pc_contiguous(got), PC_F64), b, (size_t)n * sizeof *b);
    }
    for (int64_t i = 0; i < n && status == PC_OK; i++) {
        most = fmax(most, fabs(a[i]));
        off = isnan(a[i] - b[i]) ? INFINITY : fmax(off, fabs(a[i] - b[i])); /* fmax passes over NaN */
    }
    return status != PC_OK ? INFINITY : off < INFINITY && most > 0 ? off / most : off;
}

typedef struct job {
    pc_dtype dtype;
    bool pictures, last, empty; /* [n, c, h, w]; channels last; rank 0 has no samples */
    bool cumulative, no_affine, no_running;
    bool still;  /* x has no gradient */
    double mean; /* of x, against which its deviation is small */
    double most; /* apart */
} job;

/* Rank r has the samples from..to of the batch: uneven parts, some of one sample. */
static int64_t begin_of(const job *j, int rank, int size)
{
    if (rank == 0 || rank == size)
        return rank ? BATCH : 0;
    return j->empty ? (rank == 1 ? 0 : BATCH * rank / size) : rank;
}

static pc_tensor *samples(const job *j, pc_tensor *t, int64_t from, int64_t to)
{
    pc_tensor *part = pc_slice(t, 0, from, to, 1);
    return j->last ? pc_clone(part) : pc_contiguous(part);
}

static pc_tensor *drawn(const job *j, double mean, pc_device device)
{
    const pc_shape shape = j->pictures ? PC_SHAPE(BATCH, CHANNELS, 4, 3) : PC_SHAPE(BATCH, CHANNELS);
    pc_tensor *t = pc_add_scalar(pc_randn(shape, PC_F32, PC_DEVICE_CPU), mean);
    if (j->last) /* the same numbers in another order of memory */
        t = pc_permute(pc_contiguous(pc_permute(t, PC_SHAPE(0, 2, 3, 1))), PC_SHAPE(0, 3, 1, 2));
    return pc_to(t, device, j->dtype, false);
}

static pc_module *layer(const job *j, pc_device device)
{
    pc_batch_norm_options o = {
        .cumulative = j->cumulative, .no_affine = j->no_affine, .no_running = j->no_running, .momentum = 0.3};
    pc_module *m = j->pictures ? pc_batch_norm2d_new(CHANNELS, o) : pc_batch_norm1d_new(CHANNELS, o);
    PC_NO_GRAD {
        for (int i = 0; i < 2 && m && !j->no_affine; i++)
            PC_SCOPE {
                pc_tensor *p = pc_module_parameter(m, i ? "bias" : "weight");
                if (pc_copy(p, pc_add_scalar(pc_rand(PC_SHAPE(CHANNELS), PC_F32, PC_DEVICE_CPU), 0.5)) != PC_OK)
                    return NULL;
            }
    }
    return m && pc_module_to(m, device, j->dtype == PC_F64 ? PC_F64 : PC_F32) == PC_OK ? m : NULL;
}

/* Gradients of the parameters are of this rank's samples: together they are those of the whole batch. */
static bool gradients_agree(rank_work *r, const job *j, pc_module *whole, pc_module *own)
{
    for (int i = 0; i < 2 && !j->no_affine; i++) {
        const char *name = i ? "bias" : "weight";
        pc_tensor *want = pc_grad(pc_module_parameter(whole, name)), *got = pc_grad(pc_module_parameter(own, name));
        if (!got || pc_group_all_reduce(r->group, got, PC_GROUP_SUM) != PC_OK || !(apart(want, got) < j->most))
            return false;
    }
    return true;
}

static bool statistics_agree(const job *j, pc_module *whole, pc_module *own)
{
    static const char *const names[] = {"running_mean", "running_var", "num_batches_tracked"};
    for (int i = 0; i < 3 && !j->no_running; i++)
        if (!(apart(pc_module_buffer(whole, names[i]), pc_module_buffer(own, names[i])) < fmax(j->most, 1e-6)))
            return false;
    return true;
}

static void one_layer(rank_work *r)
{
    const job *j = r->context;
    pc_seed(8);
    pc_module *whole = layer(j, r->device);
    pc_seed(8);
    pc_module *own = layer(j, r->device);
    RANK_TRUE(whole && own);
    RANK_OK(pc_batch_norm_set_group(own, r->group));
    const int64_t from = begin_of(j, r->rank, r->size), to = begin_of(j, r->rank + 1, r->size);
    for (int step = 0; step < 2; step++)
        PC_SCOPE {
            pc_tensor *x = drawn(j, j->mean, r->device), *dy = drawn(j, 0.2, r->device);
            pc_tensor *part = samples(j, x, from, to), *x0 = pc_clone(x);
            RANK_OK(pc_require_grad(x0, !j->still));
            RANK_OK(pc_require_grad(part, !j->still));
            pc_tensor *want = pc_forward(whole, x0), *got = pc_forward(own, part);
            RANK_TRUE(want && got);
            RANK_TRUE(apart(pc_slice(want, 0, from, to, 1), got) < j->most);
            RANK_OK(pc_backward_with(want, dy));
            RANK_OK(pc_backward_with(got, samples(j, dy, from, to)));
            RANK_TRUE(j->still || apart(pc_slice(pc_grad(x0), 0, from, to, 1), pc_grad(part)) < j->most);
            RANK_TRUE(gradients_agree(r, j, whole, own));
            RANK_TRUE(statistics_agree(j, whole, own));
            pc_module_zero_grad(whole);
            pc_module_zero_grad(own);
        }
    pc_module_free(whole);
    pc_module_free(own);
}

static void layers(void **state)
{
    (void)state;
    static const job jobs[] = {
        {.dtype = PC_F32, .most = 2e-6},
        {.dtype = PC_F32, .pictures = true, .most = 2e-6},
        {.dtype = PC_F32, .pictures = true, .last = true, .most = 2e-6},
        {.dtype = PC_F32, .pictures = true, .empty = true, .most = 2e-6},
        {.dtype = PC_F32, .cumulative = true, .empty = true, .most = 2e-6},
        {.dtype = PC_F32, .pictures = true, .no_affine = true, .most = 2e-6},
        {.dtype = PC_F32, .pictures = true, .no_running = true, .most = 2e-6},
        {.dtype = PC_F32, .pictures = true, .still = true, .most = 2e-6},
        {.dtype = PC_F64, .pictures = true, .mean = 1e5, .most = 1e-9},
        {.dtype = PC_F32, .pictures = true, .mean = 1000, .most = 1e-3}, /* float32 has such means to 6e-5 */
        {.dtype = PC_BF16, .pictures = true, .most = 2e-2},
        {.dtype = PC_F16, .pictures = true, .last = true, .most = 2e-3},
    };
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
        every_number_of_ranks(one_layer, &jobs[i]);
}

/* --- a network that is trained --- */

typedef struct learner {
    pc_module *net;
    pc_optimizer *optimizer;
    pc_ddp *ddp;
    pc_tensor *x, *labels;
} learner;

static pc_module *network(void)
{
    pc_seed(4);
    return pc_sequential(pc_conv2d(2, 6, 3, .padding = 1), pc_batch_norm2d(6), pc_activation(PC_ACTIVATION_RELU),
                         pc_sequential(pc_conv2d(6, 6, 3, .no_bias = true), pc_batch_norm2d(6)), pc_flatten(),
                         pc_linear(24, 3));
}

static pc_status learn(void *user)
{
    const learner *l = user;
    pc_status status = PC_OK;
    PC_SCOPE {
        status = pc_backward(pc_cross_entropy(pc_forward(l->net, l->x), l->labels));
    }
    return status == PC_OK ? pc_optimizer_step(l->optimizer) : status;
}

static pc_status train(learner *l, rank_work *r, int64_t from, int64_t to, bool recorded)
{
    pc_status status = pc_module_to(l->net, r->device, PC_F32);
    l->optimizer = pc_sgd(l->net, .lr = 0.1, .momentum = 0.9);
    PC_SCOPE {
        int64_t labels[12];
        for (int i = 0; i < 12; i++)
            labels[i] = i * 5 % 3;
        pc_seed(6);
        pc_tensor *x = pc_to(pc_randn(PC_SHAPE(12, 2, 4, 4), PC_F32, PC_DEVICE_CPU), r->device, PC_F32, false);
        l->x = pc_contiguous(pc_slice(x, 0, from, to, 1));
        l->labels = pc_from_data(labels + from, PC_SHAPE(to - from), PC_I64, r->device);
        pc_step *step = recorded ? pc_step_new(learn, l, l->optimizer) : NULL;
        for (int i = 0; i < STEPS && status == PC_OK; i++)
            status = step ? pc_step_run(step) : learn(l);
        if (step && pc_step_why(step) && status == PC_OK)
            status = PC_ERR_STATE;
        pc_step_free(step);
    }
    return status;
}

static void training(rank_work *r)
{
    const bool *recorded = r->context; /* and whether a normalisation is computed once more on the way back */
    learner whole = {.net = network()}, own = {.net = network()};
    RANK_OK(pc_module_to(own.net, r->device, PC_F32));
    own.ddp = pc_ddp(own.net, r->group);
    RANK_TRUE(own.ddp && pc_sync_batch_norm(own.net, r->group) == 2);
    pc_module_set_checkpoint(pc_module_child(own.net, 3), recorded[1]);
    RANK_OK(train(&whole, r, 0, 12, *recorded));
    RANK_OK(train(&own, r, 12 / r->size * r->rank, 12 / r->size * (r->rank + 1), *recorded));
    pc_parameter a[24], b[24];
    const int count = pc_module_state_list(whole.net, a, 24);
    RANK_TRUE(pc_module_state_list(own.net, b, 24) == count);
    for (int i = 0; i < count; i++)
        PC_SCOPE {
            RANK_TRUE(apart(a[i].tensor, b[i].tensor) < 2e-5);
        }
    pc_ddp_free(own.ddp);
    pc_optimizer_free(own.optimizer);
    pc_optimizer_free(whole.optimizer);
    pc_module_free(own.net);
    pc_module_free(whole.net);
}

static void networks(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++)
        every_number_of_ranks(training, (bool[2]){k % 2, k / 2});
}

/* Without a group, and evaluating, a layer waits for nobody: ranks do it apart. */
static void alone(rank_work *r)
{
    const job j = {.dtype = PC_F32};
    pc_module *m = layer(&j, r->device);
    RANK_TRUE(m);
    PC_SCOPE {
        pc_tensor *x = drawn(&j, 0, r->device);
        RANK_OK(pc_batch_norm_set_group(m, r->group));
        pc_module_set_training(m, false);
        for (int i = 0; i <= r->rank; i++)
            RANK_TRUE(pc_forward(m, x));
        pc_module_set_training(m, true);
        RANK_OK(pc_batch_norm_set_group(m, NULL));
        for (int i = 0; i <= r->rank; i++)
            RANK_TRUE(pc_forward(m, x));
    }
    pc_module *other = pc_linear(2, 2);
    RANK_TRUE(pc_batch_norm_set_group(other, r->group) == PC_ERR_ARGUMENT);
    RANK_TRUE(strstr(pc_error_last()->message, "Linear"));
    pc_error_clear();
    RANK_TRUE(pc_sync_batch_norm(other, r->group) == 0);
    pc_module_free(other);
    pc_module_free(m);
}

static void layers_alone(void **state)
{
    (void)state;
    every_number_of_ranks(alone, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers),
        cmocka_unit_test(networks),
        cmocka_unit_test(layers_alone),
    };
    return cmocka_run_group_tests(tests, ranks_begin, ranks_end);
}

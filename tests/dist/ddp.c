/* Data parallel training: ranks with parts of the batches end with the weights of one device with all of them. */
#include "dist/threads.h"

enum { STEPS = 5, SAMPLES = 24, SIDE = 8, CLASSES = 4 };

typedef struct job {
    const char *network; /* "mlp", "cnn", "nested" */
    bool recorded;
    bool again;     /* what is inside of "nested" is computed once more on the way back */
    int accumulate; /* batches for each step */
    double bucket_mb, clip;
    int zero;    /* stage; 0: pc_ddp */
    int most;    /* ranks, where the network is too small for more; 0: all */
    float *want; /* weights of one device, in order */
    int64_t weights;
} job;

static pc_module *network(const char *name)
{
    pc_seed(3);
    if (strcmp(name, "cnn") == 0)
        return pc_sequential(pc_conv2d(1, 6, 3, .padding = 1, .activation = PC_ACTIVATION_RELU), pc_max_pool2d(2),
                             pc_conv2d(6, 8, 3, .activation = PC_ACTIVATION_RELU), pc_flatten(),
                             pc_linear(8 * 2 * 2, CLASSES));
    if (strcmp(name, "nested") == 0)
        return pc_sequential(pc_flatten(), pc_linear(SIDE * SIDE, 32, .activation = PC_ACTIVATION_RELU),
                             pc_sequential(pc_linear(32, 16, .activation = PC_ACTIVATION_TANH), pc_linear(16, 16)),
                             pc_linear(16, CLASSES));
    return pc_sequential(pc_flatten(), pc_linear(SIDE * SIDE, 32, .activation = PC_ACTIVATION_RELU),
                         pc_linear(32, 16, .activation = PC_ACTIVATION_RELU), pc_linear(16, CLASSES));
}

typedef struct learner {
    const job *job;
    pc_module *net;
    pc_optimizer *optimizer;
    pc_ddp *ddp;
    pc_zero *zero;
    pc_tensor *x, *labels; /* of the batches of one step */
    int samples;           /* of one of them */
} learner;

static pc_status learn(void *user)
{
    const learner *l = user;
    pc_status status = PC_OK;
    const int parts = l->job->accumulate;
    for (int k = 0; k < parts && status == PC_OK; k++)
        PC_SCOPE {
            if (l->ddp)
                pc_ddp_set_sync(l->ddp, k == parts - 1);
            pc_tensor *x = pc_slice(l->x, 0, k * l->samples, (k + 1) * l->samples, 1);
            pc_tensor *labels = pc_slice(l->labels, 0, k * l->samples, (k + 1) * l->samples, 1);
            pc_tensor *loss = pc_cross_entropy(pc_forward(l->net, x), labels);
            status = pc_backward(pc_mul_scalar(loss, 1.0 / parts));
        }
    if (status == PC_OK)
        status = l->zero ? pc_zero_step(l->zero, l->optimizer) : pc_optimizer_step(l->optimizer);
    return status;
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

/* This rank's samples: of each accumulated batch its part. */
static pc_status take(learner *l, int step, int rank, int size)
{
    float x[SAMPLES * SIDE * SIDE], own[SAMPLES * SIDE * SIDE];
    int64_t labels[SAMPLES], own_labels[SAMPLES];
    fill(x, labels, step);
    const int batch = SAMPLES / l->job->accumulate, part = batch / size;
    int at = 0;
    for (int k = 0; k < l->job->accumulate; k++)
        for (int i = 0; i < part; i++, at++) {
            const int from = k * batch + rank * part + i;
            memcpy(own + at * SIDE * SIDE, x + from * SIDE * SIDE, SIDE * SIDE * sizeof *x);
            own_labels[at] = labels[from];
        }
    const pc_device device = pc_tensor_device(l->x);
    pc_status status = PC_OK;
    PC_SCOPE {
        status = pc_copy(l->x, pc_from_data(own, PC_SHAPE(at, 1, SIDE, SIDE), PC_F32, device));
        if (status == PC_OK)
            status = pc_copy(l->labels, pc_from_data(own_labels, PC_SHAPE(at), PC_I64, device));
    }
    return status;
}

static pc_status train(const job *j, pc_group *group, int rank, int size, pc_device device, float *weights, int64_t *n)
{
    learner l = {.job = j, .net = network(j->network), .samples = SAMPLES / j->accumulate / size};
    pc_step *step = NULL;
    pc_status status = pc_module_to(l.net, device, PC_F32);
    pc_parameter list[16];
    const int count = pc_module_parameter_list(l.net, list, 16);
    for (int i = 0; i < count && rank && status == PC_OK; i++) /* rank 0's weights are what counts */
        PC_NO_GRAD {
            status = pc_fill(list[i].tensor, 0.25);
        }
    if (j->again)
        pc_module_set_checkpoint(pc_module_child(l.net, 2), true);
    PC_SCOPE {
        if (status == PC_OK && group && j->zero) {
            l.zero = pc_zero(l.net, group, .bucket_mb = j->bucket_mb, .stage = j->zero);
            status = l.zero ? PC_OK : pc_error_last()->status;
        } else if (status == PC_OK && group) {
            l.ddp = pc_ddp(l.net, group, .bucket_mb = j->bucket_mb);
            status = l.ddp ? PC_OK : pc_error_last()->status;
        }
        if (status == PC_OK) {
            l.optimizer = pc_adam(l.zero ? pc_zero_part(l.zero) : l.net, .lr = 0.01, .weight_decay = 0.01);
            status = pc_optimizer_group(l.optimizer, "*", .max_dims = 1, .no_decay = true);
            if (status == PC_OK && j->clip > 0)
                status = pc_optimizer_set_clip(l.optimizer, PC_CLIP_NORM, j->clip);
        }
        if (status == PC_OK) {
            l.x = pc_zeros(PC_SHAPE(SAMPLES / size, 1, SIDE, SIDE), PC_F32, device);
            l.labels = pc_zeros(PC_SHAPE(SAMPLES / size), PC_I64, device);
            step = j->recorded ? pc_step_new(learn, &l, l.optimizer) : NULL;
        }
        for (int i = 0; i < STEPS && status == PC_OK; i++) {
            status = take(&l, i, rank, size);
            if (status == PC_OK)
                status = step ? pc_step_run(step) : learn(&l);
        }
        if (step && pc_step_why(step) && status == PC_OK)
            status = PC_ERR_STATE; /* it was to be recorded */
        if (l.zero && status == PC_OK)
            status = pc_zero_gather(l.zero);
        *n = 0;
        for (int i = 0; i < count && status == PC_OK; i++) {
            const int64_t numbers = pc_tensor_count(list[i].tensor);
            status = pc_read(list[i].tensor, weights + *n, (size_t)numbers * sizeof *weights);
            *n += numbers;
        }
    }
    pc_step_free(step);
    pc_ddp_free(l.ddp);
    pc_optimizer_free(l.optimizer);
    pc_zero_free(l.zero);
    pc_module_free(l.net);
    return status;
}

enum { MOST = 4096 };

static void work(rank_work *r)
{
    const job *j = r->context;
    float got[MOST];
    int64_t n;
    RANK_OK(train(j, r->group, r->rank, r->size, r->device, got, &n));
    RANK_TRUE(n == j->weights);
    for (int64_t i = 0; i < n; i++) {
        const double error = (double)got[i] - (double)j->want[i];
        RANK_TRUE(error < 3e-6 && error > -3e-6);
    }
}

static void ranks_learn_what_one_learns(job j)
{
    static float want[MOST];
    const int accumulate = j.accumulate = j.accumulate ? j.accumulate : 1;
    j.want = want;
    assert_ok(train(&j, NULL, 0, 1, test_device(), want, &j.weights));
    const int most = j.most && j.most < ranks_most() ? j.most : ranks_most();
    for (int n = 1; n <= most; n++)
        if (SAMPLES / accumulate % n == 0)
            ranks_work(n, work, &j);
}

static void plain_steps(void **state)
{
    (void)state;
    ranks_learn_what_one_learns((job){.network = "mlp", .recorded = false, .accumulate = 1, .bucket_mb = 0});
    ranks_learn_what_one_learns((job){.network = "cnn", .recorded = false, .accumulate = 1, .bucket_mb = 1e-4});
}

static void recorded_steps(void **state)
{
    (void)state;
    ranks_learn_what_one_learns((job){.network = "mlp", .recorded = true, .accumulate = 1, .bucket_mb = 1e-3});
    ranks_learn_what_one_learns((job){.network = "cnn", .recorded = true, .accumulate = 1, .bucket_mb = 1e-4});
}

static void accumulated_steps(void **state)
{
    (void)state;
    ranks_learn_what_one_learns((job){.network = "mlp", .recorded = false, .accumulate = 2, .bucket_mb = 1e-3});
    ranks_learn_what_one_learns((job){.network = "cnn", .recorded = true, .accumulate = 3, .bucket_mb = 0});
}

static void zero_stages(void **state)
{
    (void)state;
    for (int stage = ranks_most() > 1 ? 1 : 3; stage <= 3; stage++) {
        ranks_learn_what_one_learns((job){.network = "mlp", .zero = stage});
        ranks_learn_what_one_learns((job){.network = "cnn", .zero = stage, .bucket_mb = 1e-4, .clip = 0.1, .most = 4});
        ranks_learn_what_one_learns((job){.network = "mlp", .zero = stage, .recorded = true, .clip = 0.1});
        ranks_learn_what_one_learns(
            (job){.network = "cnn", .zero = stage, .recorded = true, .bucket_mb = 1e-3, .most = 4});
    }
}

/* The walk inside of a checkpoint's rule is a part of the one around it. */
static void computed_again(void **state)
{
    (void)state;
    for (int k = 0; k < 8; k++)
        for (int wide = 0; wide < 2; wide++)
            ranks_learn_what_one_learns((job){.network = "nested",
                                              .zero = k / 2,
                                              .recorded = k % 2,
                                              .again = true,
                                              .bucket_mb = wide ? 0 : 1e-3,
                                              .most = 4});
}

/* Several backward passes in front of a step add up. */
static void zero_accumulates(void **state)
{
    (void)state;
    for (int stage = ranks_most() > 1 ? 1 : 3; stage <= 3; stage++) {
        ranks_learn_what_one_learns((job){.network = "mlp", .zero = stage, .accumulate = 2, .bucket_mb = 1e-3});
        ranks_learn_what_one_learns(
            (job){.network = "cnn", .zero = stage, .accumulate = 3, .recorded = true, .most = 4});
    }
}

/* A recorded step follows pc_ddp_set_sync: without it ranks go apart, each by its own gradients. */
static pc_status one_step(void *user)
{
    const learner *l = user;
    pc_status status = PC_OK;
    PC_SCOPE {
        status = pc_backward(pc_cross_entropy(pc_forward(l->net, l->x), l->labels));
    }
    return status == PC_OK ? pc_optimizer_step(l->optimizer) : status;
}

static void turned_off(rank_work *r)
{
    const job j = {.network = "mlp", .accumulate = 1};
    learner l = {.job = &j, .net = network("mlp")};
    pc_parameter list[1];
    float before = 0, now, both[RANKS_MAX];
    RANK_OK(pc_module_to(l.net, r->device, PC_F32));
    l.ddp = pc_ddp(l.net, r->group);
    l.optimizer = pc_sgd(l.net, .lr = 0.1);
    l.x = pc_zeros(PC_SHAPE(SAMPLES / r->size, 1, SIDE, SIDE), PC_F32, r->device);
    l.labels = pc_zeros(PC_SHAPE(SAMPLES / r->size), PC_I64, r->device);
    pc_step *step = pc_step_new(one_step, &l, l.optimizer);
    pc_tensor *all = pc_zeros(PC_SHAPE(r->size), PC_F32, r->device), *one = pc_zeros(PC_SHAPE(1), PC_F32, r->device);
    for (int i = 0; i < 4; i++) { /* on, off, off, on */
        pc_ddp_set_sync(l.ddp, i == 0 || i == 3);
        RANK_OK(take(&l, i, r->rank, r->size));
        RANK_OK(pc_step_run(step));
        RANK_TRUE(pc_module_parameter_list(l.net, list, 1) >= 1);
        PC_SCOPE {
            PC_NO_GRAD {
                RANK_OK(pc_copy(one, pc_reshape(pc_sum(list[0].tensor), PC_SHAPE(1))));
            }
        }
        RANK_OK(pc_group_all_gather(r->group, all, one));
        RANK_OK(pc_read(all, both, (size_t)r->size * sizeof *both));
        RANK_OK(pc_read(one, &now, sizeof now));
        RANK_TRUE(now != before);
        RANK_TRUE((both[0] == both[r->size - 1]) == (i == 0 || r->size == 1));
        before = now;
    }
    RANK_TRUE(!pc_step_why(step));
    pc_step_free(step);
    pc_tensor_free(all);
    pc_tensor_free(one);
    pc_tensor_free(l.x);
    pc_tensor_free(l.labels);
    pc_ddp_free(l.ddp);
    pc_optimizer_free(l.optimizer);
    pc_module_free(l.net);
}

static void recordings_follow_the_switch(void **state)
{
    (void)state;
    const int most = ranks_most();
    for (int n = 1; n <= most && n <= 3; n++)
        ranks_work(n, turned_off, NULL);
}

/* What ranks train together stays where it is: its memory is in their buckets. */
static void stays(rank_work *r)
{
    for (int stage = 0; stage <= 3; stage += 3) {
        pc_module *net = pc_linear(8, 40);
        RANK_OK(pc_module_to(net, r->device, PC_F32));
        pc_ddp *ddp = stage ? NULL : pc_ddp(net, r->group);
        pc_zero *zero = stage ? pc_zero(net, r->group, .stage = stage) : NULL;
        RANK_TRUE(ddp || zero);
        RANK_OK(pc_module_to(net, r->device, PC_F32));
        RANK_TRUE(pc_module_to(net, r->device, PC_F64) == PC_ERR_STATE);
        RANK_TRUE(strstr(pc_error_last()->message, "\"weight\" is trained by ranks together"));
        pc_error_clear();
        pc_ddp_free(ddp);
        if (zero)
            RANK_OK(pc_zero_gather(zero));
        pc_zero_free(zero);
        RANK_OK(pc_module_to(net, r->device, PC_F64));
        pc_module_free(net);
    }
}

static void networks_stay(void **state)
{
    (void)state;
    const int most = ranks_most();
    for (int n = 1; n <= most && n <= 2; n++)
        ranks_work(n, stays, NULL);
}

/* Behind the forward pass, so that the backward one waits for it and brings it nothing. */
static void freezes(rank_work *r)
{
    pc_module *net = pc_sequential(pc_linear(4, 3), pc_linear(3, 2));
    RANK_OK(pc_module_to(net, r->device, PC_F32));
    pc_ddp *ddp = pc_ddp(net, r->group);
    pc_optimizer *adamw = pc_adamw(net, .lr = 0.1, .weight_decay = 0.5);
    PC_SCOPE {
        pc_tensor *weight = pc_module_parameter(net, "0.weight"), *last = pc_module_parameter(net, "1.weight");
        const double before = pc_item(pc_sum(weight)), moves = pc_item(pc_sum(last));
        pc_tensor *loss = pc_sum(pc_forward(net, pc_ones(PC_SHAPE(2, 4), PC_F32, r->device)));
        RANK_OK(pc_module_freeze(net, "0.*"));
        RANK_OK(pc_backward(loss));
        RANK_TRUE(!pc_grad(weight) && pc_grad(last));
        RANK_OK(pc_optimizer_step(adamw));
        RANK_TRUE(pc_item(pc_sum(weight)) == before);
        RANK_TRUE(pc_item(pc_sum(last)) != moves);
    }
    pc_ddp_free(ddp);
    pc_optimizer_free(adamw);
    pc_module_free(net);
}

static void what_is_frozen_stays(void **state)
{
    (void)state;
    const int most = ranks_most();
    for (int n = 1; n <= most && n <= 2; n++)
        ranks_work(n, freezes, NULL);
}

/* A pass in front of pc_ddp, which left a gradient: it is dropped, and the next one's is that of all ranks. */
static void tries_first(rank_work *r)
{
    pc_module *net = pc_linear(2, 1, .no_bias = true);
    RANK_OK(pc_module_to(net, r->device, PC_F32));
    pc_ddp *ddp = NULL;
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(1, 2), r->rank + 1, PC_F32, r->device);
        pc_tensor *weight = pc_module_parameter(net, "weight");
        RANK_OK(pc_backward(pc_sum(pc_forward(net, x))));
        ddp = pc_ddp(net, r->group);
        RANK_TRUE(ddp && !pc_grad(weight));
        RANK_OK(pc_backward(pc_sum(pc_forward(net, x))));
        RANK_TRUE(pc_item(pc_sum(pc_grad(weight))) == r->size + 1); /* twice the mean of 1, 2, ... */
    }
    pc_ddp_free(ddp);
    pc_module_free(net);
}

static void what_was_left_before_is_dropped(void **state)
{
    (void)state;
    const int most = ranks_most();
    for (int n = 1; n <= most && n <= 2; n++)
        ranks_work(n, tries_first, NULL);
}

/* --- a weight of another layer in a block that is computed again --- */

enum { TIED = 32 };

typedef struct borrower {
    pc_module *lender;
    bool late; /* the first forward pass does without the weight */
} borrower;

static pc_tensor *borrow(pc_module *module, pc_tensor *x)
{
    const borrower *b = pc_module_data(module);
    if (b->late && !pc_grad_enabled())
        return pc_relu(x);
    return pc_relu(pc_matmul(x, pc_module_parameter(b->lender, "weight")));
}

static const pc_module_class borrowing = {.name = "borrower", .forward = borrow};

typedef struct tied {
    pc_module *net, *block;
    pc_zero *zero;
    pc_optimizer *sgd;
    pc_tensor *x;
    bool half;
} tied;

/* The weight is the last one, so what it gets behind the block comes first on the way back. */
static pc_status make_tied(tied *t, pc_device device)
{
    pc_seed(8);
    t->net = pc_sequential(pc_linear(TIED, TIED), pc_linear(TIED, TIED, .no_bias = true));
    t->block = pc_module_new(&borrowing, sizeof(borrower));
    if (!t->net || !t->block)
        return pc_error_last()->status;
    ((borrower *)pc_module_data(t->block))->lender = pc_module_child(t->net, 1);
    return pc_module_to(t->net, device, PC_F32);
}

static void free_tied(tied *t)
{
    pc_optimizer_free(t->sgd);
    pc_zero_free(t->zero);
    pc_module_free(t->block);
    pc_module_free(t->net);
}

static pc_status learn_tied(void *user)
{
    const tied *t = user;
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *y = NULL;
        PC_AUTOCAST(t->half ? PC_BF16 : PC_F32) {
            y = pc_checkpoint(t->block, pc_forward(pc_module_child(t->net, 0), t->x));
            y = pc_forward(pc_module_child(t->net, 1), pc_checkpoint(t->block, y)); /* which has a cast of it already */
        }
        status = pc_backward(pc_mean(pc_square(pc_cast(y, PC_F32))));
    }
    if (status == PC_OK)
        status = t->zero ? pc_zero_step(t->zero, t->sgd) : pc_optimizer_step(t->sgd);
    return status;
}

typedef struct tied_case {
    int stage; /* 0: pc_ddp */
    bool half, recorded;
} tied_case;

static pc_status train_tied(tied *t, const tied_case *c, pc_tensor *x)
{
    t->half = c->half;
    t->x = x;
    t->sgd = pc_sgd(t->zero ? pc_zero_part(t->zero) : t->net, .lr = 1);
    pc_step *step = c->recorded ? pc_step_new(learn_tied, t, t->sgd) : NULL;
    pc_status status = PC_OK;
    for (int i = 0; i < 3 && status == PC_OK; i++)
        status = step ? pc_step_run(step) : learn_tied(t);
    if (step && pc_step_why(step) && status == PC_OK)
        status = PC_ERR_STATE;
    pc_step_free(step);
    return status == PC_OK && t->zero ? pc_zero_gather(t->zero) : status;
}

/* Each rank's rows, of those that are the same in all. */
static void learns_tied(rank_work *r)
{
    const tied_case *c = r->context;
    tied alone = {0}, t = {0};
    pc_ddp *ddp = NULL;
    RANK_OK(make_tied(&alone, r->device));
    RANK_OK(make_tied(&t, r->device));
    if (c->stage)
        RANK_TRUE(t.zero = pc_zero(t.net, r->group, .stage = c->stage, .bucket_mb = 1e-6));
    else
        RANK_TRUE(ddp = pc_ddp(t.net, r->group, .bucket_mb = 1e-6));
    PC_SCOPE {
        pc_seed(9);
        pc_tensor *x = pc_randn(PC_SHAPE(4 * r->size, TIED), PC_F32, r->device);
        RANK_OK(train_tied(&alone, c, x));
        RANK_OK(train_tied(&t, c, pc_clone(pc_slice(x, 0, 4 * r->rank, 4 * r->rank + 4, 1))));
        pc_tensor *want = pc_module_parameter(alone.net, "1.weight"), *got = pc_module_parameter(t.net, "1.weight");
        RANK_TRUE(pc_item(pc_max(pc_abs(pc_sub(got, want)))) < (c->half ? 2e-2 : 1e-6));
    }
    pc_ddp_free(ddp);
    free_tied(&t);
    free_tied(&alone);
}

static void tied_weights_computed_again(void **state)
{
    (void)state;
    for (int k = 0; k < 16; k++) {
        const tied_case c = {.stage = k / 4, .recorded = k % 2, .half = k / 2 % 2};
        const int most = ranks_most();
        for (int n = 1; n <= most && n <= 3; n++)
            ranks_work(n, learns_tied, (void *)(uintptr_t)&c);
    }
}

/* It would come behind the sums of all ranks. */
static void uses_late(rank_work *r)
{
    tied t = {0};
    RANK_OK(make_tied(&t, r->device));
    ((borrower *)pc_module_data(t.block))->late = true;
    pc_ddp *ddp = pc_ddp(t.net, r->group, .bucket_mb = 1e-6);
    RANK_TRUE(ddp && (t.sgd = pc_sgd(t.net, .lr = 1)));
    PC_SCOPE {
        t.x = pc_ones(PC_SHAPE(2, TIED), PC_F32, r->device);
        RANK_TRUE(learn_tied(&t) == PC_ERR_STATE);
        RANK_TRUE(strstr(pc_error_last()->message, "a parameter of shape [32, 32]"));
        pc_error_clear();
    }
    pc_ddp_free(ddp);
    free_tied(&t);
}

static void other_weights_computed_again(void **state)
{
    (void)state;
    const int most = ranks_most();
    for (int n = 1; n <= most && n <= 2; n++)
        ranks_work(n, uses_late, NULL);
}

static void clipped_steps(void **state)
{
    (void)state;
    ranks_learn_what_one_learns((job){.network = "cnn", .clip = 0.1, .recorded = true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_steps),
        cmocka_unit_test(recorded_steps),
        cmocka_unit_test(accumulated_steps),
        cmocka_unit_test(clipped_steps),
        cmocka_unit_test(recordings_follow_the_switch),
        cmocka_unit_test(networks_stay),
        cmocka_unit_test(what_is_frozen_stays),
        cmocka_unit_test(what_was_left_before_is_dropped),
        cmocka_unit_test(zero_stages),
        cmocka_unit_test(computed_again),
        cmocka_unit_test(zero_accumulates),
        cmocka_unit_test(tied_weights_computed_again),
        cmocka_unit_test(other_weights_computed_again),
    };
    return cmocka_run_group_tests(tests, ranks_begin, ranks_end);
}

/* Gradients that are reduced in 16 bits: their mean is rounded to those, and nothing else is. */
#include "dist/threads.h"

enum { INPUTS = 3, OUTPUTS = 2 };

typedef struct job {
    pc_dtype reduce, weights;
    int zero; /* stage; 0: pc_ddp */
    bool recorded;
    int passes;  /* in front of a step */
    double step; /* from one gradient to the next of a weight */
    double big;  /* added to gradients of rank 0 */
    double want; /* of it, in the mean of two ranks */
} job;

typedef struct learner {
    const job *job;
    pc_module *net;
    pc_ddp *ddp;
    pc_zero *zero;
    pc_optimizer *sgd;
    pc_tensor *x;
} learner;

/* The gradient of each weight is its input, of each bias 1. */
static pc_status learn(void *user)
{
    const learner *l = user;
    pc_status status = PC_OK;
    for (int i = 0; i < l->job->passes && status == PC_OK; i++)
        PC_SCOPE {
            if (l->ddp)
                pc_ddp_set_sync(l->ddp, i == l->job->passes - 1);
            status = pc_backward(pc_sum(pc_forward(l->net, l->x)));
        }
    if (status == PC_OK)
        status = l->zero ? pc_zero_step(l->zero, l->sgd) : pc_optimizer_step(l->sgd);
    return status;
}

static pc_tensor *inputs(const rank_work *r, const job *j)
{
    pc_tensor *x = pc_full(PC_SHAPE(1, INPUTS), r->rank ? j->step : j->step + j->big, j->weights, r->device);
    return pc_tensor_retain(x);
}

static bool begin(learner *l, const rank_work *r)
{
    const job *j = l->job;
    pc_seed(5);
    l->net = pc_sequential(pc_linear(INPUTS, OUTPUTS));
    if (!l->net || pc_module_to(l->net, r->device, j->weights) != PC_OK)
        return false;
    pc_tensor *weight = pc_module_parameter(l->net, "0.weight"), *bias = pc_module_parameter(l->net, "0.bias");
    PC_NO_GRAD {
        if (!weight || !bias || pc_fill(weight, 0) != PC_OK || pc_fill(bias, 0) != PC_OK)
            return false;
    }
    if (j->zero)
        l->zero = pc_zero(l->net, r->group, .stage = j->zero, .reduce_dtype = j->reduce);
    else
        l->ddp = pc_ddp(l->net, r->group, .reduce_dtype = j->reduce);
    l->sgd = l->ddp || l->zero ? pc_sgd(l->zero ? pc_zero_part(l->zero) : l->net, .lr = 1) : NULL;
    l->x = inputs(r, j);
    return l->sgd && l->x;
}

static void compare(rank_work *r, learner *l)
{
    double w[INPUTS * OUTPUTS], b[OUTPUTS];
    const job *j = l->job;
    pc_tensor *weight = pc_module_parameter(l->net, "0.weight"), *bias = pc_module_parameter(l->net, "0.bias");
    RANK_TRUE(!l->zero || pc_zero_gather(l->zero) == PC_OK);
    RANK_TRUE(pc_read(pc_to(weight, PC_DEVICE_CPU, PC_F64, false), w, sizeof w) == PC_OK);
    RANK_TRUE(pc_read(pc_to(bias, PC_DEVICE_CPU, PC_F64, false), b, sizeof b) == PC_OK);
    RANK_TRUE(!l->zero || pc_zero_release(l->zero) == PC_OK);
    for (int i = 0; i < INPUTS * OUTPUTS; i++)
        RANK_TRUE(w[i] == -j->want);
    for (int i = 0; i < OUTPUTS; i++)
        RANK_TRUE(b[i] == -j->passes);
}

static void end(learner *l)
{
    pc_tensor_free(l->x);
    pc_optimizer_free(l->sgd);
    pc_zero_free(l->zero);
    pc_ddp_free(l->ddp);
    pc_module_free(l->net);
}

static void work(rank_work *r)
{
    learner l = {.job = r->context};
    PC_SCOPE {
        RANK_TRUE(begin(&l, r));
        if (l.job->recorded) {
            pc_step *step = pc_step_new(learn, &l, l.sgd);
            RANK_TRUE(step && pc_step_run(step) == PC_OK && !pc_step_why(step));
            pc_step_free(step);
        } else {
            RANK_TRUE(learn(&l) == PC_OK);
        }
        compare(r, &l);
    }
    end(&l);
}

static void one_case(job j)
{
    if (ranks_most() < 2)
        skip();
    ranks_work(2, work, &j);
}

/* 256 and 514 are bfloat16s: their mean, 385, is not. */
static void means_are_rounded(void **state)
{
    (void)state;
    for (int zero = 0; zero < 4; zero++)
        for (int recorded = 0; recorded < 2; recorded++) {
            const job all = {.weights = PC_F32, .zero = zero, .recorded = recorded, .passes = 1, .step = 256};
            job j = all;
            j.big = 258, j.want = 385;
            one_case(j);
            j.reduce = PC_BF16, j.want = 384;
            one_case(j);
            j.reduce = PC_F16, j.want = 385;
            one_case(j);
        }
}

/* 257 is none. */
static void gradients_are_rounded(void **state)
{
    (void)state;
    one_case((job){.weights = PC_F32, .reduce = PC_BF16, .passes = 1, .step = 257, .want = 256});
    one_case((job){.weights = PC_F32, .passes = 1, .step = 257, .want = 257});
    one_case((job){.weights = PC_F64, .reduce = PC_BF16, .passes = 1, .step = 257, .want = 257});
    one_case((job){.weights = PC_BF16, .reduce = PC_F16, .passes = 1, .step = 1024, .want = 1024});
}

/* pc_ddp adds up in float32 and reduces once; parts of pc_zero are added up in float32 behind it. */
static void passes_add_up(void **state)
{
    (void)state;
    one_case((job){.weights = PC_F32, .reduce = PC_BF16, .passes = 3, .step = 257, .want = 772});
    for (int zero = 1; zero < 4; zero++)
        one_case((job){.weights = PC_F32, .reduce = PC_BF16, .zero = zero, .passes = 3, .step = 257, .want = 768});
}

static void refuse(rank_work *r)
{
    PC_SCOPE {
        pc_module *net = pc_linear(2, 2);
        RANK_TRUE(net && pc_module_to(net, r->device, PC_F32) == PC_OK);
        RANK_TRUE(!pc_ddp(net, r->group, .reduce_dtype = PC_I32) && pc_error_last()->status == PC_ERR_ARGUMENT);
        RANK_TRUE(strstr(pc_error_last()->message, "pc_ddp_new: gradients are reduced in bfloat16 or float16"));
        pc_error_clear();
        RANK_TRUE(!pc_zero(net, r->group, .reduce_dtype = PC_F64) && pc_error_last()->status == PC_ERR_ARGUMENT);
        pc_error_clear();
        pc_module_free(net);
    }
}

static void other_dtypes_are_refused(void **state)
{
    (void)state;
    if (ranks_most() < 2)
        skip();
    ranks_work(2, refuse, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(means_are_rounded), cmocka_unit_test(gradients_are_rounded),
                                       cmocka_unit_test(passes_add_up), cmocka_unit_test(other_dtypes_are_refused)};
    return cmocka_run_group_tests_name("dist.narrow", tests, ranks_begin, ranks_end);
}

/* What goes wrong in one stage of a pipeline is told in all, by its name, and nobody waits for ever. */
#include "dist/threads.h"
#include "failing.h"

#include <time.h>

/* What goes wrong in one of three stages. */
typedef struct fault {
    const char *kind, *words; /* what all ranks are told, whichever it is in */
    int rank, calls;
    double limit; /* seconds */
} fault;

static pc_tensor *may_fail(void *context, pc_tensor *x)
{
    fault *f = context;
    const int call = f->calls++;
    if (strcmp(f->kind, "fails") == 0 && call == 3)
        return pc_full(PC_SHAPE(-2), 1, PC_F32, pc_tensor_device(x));
    if (strcmp(f->kind, "shape") == 0 && call == 6)
        return pc_reshape(x, PC_SHAPE(-1, 4));
    if (strcmp(f->kind, "integers") == 0)
        return pc_cast(x, PC_I64);
    return x;
}

static pc_tensor *bad_loss(void *context, pc_tensor *y, pc_tensor *target)
{
    const fault *f = context;
    if (strcmp(f->kind, "none") == 0)
        return NULL;
    return strcmp(f->kind, "vector") == 0 ? pc_mul(y, y) : pc_mse(y, target);
}

static pc_status two_steps(rank_work *r, const fault *f, pc_pipeline *pipe)
{
    pc_status status = PC_OK;
    for (int step = 0; step < 2 && status == PC_OK; step++)
        PC_SCOPE {
            int64_t n = strcmp(f->kind, "batch") == 0 && step ? 7 : 8;
            n = strcmp(f->kind, "few") == 0 ? 3 : n;
            pc_tensor *x = r->rank ? NULL : pc_ones(PC_SHAPE(n, 8), PC_F32, r->device);
            pc_tensor *y = r->rank < r->size - 1 ? NULL : pc_ones(PC_SHAPE(n, 8), PC_F32, r->device);
            if (strcmp(f->kind, "no x") == 0)
                x = NULL;
            else if (strcmp(f->kind, "target") == 0 && y)
                y = pc_ones(PC_SHAPE(9, 8), PC_F32, r->device);
            if (strcmp(f->kind, "no gradients") == 0)
                PC_NO_GRAD {
                    status = pc_pipeline_step(pipe, x, y, NULL);
                }
            else
                status = pc_pipeline_step(pipe, x, y, NULL);
        }
    return status;
}

static void with_fault(rank_work *r)
{
    fault f = *(const fault *)r->context;
    if (r->rank != f.rank)
        f.kind = "";
    RANK_OK(pc_group_set_timeout(r->group, 20));
    pc_module *net = pc_sequential(pc_linear(8, 8), pc_function_module(may_fail, &f));
    RANK_OK(pc_module_to(net, r->device, PC_F32));
    const int microbatches = strcmp(f.kind, "differ") == 0 ? 3 : strcmp(f.kind, "negative") == 0 ? -1 : 4;
    const bool no_loss = strcmp(f.kind, "no loss") == 0;
    pc_pipeline *pipe = pc_pipeline(net, r->group, no_loss ? NULL : bad_loss, &f, .microbatches = microbatches,
                                    .schedule = strcmp(f.kind, "schedule") == 0 ? PC_PIPELINE_SCHEDULES : 0);
    if (pipe && two_steps(r, &f, pipe) == PC_OK && pc_device_synchronize(r->device) == PC_OK)
        (void)snprintf(r->error.message, sizeof r->error.message, "no error");
    else
        r->error = *pc_error_last();
    pc_pipeline_free(pipe);
    pc_module_free(net);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void all_are_told(fault f)
{
    enum { STAGES = 3 };
    rank_work ranks[RANKS_MAX];
    if (ranks_most() < STAGES)
        return;
    const double start = seconds();
    ranks_run(STAGES, ranks, with_fault, &f);
    const double took = seconds() - start;
    for (int i = 0; i < STAGES; i++)
        if (!strstr(ranks[i].error.message, f.words))
            fail_msg("%s: rank %d should be told \"%s\", and has \"%s\"", f.kind, i, f.words, ranks[i].error.message);
    if (took > 10)
        fail_msg("%s: ranks waited %g s for each other", f.kind, took);
}

static void stages_that_fail(void **state)
{
    (void)state;
    for (int rank = 0; rank < 3; rank++) {
        char words[64];
        snprintf(words, sizeof words, "stage %d, microbatch 3, forward: ", rank);
        all_are_told((fault){.kind = "fails", .rank = rank, .words = words});
    }
    all_are_told((fault){.kind = "shape",
                         .rank = 1,
                         .words =
                             "stage 1, microbatch 2, forward: makes float32 [4, 4], and made float32 [2, 8] in the "
                             "first step"});
    all_are_told((fault){.kind = "integers", .rank = 0, .words = "stage 0, microbatch 0, forward: makes int64; "});
    all_are_told((fault){.kind = "none",
                         .rank = 2,
                         .words = "stage 2, microbatch 0, loss: the loss function returned NULL without an error"});
    all_are_told(
        (fault){.kind = "vector",
                .rank = 2,
                .words = "stage 2, microbatch 0, loss: the loss is float32 [2, 8]; it is one floating number"});
}

static void batches_that_do_not_fit(void **state)
{
    (void)state;
    all_are_told((fault){.kind = "batch", .rank = 0, .words = "stage 0: pc_pipeline_step: a batch of 7 samples, and"});
    all_are_told((fault){.kind = "few", .rank = 0, .words = "3 samples are too few for 4 microbatches"});
    all_are_told((fault){.kind = "no x", .rank = 0, .words = "the first stage needs x"});
    all_are_told(
        (fault){.kind = "target", .rank = 2, .words = "loss: the target is [9, 8], and the batch has 8 samples"});
    all_are_told((fault){.kind = "no gradients", .rank = 1, .words = "stage 1: pc_pipeline_step inside PC_NO_GRAD"});
}

static void ranks_that_differ(void **state)
{
    (void)state;
    all_are_told((fault){.kind = "differ",
                         .rank = 2,
                         .words = "rank 0 has 4 microbatches, schedule 0, share_loss 0, and rank 2 has 3, 0, 0"});
    all_are_told((fault){.kind = "negative", .rank = 1, .words = "-1 microbatches; it is 0"});
    all_are_told((fault){.kind = "schedule", .rank = 1, .words = "there is no schedule 2"});
    all_are_told((fault){.kind = "no loss", .rank = 2, .words = "the last stage needs a loss function"});
}

/* What a device finds out behind the call ends by the group's time-out, or at the rank's next call. */
static void loses_a_kernel(rank_work *r)
{
    fault f = {.kind = ""};
    RANK_OK(pc_group_set_timeout(r->group, 1));
    pc_module *net = pc_sequential(pc_linear(8, 8), pc_linear(8, 8));
    RANK_OK(pc_module_to(net, r->device, PC_F32));
    pc_pipeline *pipe = pc_pipeline(net, r->group, bad_loss, &f, .microbatches = 4);
    RANK_TRUE(pipe);
    if (r->rank == 1)
        RANK_OK(pc_sim_inject(r->device, PC_SIM_FAIL_KERNEL, 60));
    pc_status status = PC_OK;
    for (int step = 0; step < 20 && status == PC_OK; step++)
        status = two_steps(r, &f, pipe);
    if (status == PC_OK)
        status = pc_device_synchronize(r->device);
    r->error = *pc_error_last();
    pc_error_clear();
    pc_pipeline_free(pipe);
    pc_module_free(net);
}

static void a_device_that_fails(void **state)
{
    (void)state;
    rank_work ranks[RANKS_MAX];
    if (test_device().type != PC_SIM)
        skip();
    (void)ranks_most();
    const double start = seconds();
    ranks_run(3, ranks, loses_a_kernel, NULL);
    for (int i = 0; i < 3; i++)
        assert_int_not_equal(ranks[i].error.status, PC_OK);
    assert_true(seconds() - start < 15);
}

/* --- one allocation that fails, in whichever rank --- */

static pc_tensor *mean_square(void *context, pc_tensor *y, pc_tensor *target)
{
    (void)context;
    return pc_mse(y, target);
}

typedef struct short_work {
    int allocation;
    pthread_barrier_t here;
} short_work;

static pc_status with_a_tie(pc_pipeline *pipe, pc_module *net, pc_optimizer *sgd, pc_tensor *x)
{
    pc_status status = pc_pipeline_tie(pipe, pc_module_parameter(net, "0.weight"));
    for (int step = 0; step < 2 && status == PC_OK; step++)
        PC_SCOPE {
            pc_tensor *mean;
            status = pc_pipeline_step(pipe, x, x, &mean);
            if (status == PC_OK)
                status = pc_pipeline_update(pipe, sgd);
        }
    return status;
}

static void short_of_memory(rank_work *r)
{
    short_work *w = r->context;
    pc_module *net = pc_sequential(pc_linear(4, 4), pc_activation(PC_ACTIVATION_TANH));
    pc_optimizer *sgd = pc_sgd(net, .lr = 0.1);
    pc_tensor *x = pc_ones(PC_SHAPE(5, 4), PC_F32, r->device);
    pthread_barrier_wait(&w->here);
    if (r->rank == 0)
        countdown = w->allocation;
    pthread_barrier_wait(&w->here);
    pc_pipeline *pipe = pc_pipeline(net, r->group, mean_square, NULL, .microbatches = 3, .share_loss = true);
    const bool fine = pipe && with_a_tie(pipe, net, sgd, x) == PC_OK;
    pc_pipeline_free(pipe);
    pc_tensor_free(x);
    pc_optimizer_free(sgd);
    pc_module_free(net);
    if (fine == pc_failed()) {
        r->error = (pc_error){.status = PC_ERR_STATE};
        snprintf(r->error.message, sizeof r->error.message, "%s, and the error is: %.400s",
                 fine ? "all is fine" : "failed", pc_error_last()->message);
    }
    pc_error_clear();
}

static void nothing_is_left(void)
{
    assert_ok(pc_memory_trim(PC_DEVICE_CPU));
    assert_int_equal(pc_allocator_live(), 0);
}

static void an_allocation_that_fails(void **state)
{
    (void)state;
    only_on_the_cpu();
    if (ranks_are_processes())
        skip();
    nothing_is_left();
    assert_ok(pc_allocator_set(&failing));
    short_work w = {0};
    pthread_barrier_init(&w.here, NULL, 2);
    for (bool reached = true; reached; w.allocation++) {
        const double start = seconds();
        ranks_work(2, short_of_memory, &w);
        reached = countdown < 0;
        countdown = -1;
        assert_true(seconds() - start < 10);
        nothing_is_left();
    }
    assert_true(w.allocation > 100);
    pthread_barrier_destroy(&w.here);
    assert_ok(pc_allocator_set(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_that_fail),         cmocka_unit_test(batches_that_do_not_fit),
        cmocka_unit_test(ranks_that_differ),        cmocka_unit_test(a_device_that_fails),
        cmocka_unit_test(an_allocation_that_fails),
    };
    return cmocka_run_group_tests(tests, ranks_begin, ranks_end);
}

/* ZeRO's stages: where weights are, who may use them, what memory they take; gradients in 16 bits. */
#include "device/trace.h"
#include "dist/journal.h"
#include "dist/threads.h"
#include "dist/zero.h"
#include "parallel/zero_state.h"

#include <math.h>
#include <paracord/tensor_parallel.h>

enum { LAYERS = 16, WIDTH = 96, ROWS = 4, STEPS = 3 };

typedef struct trial {
    int stage; /* 0: pc_ddp */
    bool half, recorded;
    int ahead;
    float *want;     /* weights, which pc_ddp leaves */
    int64_t *memory; /* of rank 0's device behind the steps */
} trial;

static pc_module *network(pc_device device)
{
    return square_layers(device, LAYERS, WIDTH);
}

typedef struct learner {
    const trial *trial;
    pc_module *net;
    pc_optimizer *optimizer;
    pc_zero *zero;
    pc_tensor *x;
} learner;

static pc_status learn(void *user)
{
    const learner *l = user;
    return learn_squares(l->net, l->x, l->trial->half, l->zero, l->optimizer);
}

/* --- what a step and its passes tell each other --- */

/* Of this rank since `from`. */
static int all_reduces(const rank_work *r, int64_t from)
{
    pc__journal_entry *entries = calloc(PC__JOURNAL_CALLS, sizeof *entries);
    int found = 0;
    const int n = entries ? pc__journal_read(entries, PC__JOURNAL_CALLS) : 0;
    for (int i = 0; i < n; i++)
        found += entries[i].rank == r->rank && entries[i].size == r->size &&
                 PC__MAX(entries[i].queued, entries[i].entered) >= from &&
                 strcmp(pc__journal_op(&entries[i]), "all_reduce") == 0;
    free(entries);
    return found;
}

/* Which parameters ranks lack is told once a step, not in each pass that adds to the gradients. */
static void tell_once(rank_work *r)
{
    const trial *t = r->context;
    learner l = {.trial = t, .net = network(r->device)};
    l.zero = pc_zero(l.net, r->group, .stage = t->stage);
    l.optimizer = pc_sgd(pc_zero_part(l.zero), .lr = 0.01);
    RANK_TRUE(l.zero && l.optimizer);
    RANK_OK(pc_group_barrier(r->group));
    const int64_t from = pc__now();
    for (int i = 0; i < 3; i++)
        PC_SCOPE {
            pc_tensor *x = pc_ones(PC_SHAPE(ROWS, WIDTH), PC_F32, r->device);
            RANK_OK(pc_backward(pc_mean(pc_square(pc_forward(l.net, x)))));
        }
    RANK_OK(pc_zero_step(l.zero, l.optimizer));
    RANK_OK(pc_stream_synchronize(pc_stream_current(r->device)));
    RANK_TRUE(all_reduces(r, from) == 1);
    pc_optimizer_free(l.optimizer);
    pc_zero_free(l.zero);
    pc_module_free(l.net);
}

static void passes_tell_nothing(void **state)
{
    (void)state;
    for (int stage = 1; stage <= 3; stage++)
        if (ranks_most() >= 2)
            ranks_work(2, tell_once, &(trial){.stage = stage});
}

/* --- weights that are elsewhere --- */

static void weights_are_elsewhere(rank_work *r)
{
    const trial t = {.stage = 3};
    learner l = {.trial = &t, .net = network(r->device)};
    pc_parameter first[1];
    l.zero = pc_zero(l.net, r->group, .stage = 3, .bucket_mb = 1e-4);
    RANK_TRUE(l.zero && pc_module_parameter_list(l.net, first, 1) >= 1);
    pc_tensor *w = first[0].tensor;
    PC_SCOPE {
        PC_NO_GRAD {
            RANK_TRUE(pc_fill(w, 1) == PC_ERR_STATE && strstr(pc_error_last()->message, "pc_zero_gather"));
            pc_error_clear();
            float all[WIDTH * WIDTH];
            RANK_TRUE(pc_read(w, all, sizeof all) == PC_ERR_STATE &&
                      strstr(pc_error_last()->message, "pc_zero_gather"));
            pc_error_clear();

            /* What is written between the two counts, and all ranks have it. */
            RANK_OK(pc_zero_gather(l.zero));
            RANK_OK(pc_zero_gather(l.zero));
            RANK_OK(pc_fill(w, 0.5));
            RANK_OK(pc_zero_release(l.zero));
            RANK_OK(pc_zero_release(l.zero));
            RANK_TRUE(pc_read(w, all, sizeof all) == PC_ERR_STATE);
            pc_error_clear();
            RANK_OK(pc_zero_gather(l.zero));
            RANK_OK(pc_read(w, all, sizeof all));
            for (int i = 0; i < WIDTH * WIDTH; i++)
                RANK_TRUE(all[i] == 0.5f);
            RANK_OK(pc_zero_release(l.zero));

            /* A call that uses all of them has all of them. */
            pc_parameter list[2 * LAYERS];
            RANK_TRUE(pc_module_parameter_list(l.net, list, 2 * LAYERS) == 2 * LAYERS);
            pc_tensor *rows[2 * LAYERS];
            for (int i = 0; i < 2 * LAYERS; i++)
                rows[i] = pc_reshape(list[i].tensor, PC_SHAPE(pc_tensor_count(list[i].tensor)));
            RANK_TRUE(pc_cat(rows, 2 * LAYERS, 0) != NULL);
        }
    }
    pc_zero_free(l.zero);
    RANK_TRUE(pc_sum(w) == NULL && pc_error_last()->status == PC_ERR_STATE);
    pc_error_clear();
    pc_module_free(l.net);
}

static void elsewhere(void **state)
{
    (void)state;
    for (int n = 2; n <= ranks_most() && n <= 4; n++)
        ranks_work(n, weights_are_elsewhere, NULL);
}

/* --- memory, and 16 bits --- */

static void train(rank_work *r)
{
    const trial *t = r->context;
    learner l = {.trial = t, .net = network(r->device)};
    pc_ddp *ddp = NULL;
    if (t->stage)
        RANK_TRUE(l.zero = pc_zero(l.net, r->group, .stage = t->stage, .bucket_mb = 0.03, .ahead = t->ahead));
    else
        RANK_TRUE(ddp = pc_ddp(l.net, r->group, .bucket_mb = 0.03));
    RANK_TRUE(l.optimizer = pc_adam(l.zero ? pc_zero_part(l.zero) : l.net, .lr = 0.01));
    RANK_TRUE(l.x = pc_full(PC_SHAPE(ROWS, WIDTH), 0.1 * (r->rank + 1), PC_F32, r->device));
    pc_step *step = t->recorded ? pc_step_new(learn, &l, l.optimizer) : NULL;
    for (int i = 0; i < STEPS; i++)
        RANK_OK(step ? pc_step_run(step) : learn(&l));
    RANK_TRUE(!step || !pc_step_why(step));
    pc_memory_stats stats;
    RANK_OK(pc_device_synchronize(r->device));
    RANK_OK(pc_memory_query(r->device, &stats));
    if (r->rank == 0 && r->device.type != PC_CPU)
        *t->memory = stats.in_use;
    if (l.zero)
        RANK_OK(pc_zero_gather(l.zero));
    pc_parameter list[2 * LAYERS];
    float got[WIDTH * WIDTH];
    RANK_TRUE(pc_module_parameter_list(l.net, list, 2 * LAYERS) == 2 * LAYERS);
    for (int i = 0; i < LAYERS; i++) {
        float *want = t->want + i * WIDTH * WIDTH;
        RANK_OK(pc_read(list[2 * i].tensor, got, sizeof got));
        if (!t->stage && (r->rank == 0 || ranks_are_processes()))
            memcpy(want, got, sizeof got);
        for (int k = 0; k < WIDTH * WIDTH && t->stage; k++)
            RANK_TRUE(got[k] - want[k] < 3e-6f && want[k] - got[k] < 3e-6f);
    }
    pc_step_free(step);
    pc_tensor_free(l.x);
    pc_optimizer_free(l.optimizer);
    pc_ddp_free(ddp);
    pc_zero_free(l.zero);
    pc_module_free(l.net);
}

/* By stage, behind recorded or plain steps: what it promises, and some buckets. */
static void assert_shared_out(const int64_t memory[4], int n, bool half)
{
    const int64_t whole = LAYERS * WIDTH * WIDTH * 4, layer = whole / LAYERS;
    const bool adam = memory[1] < memory[0] + whole / n - whole + whole / 4;
    const bool gradients = memory[2] < memory[1] - whole + 4 * layer;
    const bool weights = memory[3] < memory[2] - (whole - whole / n) * (half ? 0.8 : 1) + 6 * layer;
    if (!adam || !gradients || !weights)
        print_error("%d ranks, weights of %lld bytes, %s bits: pc_ddp %lld, stages %lld, %lld, %lld\n", n,
                    (long long)whole, half ? "16" : "32", (long long)memory[0], (long long)memory[1],
                    (long long)memory[2], (long long)memory[3]);
    assert_true(adam && gradients && weights);
}

/* Rounding of Adam's first steps is all that may differ. */
static void stages_learn_the_same(void **state)
{
    (void)state;
    static float want[LAYERS * WIDTH * WIDTH];
    const int n = ranks_most() < 4 ? ranks_most() : 4;
    for (int half = 0; half <= 1; half++)
        for (int recorded = 0; recorded <= 1; recorded++) {
            int64_t memory[4] = {0};
            for (int stage = 0; stage <= 3; stage++) {
                trial t = {.ahead = recorded,
                           .stage = stage,
                           .half = half,
                           .recorded = recorded,
                           .want = want,
                           .memory = &memory[stage]};
                ranks_work(n, train, &t);
            }
            const bool ahead = test_device().type == PC_CUDA && !recorded; /* of the device, with memory of its own */
            if (test_device().type != PC_CPU && n > 1 && !ranks_are_processes() && !ahead && !getenv("PARACORD_CACHE"))
                assert_shared_out(memory, n, half);
        }
}

/* --- buffers --- */

static void share_buffers(rank_work *r)
{
    const int *stage = r->context;
    pc_seed(5);
    pc_module *net = pc_sequential(pc_linear(WIDTH, WIDTH), pc_batch_norm1d(WIDTH), pc_linear(WIDTH, WIDTH));
    RANK_OK(pc_module_to(net, r->device, PC_F32));
    pc_zero *zero = pc_zero(net, r->group, .stage = *stage);
    pc_parameter list[16];
    const int count = pc_module_state_list(net, list, 16);
    RANK_TRUE(zero && count == 9);
    for (int i = 0; i < count; i++)
        if (strstr(list[i].name, "running_mean"))
            RANK_OK(pc_fill(list[i].tensor, r->rank + 0.5));
    RANK_OK(pc_zero_share_buffers(zero));
    float mean[WIDTH];
    for (int i = 0; i < count; i++)
        if (strstr(list[i].name, "running_mean"))
            RANK_OK(pc_read(list[i].tensor, mean, sizeof mean));
    for (int i = 0; i < WIDTH; i++)
        RANK_TRUE(mean[i] == 0.5f);
    pc_zero_free(zero);
    pc_module_free(net);
}

static void buffers_are_shared(void **state)
{
    (void)state;
    for (int stage = 1; stage <= 3; stage++)
        for (int n = 1; n <= ranks_most() && n <= 3; n++)
            ranks_work(n, share_buffers, &stage);
}

/* --- pieces --- */

enum { NUMBERS = WIDTH * WIDTH };

typedef struct numbered {
    int seen;
    double more;
} numbered;

/* What parameter i is told to have: element k is a number of its own. */
static float number_at(const numbered *n, int i, int k)
{
    return (float)(i * NUMBERS + k + n->more);
}

static pc_status give(void *context, int i, pc_tensor *whole)
{
    numbered *n = context;
    static _Thread_local float x[NUMBERS];
    for (int k = 0; k < pc_tensor_count(whole); k++)
        x[k] = number_at(n, i, k);
    n->seen++;
    return pc_copy(whole, pc_from_data(x, pc_tensor_shape(whole), PC_F32, PC_DEVICE_CPU));
}

static pc_status look(void *context, int i, pc_tensor *whole)
{
    numbered *n = context;
    static _Thread_local float x[NUMBERS];
    const pc_status status = pc_read(whole, x, (size_t)pc_tensor_count(whole) * sizeof *x);
    bool same = status == PC_OK;
    for (int k = 0; same && k < pc_tensor_count(whole); k++)
        same = x[k] == number_at(n, i, k);
    n->seen += same;
    return status;
}

/* What is cut to pieces comes together again: of an optimiser's slots, and of weights, which calls then use. */
static void cut_and_gather(rank_work *r)
{
    const int *stage = r->context;
    pc_module *net = network(r->device);
    pc_zero *zero = pc_zero(net, r->group, .stage = *stage, .bucket_mb = 0.05);
    RANK_TRUE(zero != NULL);
    const pc__piece *pieces;
    const int count = pc__zero_pieces(zero, &pieces), whole = pc__zero_parameters(zero);
    pc_tensor *slots[2 * LAYERS], *weights[2 * LAYERS];
    RANK_TRUE(count <= 2 * LAYERS && whole == 2 * LAYERS && pc__zero_stage(zero) == *stage);
    for (int i = 0; i < count; i++) {
        weights[i] = pieces[i].weights;
        slots[i] = pc_zeros(pc_tensor_shape(weights[i]), PC_F32, r->device);
        RANK_TRUE(slots[i] != NULL);
    }
    numbered n = {.more = 7};
    PC_SCOPE {
        RANK_OK(pc__zero_cut_pieces(zero, slots, give, &n));
        RANK_TRUE(n.seen == whole);
        RANK_OK(pc__zero_gather_pieces(zero, slots, look, &n));
        RANK_TRUE(n.seen == 2 * whole);
        n.more = 1;
        RANK_OK(pc__zero_set_weights(zero, give, &n));
        RANK_OK(pc__zero_gather_pieces(zero, weights, look, &n));
        RANK_TRUE(n.seen == 4 * whole);
        pc_parameter list[2 * LAYERS];
        RANK_TRUE(pc_module_parameter_list(net, list, 2 * LAYERS) == whole);
        RANK_OK(pc_zero_gather(zero));
        for (int i = 0; i < whole; i++)
            RANK_OK(look(&n, i, list[i].tensor));
        RANK_TRUE(n.seen == 5 * whole);
        RANK_OK(pc_zero_release(zero));
    }
    for (int i = 0; i < count; i++)
        pc_tensor_free(slots[i]);
    pc_zero_free(zero);
    pc_module_free(net);
}

static void pieces_come_together(void **state)
{
    (void)state;
    for (int stage = 1; stage <= 3; stage++)
        for (int n = 1; n <= ranks_most() && n <= 4; n++)
            ranks_work(n, cut_and_gather, &stage);
}

/* --- the norm of all parts --- */

/* Gradients whose squares no float32 number has: with stage 0 of a network that is cut among the ranks. */
static void clip_in_float64(rank_work *r)
{
    const int stage = *(const int *)r->context;
    const double norm = 1e39 * sqrt(16 * 8);
    pc_module *net = stage ? pc_linear(8, 16, .no_bias = true) : pc_column_linear(8, 16, r->group, .no_bias = true);
    RANK_OK(pc_module_to(net, r->device, PC_F64));
    pc_tensor *w = pc_module_parameter(net, "weight");
    PC_NO_GRAD
        RANK_OK(pc_fill(w, 0));
    pc_zero *zero = stage ? pc_zero(net, r->group, .stage = stage) : NULL;
    pc_optimizer *sgd = pc_sgd(zero ? pc_zero_part(zero) : net, .lr = 1);
    RANK_TRUE(sgd && (zero || !stage));
    RANK_OK(stage ? pc_optimizer_set_clip(sgd, PC_CLIP_NORM, 2) : pc_tensor_parallel_clip(net, sgd, 2));
    PC_SCOPE {
        RANK_OK(pc_backward(pc_sum(pc_mul_scalar(w, 1e39))));
        RANK_OK(zero ? pc_zero_step(zero, sgd) : pc_optimizer_step(sgd));
        double was = 0;
        RANK_OK(pc_optimizer_gradient_norm(sgd, &was));
        RANK_TRUE(fabs(was / norm - 1) < 1e-14);
        if (zero)
            RANK_OK(pc_zero_gather(zero));
        RANK_TRUE(fabs(pc_item(pc_max(w)) / (-2e39 / norm) - 1) < 1e-14);
        RANK_TRUE(fabs(pc_item(pc_min(w)) / (-2e39 / norm) - 1) < 1e-14);
    }
    pc_optimizer_free(sgd);
    pc_zero_free(zero);
    pc_module_free(net);
}

static void clips_in_float64(void **state)
{
    (void)state;
    for (int stage = 0; stage <= 3; stage++)
        for (int n = 1; n <= ranks_most() && n <= 4; n++)
            if (n != 3) /* rows for all alike */
                ranks_work(n, clip_in_float64, &stage);
}

static pc_zero *wrong_stage(pc_module *net, pc_group *group)
{
    return pc_zero(net, group, .stage = 4);
}

/* Groups go by the parameters' own names, however long: what is frozen by one stays, by a rank's optimiser too. */
static void name_groups(rank_work *r)
{
    static const char *const last =
        "backbone_of_the_network.0.block_with_a_rather_long_name.attention_projection.weight";
    pc_module *block = pc_module_dict({"attention_projection", pc_linear(WIDTH, WIDTH, .no_bias = true)});
    pc_module *list = pc_sequential(pc_module_dict({"block_with_a_rather_long_name", block}));
    pc_module *net = pc_module_dict({"backbone_of_the_network", list});
    RANK_TRUE(net);
    RANK_OK(pc_module_to(net, r->device, PC_F32));
    pc_zero *zero = pc_zero(net, r->group, .stage = 1);
    pc_parameter part[1];
    RANK_TRUE(zero && pc_module_parameter_list(pc_zero_part(zero), part, 1) == 1);
    RANK_TRUE(strcmp(part->name, last) == 0 && pc_module_parameter(pc_zero_part(zero), last) == part->tensor);
    pc_optimizer *sgd = pc_sgd(pc_zero_part(zero), .lr = 1);
    RANK_OK(pc_optimizer_group(sgd, "backbone_of_the_network.*", .lr_scale = 1e-30));
    pc_tensor *w = pc_module_parameter(net, last);
    PC_SCOPE {
        const double before = pc_item(pc_sum(w));
        RANK_OK(pc_backward(pc_sum(w)));
        RANK_OK(pc_zero_step(zero, sgd));
        RANK_TRUE(pc_item(pc_sum(w)) == before);
    }
    pc_optimizer_free(sgd);
    pc_zero_free(zero);
    pc_module_free(net);
}

static void groups_by_long_names(void **state)
{
    (void)state;
    for (int n = 1; n <= ranks_most() && n <= 2; n++)
        ranks_work(n, name_groups, NULL);
}

/* Rank 2 would have none of it; the network is as it was, in all ranks. */
static void too_few(rank_work *r)
{
    for (int stage = 1; stage <= 3; stage++) {
        pc_module *net = pc_linear(2, 1);
        RANK_OK(pc_module_to(net, r->device, PC_F32));
        PC_NO_GRAD {
            RANK_OK(pc_fill(pc_module_parameter(net, "weight"), 3));
            RANK_OK(pc_fill(pc_module_parameter(net, "bias"), 1));
        }
        RANK_TRUE(!pc_zero(net, r->group, .stage = stage) && pc_error_last()->status == PC_ERR_ARGUMENT);
        RANK_TRUE(strstr(pc_error_last()->message, "too few numbers for 3 ranks: rank 2 would have none"));
        pc_error_clear();
        PC_SCOPE {
            RANK_TRUE(pc_item(pc_sum(pc_forward(net, pc_ones(PC_SHAPE(1, 2), PC_F32, r->device)))) == 7);
        }
        pc_module_free(net);
    }
}

static void networks_that_are_too_small(void **state)
{
    (void)state;
    if (ranks_most() < 3)
        skip();
    ranks_work(3, too_few, NULL);
}

static void refused(rank_work *r)
{
    pc_module *net = network(r->device);
    RANK_TRUE(!wrong_stage(net, r->group) && strstr(pc_error_last()->message, "stages 1 to 3"));
    pc_error_clear();

    /* A scaler that would leave a step out in one rank alone. */
    pc_zero *zero = pc_zero(net, r->group, .stage = 2);
    RANK_TRUE(zero != NULL);
    pc_optimizer *sgd = pc_sgd(pc_zero_part(zero), .lr = .1);
    pc_scaler *scaler = pc_scaler(r->device);
    RANK_TRUE(sgd && scaler);
    RANK_TRUE(pc_scaler_step(scaler, sgd) == PC_ERR_UNSUPPORTED && strstr(pc_error_last()->message, "bfloat16"));
    pc_error_clear();
    RANK_TRUE(pc_scaler_unscale(scaler, sgd) == PC_ERR_UNSUPPORTED);
    pc_error_clear();
    pc_scaler_free(scaler);

    /* Steps by which ranks would part, or that would train nothing. */
    RANK_TRUE(pc_optimizer_step(sgd) == PC_ERR_STATE && strstr(pc_error_last()->message, "pc_zero_step does its step"));
    pc_error_clear();
    pc_optimizer *whole = pc_sgd(net, .lr = .1);
    RANK_TRUE(whole && pc_zero_step(zero, whole) == PC_ERR_ARGUMENT);
    RANK_TRUE(strstr(pc_error_last()->message, "pc_zero_part(zero)"));
    pc_error_clear();
    pc_optimizer_free(whole);
    pc_optimizer_free(sgd);
    pc_zero_free(zero);
    pc_module_free(net);
}

static void what_is_refused(void **state)
{
    (void)state;
    ranks_work(1, refused, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_tell_nothing),   cmocka_unit_test(elsewhere),
        cmocka_unit_test(stages_learn_the_same), cmocka_unit_test(buffers_are_shared),
        cmocka_unit_test(pieces_come_together),  cmocka_unit_test(clips_in_float64),
        cmocka_unit_test(what_is_refused),       cmocka_unit_test(networks_that_are_too_small),
        cmocka_unit_test(groups_by_long_names),
    };
    return cmocka_run_group_tests(tests, ranks_begin, ranks_end);
}

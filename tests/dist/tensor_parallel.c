/* Networks whose weights are cut up among ranks: values, gradients and weights after training are those of the whole network,
 * which each rank trains beside it. */
#include "dist/apart.h"
#include "dist/threads.h"

#include "parallel/cut.h"
#include "failing.h"

#include <math.h>
#include <paracord/data_parallel.h>
#include <paracord/tensor_parallel.h>

enum { ROWS = 10, WIDTH = 12, WIDE = 36, CLASSES = 12, SAMPLES = 14, STEPS = 4, MOST_PARAMETERS = 16 };

/* Without a group the whole network. */
static pc_module *network(pc_group *group)
{
    pc_seed(3);
    if (!group)
        return pc_sequential(pc_embedding(ROWS, WIDTH), pc_linear(WIDTH, WIDE, .activation = PC_ACTIVATION_GELU_TANH),
                             pc_linear(WIDE, WIDTH), pc_layer_norm(PC_SHAPE(WIDTH)),
                             pc_linear(WIDTH, WIDE, .activation = PC_ACTIVATION_RELU),
                             pc_linear(WIDE, WIDTH, .activation = PC_ACTIVATION_TANH), pc_linear(WIDTH, CLASSES));
    return pc_sequential(
        pc_parallel_embedding(ROWS, WIDTH, group),
        pc_column_linear(WIDTH, WIDE, group, .activation = PC_ACTIVATION_GELU_TANH), pc_row_linear(WIDE, WIDTH, group),
        pc_layer_norm(PC_SHAPE(WIDTH)),
        pc_column_linear(WIDTH, WIDE, group, .activation = PC_ACTIVATION_RELU, .gather_output = true, .blocks = 3),
        pc_row_linear(WIDE, WIDTH, group, .activation = PC_ACTIVATION_TANH, .whole_input = true),
        pc_column_linear(WIDTH, CLASSES, group));
}

typedef struct twin {
    pc_module *net;
    pc_optimizer *optimizer;
    pc_tensor *x, *labels, *loss;
    pc_group *group; /* NULL: it is whole */
    pc_zero *zero;   /* NULL: this rank has all of its part */
} twin;

static pc_status learn(void *user)
{
    const twin *t = user;
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *y = pc_forward(t->net, t->x);
        pc_tensor *loss = t->group ? pc_parallel_cross_entropy(y, t->labels, t->group) : pc_cross_entropy(y, t->labels);
        status = pc_backward(loss);
        if (status == PC_OK)
            PC_NO_GRAD {
                status = pc_copy(t->loss, loss);
            }
        if (status == PC_OK && t->optimizer)
            status = t->zero ? pc_zero_step(t->zero, t->optimizer) : pc_optimizer_step(t->optimizer);
    }
    return status;
}

static pc_status begin(twin *t, pc_group *group, pc_device device)
{
    int64_t x[SAMPLES], labels[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) {
        x[i] = (i * 7 + 3) % ROWS;
        labels[i] = i == 4 ? -100 : (i * 5 + 1) % CLASSES;
    }
    *t = (twin){.net = network(group), .group = group};
    t->x = pc_from_data(x, PC_SHAPE(SAMPLES), PC_I64, device);
    t->labels = pc_from_data(labels, PC_SHAPE(SAMPLES), PC_I64, device);
    t->loss = pc_zeros(PC_SHAPE_SCALAR, PC_F32, device);
    return t->net && t->x && t->labels && t->loss ? pc_module_to(t->net, device, PC_F32) : pc_error_last()->status;
}

static void end(twin *t)
{
    pc_optimizer_free(t->optimizer);
    pc_zero_free(t->zero);
    pc_module_free(t->net);
    pc_tensor_free(t->x);
    pc_tensor_free(t->labels);
    pc_tensor_free(t->loss);
}

typedef struct comparison {
    const twin *whole;
    bool gradients;
    int next;
    double off; /* the largest */
} comparison;

static pc_status compare(void *context, const char *name, pc__named *part)
{
    comparison *c = context;
    (void)name;
    pc_parameter list[MOST_PARAMETERS];
    pc_module_parameter_list(c->whole->net, list, MOST_PARAMETERS);
    pc_tensor *want = list[c->next++].tensor, *own = part->object;
    PC_SCOPE {
        PC_NO_GRAD {
            if (c->gradients)
                want = pc_grad(want), own = pc_grad(own);
            own = own && part->cut ? pc_contiguous(pc__cut_join(part->cut, own)) : own;
            c->off = fmax(c->off, apart(want, own));
        }
    }
    return PC_OK;
}

static double all_apart(const twin *whole, const twin *cut, bool gradients)
{
    comparison c = {.whole = whole, .gradients = gradients};
    return pc__module_visit(cut->net, compare, &c) == PC_OK ? c.off : INFINITY;
}

static void one_pass(rank_work *r)
{
    twin whole, cut;
    RANK_OK(begin(&whole, NULL, r->device));
    RANK_OK(begin(&cut, r->group, r->device));
    RANK_TRUE(all_apart(&whole, &cut, false) == 0); /* the same draws */
    RANK_OK(learn(&whole));
    RANK_OK(learn(&cut));
    RANK_TRUE(apart(whole.loss, cut.loss) < 1e-6);
    RANK_TRUE(all_apart(&whole, &cut, true) < 1e-6);
    end(&whole);
    end(&cut);
}

typedef struct job {
    bool recorded, again,
        narrow; /* again: layers are computed once more on the way back; narrow: products in bfloat16 */
    double clip;
    int zero; /* of a grid: its stage; 0: pc_ddp */
} job;

static pc_status learn_narrow(void *user)
{
    pc_status status = PC_OK;
    PC_AUTOCAST(PC_BF16) {
        status = learn(user);
    }
    return status;
}

static void training(rank_work *r)
{
    const job *j = r->context;
    const pc_step_fn function = j->narrow ? learn_narrow : learn;
    const double most = j->narrow ? 3e-3 : 3e-6;
    twin both[2];
    for (int k = 0; k < 2; k++) {
        twin *t = &both[k];
        RANK_OK(begin(t, k ? r->group : NULL, r->device));
        t->optimizer = pc_sgd(t->net, .lr = 0.05, .momentum = 0.9);
        RANK_TRUE(t->optimizer);
        if (j->clip > 0 && k)
            RANK_OK(pc_tensor_parallel_clip(t->net, t->optimizer, j->clip));
        if (j->clip > 0 && !k)
            RANK_OK(pc_optimizer_set_clip(t->optimizer, PC_CLIP_NORM, j->clip));
        for (int i = 1; i < 6 && k && j->again; i++)
            pc_module_set_checkpoint(pc_module_child(t->net, i), true);
        pc_step *step = j->recorded ? pc_step_new(function, t, t->optimizer) : NULL;
        for (int i = 0; i < STEPS; i++)
            RANK_OK(step ? pc_step_run(step) : function(t));
        RANK_TRUE(!step || !pc_step_why(step));
        pc_step_free(step);
    }
    RANK_TRUE(apart(both[0].loss, both[1].loss) < most);
    if (!j->narrow) /* in which the whole network rounds sums that the ranks round in parts */
        RANK_TRUE(all_apart(&both[0], &both[1], false) < most);
    end(&both[0]);
    end(&both[1]);
}

/* Four ranks as a grid: rows have the parts of a network, columns parts of the batch. */
static void grid(rank_work *r)
{
    const job *j = r->context;
    pc_group *row, *column;
    twin whole, cut;
    RANK_OK(pc_group_split(r->group, r->rank / 2, r->rank, &row));
    RANK_OK(pc_group_split(r->group, r->rank % 2, r->rank, &column));
    RANK_OK(begin(&whole, NULL, r->device));
    RANK_OK(begin(&cut, row, r->device));
    PC_SCOPE {
        const int64_t half = SAMPLES / 2, from = half * pc_group_rank(column);
        pc_tensor *labels = pc_masked_fill(whole.labels, pc_lt(whole.labels, pc_scalar(0, PC_I64, r->device)), 1);
        RANK_OK(pc_copy(whole.labels, labels)); /* as many that count in each half: the mean of means is the mean */
        pc_tensor_free(cut.x);
        pc_tensor_free(cut.labels);
        cut.x = pc_tensor_retain(pc_clone(pc_slice(whole.x, 0, from, from + half, 1)));
        cut.labels = pc_tensor_retain(pc_clone(pc_slice(labels, 0, from, from + half, 1)));
    }
    pc_ddp *ddp = j->zero ? NULL : pc_ddp(cut.net, column, .bucket_mb = 1e-3);
    cut.zero = j->zero ? pc_zero(cut.net, column, .bucket_mb = 1e-3, .stage = j->zero) : NULL;
    RANK_TRUE(ddp || cut.zero);
    for (int k = 0; k < 2; k++) {
        twin *t = k ? &cut : &whole;
        t->optimizer = pc_sgd(t->zero ? pc_zero_part(t->zero) : t->net, .lr = 0.05, .momentum = 0.9);
        RANK_TRUE(t->optimizer);
        if (j->clip > 0)
            RANK_OK(ddp && k ? pc_tensor_parallel_clip(t->net, t->optimizer, j->clip)
                             : pc_optimizer_set_clip(t->optimizer, PC_CLIP_NORM, j->clip));
        pc_step *step = j->recorded ? pc_step_new(learn, t, t->optimizer) : NULL;
        for (int i = 0; i < STEPS; i++)
            RANK_OK(step ? pc_step_run(step) : learn(t));
        RANK_TRUE(!step || !pc_step_why(step));
        pc_step_free(step);
    }
    if (cut.zero)
        RANK_OK(pc_zero_gather(cut.zero));
    RANK_TRUE(all_apart(&whole, &cut, false) < 3e-6);
    pc_ddp_free(ddp);
    end(&whole);
    end(&cut);
    RANK_OK(pc_device_synchronize(r->device));
    pc_group_free(row);
    pc_group_free(column);
}

/* Weights of a whole network go into the parts, and come back. */
static void there_and_back(rank_work *r)
{
    twin whole, cut;
    RANK_OK(begin(&whole, NULL, r->device));
    RANK_OK(begin(&cut, r->group, r->device));
    pc_module *other = network(NULL); /* on the CPU, of other weights */
    pc_parameter list[MOST_PARAMETERS];
    const int count = pc_module_parameter_list(other, list, MOST_PARAMETERS);
    for (int i = 0; i < count; i++)
        PC_SCOPE {
            PC_NO_GRAD {
                RANK_OK(pc_copy(list[i].tensor, pc_rand(pc_tensor_shape(list[i].tensor), PC_F32, PC_DEVICE_CPU)));
            }
        }
    RANK_TRUE(all_apart(&whole, &cut, false) == 0);
    RANK_OK(pc_tensor_parallel_cut(cut.net, other));
    RANK_TRUE(all_apart(&whole, &cut, false) > 0.1);
    RANK_OK(pc_tensor_parallel_join(cut.net, r->rank ? NULL : whole.net));
    if (r->rank == 0)
        for (int i = 0; i < count; i++) {
            pc_parameter got[MOST_PARAMETERS];
            pc_module_parameter_list(whole.net, got, MOST_PARAMETERS);
            RANK_TRUE(apart(list[i].tensor, got[i].tensor) == 0);
        }
    pc_module *less = pc_sequential(pc_linear(2, 2));
    RANK_TRUE(pc_tensor_parallel_cut(cut.net, less) == PC_ERR_SHAPE); /* 0.weight is there, and smaller */
    pc_error_clear();
    pc_module_free(less);
    pc_module_free(other);
    end(&whole);
    end(&cut);
}

/* The loss by itself: reductions, ignored labels, columns beyond the classes. */
static void losses(rank_work *r)
{
    static const pc_dtype dtypes[] = {PC_F32, PC_F64, PC_BF16};
    for (int k = 0; k < 3 * 3 * 2; k++)
        PC_SCOPE {
            const pc_dtype dtype = dtypes[k % 3];
            const pc_reduction reduction = k / 3 % 3 == 0   ? PC_REDUCTION_MEAN
                                           : k / 3 % 3 == 1 ? PC_REDUCTION_SUM
                                                            : PC_REDUCTION_NONE;
            const int64_t classes = k / 9 ? 5 : 7, part = (classes + r->size - 1) / r->size, all = part * r->size;
            float x[6 * 64];
            int64_t labels[6];
            for (int i = 0; i < 6 * all; i++)
                x[i] = (float)((i * 37 + i / 5) % 41) * 0.5f - 10;
            for (int i = 0; i < 6; i++)
                labels[i] = i == 3 ? 2 : (i * 3 + 1) % classes;
            pc_tensor *wide = pc_cast(pc_from_data(x, PC_SHAPE(2, 3, all), PC_F32, r->device), dtype);
            pc_tensor *whole = pc_contiguous(pc_reshape(pc_slice(wide, 2, 0, classes, 1), PC_SHAPE(6, classes)));
            pc_tensor *own = pc_contiguous(pc_slice(wide, 2, r->rank * part, (r->rank + 1) * part, 1));
            pc_tensor *y = pc_from_data(labels, PC_SHAPE(2, 3), PC_I64, r->device);
            RANK_OK(pc_require_grad(whole, true));
            RANK_OK(pc_require_grad(own, true));
            pc_tensor *want = pc_fn_cross_entropy(
                whole, pc_reshape(y, PC_SHAPE(6)),
                (pc_fn_cross_entropy_options){.reduction = reduction, .ignore = true, .ignore_index = 2});
            pc_tensor *got = pc_fn_parallel_cross_entropy(
                own, y, r->group,
                (pc_parallel_cross_entropy_options){
                    .reduction = reduction, .ignore = true, .ignore_index = 2, .classes = classes});
            RANK_TRUE(want && got && pc_tensor_dtype(want) == pc_tensor_dtype(got));
            const double most = dtype == PC_BF16 ? 8e-3 : 1e-6;
            PC_NO_GRAD {
                RANK_TRUE(apart(pc_cast(want, PC_F32), pc_cast(pc_reshape(got, pc_tensor_shape(want)), PC_F32)) < most);
            }
            RANK_OK(pc_backward(pc_sum(want)));
            RANK_OK(pc_backward(pc_sum(got)));
            PC_NO_GRAD {
                pc_tensor *g =
                    pc_pad(pc_cast(pc_grad(whole), PC_F32), PC_SHAPE(0), PC_SHAPE(all - classes), PC_PAD_CONSTANT, 0);
                g = pc_contiguous(pc_slice(g, 1, r->rank * part, (r->rank + 1) * part, 1));
                RANK_TRUE(apart(g, pc_contiguous(pc_reshape(pc_cast(pc_grad(own), PC_F32), PC_SHAPE(6, part)))) < most);
            }
        }
}

/* Rows that do not count: all of them, or one of logits that are no numbers. The loss is the plain one's, and so is the gradient. */
static void ignored_rows(rank_work *r)
{
    static const float odd[] = {0, INFINITY, -INFINITY, NAN};
    enum { N = 4, PART = 3 };
    for (int k = 0; k < 2 * PC__COUNT(odd) * 2; k++)
        PC_SCOPE {
            const bool all = k % 2, sum = k / 2 % 2;
            const int classes = PART * r->size;
            float x[N * PART * RANKS_MAX];
            int64_t labels[N] = {1, -100, 0, 2};
            for (int i = 0; i < N * classes; i++)
                x[i] = i / classes == 1 && i % PART == 1 ? odd[k / 4] : sinf((float)i);
            for (int i = 0; i < N && all; i++)
                labels[i] = -100;
            pc_tensor *whole = pc_from_data(x, PC_SHAPE(N, classes), PC_F32, r->device);
            pc_tensor *own = pc_contiguous(pc_slice(whole, 1, r->rank * PART, (r->rank + 1) * PART, 1));
            pc_tensor *y = pc_from_data(labels, PC_SHAPE(N), PC_I64, r->device);
            RANK_OK(pc_require_grad(whole, true));
            RANK_OK(pc_require_grad(own, true));
            const pc_reduction reduction = sum ? PC_REDUCTION_SUM : PC_REDUCTION_MEAN;
            pc_tensor *want = pc_fn_cross_entropy(whole, y, (pc_fn_cross_entropy_options){.reduction = reduction});
            pc_tensor *got = pc_fn_parallel_cross_entropy(own, y, r->group,
                                                          (pc_parallel_cross_entropy_options){.reduction = reduction});
            const double loss = pc_item(got);
            RANK_TRUE(all && !sum ? isnan(loss) && isnan(pc_item(want)) : fabs(loss - pc_item(want)) < 1e-5);
            RANK_OK(pc_backward(want));
            RANK_OK(pc_backward(got));
            pc_tensor *g = pc_contiguous(pc_slice(pc_grad(whole), 1, r->rank * PART, (r->rank + 1) * PART, 1));
            RANK_TRUE(apart(g, pc_grad(own)) < 1e-6);
            pc_zero_grad(own); /* nor does an infinite gradient that arrives make something of 0 */
            RANK_OK(pc_backward(
                pc_mul_scalar(pc_fn_parallel_cross_entropy(own, y, r->group,
                                                           (pc_parallel_cross_entropy_options){.reduction = reduction}),
                              INFINITY)));
            pc_tensor *ignored = pc_slice(pc_grad(own), 0, 1, all ? 4 : 2, 1);
            RANK_TRUE(pc_item(pc_sum(pc_ne(ignored, pc_zeros(PC_SHAPE(all ? 3 : 1, PART), PC_F32, r->device)))) == 0);
        }
}

/* What is no class is told, in every rank, as by the layers that are not cut. */
static void out_of_range(rank_work *r)
{
    const int64_t wrong[2] = {1, ROWS};
    PC_SCOPE {
        pc_tensor *x = pc_from_data(wrong, PC_SHAPE(2), PC_I64, r->device);
        pc_tensor *logits = pc_zeros(PC_SHAPE(2, (ROWS + r->size - 1) / r->size), PC_F32, r->device);
        pc_tensor *loss =
            pc_fn_parallel_cross_entropy(logits, x, r->group, (pc_parallel_cross_entropy_options){.classes = ROWS});
        float v;
        RANK_TRUE(!loss || pc_read(loss, &v, sizeof v) != PC_OK);
        RANK_TRUE(pc_error_last()->status == PC_ERR_RANGE);
        pc_error_clear();
        (void)!pc_device_synchronize(r->device); /* the group's stream is told, too */
        pc_error_clear();
    }
}

static void refused(rank_work *r)
{
    if (r->size != 3)
        return;
    RANK_TRUE(!pc_column_linear(4, 8, r->group));
    RANK_TRUE(pc_error_last()->status == PC_ERR_ARGUMENT && strstr(pc_error_last()->message, "a multiple of 3"));
    pc_error_clear();
    RANK_TRUE(!pc_column_linear(4, 12, r->group, .blocks = 3));
    RANK_TRUE(strstr(pc_error_last()->message, "a multiple of 9"));
    pc_error_clear();
    RANK_TRUE(!pc_row_linear(4, 12, r->group));
    RANK_TRUE(strstr(pc_error_last()->message, "row_linear: 3 ranks cannot share 4 inputs"));
    pc_error_clear();
    RANK_TRUE(!pc_parallel_embedding(0, 12, r->group) && pc_error_last()->status == PC_ERR_ARGUMENT);
    pc_error_clear();
    PC_SCOPE {
        pc_tensor *logits = pc_zeros(PC_SHAPE(2, 3), PC_F32, r->device);
        pc_tensor *labels = pc_zeros(PC_SHAPE(2), PC_I64, r->device), *more = pc_zeros(PC_SHAPE(3), PC_I64, r->device);
        RANK_TRUE(!pc_parallel_cross_entropy(logits, more, r->group) && pc_error_last()->status == PC_ERR_SHAPE);
        pc_error_clear();
        RANK_TRUE(!pc_parallel_cross_entropy(labels, labels, r->group) && pc_error_last()->status == PC_ERR_SHAPE);
        pc_error_clear();
        RANK_TRUE(!pc_parallel_cross_entropy(logits, logits, r->group) && pc_failed());
        pc_error_clear();
        RANK_TRUE(!pc_fn_parallel_cross_entropy(logits, labels, r->group,
                                                (pc_parallel_cross_entropy_options){.classes = 10}) &&
                  strstr(pc_error_last()->message, "1 to 9"));
        pc_error_clear();
    }
}

/* Steps by what one rank alone knows of the gradients: of several ranks none is done, and of one all are. */
static void own_steps(rank_work *r)
{
    twin t;
    RANK_OK(begin(&t, r->group, r->device));
    t.optimizer = pc_sgd(t.net, .lr = 0.1);
    pc_scaler *scaler = pc_scaler(r->device);
    RANK_TRUE(t.optimizer && scaler);
    RANK_OK(pc_optimizer_set_clip(t.optimizer, PC_CLIP_VALUE, 0.1));
    RANK_OK(learn(&t));
    RANK_OK(pc_optimizer_set_clip(t.optimizer, PC_CLIP_NORM, 0.1));
    const pc_status clipped = learn(&t);
    RANK_TRUE(clipped == (r->size > 1 ? PC_ERR_STATE : PC_OK));
    RANK_TRUE(r->size == 1 || strstr(pc_error_last()->message, "pc_tensor_parallel_clip in the place"));
    pc_error_clear();
    RANK_TRUE(pc_scaler_step(scaler, t.optimizer) == (r->size > 1 ? PC_ERR_UNSUPPORTED : PC_OK));
    pc_error_clear();
    RANK_OK(pc_tensor_parallel_clip(t.net, t.optimizer, 0.1));
    RANK_OK(pc_optimizer_set_clip(t.optimizer, PC_CLIP_NORM, 0.2)); /* of the whole, still */
    RANK_OK(learn(&t));
    pc_scaler_free(scaler);
    end(&t);
}

/* A gradient of what is not cut that is infinite: the norm is, its factor is 0, and that parameter alone is lost. */
static void infinite_gradient(rank_work *r)
{
    twin both[2];
    for (int k = 0; k < 2; k++) {
        twin *t = &both[k];
        RANK_OK(begin(t, k ? r->group : NULL, r->device));
        RANK_OK(learn(t));
        t->optimizer = pc_sgd(t->net, .lr = 0.1);
        RANK_TRUE(t->optimizer);
        RANK_OK(k ? pc_tensor_parallel_clip(t->net, t->optimizer, 0.1)
                  : pc_optimizer_set_clip(t->optimizer, PC_CLIP_NORM, 0.1));
        PC_NO_GRAD {
            RANK_OK(pc_fill(pc_grad(pc_module_parameter(t->net, "2.bias")), INFINITY));
        }
        double norm;
        RANK_OK(pc_optimizer_step(t->optimizer));
        RANK_OK(pc_optimizer_gradient_norm(t->optimizer, &norm));
        RANK_TRUE(isinf(norm));
        PC_SCOPE {
            PC_NO_GRAD {
                pc_tensor *bias = pc_module_parameter(t->net, "2.bias");
                RANK_TRUE(isnan(pc_item(pc_sum(bias))));
                RANK_OK(pc_fill(bias, 1));
            }
        }
    }
    RANK_TRUE(all_apart(&both[0], &both[1], false) == 0);
    end(&both[0]);
    end(&both[1]);
}

static void gradients_without_end(void **state)
{
    (void)state;
    every_number_of_ranks(infinite_gradient, NULL);
}

static void steps_of_one_rank_alone(void **state)
{
    (void)state;
    every_number_of_ranks(own_steps, NULL);
}

static void passes(void **state)
{
    (void)state;
    every_number_of_ranks(one_pass, NULL);
}

static void narrow_steps(void **state)
{
    (void)state;
    every_number_of_ranks(training, &(job){.recorded = false, .narrow = true});
    every_number_of_ranks(training, &(job){.recorded = true, .narrow = true});
}

static void plain_steps(void **state)
{
    (void)state;
    every_number_of_ranks(training, &(job){.recorded = false});
    every_number_of_ranks(training, &(job){.recorded = false, .clip = 0.1});
    every_number_of_ranks(training, &(job){.recorded = false, .again = true});
}

static void recorded_steps(void **state)
{
    (void)state;
    every_number_of_ranks(training, &(job){.recorded = true});
    every_number_of_ranks(training, &(job){.recorded = true, .clip = 0.1});
    every_number_of_ranks(training, &(job){.recorded = true, .again = true});
}

static void grids(void **state)
{
    (void)state;
    if (ranks_most() < 4)
        return;
    ranks_work(4, grid, &(job){.recorded = false});
    ranks_work(4, grid, &(job){.recorded = true});
    ranks_work(4, grid, &(job){.recorded = true, .clip = 0.1});
    for (int stage = 1; stage <= 3; stage++)
        for (int recorded = 0; recorded < 2; recorded++)
            ranks_work(4, grid, &(job){.recorded = recorded, .clip = 0.1, .zero = stage});
}

static void whole_networks(void **state)
{
    (void)state;
    every_number_of_ranks(there_and_back, NULL);
}

static void loss_of_parts(void **state)
{
    (void)state;
    every_number_of_ranks(losses, NULL);
    every_number_of_ranks(ignored_rows, NULL);
    every_number_of_ranks(out_of_range, NULL);
}

/* A part of two is made, and filled from the whole; and one rank alone learns. */
static bool make_and_learn(void)
{
    pc_group *two[2] = {NULL}, *one[1] = {NULL};
    bool fine = pc_group_threads(2, two) == PC_OK && pc_group_threads(1, one) == PC_OK;
    pc_module *whole = fine ? network(NULL) : NULL, *part = whole ? network(two[1]) : NULL;
    fine = part && pc_tensor_parallel_cut(part, whole) == PC_OK;
    twin t = {0};
    fine = fine && begin(&t, one[0], PC_DEVICE_CPU) == PC_OK;
    if (fine)
        t.optimizer = pc_sgd(t.net, .lr = 0.1);
    fine = fine && t.optimizer && pc_tensor_parallel_clip(t.net, t.optimizer, 1) == PC_OK && learn(&t) == PC_OK;
    end(&t);
    pc_module_free(part);
    pc_module_free(whole);
    for (int i = 0; i < 2; i++)
        pc_group_free(two[i]);
    pc_group_free(one[0]);
    return fine;
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    only_on_the_cpu();
    if (ranks_are_processes())
        skip();
    assert_no_leak();
    assert_ok(pc_allocator_set(&failing));
    bool reached = true;
    for (int i = 0; reached; i++) {
        pc_error_clear();
        countdown = i;
        const bool fine = make_and_learn();
        reached = countdown < 0;
        countdown = -1;
        if (fine == pc_failed())
            fail_msg("allocation %d failed: %s, and the error says: %s", i, fine ? "all is fine" : "an error",
                     pc_error_last()->message);
        assert_true(reached || (fine && i > 100));
        pc_error_clear();
        assert_no_leak();
    }
    assert_ok(pc_allocator_set(NULL));
}

static void errors(void **state)
{
    (void)state;
    every_number_of_ranks(refused, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes),
        cmocka_unit_test(plain_steps),
        cmocka_unit_test(recorded_steps),
        cmocka_unit_test(narrow_steps),
        cmocka_unit_test(grids),
        cmocka_unit_test(whole_networks),
        cmocka_unit_test(loss_of_parts),
        cmocka_unit_test(errors),
        cmocka_unit_test(steps_of_one_rank_alone),
        cmocka_unit_test(gradients_without_end),
        cmocka_unit_test(every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, ranks_begin, ranks_end);
}

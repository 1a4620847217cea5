/* mix.c: mixup (Zhang, Cisse, Dauphin, Lopez-Paz, 2018), CutMix (Yun and others, 2019) and label smoothing (Szegedy and
 * others, 2016). */
#include "train/mix.h"

#include "ops/loss.h"
#include "ops/table.h"
#include "tensor/tensor.h"

#include <math.h>
#include <paracord/loss.h>
#include <paracord/no_grad.h>

enum { CELLS = 4096, BITS = 24 };

/* What is drawn for a batch; mixup alone takes the first. */
enum { LESSER, SIDE, ROW, COLUMN, WHICH, DRAWS };

#define ALPHA_MOST 100.0

pc_status pc__mix_check(const char *who, double smoothing, const double alpha[PC__MIXES])
{
    if (!(smoothing >= 0 && smoothing < 1))
        return pc__fail(PC_ERR_ARGUMENT, "%s: a label smoothing of %g; it must be 0 to below 1", who, smoothing);
    for (int i = 0; i < PC__MIXES; i++)
        if (!(alpha[i] >= 0 && alpha[i] <= ALPHA_MOST))
            return pc__fail(PC_ERR_ARGUMENT, "%s: a %s of %g; it must be 0 to %g", who, i ? "cutmix" : "mixup",
                            alpha[i], ALPHA_MOST);
    return PC_OK;
}

/* --- the share --- */

/* Of x = s^(1 / beta), what the density of s is in proportion to. */
static double density(double alpha, double beta, double s)
{
    const double x = pow(s, 1 / beta);
    return pow(x, alpha - beta) * pow(1 - x, alpha - 1);
}

/* Quantiles of the smaller of l and 1 - l. The density x^(alpha - 1) (1 - x)^(alpha - 1) has a pole at 0 for alpha below 1;
 * with s = x^alpha it becomes (1 - x)^(alpha - 1), which has none for x up to a half. That, or from 1 on the density as it is,
 * which such an s would crowd into its first cell, is summed up by the trapezoidal rule and turned round by straight lines. */
static void fill_quantiles(double alpha, float *quantiles)
{
    const double beta = alpha < 1 ? alpha : 1, step = pow(0.5, beta) / CELLS;
    double all = 0, sum = 0, before = 0;
    for (int i = 0; i < CELLS; i++)
        all += (density(alpha, beta, i * step) + density(alpha, beta, (i + 1) * step)) / 2;
    int filled = 0;
    for (int i = 0; i < CELLS; i++) {
        before = sum;
        sum += (density(alpha, beta, i * step) + density(alpha, beta, (i + 1) * step)) / 2;
        for (; filled < CELLS && sum > before && filled * all <= sum * CELLS; filled++) {
            const double s = i + (filled * all / CELLS - before) / (sum - before);
            quantiles[filled] = (float)pow(s * step, 1 / beta);
        }
    }
    quantiles[CELLS] = 0.5f;
}

static pc_tensor *owned(const float *values, pc_shape shape, pc_device device)
{
    pc_tensor *t = NULL;
    PC_SCOPE {
        t = pc_tensor_retain(pc_from_data(values, shape, PC_F32, device));
    }
    return t;
}

static pc_status open_quantiles(pc_tensor **quantiles, double alpha, pc_device device)
{
    float *values = pc__alloc((CELLS + 1) * sizeof *values);
    if (!values)
        return PC_ERR_MEMORY;
    fill_quantiles(alpha, values);
    *quantiles = owned(values, PC_SHAPE(CELLS + 1), device);
    pc__free(values);
    return *quantiles ? PC_OK : pc_error_last()->status;
}

pc_status pc__mix_open(pc__mix *mix, double smoothing, const double alpha[PC__MIXES], pc_device device)
{
    float halves[DRAWS * BITS];
    *mix = (pc__mix){.smoothing = smoothing};
    for (int i = 0; i < PC__MIXES; i++)
        PC__TRY(alpha[i] > 0 ? open_quantiles(&mix->quantiles[i], alpha[i], device) : PC_OK);
    if (!mix->quantiles[PC__MIXUP] && !mix->quantiles[PC__CUTMIX])
        return PC_OK;
    for (int i = 0; i < DRAWS * BITS; i++)
        halves[i] = ldexpf(1, -(i % BITS) - 2);
    mix->halves = owned(halves, PC_SHAPE(mix->quantiles[PC__CUTMIX] ? DRAWS : 1, BITS), device);
    return mix->halves ? PC_OK : pc_error_last()->status;
}

void pc__mix_close(pc__mix *mix)
{
    for (int i = 0; i < PC__MIXES; i++)
        pc_tensor_free(mix->quantiles[i]);
    pc_tensor_free(mix->halves);
    *mix = (pc__mix){0};
}

/* Uniform in [0, 1), one for each draw: bits from a dropout, the one draw that recordings can make anew in every launch.
 * It doubles what it leaves. */
static pc_tensor *draw(const pc__mix *mix)
{
    return pc_sum_dims(pc_fn_dropout(mix->halves, 0.5), PC_SHAPE(1), false);
}

static pc_tensor *drawn(pc_tensor *draws, int which)
{
    return pc_slice(draws, 0, which, which + 1, 1);
}

static pc_tensor *lesser_share(pc_tensor *quantiles, pc_tensor *draws)
{
    pc_tensor *at = pc_mul_scalar(drawn(draws, LESSER), CELLS), *cell = pc_floor(at);
    pc_tensor *index = pc_cast(cell, PC_I64);
    pc_tensor *low = pc_index_select(quantiles, 0, index);
    pc_tensor *high = pc_index_select(quantiles, 0, pc_add_scalar(index, 1));
    return pc_add(low, pc_mul(pc_sub(at, cell), pc_sub(high, low)));
}

/* Either, by a coin. */
static pc_tensor *coin(pc_tensor *draws, int which, pc_tensor *a, pc_tensor *b)
{
    pc_tensor *u = drawn(draws, which);
    return pc_where(pc_lt(u, pc_add_scalar(pc_mul_scalar(u, 0), 0.5)), a, b);
}

/* --- the part that is cut out --- */

/* 1 for the places of an axis that are less than `half` of it, in whole places, from the one that is drawn, else 0. */
static pc_tensor *span(pc_tensor *u, pc_tensor *half, int64_t length, pc_device device)
{
    pc_tensor *middle = pc_floor(pc_mul_scalar(u, (double)length));
    pc_tensor *reach = pc_floor(pc_mul_scalar(half, (double)length));
    pc_tensor *at = pc_arange(0, (double)length, 1, PC_F32, device);
    pc_tensor *inside = pc_logical_and(pc_ge(at, pc_sub(middle, reach)), pc_lt(at, pc_add(middle, reach)));
    return pc__as_dtype(inside, PC_F32);
}

/* [h, w, 1]: 1 where the picture is its partner's. Its sides have the root of the share, its middle is anywhere. */
static pc_tensor *cut(const pc__mix *mix, pc_tensor *draws, const pc_tensor *x)
{
    const pc_device device = x->storage->device;
    pc_tensor *lesser = lesser_share(mix->quantiles[PC__CUTMIX], draws);
    pc_tensor *share = coin(draws, SIDE, lesser, pc_add_scalar(pc_mul_scalar(lesser, -1), 1));
    pc_tensor *half = pc_mul_scalar(pc_sqrt(share), 0.5);
    pc_tensor *rows = span(drawn(draws, ROW), half, x->shape[2], device);
    pc_tensor *columns = span(drawn(draws, COLUMN), half, x->shape[3], device);
    return pc_mul(pc_reshape(rows, PC_SHAPE(x->shape[2], 1, 1)), pc_reshape(columns, PC_SHAPE(x->shape[3], 1)));
}

/* --- the batch --- */

static pc_tensor *before(pc_tensor *t)
{
    return pc_roll(t, PC_SHAPE(1), PC_SHAPE(0));
}

/* Pictures with channels last, as they lie: rows of a batch are one behind the other. */
static pc_tensor *blend(pc_tensor *x, pc_tensor *weight)
{
    const bool pictures = x->ndim == 4;
    pc_tensor *own = pictures ? pc_permute(x, PC_SHAPE(0, 2, 3, 1)) : x;
    pc_tensor *result = pc_add(own, pc_mul(weight, pc_sub(before(own), own)));
    return pictures ? pc_permute(result, PC_SHAPE(0, 3, 1, 2)) : result;
}

/* The partners' weight, one for all or [h, w, 1], and its mean. */
static pc_tensor *weight_of(const pc__mix *mix, const pc_tensor *x, pc_tensor **share)
{
    pc_tensor *draws = draw(mix), *part = NULL;
    pc_tensor *weight = mix->quantiles[PC__MIXUP] ? lesser_share(mix->quantiles[PC__MIXUP], draws) : NULL;
    if (mix->quantiles[PC__CUTMIX] && x->ndim != 4)
        return pc__null(PC_ERR_SHAPE, "cutmix: x is %s; it takes pictures, [n, c, h, w]", PC__SHAPE_OF(x));
    if (mix->quantiles[PC__CUTMIX])
        part = cut(mix, draws, x);
    weight = weight && part ? coin(draws, WHICH, weight, part) : part ? part : weight;
    *share = pc_mean(weight);
    return *share ? weight : NULL;
}

pc_status pc__mix_batch(const pc__mix *mix, const pc_batch *batch, pc__blended *blended)
{
    *blended = (pc__blended){.batch = *batch};
    if (!mix->halves)
        return PC_OK;
    PC_NO_GRAD {
        pc_tensor *weight = weight_of(mix, batch->x, &blended->share);
        blended->batch.x = weight ? blend(batch->x, pc__as_dtype(weight, (pc_dtype)batch->x->dtype)) : NULL;
        blended->batch.tensor[0] = blended->batch.x;
        blended->partner = blended->batch.x ? before(batch->y) : NULL;
    }
    return blended->partner ? PC_OK : pc_error_last()->status;
}

/* --- the loss --- */

/* The mean of losses, each times the weight of its sample's class; w are the weights of classes. */
static pc_tensor *weighed(pc_tensor *losses, pc_tensor *classes, pc_tensor *w)
{
    if (!w || !losses)
        return pc_mean(losses);
    pc_tensor *labels = pc__as_dtype(pc_reshape(classes, PC_SHAPE(pc_tensor_count(classes))), PC_I64);
    pc_tensor *ignored, *each = pc__weights_of_labels(w, labels, &ignored);
    return pc_mean(pc_mul(losses, pc_reshape(each, pc_tensor_shape(losses))));
}

/* From the mean over all samples, where those that are ignored have 0, to that over the ones that count. */
static pc_tensor *of_counted(pc_tensor *mean, pc_tensor *y)
{
    pc_tensor *times = NULL;
    PC_NO_GRAD {
        pc_tensor *all = pc_scalar((double)pc_tensor_count(y), PC_F64, y->storage->device);
        times = pc_div(all, pc_clamp(pc__labels_counted(y), 1, INFINITY));
    }
    return mean && times ? pc_mul(mean, pc__as_dtype(times, (pc_dtype)mean->dtype)) : NULL;
}

static pc_tensor *smoothed(double smoothing, bool named, pc_tensor *outputs, pc_tensor *y, pc_tensor *weights)
{
    if (!pc__is_float((pc_dtype)y->dtype)) {
        const pc_fn_cross_entropy_options o = {.reduction = PC_REDUCTION_NONE, .label_smoothing = smoothing};
        pc_tensor *mean = weighed(pc_fn_cross_entropy(outputs, pc__as_dtype(y, PC_I64), o), y, weights);
        return named ? mean : of_counted(mean, y);
    }
    pc_tensor *target = pc_add_scalar(pc_mul_scalar(y, 1 - smoothing), smoothing / 2);
    pc_tensor *logits = pc__one_logit(outputs, y);
    return weighed(pc_fn_bce_with_logits(logits, target, (pc_fn_bce_options){.reduction = PC_REDUCTION_NONE}), y,
                   weights);
}

static pc_tensor *loss_by(const pc__mix *mix, const pc__judge *judge, pc_tensor *outputs, const pc_batch *batch,
                          pc_tensor *y, pc_tensor *weights)
{
    if (mix->smoothing > 0 && outputs)
        return smoothed(mix->smoothing, judge->named, outputs, y, weights);
    pc_batch by = *batch;
    by.y = by.tensor[1] = y;
    return pc__judge_loss(judge, outputs, &by, weights);
}

pc_tensor *pc__mix_loss(const pc__mix *mix, const pc__judge *judge, pc_tensor *outputs, const pc__blended *blended,
                        pc_tensor *weights)
{
    pc_tensor *own = loss_by(mix, judge, outputs, &blended->batch, blended->batch.y, weights);
    if (!own || !blended->partner)
        return own;
    pc_tensor *other = loss_by(mix, judge, outputs, &blended->batch, blended->partner, weights);
    return other ? pc_add(own, pc_mul(blended->share, pc_sub(other, own))) : NULL;
}

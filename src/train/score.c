/* score.c: losses and accuracies of batches. */
#include "data/gather.h"
#include "nn/module.h"
#include "ops/loss.h"
#include "ops/score.h"
#include "ops/table.h"
#include "train/scorer.h"

#include <math.h>
#include <paracord/autograd.h>

pc_tensor *pc__one_logit(pc_tensor *logits, const pc_tensor *y)
{
    const bool both = logits && logits->ndim == 2 && logits->shape[1] == 2 && y->ndim == 2 && y->shape[1] == 1;
    return both ? pc_sub(pc_slice(logits, 1, 1, 2, 1), pc_slice(logits, 1, 0, 1, 1)) : logits;
}

pc_tensor *pc__batch_loss(pc_tensor *logits, pc_tensor *y, pc_tensor *weights)
{
    bool binary = y && pc__is_float(y->dtype);
    if (binary)
        logits = pc__one_logit(logits, y);
    if (weights)
        return binary ? pc_bce_with_logits_weighted(logits, y, weights)
                      : pc__cross_entropy_weighted_or_0(logits, y, weights);
    return binary ? pc_bce_with_logits(logits, y) : pc__cross_entropy_or_0(logits, y);
}

pc_tensor *pc__labels_counted(pc_tensor *y)
{
    pc_tensor *none = pc_scalar(PC__IGNORED, PC_I64, y->storage->device);
    return pc_sum(pc_cast(pc_ne(pc__as_dtype(y, PC_I64), none), PC_F64));
}

int pc__named_class(const float *row, int64_t width)
{
    return (int)pc__row_names(row, width);
}

static int64_t count_correct(const float *logits, int64_t width, const void *y, bool binary, int64_t n)
{
    int64_t correct = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t label = binary ? (int64_t)((const float *)y)[i] : ((const int64_t *)y)[i];
        correct += pc__named_class(logits + i * width, width) == label;
    }
    return correct;
}

static int64_t count_ignored(const void *y, bool binary, int64_t n)
{
    int64_t ignored = 0;
    for (int64_t i = 0; i < n && !binary; i++)
        ignored += ((const int64_t *)y)[i] == PC__IGNORED;
    return ignored;
}

void pc__score_add(pc__score *score, const float *logits, int64_t width, const void *y, bool binary, int64_t n,
                   double loss)
{
    const int64_t ignored = count_ignored(y, binary, n);
    score->loss += loss * (double)(n - ignored);
    score->correct += count_correct(logits, width, y, binary, n);
    score->seen += n;
    score->ignored += ignored;
}

double pc__score_loss(const pc__score *score)
{
    return pc__score_counted(score) ? score->loss / (double)pc__score_counted(score) : NAN;
}

double pc__score_accuracy(const pc__score *score)
{
    return pc__score_counted(score) ? (double)score->correct / (double)pc__score_counted(score) : NAN;
}

/* Where results are looked at, they come to the host one by one; else their sums do. */
typedef struct scoring {
    pc_module *net;
    pc__scorer each;
    pc__tally sums;
} scoring;

static pc_status add(scoring *s, const pc_batch *batch, pc_tensor *logits, pc_tensor *loss)
{
    if (s->each.each)
        return pc__scorer_add(&s->each, batch, logits, loss);
    PC__TRY(pc__tally_add(&s->sums, logits, batch->y, loss));
    return pc__tally_passed(&s->sums, batch->n);
}

static pc_status score_batch(scoring *s, const pc_batch *batch)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *logits = NULL;
        PC__EVALUATE
        {
            logits = pc_forward(s->net, batch->x);
        }
        pc_tensor *loss = pc__batch_loss(logits, batch->y, NULL);
        status = loss ? add(s, batch, logits, loss) : pc_error_last()->status;
    }
    return status;
}

static pc_status score_all(scoring *s, pc_loader *loader)
{
    pc_batch batch;
    int64_t given = 0;
    PC__TRY(pc_loader_seek(loader, 0, 0));
    PC__TRY(pc__tally_begin(&s->sums, pc__loader_device(loader)));
    while (pc_loader_next(loader, &batch)) {
        PC__TRY(batch.part ? score_batch(s, &batch) : PC_OK);
        given += batch.whole;
    }
    if (given < pc_loader_count(loader))
        return pc_error_last()->status;
    return s->each.each ? pc__scorer_settle(&s->each) : pc__tally_settle(&s->sums);
}

pc_status pc__score_loader(pc_module *net, pc_loader *loader, pc__batch_fn each, void *context, pc__score *score)
{
    scoring s = {net, {.score = score, .each = each, .context = context}, {.score = score}};
    pc_status status = PC_OK;
    *score = (pc__score){0};
    PC_NO_GRAD {
        status = score_all(&s, loader);
    }
    pc__scorer_close(&s.each);
    pc__tally_close(&s.sums);
    return status;
}

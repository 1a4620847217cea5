/* score.c: losses and accuracies of batches. */
#include "tensor/tensor.h"
#include "train/scorer.h"

#include <math.h>
#include <paracord/autograd.h>

pc_tensor *pc__batch_loss(pc_tensor *logits, pc_tensor *y)
{
    bool binary = y && pc__is_float(y->dtype);
    return binary ? pc_bce_with_logits(logits, y) : pc_cross_entropy(logits, y);
}

int pc__named_class(const float *row, int64_t width)
{
    if (width == 1)
        return row[0] >= 0;
    int best = 0;
    for (int64_t i = 1; i < width; i++)
        if (row[i] > row[best])
            best = (int)i;
    return best;
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

void pc__score_add(pc__score *score, const float *logits, int64_t width, const void *y, bool binary, int64_t n,
                   double loss)
{
    score->loss += loss * (double)n;
    score->correct += count_correct(logits, width, y, binary, n);
    score->seen += n;
}

double pc__score_loss(const pc__score *score)
{
    return score->seen ? score->loss / (double)score->seen : NAN;
}

double pc__score_accuracy(const pc__score *score)
{
    return score->seen ? (double)score->correct / (double)score->seen : NAN;
}

static pc_status score_batch(pc_module *net, const pc_batch *batch, pc__scorer *scorer)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *logits = pc_forward(net, batch->x), *loss = pc__batch_loss(logits, batch->y);
        status = loss ? pc__scorer_add(scorer, batch, logits, loss) : pc_error_last()->status;
    }
    return status;
}

pc_status pc__score_loader(pc_module *net, pc_loader *loader, pc__batch_fn each, void *context, pc__score *score)
{
    bool was_training = pc_module_is_training(net);
    pc_batch batch;
    pc__scorer scorer = {.score = score, .each = each, .context = context};
    pc_status status = pc_loader_seek(loader, 0, 0);
    int64_t given = 0;
    *score = (pc__score){0};
    pc_module_train(net, false);
    PC_NO_GRAD {
        while (status == PC_OK && pc_loader_next(loader, &batch)) {
            status = score_batch(net, &batch, &scorer);
            given += batch.n;
        }
    }
    if (status == PC_OK && given < pc_loader_count(loader))
        status = pc_error_last()->status;
    if (status == PC_OK)
        status = pc__scorer_settle(&scorer);
    pc__scorer_close(&scorer);
    pc_module_train(net, was_training);
    return status;
}

/* score.c: losses and accuracies of batches. */
#include "train/score.h"

#include "tensor/tensor.h"

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

/* All elements of a small tensor on the host; from pc__alloc. */
static void *on_host(const pc_tensor *t)
{
    size_t bytes = (size_t)pc_tensor_count(t) * pc_dtype_size(t->dtype);
    void *copy = pc__alloc(bytes);
    if (copy && pc_read(t, copy, bytes) == PC_OK)
        return copy;
    pc__free(copy);
    return NULL;
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

pc_status pc__score_add(pc__score *score, const pc_tensor *logits, const pc_tensor *y, const pc_tensor *loss)
{
    float *rows = on_host(logits);
    void *labels = on_host(y);
    double mean = pc_item(loss);
    bool fine = rows && labels;
    if (fine) {
        int64_t n = logits->shape[0];
        score->loss += mean * (double)n;
        score->correct += count_correct(rows, logits->shape[1], labels, pc__is_float(y->dtype), n);
        score->seen += n;
    }
    pc__free(rows);
    pc__free(labels);
    return fine ? PC_OK : pc_error_last()->status;
}

double pc__score_loss(const pc__score *score)
{
    return score->seen ? score->loss / (double)score->seen : NAN;
}

double pc__score_accuracy(const pc__score *score)
{
    return score->seen ? (double)score->correct / (double)score->seen : NAN;
}

static pc_status score_batch(pc_module *net, const pc_batch *batch, pc__batch_fn each, void *context, pc__score *score)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *logits = pc_forward(net, batch->x), *loss = pc__batch_loss(logits, batch->y);
        status = loss ? pc__score_add(score, logits, batch->y, loss) : pc_error_last()->status;
        if (status != PC_OK || !each)
            break;
        float *rows = on_host(logits);
        if (!rows)
            status = pc_error_last()->status;
        else if (!each(context, batch, rows, logits->shape[1]))
            status = PC_ERR_INTERRUPTED;
        pc__free(rows);
    }
    return status;
}

pc_status pc__score_loader(pc_module *net, pc_loader *loader, pc__batch_fn each, void *context, pc__score *score)
{
    bool was_training = pc_module_is_training(net);
    pc_batch batch;
    pc_status status = pc_loader_seek(loader, 0, 0);
    *score = (pc__score){0};
    pc_module_train(net, false);
    PC_NO_GRAD
    {
        while (status == PC_OK && pc_loader_next(loader, &batch))
            status = score_batch(net, &batch, each, context, score);
    }
    if (status == PC_OK && score->seen < pc_loader_count(loader))
        status = pc_error_last()->status;
    pc_module_train(net, was_training);
    return status;
}

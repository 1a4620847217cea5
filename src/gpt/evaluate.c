/* evaluate.c: how well a GPT tells a text. */
#include "gpt/model.h"

#include <paracord/gpt_train.h>
#include <paracord/no_grad.h>

#include <math.h>

pc_status pc__gpt_no_number(const char *who)
{
    return pc__fail(
        PC_ERR_RANGE,
        "%s: the network's logits are NaN: its weights are, or have grown too large; take weights that were "
        "saved earlier, or train it again with a lower rate (lr)",
        who);
}

static double loss_of(pc_module *gpt, const pc_corpus *corpus, pc_corpus_part part, int64_t from, int64_t length)
{
    double loss = NAN;
    const pc_tensor *any = pc__module_own(pc__gpt_part(gpt, PC__GPT_TOKENS), "weight");
    PC_NO_GRAD
        PC_SCOPE {
            pc_tensor *x = pc_empty(PC_SHAPE(1, length), PC_I64, pc_tensor_device(any));
            pc_tensor *y = pc_empty(PC_SHAPE(1, length), PC_I64, pc_tensor_device(any));
            PC__EVALUATE
            {
                if (x && y && pc_corpus_take(corpus, part, from, x, y) == PC_OK)
                    loss = pc_item(pc_gpt_parallel_loss(gpt, pc_forward(gpt, x), y));
            }
        }
    return loss;
}

double pc_gpt_evaluate_corpus(pc_module *gpt, const pc_corpus *corpus, pc_corpus_part part, int64_t *tokens)
{
    PC__NEED_OR((double)NAN, gpt);
    PC__NEED_OR((double)NAN, corpus);
    const pc_gpt_options *o = pc__gpt_of(gpt, "pc_gpt_evaluate_corpus");
    if (!o)
        return NAN;
    const int64_t count = pc_corpus_size(corpus, part);
    if (count < 2)
        (void)pc__fail(PC_ERR_RANGE, "pc_gpt_evaluate_corpus: the text has %lld tokens; it needs 2 at least",
                       (long long)count);
    double sum = count < 2 ? (double)NAN : 0;
    for (int64_t at = 0; at + 1 < count && isfinite(sum); at += o->context) {
        const int64_t length = PC__MIN(o->context, count - 1 - at);
        sum += loss_of(gpt, corpus, part, at, length) * (double)length;
    }
    if (isnan(sum) && !pc_failed())
        (void)pc__gpt_no_number("pc_gpt_evaluate_corpus");
    if (tokens)
        *tokens = PC__MAX(count - 1, 0);
    return sum / (double)(count - 1);
}

double pc_gpt_evaluate(pc_module *gpt, const pc_tokenizer *tokenizer, const char *text, size_t bytes, int64_t *tokens)
{
    PC__NEED_OR((double)NAN, gpt);
    PC__NEED_OR((double)NAN, tokenizer);
    PC__NEED_OR((double)NAN, text);
    const pc_gpt_options *o = pc__gpt_of(gpt, "pc_gpt_evaluate");
    if (!o)
        return NAN;
    if (pc_tokenizer_size(tokenizer) > o->vocabulary) {
        (void)pc__fail(PC_ERR_ARGUMENT, "pc_gpt_evaluate: the tokenizer has %lld tokens and the network %lld",
                       (long long)pc_tokenizer_size(tokenizer), (long long)o->vocabulary);
        return NAN;
    }
    pc_corpus *corpus = pc_corpus_new(tokenizer, text, bytes, (pc_corpus_options){.held_out = -1});
    const double loss = corpus ? pc_gpt_evaluate_corpus(gpt, corpus, PC_CORPUS_TRAINING, tokens) : (double)NAN;
    pc_corpus_free(corpus);
    return loss;
}

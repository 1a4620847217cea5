/* train_words.c: what a training says of itself: its settings, as checkpoints keep and compare them, and what it tells before it begins. */
#include "gpt/train.h"
#include "text/corpus.h"
#include "train/metrics_line.h"

#include <math.h>

static void write_settings(pc__gpt_training *t)
{
    const pc_gpt_train_options *o = &t->o;
    const pc_gpt_options *net = pc__gpt_of(t->gpt, "pc_gpt_train");
    const pc__plain_numbers plain = pc__plain_numbers_begin();
    snprintf(t->settings, sizeof t->settings,
             "layers=%d\nheads=%d\nwidth=%d\ncontext=%d\nvocabulary=%lld\ndropout=%g\nbatch=%d\nsteps=%lld\nlr=%g\n"
             "weight decay=%g\nclip=%g\nprecision=%s\nseed=%llu\ntokens to learn from=%lld\n"
             "tokens to test on=%lld\nfingerprint of the text=%016llx\n",
             net->layers, net->heads, net->width, net->context, (long long)net->vocabulary, net->dropout, t->all,
             (long long)o->steps, o->lr, o->weight_decay, o->clip, o->precision, (unsigned long long)o->seed,
             (long long)pc_corpus_size(t->corpus, PC_CORPUS_TRAINING),
             (long long)pc_corpus_size(t->corpus, PC_CORPUS_TESTING),
             (unsigned long long)pc__corpus_fingerprint(t->corpus));
    pc__plain_numbers_end(plain);
}

static void write_shared(pc__gpt_training *t)
{
    const struct {
        const char *before, *after;
        int value;
        bool shown;
    } all[] = {{"ranks=", "", t->ranks, t->ranks > 1},
               {"tensor parallel=", "", t->o.tensor_parallel, t->network},
               {"ZeRO=stage ", t->o.offload ? "\noffload=yes" : "", t->o.zero, t->zero},
               {"gradients between ranks=bf", "", 16, t->data && strcmp(t->o.reduce, "bf16") == 0},
               {"accumulate=", "", t->o.accumulate, t->o.accumulate > 1}};
    size_t used = 0;
    for (int i = 0; i < PC__COUNT(all); i++)
        if (all[i].shown)
            used += (size_t)snprintf(t->shared + used, sizeof t->shared - used, "%s%d%s\n", all[i].before, all[i].value,
                                     all[i].after);
}

static pc_status describe(pc__gpt_training *t)
{
    char name[PC_DEVICE_NAME_MAX];
    const pc_gpt_options *net = pc__gpt_of(t->gpt, "pc_gpt_train");
    pc__text words = {0};
    pc__text_add(&words, "text     %lld tokens to learn from, %lld to test on; a vocabulary of %lld\n",
                 (long long)pc_corpus_size(t->corpus, PC_CORPUS_TRAINING),
                 (long long)pc_corpus_size(t->corpus, PC_CORPUS_TESTING), (long long)t->vocabulary);
    pc__text_add(&words, "network  %d layers, %d heads, width %d, context %d: %.2f million parameters\n", net->layers,
                 net->heads, net->width, net->context, (double)pc__gpt_elements(t->gpt) / 1e6);
    pc__text_add(&words, "step     %d stretches, %d tokens, on %s", t->all, t->all * net->context,
                 pc_device_name(t->device, name));
    if (t->network)
        pc__text_add(&words, " and %d other rank%s, %d for a network", t->ranks - 1, t->ranks == 2 ? "" : "s",
                     t->o.tensor_parallel);
    else if (t->ranks > 1)
        pc__text_add(&words, " and %d other rank%s", t->ranks - 1, t->ranks == 2 ? "" : "s");
    if (t->copies > 1)
        pc__text_add(&words, ", %s%d stretches each", t->all % t->copies ? "at least " : "", t->all / t->copies);
    if (isfinite(t->peak))
        pc__text_add(&words, ", products at %.1f GFLOP/s", t->peak / 1e9);
    pc__text_add(&words, "\nmemory   %.0f MB by the plan", (double)t->run.bytes / 1e6);
    if (t->host_bytes)
        pc__text_add(&words, " and %.0f MB of pinned host memory", (double)t->host_bytes / 1e6);
    if (t->zero)
        pc__text_add(&words, ", stage %d of ZeRO", t->o.zero);
    if (t->o.accumulate > 1)
        pc__text_add(&words, ", each batch in %d parts", t->o.accumulate);
    t->words = words.data;
    return words.failed ? PC_ERR_MEMORY : PC_OK;
}

pc_status pc__gpt_describe(pc__gpt_training *t)
{
    write_settings(t);
    write_shared(t);
    return describe(t);
}

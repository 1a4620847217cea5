/* train_options.c: what a training is asked for: whether it can be, and what is usual where nothing is said. */
#include "gpt/train.h"

#include <math.h>

static bool is_precision(const char *name)
{
    return !name || strcmp(name, "float32") == 0 || strcmp(name, "bf16") == 0;
}

static pc_status check(const pc_gpt_train_options *o)
{
    const bool fine = o->steps >= 0 && o->batch >= -1 && o->test_every >= 0 && o->test_batches >= 0 && o->lr >= 0 &&
                      o->lr < 1e6 && !isnan(o->weight_decay) && !isnan(o->clip) && o->vocabulary >= 0;
    if (!fine)
        return pc__fail(
            PC_ERR_ARGUMENT,
            "pc_gpt_train: steps %lld, batch %d, test_every %lld, test_batches %d, lr %g, weight_decay %g, clip %g: "
            "all are numbers, and only the batch (-1: as many as there is memory for), weight_decay and clip (none) "
            "can be "
            "below 0",
            (long long)o->steps, o->batch, (long long)o->test_every, o->test_batches, o->lr, o->weight_decay, o->clip);
    if (o->zero < 0 || o->zero > 3 || o->accumulate < 0)
        return pc__fail(
            PC_ERR_ARGUMENT,
            "pc_gpt_train: zero %d, accumulate %d: stages of ZeRO are 1 to 3 (0: none), and a batch has 1 part "
            "or more",
            o->zero, o->accumulate);
    if (o->tensor_parallel < 0)
        return pc__fail(PC_ERR_ARGUMENT,
                        "pc_gpt_train: tensor_parallel %d: a network is cut up among 1 rank (or 0: 1) or more",
                        o->tensor_parallel);
    if (o->offload && !o->zero)
        return pc__fail(PC_ERR_ARGUMENT, "pc_gpt_train: offload moves what ZeRO's stages share out to host memory, and "
                                         "zero is 0; take zero 1, 2 or 3, or leave offload out");
    if (!is_precision(o->precision))
        return pc__fail(PC_ERR_ARGUMENT, "pc_gpt_train: the precision \"%.20s\" is neither float32 nor bf16",
                        o->precision);
    if (!is_precision(o->reduce))
        return pc__fail(PC_ERR_ARGUMENT,
                        "pc_gpt_train: gradients travel between ranks in float32 or bf16, not in \"%.20s\" (reduce)",
                        o->reduce);
    return PC_OK;
}

/* 0 as given means what is usual, below 0 none; as settled 0 is none. */
static double settle(double given, double usual)
{
    return given < 0 ? 0 : given > 0 ? given : usual;
}

static void fill_in(pc_gpt_train_options *o)
{
    o->out = o->out ? o->out : "gpt";
    o->tokens = o->tokens ? o->tokens : "letters";
    o->precision = o->precision ? o->precision : "float32";
    o->reduce = o->reduce ? o->reduce : "float32";
    o->device = o->device ? o->device : "auto";
    o->batch = o->batch ? o->batch : 12;
    o->accumulate = o->accumulate ? o->accumulate : 1;
    o->tensor_parallel = o->tensor_parallel ? o->tensor_parallel : 1;
    o->steps = o->steps ? o->steps : 2000;
    o->lr = o->lr > 0 ? o->lr : 1e-3;
    o->weight_decay = settle(o->weight_decay, 0.1);
    o->clip = settle(o->clip, 1);
    o->test_every = o->test_every ? o->test_every : 250;
    o->test_batches = o->test_batches ? o->test_batches : 20;
    o->sample = o->sample ? o->sample : 200;
}

pc_status pc__gpt_options_settle(pc_gpt_train_options *o)
{
    PC__TRY(check(o));
    fill_in(o);
    return PC_OK;
}

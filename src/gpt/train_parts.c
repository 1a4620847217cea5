/* train_parts.c: what a training is made of: text, tokens, network, optimiser. */
#include "gpt/train.h"
#include "io/tokens.h"

#include <paracord/autograd.h>
#include <paracord/random.h>
#include <paracord/tensor_parallel.h>
#include <paracord/threads.h>

#include <math.h>
#include <unistd.h>

/* Where a run is gone on with, and where it begins from a network, the tokenizer is that one's. */
static pc_tokenizer *make_tokenizer(const pc__gpt_training *t, const char *text, size_t bytes, bool resumed)
{
    const pc_gpt_train_options *o = &t->o;
    if (resumed || o->from)
        return pc_tokenizer_open(resumed ? o->out : o->from);
    if (o->vocabulary && strcmp(o->tokens, "pairs") != 0)
        return pc__null(
            PC_ERR_ARGUMENT,
            "pc_gpt_train: a vocabulary of %lld is for tokens that are learnt, \"pairs\"; of \"%.60s\" it follows",
            (long long)o->vocabulary, o->tokens);
    if (strcmp(o->tokens, "letters") == 0)
        return pc_tokenizer_new_letters(text, bytes);
    if (strcmp(o->tokens, "pairs") == 0)
        return pc_tokenizer_new_pairs(text, bytes, o->vocabulary ? o->vocabulary : 1024);
    return pc_tokenizer_open(o->tokens);
}

/* Of tokens, whose words are those of a tokenizer where one is named. */
static pc_status open_corpus(pc__gpt_training *t)
{
    const pc_gpt_train_options *o = &t->o;
    const bool named = strcmp(o->tokens, "letters") != 0 && strcmp(o->tokens, "pairs") != 0;
    if (o->from || named) {
        t->tokenizer = pc_tokenizer_open(o->from ? o->from : o->tokens);
        if (!t->tokenizer)
            return pc_error_last()->status;
    }
    t->vocabulary = t->tokenizer ? pc_tokenizer_size(t->tokenizer) : o->vocabulary ? o->vocabulary : 50257;
    t->corpus =
        pc_corpus_open(o->data, t->vocabulary, (pc_corpus_options){.held_out = o->held_out, .testing = o->test_data});
    return t->corpus ? PC_OK : pc_error_last()->status;
}

static pc_status make_corpus(pc__gpt_training *t, bool resumed)
{
    size_t bytes;
    if (pc__is_token_file(t->o.data))
        return open_corpus(t);
    if (t->o.test_data)
        return pc__fail(PC_ERR_ARGUMENT, "pc_gpt_train: %s is to be tested on, which is for files of tokens (.bin)",
                        t->o.test_data);
    char *text = pc_text_read(t->o.data, &bytes);
    if (!text)
        return pc_error_last()->status;
    if (!bytes) {
        pc_text_free(text);
        return pc__fail(PC_ERR_NOT_FOUND, "there is no text in %s: it is empty", t->o.data);
    }
    t->tokenizer = make_tokenizer(t, text, bytes, resumed);
    if (t->tokenizer)
        t->corpus = pc_corpus_new(t->tokenizer, text, bytes, (pc_corpus_options){.held_out = t->o.held_out});
    pc_text_free(text);
    t->vocabulary = t->corpus ? pc_tokenizer_size(t->tokenizer) : 0;
    return t->corpus ? PC_OK : pc_error_last()->status;
}

/* This rank's part of the one in `from`. */
static pc_module *open_network(const pc__gpt_training *t)
{
    pc_module *whole = pc_gpt_open(t->o.from, PC_DEVICE_CPU);
    if (!whole || !t->network)
        return whole;
    pc_module *part = pc_gpt_cut(whole, t->network);
    pc_module_free(whole);
    return part;
}

/* The tokenizer says them, but what the network's own file has said stays, also that there are none. */
static void set_ends(const pc__gpt_training *t)
{
    pc__gpt_ends *ends = pc__gpt_ends_of(t->gpt);
    if (!t->tokenizer)
        return;
    const int64_t end = pc_tokenizer_end(t->tokenizer) >= 0 ? pc_tokenizer_end(t->tokenizer) : PC__GPT_NO_TOKEN;
    const int64_t said = t->o.from ? PC__GPT_NO_TOKEN : 0;
    ends->begin = ends->begin >= said ? ends->begin : end;
    ends->end = ends->end >= said ? ends->end : end;
}

/* What was asked for of a network that is there already must be so. */
static pc_status check_made(const pc__gpt_training *t, const pc_gpt_options *made)
{
    const pc_gpt_options *net = &t->o.net;
    const struct {
        const char *what;
        double asked, is;
    } all[] = {{"layers", net->layers, made->layers},
               {"heads", net->heads, made->heads},
               {"width", net->width, made->width},
               {"context", net->context, made->context},
               {"dropout", net->dropout, made->dropout}};
    for (int i = 0; t->o.from && i < PC__COUNT(all); i++)
        if (all[i].asked != 0 && fabs(all[i].asked - all[i].is) > 1e-6)
            return pc__fail(PC_ERR_ARGUMENT, "pc_gpt_train: %s %g, and that of the network in %s is %g: leave it out",
                            all[i].what, all[i].asked, t->o.from, all[i].is);
    return PC_OK;
}

static pc_status make_network(pc__gpt_training *t)
{
    pc_gpt_options net = t->o.net;
    net.vocabulary = t->vocabulary;
    PC__TRY(pc__gpt_whole(&net, "pc_gpt_train"));
    net.group = t->network;
    pc_seed(t->o.seed);
    t->gpt = t->o.from ? open_network(t) : pc_gpt_new(net);
    if (!t->gpt)
        return pc_error_last()->status;
    const pc_gpt_options *made = pc__gpt_of(t->gpt, "pc_gpt_train");
    set_ends(t);
    PC__TRY(check_made(t, made));
    if (made->vocabulary < net.vocabulary)
        return pc__fail(PC_ERR_ARGUMENT, "%s: the tokenizer has %lld tokens and the network %lld", t->o.from,
                        (long long)net.vocabulary, (long long)made->vocabulary);
    const int64_t least = pc_corpus_size(t->corpus, PC_CORPUS_TRAINING),
                  held = pc_corpus_size(t->corpus, PC_CORPUS_TESTING);
    if (least < made->context + 1 || (held && held < made->context + 1))
        return pc__fail(
            PC_ERR_RANGE,
            "%s is too short: %lld tokens to learn from and %lld to test on, and the network looks at %d; take a "
            "longer text, or a smaller context",
            t->o.data, (long long)least, (long long)held, made->context);
    return pc_module_to(t->gpt, t->device, PC_F32);
}

static pc_status make_optimizer(pc__gpt_training *t)
{
    pc_module *of = t->zero ? pc_zero_part(t->zero) : t->gpt;
    const pc_adam_options adam = {.lr = t->o.lr, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = t->o.weight_decay};
    t->optimizer = adam.weight_decay > 0 ? pc_adamw_new(of, adam) : pc_adam_new(of, adam);
    if (!t->optimizer)
        return pc_error_last()->status;
    PC__TRY(pc_optimizer_group(t->optimizer, "*", .max_dims = 1, .no_decay = true));
    if (t->o.clip > 0)
        PC__TRY(t->network && !t->zero ? pc_tensor_parallel_clip(t->gpt, t->optimizer, t->o.clip)
                                       : pc_optimizer_set_clip(t->optimizer, PC_CLIP_NORM, t->o.clip));
    t->schedule = (pc_schedule){.kind = PC_SCHEDULE_COSINE,
                                .lr = t->o.lr,
                                .least = t->o.lr / 10,
                                .warmup = PC__MIN(100, t->o.steps / 10),
                                .steps = t->o.steps};
    PC_SCOPE {
        t->loss = pc_tensor_retain(pc_zeros(PC_SHAPE(1), PC_F32, t->device));
    }
    return t->loss ? PC_OK : pc_error_last()->status;
}

pc_status pc__gpt_make_batch(pc__gpt_training *t, int batch)
{
    const int context = pc__gpt_of(t->gpt, "pc_gpt_train")->context;
    pc_tensor_free(t->x);
    pc_tensor_free(t->y);
    PC_SCOPE {
        t->x = pc_tensor_retain(pc_zeros(PC_SHAPE(batch, context), PC_I64, t->device));
        t->y = pc_tensor_retain(pc_zeros(PC_SHAPE(batch, context), PC_I64, t->device));
    }
    return t->x && t->y ? PC_OK : pc_error_last()->status;
}

static pc_tensor *loss_of(pc__gpt_training *t, pc_tensor *x, pc_tensor *y)
{
    if (strcmp(t->o.precision, "bf16") != 0)
        return pc_gpt_parallel_loss(t->gpt, pc_forward(t->gpt, x), y);
    pc_tensor *loss = NULL;
    PC_AUTOCAST(PC_BF16) {
        loss = pc_gpt_parallel_loss(t->gpt, pc_forward(t->gpt, x), y);
    }
    return loss;
}

/* Rows from..to of the batch. Parts count by their rows, and ranks' gradients are averaged as if all had as many. */
static pc_status learn_rows(pc__gpt_training *t, int64_t from, int64_t to)
{
    const int64_t rows = pc_tensor_size(t->x, 0);
    const double weight = t->weight * (double)(to - from) / (double)rows;
    const bool all = to - from == rows;
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *x = all ? t->x : pc_slice(t->x, 0, from, to, 1), *y = all ? t->y : pc_slice(t->y, 0, from, to, 1);
        pc_tensor *loss = loss_of(t, x, y), *part = loss && weight != 1 ? pc_mul_scalar(loss, weight) : loss;
        status = part ? pc_backward(part) : pc_error_last()->status;
        PC_NO_GRAD {
            if (status == PC_OK)
                status = pc_saxpy(t->loss, 1, pc_reshape(part, PC_SHAPE(1)));
        }
    }
    return status;
}

pc_status pc__gpt_forward_backward(pc__gpt_training *t)
{
    const int64_t rows = pc_tensor_size(t->x, 0), parts = t->o.accumulate;
    for (int64_t i = 0; i < parts; i++) {
        if (t->ddp)
            pc_ddp_set_sync(t->ddp, i == parts - 1);
        PC__TRY(learn_rows(t, rows * i / parts, rows * (i + 1) / parts));
    }
    return PC_OK;
}

pc_status pc__gpt_learn(void *training)
{
    pc__gpt_training *t = training;
    PC__TRY(pc__gpt_forward_backward(t));
    return pc__gpt_ranks_step(t);
}

static pc_status make_all(pc__gpt_training *t, bool resumed)
{
    PC__TRY(make_corpus(t, resumed));
    PC__TRY(make_network(t));
    PC__TRY(pc__gpt_ranks_join(t));
    PC__TRY(make_optimizer(t));
    PC__TRY(pc__gpt_fit_batch(t));
    PC__TRY(pc__gpt_ranks_agree_batch(t));
    PC__TRY(pc__gpt_make_batch(t, t->o.batch));
    t->step = pc_step_new(pc__gpt_learn, t, t->optimizer);
    if (!t->step)
        return pc_error_last()->status;
    t->peak = pc__gpt_peak(t->device, strcmp(t->o.precision, "bf16") == 0 ? PC_BF16 : PC_F32);
    PC__TRY(pc__gpt_describe(t));
    return pc__gpt_folder_open(t, resumed);
}

pc_status pc__gpt_parts(pc__gpt_training *t)
{
    char checkpoint[PATH_MAX];
    PC__TRY(pc__gpt_options_settle(&t->o));
    PC__TRY(pc__gpt_ranks_begin(t));
    PC__TRY(pc_device_parse(t->o.device, &t->device));
    PC__TRY(pc__gpt_path(t, "checkpoint", checkpoint));
    pc_threads_set(t->o.threads);
    t->best = INFINITY;
    bool resumed;
    pc__gpt_standing at = {0};
    PC__TRY(pc__gpt_folder_look(t, &resumed));
    if (resumed)
        PC__TRY(pc__gpt_checkpoint_look(checkpoint, &at));
    PC__TRY(pc__gpt_ranks_agree_start(t, &at));
    PC__TRY(make_all(t, resumed));
    if (resumed)
        PC__TRY(pc__gpt_checkpoint_load(t, checkpoint));
    pc__gpt_ranks_seed(t);
    return PC_OK;
}

void pc__gpt_parts_free(pc__gpt_training *t)
{
    pc__gpt_folder_close(t);
    pc_step_free(t->step);
    pc_ddp_free(t->ddp);
    pc_tensor_free(t->x);
    pc_tensor_free(t->y);
    pc_tensor_free(t->loss);
    pc_optimizer_free(t->optimizer);
    pc_zero_free(t->zero);
    pc_module_free(t->gpt);
    pc__gpt_ranks_free(t);
    pc_corpus_free(t->corpus);
    pc_tokenizer_free(t->tokenizer);
    pc__free(t->words);
    pc__free(t->run.tested);
    pc__free(t->run.sample);
}

/* train_parts.c: what a training is made of: text, tokens, network, optimiser. */
#include "gpt/train.h"
#include "io/file.h"
#include "io/tokens.h"
#include "train/metrics_line.h"

#include <paracord/autograd.h>
#include <paracord/random.h>
#include <paracord/tensor_parallel.h>
#include <paracord/threads.h>

#include <math.h>
#include <unistd.h>

pc_status pc__gpt_path(const pc__gpt_training *t, const char *name, char path[PATH_MAX])
{
    return snprintf(path, PATH_MAX, "%s/%s", t->o.out, name) < PATH_MAX
               ? PC_OK
               : pc__fail(PC_ERR_FILE, "%.64s...: the name is too long", t->o.out);
}

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

static void write_settings(pc__gpt_training *t)
{
    const pc_gpt_train_options *o = &t->o;
    const pc_gpt_options *net = pc__gpt_of(t->gpt, "pc_gpt_train");
    const pc__plain_numbers plain = pc__plain_numbers_begin();
    snprintf(t->settings, sizeof t->settings,
             "layers=%d\nheads=%d\nwidth=%d\ncontext=%d\nvocabulary=%lld\ndropout=%g\nbatch=%d\nsteps=%lld\nlr=%g\n"
             "weight decay=%g\nclip=%g\nprecision=%s\nseed=%llu\ntokens of the text=%lld\n",
             net->layers, net->heads, net->width, net->context, (long long)net->vocabulary, net->dropout, t->all,
             (long long)o->steps, o->lr, o->weight_decay, o->clip, o->precision, (unsigned long long)o->seed,
             (long long)(pc_corpus_size(t->corpus, PC_CORPUS_TRAINING) + pc_corpus_size(t->corpus, PC_CORPUS_TESTING)));
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
    write_settings(t);
    write_shared(t);
    PC__TRY(describe(t));
    if (t->rank)
        return PC_OK;
    PC__TRY(pc__folder_make(t->o.out));
    return resumed || !t->tokenizer ? PC_OK : pc_tokenizer_save(t->tokenizer, t->o.out);
}

/* A network that no training has left there is somebody else's. */
static pc_status check_folder(const pc__gpt_training *t)
{
    char path[PATH_MAX];
    PC__TRY(pc__gpt_path(t, "model.safetensors", path));
    return access(path, F_OK) != 0
               ? PC_OK
               : pc__fail(PC_ERR_STATE,
                          "%s is there and is no training's, as there is no checkpoint: choose another --out", path);
}

pc_status pc__gpt_parts(pc__gpt_training *t)
{
    char checkpoint[PATH_MAX];
    PC__TRY(check(&t->o));
    fill_in(&t->o);
    PC__TRY(pc__gpt_ranks_begin(t));
    PC__TRY(pc_device_parse(t->o.device, &t->device));
    PC__TRY(pc__gpt_path(t, "checkpoint", checkpoint));
    pc_threads_set(t->o.threads);
    t->best = INFINITY;
    const bool there = access(checkpoint, F_OK) == 0;
    bool resumed = t->o.resume && there;
    if (!resumed)
        PC__TRY(there ? pc__gpt_checkpoint_spare(t, checkpoint) : check_folder(t));
    PC__TRY(pc__gpt_ranks_agree_start(t, &resumed));
    PC__TRY(make_all(t, resumed));
    if (resumed)
        PC__TRY(pc__gpt_checkpoint_load(t, checkpoint));
    pc__gpt_ranks_seed(t);
    return PC_OK;
}

void pc__gpt_parts_free(pc__gpt_training *t)
{
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

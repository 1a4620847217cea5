/* gpt_train.h: train a GPT on a text: what `paracord gpt train` does.
 *
 *     pc_gpt_train_options options = {.data = "poems.txt", .out = "poet", .net = {.size = "nano"}, .steps = 2000};
 *     pc_gpt_train_summary summary;
 *     if (pc_gpt_train(options, &summary) != PC_OK)
 *         return pc_report(stderr);
 *     // poet is a folder for pc_gpt_open and pc_tokenizer_open
 *
 * Threads: callbacks come in the calling thread. Any number of threads may train at once, each with a folder of its own.
 */
#ifndef PARACORD_GPT_TRAIN_H
#define PARACORD_GPT_TRAIN_H

#include <paracord/gpt.h>
#include <paracord/group.h>

PC_BEGIN

typedef struct pc_gpt_run pc_gpt_run; /* what a run tells who writes its report */

/* loss is the mean over the steps since the last call; mfu is the share of the device's measured speed of products that
 * the network's operations (pc_gpt_flops) come to. NaN: not known yet. */
typedef struct pc_gpt_progress {
    int64_t step, steps;
    double loss, lr, tokens_per_second, mfu, seconds_left;
} pc_gpt_progress;

/* What a test found: the mean loss over the same stretches of both parts each time, and a sample of the network's. */
typedef struct pc_gpt_test {
    int64_t step, steps;
    double loss, test_loss; /* test_loss is NaN where nothing is held out */
    double seconds;         /* since the beginning */
    bool best;              /* the lowest test loss so far: its weights are in the folder */
    const char *sample;
} pc_gpt_test;

typedef struct pc_gpt_train_callbacks {
    void *context;
    void (*started)(void *context, const char *description); /* lines to show before training */
    void (*progress)(void *context, const pc_gpt_progress *progress);
    void (*tested)(void *context, const pc_gpt_test *test);
    bool (*stop)(void *context); /* polled after every step; true: save a checkpoint and stop */
} pc_gpt_train_callbacks;

/* Everything but `data` may be left out. Where words are listed, the first is the default. */
typedef struct pc_gpt_train_options {
    int reserved_;
    const char
        *data; /* a file or a folder of texts; or, where its name ends in .bin, a file of tokens (pc_corpus_open) */
    const char *test_data; /* of tokens: another such file, to test on; NULL: a share of `data` */
    const char *
        out; /* folder, NULL: "gpt": config.json, model.safetensors, vocab.json (merges.txt), checkpoint, report.html */
    const char *from; /* a folder whose network and tokenizer it goes on from; NULL: from scratch */
    /* "letters"; "pairs", byte-pair encoding learnt from the text; or a folder with a tokenizer. A file of tokens needs none:
     * with "letters" and "pairs" there are no samples, and the network's folder has no vocab.json. */
    const char *tokens;
    int64_t vocabulary; /* of "pairs", 0: 1024; of a file of tokens without a tokenizer, 0: 50,257, as GPT-2 has */
    pc_gpt_options
        net; /* its vocabulary is the tokenizer's; with `from` sizes are those there: others are PC_ERR_ARGUMENT */
    const char *device;    /* "auto", "cpu", ... */
    const char *precision; /* "float32", "bf16": of products while training; weights are float32 (amp.h) */
    int batch;   /* stretches of a step; 0: 12; -1: as many as there is memory for, at most 8,192 tokens on the CPU and
                              65,536 elsewhere; going on, as many as the checkpoint was made with */
    int threads; /* 0: all cores */
    int64_t steps;       /* 0: 2000 */
    double lr;           /* 0: 0.001; falls to a tenth along half a cosine, after 100 steps of warming up */
    double weight_decay; /* of matrices; 0: 0.1, below 0: none */
    double clip;         /* the most that the gradients' norm is; 0: 1, below 0: they are not clipped */
    double held_out;     /* pc_corpus_options */
    int64_t test_every;  /* steps from test to test; 0: 250 */
    int test_batches;    /* 0: 20 */
    int64_t sample;      /* tokens of a sample; 0: 200, below 0: none */
    bool
        resume; /* go on from the checkpoint in `out`, where there is one; without, PC_ERR_STATE where that is of a training
                  * which has not come to its end, or cannot be read as one of a GPT. What a finished one has left
                  * there goes when another begins. */
    uint64_t seed;
    /* The ranks that train together, each with a call of its own, of the same options but the device (data_parallel.h);
     * NULL: this one alone. `batch` is that of all ranks together, a whole number for each: what is learnt is the same for
     * any number of ranks, dropout and rounding aside. The first rank tests, writes files and calls back; the folder is one
     * that all of them can read: PC_ERR_STATE where they would go on from different checkpoints. */
    pc_group *group;
    /* The network is cut up among so many ranks (tensor_parallel.h): ranks 0 to tensor_parallel - 1 have one, the next ones
     * a copy of it, and so on, and batches are shared out over the copies. What is learnt is the same, up to rounding. Of
     * group's ranks it takes a multiple of this number, which divides the heads: PC_ERR_ARGUMENT. Files and samples are the
     * whole network's: the first rank puts it together on the CPU for them, and lets it write on its device where there is room
     * for all of it. 0: 1, each rank has all of it. */
    int tensor_parallel;
    /* Of several ranks, or copies of a network that is cut: what is shared out over them, by stages of ZeRO (pc_zero); 0:
     * nothing, pc_ddp. One alone has nothing to share out without `offload`, and a warning says so (log.h). */
    int zero;
    /* With a stage of ZeRO, one rank alone too: moments, and in stage 3 the rank's part of the weights, lie in pinned host
     * memory (pc_zero's .offload): a network that the device has no room for otherwise, in slower steps, to the same bits.
     * Checkpoints know nothing of it. */
    bool offload;
    const char *reduce; /* in which gradients travel between ranks (pc_ddp_options): "bf16", rounded; NULL: "float32" */
    /* A rank's stretches of a step are taken in so many parts, one after another, whose gradients add up: the memory of a part
     * is enough, and what is learnt is that of the whole batch, up to rounding. 0: 1 */
    int accumulate;
    const pc_gpt_train_callbacks *callbacks;
    pc_status (*report)(const char *path, const pc_gpt_run *run); /* pc_gpt_report_page; NULL: nobody */
} pc_gpt_train_options;

typedef struct pc_gpt_train_summary {
    int64_t steps_done;
    bool interrupted;
    int batch;
    int64_t parameters;
    double loss, test_loss, best_test_loss, seconds;
    double tokens_per_second, mfu; /* of the last part of the training that had a step; NaN: unknown */
    int64_t
        bytes; /* of the device's memory that the training takes by the plan: weights, gradients, moments, activations */
} pc_gpt_train_summary;

/* PC_OK also when stopped: summary->interrupted; the folder then has a checkpoint to go on from, to the bits of a training
 * that was never stopped. The folder has the weights with the lowest test loss so far, from the first test on and after
 * a stop. PC_ERR_STATE while another training writes to the folder, and for one with files of these names that no
 * training has left there. PC_ERR_MEMORY before it begins, with the largest batch that fits, where the memory that the plan
 * of a step asks for is not there. */
PC_API PC_MUST_USE pc_status pc_gpt_train(pc_gpt_train_options options, pc_gpt_train_summary *summary);

/* The mean loss of a network over a text by its tokens, each with as much in front of it as the network's context gives:
 * stretches of that length, one after another. exp of it is the perplexity; *tokens (may be NULL): how many were counted.
 * NaN and an error recorded on failure, PC_ERR_RANGE where it is the network that answers with NaN. */
PC_API double pc_gpt_evaluate(pc_module *gpt, const pc_tokenizer *tokenizer, const char *text, size_t bytes,
                              int64_t *tokens);

/* The same over a part of a corpus, such as a file of tokens (pc_corpus_open). */
PC_API double pc_gpt_evaluate_corpus(pc_module *gpt, const pc_corpus *corpus, pc_corpus_part part, int64_t *tokens);

PC_END
#endif

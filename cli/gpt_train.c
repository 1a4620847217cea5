/* gpt_train.c: paracord gpt train FILE|DIR */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <paracord-tools/report.h>
#include <paracord/gpt_train.h>

#include "gpt.h"
#include "program.h"
#include "ranks.h"
#include "signals.h"
#include "text.h"
#include "watch.h"

typedef struct settings {
    pc_gpt_train_options o;
    const char *batch, *devices;
    pc_gpt_train_summary *summary;
    int steps, test_every, sample, vocabulary;
} settings;

static void started(void *context, const char *description)
{
    cli_watch *watch = context;
    cli_progress_clear(&watch->progress);
    printf("%s\n", description);
    fflush(stdout);
}

static void progress(void *context, const pc_gpt_progress *at)
{
    cli_watch *watch = context;
    cli_gpt_progress_show(&watch->progress, at);
    watch->last.done = at->step;
}

static void tested(void *context, const pc_gpt_test *test)
{
    cli_watch *watch = context;
    char text[32];
    cli_progress_clear(&watch->progress);
    printf("step %*lld/%lld  loss %.4f", snprintf(NULL, 0, "%lld", (long long)test->steps), (long long)test->step,
           (long long)test->steps, test->loss);
    if (isfinite(test->test_loss))
        printf("  test loss %.4f", test->test_loss);
    printf("  %s%s\n", cli_duration(test->seconds, text),
           isfinite(test->test_loss) && !test->best ? "  (not the best)" : "");
    if (test->sample)
        cli_gpt_print_sample(stdout, test->sample);
    fflush(stdout);
}

/* "auto" or a number. */
static bool take_batch(const cli_call *call, const char *word, int *batch)
{
    char *end;
    *batch = -1;
    if (strcmp(word, "auto") == 0)
        return true;
    const long number = strtol(word, &end, 10);
    *batch = (int)number;
    if (*word >= '0' && *word <= '9' && !*end && number >= 1 && number <= 65536)
        return true;
    cli_error(call->command, "--batch %s: must be 1 to 65536, or auto", word);
    return false;
}

static bool check_offload(const cli_call *call, const pc_gpt_train_options *o)
{
    if (o->offload && !o->zero)
        cli_error(call->command, "--offload: goes with --zero 1, 2 or 3, whose parts it moves to host memory");
    return !o->offload || o->zero;
}

static int report_stop(const cli_call *call, const settings *s, const pc_gpt_train_summary *summary)
{
    if (!summary->steps_done) {
        puts("stopped before the first step; nothing was saved");
        return cli_stopped_status();
    }
    printf("stopped after step %lld; go on with: paracord %s%s", (long long)summary->steps_done, call->command->name,
           s->o.resume ? "" : " --resume");
    for (int i = 0; i < call->argc; i++) {
        putchar(' ');
        cli_print_shell(stdout, call->argv[i]);
    }
    putchar('\n');
    return cli_stopped_status();
}

static void report(const settings *s, const pc_gpt_train_summary *summary)
{
    char text[32], speed[32];
    printf("done in %s: loss %.4f", cli_duration(summary->seconds, text), summary->loss);
    if (isfinite(summary->test_loss))
        printf(", test loss %.4f (the best was %.4f, which is kept)", summary->test_loss, summary->best_test_loss);
    if (isfinite(summary->tokens_per_second))
        printf("; %s tokens/s", cli_thousands((int64_t)(summary->tokens_per_second + 0.5), speed));
    if (isfinite(summary->mfu))
        printf(", %.0f%% of the device's products", 100 * summary->mfu);
    printf("\nthe network is in ");
    cli_print_shell(stdout, s->o.out);
    printf(", the curves in ");
    cli_print_shell(stdout, s->o.out);
    printf("/report.html; let it write with: paracord gpt sample ");
    cli_print_shell(stdout, s->o.out);
    putchar('\n');
}

static pc_status train(void *context, pc_group *group, const char *device, bool first)
{
    const settings *s = context;
    pc_gpt_train_options o = s->o;
    pc_gpt_train_summary unread;
    o.group = group;
    o.device = device;
    return pc_gpt_train(o, first ? s->summary : &unread);
}

static int run(const cli_call *call)
{
    settings s = *(settings *)call->settings;
    pc_gpt_train_summary summary = {0};
    cli_ranks ranks = {.work = train, .context = &s};
    cli_watch watch;
    if (!take_batch(call, s.batch, &s.o.batch) || !check_offload(call, &s.o) ||
        !cli_ranks_take(call->command, &ranks, s.devices, s.o.device))
        return CLI_WRONG_USAGE;
    cli_watch_start(&watch, call->command);
    const pc_gpt_train_callbacks callbacks = {
        .context = &watch, .started = started, .progress = progress, .tested = tested, .stop = cli_stop};
    s.o.data = call->line->values[0];
    s.o.callbacks = &callbacks;
    s.o.report = pc_gpt_report_page;
    s.o.steps = s.steps, s.o.test_every = s.test_every, s.o.vocabulary = s.vocabulary;
    s.o.sample = s.sample ? s.sample : -1;
    s.o.held_out = s.o.held_out > 0 ? s.o.held_out : -1;
    s.o.weight_decay = s.o.weight_decay > 0 ? s.o.weight_decay : -1;
    s.o.clip = s.o.clip > 0 ? s.o.clip : -1;
    s.summary = &summary;
    const pc_status status = cli_ranks_run(&ranks);
    cli_watch_end(&watch);
    if (status == PC_OK && ranks.is_other)
        return CLI_FINE;
    if (status == PC_OK && summary.interrupted)
        return report_stop(call, &s, &summary);
    if (status != PC_OK)
        return cli_failed(call->command);
    report(&s, &summary);
    return CLI_FINE;
}

static const cli_choice sizes[] = {
    {"nano", "4 layers of width 128, a context of 64: learns in a minute on two cores"},
    {"micro", "6 layers of width 192, a context of 128"},
    {"mini", "6 layers of width 384, a context of 256"},
    {"small", "8 layers of width 512, a context of 512"},
    {"gpt2", "12 layers of width 768, a context of 1024: 124 million weights with GPT-2's vocabulary"},
    {"gpt2-medium", "24 layers of width 1024"},
    {"gpt2-large", "36 layers of width 1280"},
    {"gpt2-xl", "48 layers of width 1600"},
    {0},
};
static const cli_choice kinds[] = {
    {"letters", "each letter is a token"}, {"pairs", "byte-pair encoding, learnt from the text"}, {0}};
static const cli_choice batches[] = {{"auto", "as many as there is memory for, within reason"}, {0}};
static const cli_choice precisions[] = {
    {"float32", "as the weights are kept"},
    {"bf16", "products in bfloat16: faster where a GPU has units for it"},
    {0},
};

static const cli_choice reduces[] = CLI_REDUCES;

#define AT(member) offsetof(settings, member)

static const cli_option options[] = {
    {"size", 's', CLI_CHOICE, AT(o.net.size), "nano", "NAME", .help = "The network's size", .group = "Network",
     .choices = sizes},
    {"layers", 0, CLI_INT, AT(o.net.layers), "0", "N", .help = "Layers; 0: as many as --size says", .min = 0,
     .max = 900},
    {"heads", 0, CLI_INT, AT(o.net.heads), "0", "N",
     .help = "Heads of attention, which share the width; 0: as many as --size says", .min = 0, .max = 1024},
    {"width", 0, CLI_INT, AT(o.net.width), "0", "N",
     .help = "Numbers that stand for a token; 0: as many as --size says", .min = 0, .max = 65536},
    {"context", 'c', CLI_INT, AT(o.net.context), "0", "N",
     .help = "Tokens that it looks back on, at most; 0: as many as --size says", .min = 0, .max = 1 << 20},
    {"dropout", 0, CLI_FLOAT, AT(o.net.dropout), "0", "SHARE",
     .help = "Share of the numbers that are made 0 at random while training", .min = 0, .max = 0.9},
    {"from", 'f', CLI_PATH, AT(o.from), NULL, "FOLDER",
     .help = "Go on from the network in FOLDER, such as a published GPT-2, with its tokens"},

    {"tokens", 't', CLI_TEXT, AT(o.tokens), "letters", "KIND",
     .help = "What a token is: letters; pairs, pieces of words that are learnt from the text (byte-pair encoding); or "
             "a folder with vocab.json and merges.txt",
     .group = "Text", .choices = kinds},
    {"vocabulary", 0, CLI_INT, AT(vocabulary), "0", "N",
     .help = "How many tokens there are: of pairs at most (0: 1024), of a file of tokens (0: 50257, as GPT-2 has)",
     .min = 0, .max = 1 << 20},
    {"held-out", 0, CLI_FLOAT, AT(o.held_out), "0.1", "SHARE",
     .help = "Share of the text, at its end, that is kept for testing", .min = 0, .max = 0.9},
    {"test-data", 0, CLI_PATH, AT(o.test_data), NULL, "FILE",
     .help = "Test on this file of tokens instead of a share of the first"},

    {"steps", 'n', CLI_INT, AT(steps), "2000", "N", .help = "Steps in all", .group = "Training", .min = 1,
     .max = INT32_MAX},
    {"batch", 'b', CLI_TEXT, AT(batch), "12", "N",
     .help = "Stretches of the text in a step, on all devices together; auto: as many as there is memory for",
     .choices = batches},
    {"lr", 'l', CLI_FLOAT, AT(o.lr), "0.001", "RATE", .help = "Learning rate: rises at first, then falls to a tenth",
     .min = 0, .max = 100, .above = true},
    {"weight-decay", 0, CLI_FLOAT, AT(o.weight_decay), "0.1", "RATE",
     .help = "How much of the matrices AdamW takes away in a step, times the learning rate; 0: nothing", .min = 0,
     .max = 100},
    {"clip", 0, CLI_FLOAT, AT(o.clip), "1", "NORM",
     .help = "Gradients whose norm is greater, all together, are scaled down to it; 0 leaves them", .min = 0,
     .max = 1e6},
    {"precision", 0, CLI_CHOICE, AT(o.precision), "float32", "NAME", .help = "How products are computed while training",
     .choices = precisions},
    {"seed", 0, CLI_SEED, AT(o.seed), "0", "N",
     .help = "Seed of everything random: the same seed gives the same network"},
    {"test-every", 0, CLI_INT, AT(test_every), "250", "STEPS",
     .help = "Steps from one test, sample and checkpoint to the next", .min = 1, .max = INT32_MAX},
    {"test-batches", 0, CLI_INT, AT(o.test_batches), "20", "N",
     .help = "Batches that a test takes of the text to learn from, and of what is kept for testing", .min = 1,
     .max = 100000},
    {"sample", 0, CLI_INT, AT(sample), "200", "TOKENS",
     .help = "Length of what the network writes at a test; 0: it writes nothing", .min = 0, .max = 1 << 20},

    {"out", 'o', CLI_PATH, AT(o.out), "gpt", "FOLDER", .help = "Where the network, the checkpoint and the report go",
     .group = "Run"},
    {"resume", 'r', CLI_FLAG, AT(o.resume), NULL, NULL,
     .help = "Go on from the checkpoint in the folder of --out, where there is one"},
    {"device", 'd', CLI_TEXT, AT(o.device), "auto", "DEVICE", .help = CLI_DEVICE_HELP, .choices = cli_program_devices},
    {"threads", 'j', CLI_INT, AT(o.threads), "0", "N", .help = "CPU threads; 0 takes all cores", .min = 0, .max = 1024},
    {"accumulate", 0, CLI_INT, AT(o.accumulate), "1", "PARTS",
     .help = "Take each batch in so many parts, one after another: less memory, and the same is learnt", .min = 1,
     .max = 65536},

    CLI_DEVICES_OPTION(AT(devices), ""),
    {"zero", 0, CLI_INT, AT(o.zero), "0", "STAGE", .help = CLI_ZERO_HELP, .min = 0, .max = 3},
    {"reduce", 0, CLI_CHOICE, AT(o.reduce), "float32", "NAME", .help = CLI_REDUCE_HELP, .choices = reduces},
    {"offload", 0, CLI_FLAG, AT(o.offload), NULL, NULL,
     .help = "With --zero, on one device too: keep the optimiser's state, and of stage 3 the weights, in the host's "
             "memory; room for a larger network, and slower steps"},
    {"tensor-parallel", 0, CLI_INT, AT(o.tensor_parallel), "1", "N",
     .help = "Cut each layer up among N neighbours, where one device is too small or too slow for it; the groups of N "
             "share the batch, and N divides the heads",
     .min = 1, .max = 1024},
    {0},
};

static const cli_argument arguments[] = {
    {"TEXT",
     "A file, or a folder whose files are one text; - for standard input; FILE.bin: tokens, as nanoGPT and llm.c "
     "prepare them",
     1, 1, .complete = CLI_FILES, .read = true},
    {0},
};

static const cli_example examples[] = {
    {"paracord gpt train poems.txt", "A small network of letters: a minute or two on two cores"},
    {"paracord gpt train books --tokens pairs --size mini --batch auto", "A folder of texts, with byte pairs"},
    {"paracord gpt train letters.txt --from gpt2 --lr 3e-5 --steps 200",
     "Go on with a published GPT-2 in the folder gpt2"},
    {"paracord gpt train train.bin --test-data val.bin --size gpt2 --batch auto",
     "Tokens that were prepared for nanoGPT or llm.c"},
    {"paracord gpt train train.bin --size gpt2 --batch 32 --devices all", "On all GPUs of the machine"},
    {"paracord gpt train train.bin --size gpt2-xl --batch 64 --devices all --zero 3 --accumulate 4",
     "A network that is too large for one of them"},
    {"paracord gpt train train.bin --size gpt2-medium --batch 64 --devices all --tensor-parallel 2 --precision bf16",
     "Each copy of the network on two GPUs, which have a half of every layer"},
    {"paracord gpt train train.bin --size gpt2-xl --batch 8 --zero 3 --offload --accumulate 4",
     "On one GPU that has no room for it, with the host's memory"},
    {"paracord launch -n 8 --max-restarts 3 -- paracord gpt train train.bin --size gpt2 --batch 32 --resume",
     "As eight processes, which go on from the last checkpoint when one fails"},
    {"paracord gpt train poems.txt --resume", "Go on after Ctrl-C or a power cut, to the same network"},
    {0},
};

const cli_command cli_gpt_train = {
    .name = "gpt train",
    .summary = "Train a network that writes on a text",
    .description =
        "The network is GPT-2's at any size, from scratch or from one that is there. Before it begins it plans a step "
        "and says what memory that takes; --batch auto takes as much as fits. Several devices learn from each batch "
        "together: those of one machine with --devices, of any number of machines under paracord launch, torchrun, "
        "mpirun or srun.\n"
        "\n"
        "The result is a folder with config.json and model.safetensors (as Hugging Face's transformers reads them), "
        "vocab.json and "
        "merges.txt (the tokens), report.html and a checkpoint. Ctrl-C saves the checkpoint and says how to go on.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .settings_size = sizeof(settings),
    .run = run,
};

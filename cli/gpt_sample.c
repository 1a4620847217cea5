/* gpt_sample.c: paracord gpt sample FOLDER */
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <paracord/threads.h>

#include "gpt.h"
#include "program.h"
#include "signals.h"
#include "text.h"

typedef struct settings {
    const char *start, *device, *precision;
    int tokens, top_k, threads;
    double temperature, top_p;
    uint64_t seed;
    bool greedy, speed;
} settings;

typedef struct writing {
    bool plain;      /* no terminal: bytes go out as they are */
    double begin;    /* when the first token came */
    int64_t written; /* tokens */
} writing;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void put(const writing *w, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)bytes[i];
        const bool odd = (c < ' ' && c != '\n' && c != '\t') || c == 127;
        putchar(odd && !w->plain ? '?' : c);
    }
}

static bool told(void *context, const char *bytes, size_t n)
{
    writing *w = context;
    put(w, bytes, n);
    fflush(stdout);
    if (!w->written++)
        w->begin = seconds();
    return !cli_signal();
}

/* Half of the bytes to read for each token. */
static bool in_16_bits(const cli_call *call, cli_writer *gpt)
{
    const pc_tensor *table = pc_module_parameter(gpt->net, "transformer.wte.weight");
    if (table && pc_module_to(gpt->net, pc_tensor_device(table), PC_BF16) == PC_OK)
        return true;
    cli_failed(call->command);
    cli_gpt_close(gpt);
    return false;
}

static int run(const cli_call *call)
{
    const settings *s = call->settings;
    cli_writer gpt;
    writing w = {.plain = !cli_is_terminal(stdout)};
    pc_threads_set(s->threads);
    if (!cli_gpt_open(call, call->line->values[0], s->device, &gpt))
        return CLI_FAILED;
    if (strcmp(s->precision, "bf16") == 0 && !in_16_bits(call, &gpt))
        return CLI_FAILED;
    cli_signals_catch();
    if (s->start)
        put(&w, s->start, strlen(s->start));
    char *text =
        pc_gpt_write(gpt.net, gpt.tokens, s->start,
                     (pc_gpt_write_options){.tokens = s->tokens,
                                            .temperature = s->greedy || s->temperature == 0 ? -1 : s->temperature,
                                            .top_k = s->top_k,
                                            .top_p = s->top_p,
                                            .seed = s->seed,
                                            .told = told,
                                            .context = &w});
    const double took = seconds() - w.begin;
    cli_gpt_close(&gpt);
    if (!text)
        return cli_failed(call->command);
    putchar('\n');
    pc_text_free(text);
    if (s->speed && w.written > 1)
        fprintf(stderr, "%.1f tokens/s\n", (double)(w.written - 1) / took);
    return cli_signal() ? cli_stopped_status() : CLI_FINE;
}

static const cli_choice precisions[] = {
    {"float32", "as the weights are kept"},
    {"bf16", "weights in bfloat16: half of the memory, and faster where memory is what it waits for"},
    {0},
};

#define AT(member) offsetof(settings, member)

static const cli_option options[] = {
    {"start", 's', CLI_TEXT, AT(start), NULL, "TEXT", .help = "What the text begins with"},
    {"tokens", 'n', CLI_INT, AT(tokens), "500", "N", .help = "Tokens to write at most", .min = 1, .max = INT32_MAX},
    {"temperature", 't', CLI_FLOAT, AT(temperature), "0.8", "T",
     .help = "Below 1 the likely becomes likelier, above 1 less so; 0 always takes the likeliest", .min = 0,
     .max = 100},
    {"top-k", 'k', CLI_INT, AT(top_k), "0", "K", .help = "Draw from the K likeliest tokens; 0 from all", .min = 0,
     .max = 1 << 20},
    {"top-p", 'p', CLI_FLOAT, AT(top_p), "1", "P",
     .help = "Draw from the fewest tokens that have the probability P together", .min = 0, .max = 1, .above = true},
    {"greedy", 'g', CLI_FLAG, AT(greedy), NULL, NULL, .help = "Always take the likeliest token"},
    {"precision", 0, CLI_CHOICE, AT(precision), "float32", "NAME", .help = "How the weights are held",
     .choices = precisions},
    {"seed", 0, CLI_SEED, AT(seed), "0", "N", .help = "Another seed gives another text"},
    {"speed", 0, CLI_FLAG, AT(speed), NULL, NULL, .help = "Say on standard error how fast it wrote"},
    {"device", 'd', CLI_TEXT, AT(device), "auto", "DEVICE", .help = CLI_DEVICE_HELP, .choices = cli_program_devices},
    {"threads", 'j', CLI_INT, AT(threads), "0", "N", .help = "CPU threads; 0 takes all cores", .min = 0, .max = 1024},
    {0},
};

static const cli_argument arguments[] = {
    {"FOLDER", "What gpt train has left, or a published GPT-2", 1, 1, .complete = CLI_FOLDERS},
    {0},
};

static const cli_example examples[] = {
    {"paracord gpt sample gpt", "A text from its beginning"},
    {"paracord gpt sample gpt --start \"The king\" --top-k 40 --seed 3", "Go on from there"},
    {0},
};

const cli_command cli_gpt_sample = {
    .name = "gpt sample",
    .summary = "Let a network write",
    .description = "Prints text token by token as it is drawn. Keys and values of what was read are kept, so that each "
                   "token takes "
                   "one pass over the weights. Ctrl-C ends it.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .settings_size = sizeof(settings),
    .run = run,
};

/* gpt_eval.c: paracord gpt eval FOLDER TEXT */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include <paracord/threads.h>

#include "gpt.h"
#include "program.h"
#include "text.h"

typedef struct settings {
    const char *device;
    int threads;
    bool json;
} settings;

/* bytes 0: it is not known what text the tokens are. */
typedef struct found {
    double loss;
    int64_t tokens;
    size_t bytes;
} found;

static bool measure_text(const cli_call *call, found *f)
{
    const settings *s = call->settings;
    cli_writer gpt;
    if (!cli_gpt_open(call, call->line->values[0], s->device, &gpt))
        return false;
    char *text = pc_text_read(call->line->values[1], &f->bytes);
    f->loss = text ? pc_gpt_evaluate(gpt.net, gpt.tokens, text, f->bytes, &f->tokens) : (double)NAN;
    pc_text_free(text);
    cli_gpt_close(&gpt);
    return !pc_failed() || cli_failed(call->command) == CLI_FINE;
}

static bool measure_tokens(const cli_call *call, found *f)
{
    const settings *s = call->settings;
    pc_gpt_options o = {0};
    pc_device device;
    pc_module *gpt = pc_device_parse(s->device, &device) == PC_OK ? pc_gpt_open(call->line->values[0], device) : NULL;
    pc_corpus *corpus = gpt && pc_gpt_query(gpt, &o) == PC_OK
                            ? pc_corpus_open(call->line->values[1], o.vocabulary, (pc_corpus_options){.held_out = -1})
                            : NULL;
    f->loss = corpus ? pc_gpt_evaluate_corpus(gpt, corpus, PC_CORPUS_TRAINING, &f->tokens) : (double)NAN;
    pc_corpus_free(corpus);
    pc_module_free(gpt);
    return !pc_failed() || cli_failed(call->command) == CLI_FINE;
}

static int run(const cli_call *call)
{
    const settings *s = call->settings;
    const size_t n = strlen(call->line->values[1]);
    found f = {.loss = NAN};
    char number[32];
    pc_threads_set(s->threads);
    const bool of_tokens = n > 4 && strcmp(call->line->values[1] + n - 4, ".bin") == 0;
    if (!(of_tokens ? measure_tokens : measure_text)(call, &f))
        return CLI_FAILED;
    const double bits = f.bytes ? f.loss * (double)f.tokens / log(2) / (double)f.bytes : (double)NAN;
    if (s->json) {
        printf("{\"tokens\": %lld, ", (long long)f.tokens);
        if (f.bytes)
            printf("\"bytes\": %zu, ", f.bytes);
        fputs("\"loss\": ", stdout);
        cli_json_number(stdout, f.loss);
        fputs(", \"perplexity\": ", stdout);
        cli_json_number(stdout, exp(f.loss));
        fputs(", \"bits_per_byte\": ", stdout);
        cli_json_number(stdout, bits);
        puts("}");
        return CLI_FINE;
    }
    printf("Tokens     = %s\n", cli_thousands(f.tokens, number));
    printf("Loss       = %.4f\n", f.loss);
    printf("Perplexity = %.4f (of a token)\n", exp(f.loss));
    if (f.bytes)
        printf("Bits       = %.4f (of a byte)\n", bits);
    return CLI_FINE;
}

static const cli_option options[] = {
    {"device", 'd', CLI_TEXT, offsetof(settings, device), "auto", "DEVICE", .help = CLI_DEVICE_HELP,
     .choices = cli_program_devices},
    {"threads", 'j', CLI_INT, offsetof(settings, threads), "0", "N", .help = "CPU threads; 0 takes all cores", .min = 0,
     .max = 1024},
    {"json", 0, CLI_FLAG, offsetof(settings, json), NULL, NULL, .help = "Print JSON, for programs"},
    {0},
};

static const cli_argument arguments[] = {
    {"FOLDER", "What gpt train has left, or a published GPT-2", 1, 1, .complete = CLI_FOLDERS},
    {"TEXT", "A file, or a folder whose files are one text; - for standard input; FILE.bin: tokens", 1, 1,
     .complete = CLI_FILES, .read = true},
    {0},
};

static const cli_example examples[] = {
    {"paracord gpt eval gpt other.txt", "How well it tells a text that it has not seen"},
    {0},
};

const cli_command cli_gpt_eval = {
    .name = "gpt eval",
    .summary = "Measure how well a network tells a text",
    .description =
        "Prints the mean loss of a token, the perplexity, which is its exponential, and the bits of a byte, which "
        "compare "
        "networks with different tokens. The text is cut into stretches of the network's context: the first tokens of "
        "each are told from little.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .settings_size = sizeof(settings),
    .run = run,
};

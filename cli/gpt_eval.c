/* gpt_eval.c: paracord gpt eval FOLDER TEXT */
#include <math.h>
#include <stddef.h>

#include <paracord/threads.h>

#include "gpt.h"
#include "program.h"
#include "text.h"

typedef struct settings {
    const char *device;
    int threads;
    bool json;
} settings;

static int run(const cli_call *call)
{
    const settings *s = call->settings;
    cli_writer gpt;
    size_t bytes;
    int64_t tokens = 0;
    char number[32];
    pc_threads_set(s->threads);
    if (!cli_gpt_open(call, call->line->values[0], s->device, &gpt))
        return CLI_FAILED;
    char *text = pc_text_read(call->line->values[1], &bytes);
    const double loss = text ? pc_gpt_evaluate(gpt.net, gpt.tokens, text, bytes, &tokens) : (double)NAN;
    pc_text_free(text);
    cli_gpt_close(&gpt);
    if (isnan(loss) && pc_failed())
        return cli_failed(call->command);
    const double bits = loss * (double)tokens / log(2) / (double)bytes;
    if (s->json) {
        printf("{\"tokens\": %lld, \"bytes\": %lld, \"loss\": ", (long long)tokens, (long long)bytes);
        cli_json_number(stdout, loss);
        fputs(", \"perplexity\": ", stdout);
        cli_json_number(stdout, exp(loss));
        fputs(", \"bits_per_byte\": ", stdout);
        cli_json_number(stdout, bits);
        puts("}");
        return CLI_FINE;
    }
    printf("Tokens     = %s\n", cli_thousands(tokens, number));
    printf("Loss       = %.4f\n", loss);
    printf("Perplexity = %.4f (of a token)\n", exp(loss));
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
    {"TEXT", "A file, or a folder whose files are one text; - for standard input", 1, 1, .complete = CLI_FILES,
     .read = true},
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

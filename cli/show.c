/* show.c: paracord show MODEL */
#include <stddef.h>
#include <string.h>

#include <paracord/train.h>

#include "prepare.h"

typedef struct show_settings {
    bool json, set;
    cli_preparation preparation;
} show_settings;

static void print_lines(const char *text)
{
    size_t n = strlen(text);
    fputs(text, stdout);
    if (!n || text[n - 1] != '\n')
        putchar('\n');
}

/* Take what was given, and write it into the file where that was asked for. CLI_FINE, or an error, told. */
static int change(const cli_call *call, pc_classifier *classifier)
{
    const show_settings *settings = call->settings;
    if (settings->set && !cli_prepare_given(&settings->preparation)) {
        cli_error(call->command, "--set: say what to write into the file: --rescale, --mean, --std, --resize, "
                                 "--shorter, --no-exif, --classes");
        return CLI_WRONG_USAGE;
    }
    const int status = cli_prepare(call->command, &settings->preparation, classifier);
    if (status != CLI_FINE || !settings->set || pc_classifier_note(classifier) == PC_OK)
        return status;
    return cli_failed(call->command);
}

/* A file that cannot be used is still shown: its layers, as far as it says them, and why it cannot. */
static int show_layers(const cli_call *call)
{
    const show_settings *settings = call->settings;
    char why[CLI_FAILURE_MAX], *text = NULL, *json = NULL;
    cli_failure(why);
    pc_error_clear();
    if (!settings->set && pc_model_layers(call->line->values[0], &text, &json) == PC_OK)
        print_lines(settings->json ? json : text);
    pc_text_free(text);
    pc_text_free(json);
    pc_error_clear();
    cli_error(call->command, "%s", why);
    return CLI_FAILED;
}

static int run(const cli_call *call)
{
    const show_settings *settings = call->settings;
    char *text = NULL, *json = NULL;
    pc_classifier *classifier = pc_classifier_open(call->line->values[0], "cpu");
    if (!classifier)
        return show_layers(call);
    const int unchanged = change(call, classifier);
    if (unchanged != CLI_FINE) {
        pc_classifier_free(classifier);
        return unchanged;
    }
    pc_status status = pc_classifier_summary(classifier, &text, &json);
    pc_classifier_free(classifier);
    if (status != PC_OK)
        return cli_failed(call->command);
    print_lines(settings->json ? json : text);
    pc_text_free(text);
    pc_text_free(json);
    return CLI_FINE;
}

static const cli_option options[] = {
    {"json", 0, CLI_FLAG, offsetof(show_settings, json), NULL, NULL, .help = "Print JSON, for programs"},
    {"set", 0, CLI_FLAG, offsetof(show_settings, set), NULL, NULL,
     .help = "Write what the options below say into the file, for predict and eval to find"},
    CLI_PREPARE_ROWS(show_settings, preparation),
    {0},
};

static const cli_argument arguments[] = {
    {"MODEL", "A Keras file (.h5, .keras), the folder of a run, or a file in it; - for standard input", 1, 1,
     .complete = CLI_FILES, .read = true},
    {0},
};

static const cli_example examples[] = {
    {"paracord show run/model.h5", "Look at what paracord train made, or at a file that Keras saved"},
    {"paracord show signs.h5 --set --rescale 1 --classes stop,yield", "Say in the file how its pictures are prepared"},
    {0},
};

const cli_command cli_show = {
    .name = "show",
    .summary = "Show a network's layers, shapes, parameters and size",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .settings_size = sizeof(show_settings),
    .run = run,
};

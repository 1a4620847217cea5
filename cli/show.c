/* show.c: paracord show MODEL */
#include <stddef.h>
#include <string.h>

#include <paracord/train.h>

#include "command.h"

typedef struct show_settings {
    bool json;
} show_settings;

static void print_lines(const char *text)
{
    size_t n = strlen(text);
    fputs(text, stdout);
    if (!n || text[n - 1] != '\n')
        putchar('\n');
}

static int run(const cli_call *call)
{
    const show_settings *settings = call->settings;
    char *text = NULL, *json = NULL;
    pc_classifier *classifier = pc_classifier_open(call->line->values[0], "cpu");
    if (!classifier)
        return cli_failed(call->command);
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
    {0},
};

static const cli_argument arguments[] = {
    {"MODEL", "A Keras file (.h5), such as paracord train writes", 1, 1, .complete = CLI_FILES},
    {0},
};

static const cli_example examples[] = {
    {"paracord show run/model.h5", "Look at what paracord train made, or at a file that Keras saved"},
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

/* predict.c: paracord predict MODEL FILE... */
#include <limits.h>
#include <stddef.h>

#include <paracord/train.h>

#include "program.h"
#include "signals.h"
#include "text.h"

typedef struct predict_settings {
    const char *device;
    bool json;
} predict_settings;

static void print_text(const char *file, const pc_prediction *p, bool several)
{
    if (several) {
        cli_print_safe(stdout, file);
        putchar('\n');
    }
    fputs("Prediction = ", stdout);
    cli_print_safe(stdout, p->name);
    printf("\nProbability = %.4f\n", p->probability);
}

static void print_json(const char *file, const pc_prediction *p, const char *error, bool first)
{
    fputs(first ? "[\n  {\"file\": " : ",\n  {\"file\": ", stdout);
    cli_json_text(stdout, file);
    fputs(error ? ", \"error\": " : ", \"prediction\": ", stdout);
    cli_json_text(stdout, error ? error : p->name);
    if (!error) {
        fputs(", \"probability\": ", stdout);
        cli_json_number(stdout, p->probability);
    }
    putchar('}');
}

/* Answer for one file; false when it could not be read, which is said and leaves the other files alone. */
static bool predict(const cli_call *call, pc_classifier *classifier, int i)
{
    const predict_settings *settings = call->settings;
    const char *file = call->line->values[1 + i];
    pc_prediction prediction;
    char text[CLI_FAILURE_MAX];
    pc_error_clear();
    bool fine = pc_classifier_predict(classifier, file, &prediction) == PC_OK;
    if (!fine) {
        fflush(stdout);
        cli_failed(call->command);
    }
    if (settings->json)
        print_json(file, &prediction, fine ? NULL : cli_failure(text), i == 0);
    else if (fine)
        print_text(file, &prediction, call->line->count > 2);
    return fine;
}

static int run(const cli_call *call)
{
    const predict_settings *settings = call->settings;
    int files = call->line->count - 1, status = CLI_FINE, i = 0;
    pc_classifier *classifier = pc_classifier_open(call->line->values[0], settings->device);
    if (!classifier)
        return cli_failed(call->command);
    cli_signals_catch();
    for (; i < files && !cli_signal(); i++)
        if (!predict(call, classifier, i))
            status = CLI_FAILED;
    if (settings->json)
        puts("\n]");
    pc_classifier_free(classifier);
    return i < files ? cli_stopped_status() : status;
}

static const cli_option options[] = {
    {"device", 'd', CLI_TEXT, offsetof(predict_settings, device), "auto", "DEVICE", .help = CLI_DEVICE_HELP,
     .choices = cli_program_devices},
    {"json", 0, CLI_FLAG, offsetof(predict_settings, json), NULL, NULL, .help = "Print JSON, for programs"},
    {0},
};

static const cli_argument arguments[] = {
    {"MODEL", "A Keras file (.h5), such as paracord train writes", 1, 1, .complete = CLI_FILES},
    {"FILE", "Pictures, JPEG or PNG", 1, INT_MAX, .complete = CLI_FILES},
    {0},
};

static const cli_example examples[] = {
    {"paracord predict run/model.h5 photo.jpg", "Say what is in a picture"},
    {"paracord predict run/model.h5 *.jpg --json", "For programs: an array with one object per file"},
    {0},
};

const cli_command cli_predict = {
    .name = "predict",
    .summary = "Say what is in pictures",
    .description = "Prints the class and a probability for each picture. With two classes it is the probability of "
                   "the second one (0.5 or more means the second), with more that of the class named.\n"
                   "\n"
                   "A file that cannot be read is an error; the others are answered all the same, and the exit "
                   "status is 1.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .settings_size = sizeof(predict_settings),
    .run = run,
};

/* predict.c: paracord predict MODEL FILE... */
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <paracord/train.h>

#include "prepare.h"
#include "program.h"
#include "signals.h"
#include "text.h"

typedef struct predict_settings {
    const char *device;
    bool json, raw;
    int top;
    cli_preparation preparation;
} predict_settings;

/* What is known of one file. */
typedef struct answer {
    const char *file;
    pc_prediction prediction;
    float *probabilities;
    const pc_classifier *classifier;
} answer;

/* The k-th most probable class, from 0; of equals the first. */
static int ranked(const answer *a, int k)
{
    int classes = pc_classifier_class_count(a->classifier);
    for (int i = 0; i < classes; i++) {
        int before = 0;
        for (int j = 0; j < classes; j++)
            before +=
                a->probabilities[j] > a->probabilities[i] || (a->probabilities[j] == a->probabilities[i] && j < i);
        if (before == k)
            return i;
    }
    return 0;
}

static void print_class(const answer *a, int label)
{
    cli_print_safe(stdout, pc_classifier_class_name(a->classifier, label));
    printf(" %.4f", (double)a->probabilities[label]);
}

static void print_text(const predict_settings *settings, const answer *a, bool several)
{
    int top = settings->top, classes = pc_classifier_class_count(a->classifier);
    if (several) {
        putchar('\n');
        cli_print_safe(stdout, a->file);
        putchar('\n');
    }
    fputs("Prediction = ", stdout);
    cli_print_safe(stdout, a->prediction.name);
    printf("\nProbability = %.4f\n", a->prediction.probability);
    if (settings->raw && a->prediction.sigmoid >= 0)
        printf("Sigmoid = %.4f\n", a->prediction.sigmoid);
    for (int k = 0; settings->top && k < top && k < classes; k++) {
        printf("%3d  ", k + 1);
        print_class(a, ranked(a, k));
        putchar('\n');
    }
}

static void print_probabilities(const predict_settings *settings, const answer *a)
{
    int classes = pc_classifier_class_count(a->classifier);
    int shown = settings->top && settings->top < classes ? settings->top : classes;
    fputs(", \"probabilities\": {", stdout);
    for (int k = 0; k < shown; k++) {
        int label = settings->top ? ranked(a, k) : k;
        fputs(k ? ", " : "", stdout);
        cli_json_text(stdout, pc_classifier_class_name(a->classifier, label));
        fputs(": ", stdout);
        cli_json_number(stdout, (double)a->probabilities[label]);
    }
    putchar('}');
}

static void print_json(const predict_settings *settings, const answer *a, const char *error, bool first)
{
    fputs(first ? "[\n  {\"file\": " : ",\n  {\"file\": ", stdout);
    cli_json_text(stdout, a->file);
    fputs(error ? ", \"error\": " : ", \"prediction\": ", stdout);
    cli_json_text(stdout, error ? error : a->prediction.name);
    if (!error) {
        fputs(", \"probability\": ", stdout);
        cli_json_number(stdout, a->prediction.probability);
        print_probabilities(settings, a);
        if (a->prediction.sigmoid >= 0) {
            fputs(", \"sigmoid\": ", stdout);
            cli_json_number(stdout, a->prediction.sigmoid);
        }
        if (a->prediction.damage[0]) {
            fputs(", \"damage\": ", stdout);
            cli_json_text(stdout, a->prediction.damage);
        }
    }
    putchar('}');
}

/* Answer for one file; false when it could not be read, which is said and leaves the other files alone. */
static bool predict(const cli_call *call, pc_classifier *classifier, int i, answer *a)
{
    const predict_settings *settings = call->settings;
    char text[CLI_FAILURE_MAX];
    a->file = call->line->values[1 + i];
    pc_error_clear();
    bool fine = pc_classifier_predict_all(classifier, a->file, &a->prediction, a->probabilities) == PC_OK;
    fflush(stdout);
    if (!fine)
        cli_failed(call->command);
    else if (a->prediction.damage[0])
        cli_error(call->command, "%s is damaged, but all its pixels are there: %s", a->file, a->prediction.damage);
    if (settings->json)
        print_json(settings, a, fine ? NULL : cli_failure(text), i == 0);
    else if (fine)
        print_text(settings, a, call->line->count > 2);
    return fine;
}

static bool reads_standard_input(const cli_call *call)
{
    for (int i = 0; i < call->line->count; i++)
        if (!strcmp(call->line->values[i], CLI_STDIN))
            return true;
    return false;
}

static int predict_all(const cli_call *call, pc_classifier *classifier)
{
    const predict_settings *settings = call->settings;
    int files = call->line->count - 1, status = CLI_FINE, i = 0;
    answer a = {.classifier = classifier};
    a.probabilities = calloc((size_t)pc_classifier_class_count(classifier), sizeof *a.probabilities);
    if (!a.probabilities) {
        cli_error(call->command, "not enough memory for the probabilities");
        return CLI_FAILED;
    }
    cli_prepare_warn(call->command, classifier, call->line->values[0]);
    if (!settings->json)
        cli_prepare_print(classifier, "Prepared");
    if (!reads_standard_input(call)) /* which Ctrl-C ends at once: it may never come to an end by itself */
        cli_signals_catch();
    for (; i < files && !cli_signal(); i++)
        if (!predict(call, classifier, i, &a))
            status = CLI_FAILED;
    if (settings->json)
        puts("\n]");
    free(a.probabilities);
    return i < files ? cli_stopped_status() : status;
}

static int run(const cli_call *call)
{
    const predict_settings *settings = call->settings;
    int status;
    pc_classifier *classifier =
        cli_prepare_open(call->command, &settings->preparation, call->line->values[0], settings->device, &status);
    if (!classifier)
        return status;
    status = predict_all(call, classifier);
    pc_classifier_free(classifier);
    return status;
}

static const cli_option options[] = {
    {"top", 'k', CLI_INT, offsetof(predict_settings, top), "0", "K",
     .help = "Print the K most probable classes, each with its probability", .min = 0, .max = 1000000},
    {"raw", 0, CLI_FLAG, offsetof(predict_settings, raw), NULL, NULL,
     .help = "Print the sigmoid's value too: the probability of the second of two classes"},
    {"device", 'd', CLI_TEXT, offsetof(predict_settings, device), "auto", "DEVICE", .help = CLI_DEVICE_HELP,
     .choices = cli_program_devices},
    {"json", 0, CLI_FLAG, offsetof(predict_settings, json), NULL, NULL, .help = "Print JSON, for programs"},
    CLI_PREPARE_ROWS(predict_settings, preparation),
    {0},
};

static const cli_argument arguments[] = {
    {"MODEL", "A Keras file (.h5, .keras), the folder of a run, or a file in it; - for standard input", 1, 1,
     .complete = CLI_FILES, .read = true},
    {"FILE", "Pictures; - for standard input", 1, INT_MAX, .complete = CLI_FILES, .read = true},
    {0},
};

static const cli_example examples[] = {
    {"paracord predict run/model.h5 photo.jpg", "Say what is in a picture"},
    {"curl -s https://example.com/cat.jpg | paracord predict run/model.h5 -", "A picture that another program brings"},
    {"paracord predict run/model.h5 *.jpg --json", "For programs: an array with one object per file"},
    {"paracord predict signs.h5 photo.jpg --rescale 1 --top 5", "A network that was trained on raw pixels"},
    {0},
};

const cli_command cli_predict = {
    .name = "predict",
    .summary = "Say what is in pictures",
    .description = "Prints the class and its probability for each picture. The first line says how pictures are "
                   "prepared for the network, and whence that is known: where the file does not say, an assumption "
                   "is made and told, and the options set it right.\n"
                   "\n"
                   "A file that cannot be read is an error; the others are answered all the same, and the exit "
                   "status is 1.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .settings_size = sizeof(predict_settings),
    .run = run,
};

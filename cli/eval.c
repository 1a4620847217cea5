/* eval.c: paracord eval MODEL DIR */
#include <stddef.h>
#include <string.h>

#include <paracord/train.h>

#include "eval_classes.h"
#include "prepare.h"
#include "program.h"
#include "signals.h"
#include "text.h"
#include "watch.h"

typedef struct eval_settings {
    const char *device;
    int batch;
    bool json;
    cli_preparation preparation;
} eval_settings;

static void print_json(const pc_classifier *classifier, const pc_evaluation *e)
{
    printf("{\"pictures\": %lld, \"correct\": %lld, \"skipped\": %lld, \"damaged\": %lld, \"accuracy\": ",
           (long long)e->pictures, (long long)e->correct, (long long)e->skipped, (long long)e->damaged);
    cli_json_number(stdout, e->accuracy);
    fputs(", \"balanced_accuracy\": ", stdout);
    cli_json_number(stdout, e->balanced_accuracy);
    fputs(", \"loss\": ", stdout);
    cli_json_number(stdout, e->loss);
    pc_preparation preparation = pc_classifier_preparation(classifier);
    char *prepared = pc_preparation_text(&preparation);
    fputs(", \"prepared\": ", stdout);
    cli_json_text(stdout, prepared ? prepared : "");
    pc_text_free(prepared);
    fputs(", \"classes\": [", stdout);
    for (int i = 0; i < e->classes; i++) {
        fputs(i ? ", " : "", stdout);
        cli_json_text(stdout, e->class_names[i]);
    }
    fputs("], \"confusion\": [", stdout);
    for (int i = 0; i < e->classes; i++) {
        fputs(i ? ", [" : "[", stdout);
        for (int j = 0; j < e->classes; j++)
            printf("%s%lld", j ? ", " : "", (long long)e->confusion[i * e->classes + j]);
        fputc(']', stdout);
    }
    fputc(']', stdout);
    cli_eval_classes_json(e);
    puts("}");
}

static void print_text(const pc_classifier *classifier, const pc_evaluation *e)
{
    char text[32];
    cli_prepare_print(classifier, "Prepared");
    printf("Pictures = %s\n", cli_thousands(e->pictures, text));
    if (e->skipped > 0)
        printf("Skipped  = %s\n", cli_thousands(e->skipped, text));
    if (e->damaged > 0)
        printf("Damaged  = %s, used all the same\n", cli_thousands(e->damaged, text));
    printf("Accuracy = %.4f (%s right)\n", e->accuracy, cli_thousands(e->correct, text));
    printf("Balanced = %.4f (mean of what was recognised of each class)\n", e->balanced_accuracy);
    printf("Loss     = %.4f\n\n", e->loss);
    cli_eval_classes(e);
}

static int run(const cli_call *call)
{
    const eval_settings *settings = call->settings;
    const char *model = call->line->values[0], *folder = call->line->values[1];
    pc_evaluation result = {0};
    cli_watch watch;
    int unready;
    pc_classifier *classifier =
        cli_prepare_open(call->command, &settings->preparation, model, settings->device, &unready);
    if (!classifier)
        return unready;
    cli_prepare_warn(call->command, classifier, model);
    cli_watch_start(&watch, call->command);
    pc_train_callbacks callbacks = cli_watch_callbacks(&watch);
    pc_status status = pc_classifier_evaluate(classifier, folder, settings->batch, &callbacks, &result);
    cli_watch_end(&watch);
    if (status != PC_OK) {
        pc_classifier_free(classifier);
        return status == PC_ERR_INTERRUPTED ? cli_stopped_status() : cli_failed(call->command);
    }
    if (settings->json)
        print_json(classifier, &result);
    else
        print_text(classifier, &result);
    pc_classifier_free(classifier);
    pc_evaluation_free(&result);
    return CLI_FINE;
}

static const cli_option options[] = {
    {"batch", 'b', CLI_INT, offsetof(eval_settings, batch), "32", "N", .help = "Pictures per step", .min = 1,
     .max = 65536},
    {"device", 'd', CLI_TEXT, offsetof(eval_settings, device), "auto", "DEVICE", .help = CLI_DEVICE_HELP,
     .choices = cli_program_devices},
    {"json", 0, CLI_FLAG, offsetof(eval_settings, json), NULL, NULL, .help = "Print JSON, for programs"},
    CLI_PREPARE_ROWS(eval_settings, preparation),
    {0},
};

static const cli_argument arguments[] = {
    {"MODEL", "A Keras file (.h5, .keras), the folder of a run, or a file in it; - for standard input", 1, 1,
     .complete = CLI_FILES, .read = true},
    {"DIR", "A folder with one folder of pictures per class, or one with test/ in it", 1, 1, .complete = CLI_FOLDERS},
    {0},
};

static const cli_example examples[] = {
    {"paracord eval run/model.h5 pets/test", "Measure the network on pictures that it has not seen"},
    {0},
};

const cli_command cli_eval = {
    .name = "eval",
    .summary = "Measure a network on a folder of pictures",
    .description =
        "Prints how many pictures there were, the share that the network got right, the loss, and a table "
        "of which class was taken for which: a row for each true class, a column for each answer, and the share "
        "that was recognised. Balanced is the mean of these shares: where classes have unequal numbers of "
        "pictures, always naming the largest class makes a good accuracy and a poor balanced one.\n"
        "\n"
        "The first line says how pictures were prepared for the network, and whence that is known.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .settings_size = sizeof(eval_settings),
    .run = run,
};

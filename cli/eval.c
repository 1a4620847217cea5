/* eval.c: paracord eval MODEL DIR */
#include <stddef.h>
#include <string.h>

#include <paracord/train.h>

#include "program.h"
#include "signals.h"
#include "text.h"
#include "watch.h"

typedef struct eval_settings {
    const char *device;
    int batch;
    bool json;
} eval_settings;

#define CLASSES_SHOWN 20 /* a wider table is for --json */

static void print_json(const pc_evaluation *e)
{
    printf("{\"pictures\": %lld, \"correct\": %lld, \"skipped\": %lld, \"accuracy\": ", (long long)e->pictures,
           (long long)e->correct, (long long)e->skipped);
    cli_json_number(stdout, e->accuracy);
    fputs(", \"loss\": ", stdout);
    cli_json_number(stdout, e->loss);
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
    puts("]}");
}

static int longest(int a, int b)
{
    return a > b ? a : b;
}

/* Columns for predicted classes: each as wide as its name and its largest number. */
static int column_width(const pc_evaluation *e, int j)
{
    int width = cli_columns(e->class_names[j]);
    for (int i = 0; i < e->classes; i++)
        width = longest(width, snprintf(NULL, 0, "%lld", (long long)e->confusion[i * e->classes + j]));
    return width;
}

static void print_right(const char *text, int width)
{
    cli_pad(stdout, cli_columns(text), width);
    cli_print_safe(stdout, text);
}

static void print_confusion(const pc_evaluation *e)
{
    static const char corner[] = "true \\ predicted";
    int first = (int)strlen(corner);
    for (int i = 0; i < e->classes; i++)
        first = longest(first, cli_columns(e->class_names[i]));
    print_right(corner, first);
    for (int j = 0; j < e->classes; j++) {
        fputs("  ", stdout);
        print_right(e->class_names[j], column_width(e, j));
    }
    putchar('\n');
    for (int i = 0; i < e->classes; i++) {
        print_right(e->class_names[i], first);
        for (int j = 0; j < e->classes; j++)
            printf("  %*lld", column_width(e, j), (long long)e->confusion[i * e->classes + j]);
        putchar('\n');
    }
}

static void print_text(const pc_evaluation *e)
{
    char text[32];
    printf("Pictures = %s\n", cli_thousands(e->pictures, text));
    if (e->skipped > 0)
        printf("Skipped  = %s\n", cli_thousands(e->skipped, text));
    printf("Accuracy = %.4f (%s right)\n", e->accuracy, cli_thousands(e->correct, text));
    printf("Loss     = %.4f\n\n", e->loss);
    if (e->classes <= CLASSES_SHOWN)
        print_confusion(e);
    else
        printf("%d classes: --json has the table of what was taken for what\n", e->classes);
}

static int run(const cli_call *call)
{
    const eval_settings *settings = call->settings;
    const char *model = call->line->values[0], *folder = call->line->values[1];
    pc_evaluation result = {0};
    cli_watch watch;
    pc_classifier *classifier = pc_classifier_open(model, settings->device);
    if (!classifier)
        return cli_failed(call->command);
    cli_watch_start(&watch, call->command);
    pc_train_callbacks callbacks = cli_watch_callbacks(&watch);
    pc_status status = pc_classifier_evaluate(classifier, folder, settings->batch, &callbacks, &result);
    cli_watch_end(&watch);
    pc_classifier_free(classifier);
    if (status != PC_OK)
        return status == PC_ERR_INTERRUPTED ? cli_stopped_status() : cli_failed(call->command);
    if (settings->json)
        print_json(&result);
    else
        print_text(&result);
    pc_evaluation_free(&result);
    return CLI_FINE;
}

static const cli_option options[] = {
    {"batch", 'b', CLI_INT, offsetof(eval_settings, batch), "32", "N", .help = "Pictures per step", .min = 1,
     .max = 65536},
    {"device", 'd', CLI_TEXT, offsetof(eval_settings, device), "auto", "DEVICE", .help = CLI_DEVICE_HELP,
     .choices = cli_program_devices},
    {"json", 0, CLI_FLAG, offsetof(eval_settings, json), NULL, NULL, .help = "Print JSON, for programs"},
    {0},
};

static const cli_argument arguments[] = {
    {"MODEL", "A Keras file (.h5), such as paracord train writes", 1, 1, .complete = CLI_FILES},
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
    .description = "Prints how many pictures there were, the share that the network got right, the loss, and a table "
                   "of which class was taken for which: a row for each true class, a column for each answer.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .settings_size = sizeof(eval_settings),
    .run = run,
};

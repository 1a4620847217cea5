/* pictures.c: paracord pictures DIR, which draws a set of pictures */
#include <math.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <paracord-tools/draw.h>

#include "command.h"
#include "progress.h"
#include "signals.h"
#include "text.h"

typedef struct drawing {
    cli_progress progress;
    struct timespec start;
} drawing;

static bool drawn(void *context, int done, int total)
{
    drawing *d = context;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double seconds = (double)(now.tv_sec - d->start.tv_sec) + 1e-9 * (double)(now.tv_nsec - d->start.tv_nsec);
    pc_progress at = {.done = done, .total = total, .loss = NAN, .accuracy = NAN, .seconds_left = -1};
    if (seconds > 0.5) {
        at.images_per_second = done / seconds;
        at.seconds_left = seconds * (total - done) / done;
    }
    cli_progress_show(&d->progress, &at);
    return !cli_signal();
}

/* 0 means "default" to the library and "none" to the user. */
static int none_if_zero(int pictures)
{
    return pictures ? pictures : -1;
}

/* A folder that is not there yet, and is called nearly as a sub-command: it may have been meant. */
static void warn_of_action(const cli_command *command, const char *folder)
{
    const char *meant = strchr(folder, '/') || access(folder, F_OK) == 0 ? NULL : cli_near_action(command, folder);
    if (meant)
        cli_error(command, "drawing into a new folder %s; paracord %s %s DIR is another command", folder, command->name,
                  meant);
}

static int run(const cli_call *call)
{
    const pc_draw_options *typed = call->settings;
    pc_draw_options options = *typed;
    const char *folder = call->line->values[0];
    drawing d;
    if (!typed->train && !typed->test) {
        cli_error(call->command, "--train 0 and --test 0: there is nothing to draw");
        return CLI_WRONG_USAGE;
    }
    warn_of_action(call->command, folder);
    cli_progress_start(&d.progress);
    cli_signals_catch();
    clock_gettime(CLOCK_MONOTONIC, &d.start);
    options.train = none_if_zero(typed->train);
    options.test = none_if_zero(typed->test);
    options.progress = drawn;
    options.context = &d;
    pc_status status = pc_draw_picture_set(folder, options);
    cli_progress_clear(&d.progress);
    if (status != PC_OK)
        return status == PC_ERR_INTERRUPTED ? cli_stopped_status() : cli_failed(call->command);
    char train[32], test[32];
    printf("drew %s pictures to train on and %s to test on; next: paracord %s ",
           cli_thousands(2 * (int64_t)typed->train, train), cli_thousands(2 * (int64_t)typed->test, test),
           typed->train ? "train" : "eval MODEL");
    cli_print_shell(stdout, folder);
    putchar('\n');
    return CLI_FINE;
}

#define AT(member) offsetof(pc_draw_options, member)

static const cli_option options[] = {
    {"train", 0, CLI_INT, AT(train), "400", "N", .help = "Pictures per class in DIR/train", .min = 0, .max = 1000000},
    {"test", 0, CLI_INT, AT(test), "100", "N", .help = "Pictures per class in DIR/test", .min = 0, .max = 1000000},
    {"size", 's', CLI_INT, AT(size), "150", "PIXELS",
     .help = "Typical edge of a picture; each is 0.8 to 1.3 times that", .min = 16, .max = 2048},
    {"quality", 'q', CLI_INT, AT(quality), "90", "N", .help = "Quality of the JPEG files", .min = 1, .max = 100},
    {"seed", 0, CLI_SEED, AT(seed), "0", "N",
     .help = "Seed of everything random: the same seed gives the same pictures"},
    {0},
};

static const cli_argument arguments[] = {
    {"DIR", "The folder to draw into; it is made when it is not there", 1, 1, .complete = CLI_FOLDERS},
    {0},
};

static const cli_example examples[] = {
    {"paracord pictures faces", "Draw a set to practise on"},
    {"paracord pictures faces --train 2000 --seed 7", "A larger one, with other faces"},
    {0},
};

const cli_command cli_pictures = {
    .name = "pictures",
    .summary = "Draw cat and dog faces to practise on",
    .description = "Draws faces of cats and dogs, varied in pose, colour, light and background, as JPEG files in "
                   "DIR/train/cat, DIR/train/dog, DIR/test/cat and DIR/test/dog: a set to try things on that needs "
                   "no download.",
    .group = "Pictures",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .settings_size = sizeof(pc_draw_options),
    .run = run,
};

/* prepare.c: options about how pictures become numbers, from words to the library. */
#include "prepare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <paracord/tensor.h>

#include "text.h"

const cli_choice cli_prepare_resizes[] = {
    {"nearest", "the nearest pixel, as Keras does by default"}, {"area", "the average of what a pixel covers"}, {0}};

bool cli_prepare_given(const cli_preparation *given)
{
    return given->rescale || given->mean || given->std || given->resize || given->classes || given->no_exif ||
           given->shorter;
}

/* "0.5" or "1/255" up to `stop`; where it ends, or NULL. */
static const char *read_factor(const char *text, char stop, double *number)
{
    char *end;
    if (strspn(text, "0123456789+-.eE/") != strcspn(text, (char[]){stop, 0}))
        return NULL;
    *number = strtod(text, &end);
    if (end == text)
        return NULL;
    if (*end == '/') {
        const char *below = end + 1;
        double by = strtod(below, &end);
        if (end == below || by == 0)
            return NULL;
        *number /= by;
    }
    return (*end == stop || !*end) && isfinite(*number) ? end : NULL;
}

static bool set_rescale(const cli_command *command, const char *text, double *rescale)
{
    const char *end = read_factor(text, 0, rescale);
    if (end && *rescale != 0)
        return true;
    cli_error(command, "--rescale %s: must be a number other than 0, or a fraction such as 1/255", text);
    return false;
}

/* One number for all channels, or one for each. */
static bool set_channels(const cli_command *command, const char *name, const char *text, int channels,
                         double values[PC_PREPARATION_CHANNELS])
{
    int count = 0;
    const char *at = text;
    while (at && count < PC_PREPARATION_CHANNELS) {
        at = read_factor(at, ',', &values[count]);
        count += at != NULL;
        if (!at || !*at)
            break;
        at++;
    }
    if (at && !*at && (count == 1 || count == channels)) {
        for (int c = count; c < PC_PREPARATION_CHANNELS; c++)
            values[c] = values[0];
        return true;
    }
    if (channels == 1)
        cli_error(command, "--%s %s: must be a number", name, text);
    else
        cli_error(command, "--%s %s: must be a number, or three for red, green and blue: 0.485,0.456,0.406", name,
                  text);
    return false;
}

/* A file that says how pixels become numbers is seldom wrong: an option against it is told. */
static void warn_of_replacing(const cli_command *command, const pc_preparation *p)
{
    char *text = p->source == PC_PREPARATION_ASSUMED ? NULL : pc_preparation_text(p);
    if (text)
        cli_error(command,
                  "the model's file says itself how pixels become numbers, %s; --rescale, --mean and --std replace "
                  "that, and come before other such layers of the network",
                  text);
    pc_text_free(text);
}

/* A size that the file leaves open; one that it states cannot be another. */
static bool set_size(const cli_command *command, const int size[2], pc_preparation *p)
{
    if (!size[0] || (p->height == size[0] && p->width == size[1]))
        return true;
    if (p->height && p->width) {
        cli_error(command, "--size: the network takes pictures of %d x %d alone", p->height, p->width);
        return false;
    }
    p->height = size[0], p->width = size[1];
    return true;
}

/* What the options say, into p; false: an error, told. */
static bool take(const cli_command *command, const cli_preparation *given, pc_preparation *p)
{
    if (given->rescale || given->mean || given->std) {
        warn_of_replacing(command, p);
        for (int c = 0; c < PC_PREPARATION_CHANNELS && p->source == PC_PREPARATION_LAYER; c++)
            p->mean[c] = 0, p->std[c] = 1;
    }
    if (!set_size(command, given->size, p))
        return false;
    if (given->rescale && !set_rescale(command, given->rescale, &p->rescale))
        return false;
    if (given->mean && !set_channels(command, "mean", given->mean, p->channels, p->mean))
        return false;
    if (given->std && !set_channels(command, "std", given->std, p->channels, p->std))
        return false;
    for (int c = 0; given->std && c < PC_PREPARATION_CHANNELS; c++)
        if (p->std[c] == 0) {
            cli_error(command, "--std %s: must not be 0, by which nothing can be divided", given->std);
            return false;
        }
    if (given->resize)
        p->resize = strcmp(given->resize, "area") == 0 ? PC_RESIZE_AREA : PC_RESIZE_NEAREST;
    p->no_exif = p->no_exif || given->no_exif;
    p->shorter = given->shorter ? given->shorter : p->shorter;
    return true;
}

/* The library's error: wrong usage where it is about what was given. */
static int failed(const cli_command *command)
{
    const bool given = pc_error_last()->status == PC_ERR_ARGUMENT;
    const int status = cli_failed(command);
    return given ? CLI_WRONG_USAGE : status;
}

static int set_preparation(const cli_command *command, const cli_preparation *given, pc_classifier *classifier)
{
    pc_preparation p = pc_classifier_preparation(classifier);
    if (!take(command, given, &p))
        return CLI_WRONG_USAGE;
    return pc_classifier_set_preparation(classifier, &p) == PC_OK ? CLI_FINE : failed(command);
}

static int set_classes(const cli_command *command, const char *text, pc_classifier *classifier)
{
    int count = 1, n = 0, status = CLI_FAILED;
    for (const char *c = text; *c; c++)
        count += *c == ',';
    char *words = strdup(text), *rest = words;
    const char **names = calloc((size_t)count, sizeof *names);
    while (words && names && rest)
        names[n++] = strsep(&rest, ",");
    if (!words || !names)
        cli_error(command, "not enough memory for the class names");
    else
        status = pc_classifier_set_class_names(classifier, names, n) == PC_OK ? CLI_FINE : failed(command);
    free(names);
    free(words);
    return status;
}

int cli_prepare(const cli_command *command, const cli_preparation *given, pc_classifier *classifier)
{
    bool numbers = given->rescale || given->mean || given->std || given->resize || given->no_exif || given->size[0] ||
                   given->shorter;
    const int status = numbers ? set_preparation(command, given, classifier) : CLI_FINE;
    return status == CLI_FINE && given->classes ? set_classes(command, given->classes, classifier) : status;
}

pc_classifier *cli_prepare_open(const cli_command *command, const cli_preparation *given, const char *model,
                                const char *device, int *status)
{
    *status = CLI_FAILED;
    pc_classifier *classifier = pc_classifier_open(model, device);
    if (!classifier)
        cli_failed(command);
    else if ((*status = cli_prepare(command, given, classifier)) == CLI_FINE)
        return classifier;
    pc_classifier_free(classifier);
    return NULL;
}

void cli_prepare_warn(const cli_command *command, const pc_classifier *classifier, const char *model)
{
    if (pc_classifier_preparation(classifier).source != PC_PREPARATION_ASSUMED)
        return;
    fflush(stdout);
    cli_error(command,
              "%s does not say how its pictures were prepared, so pixels times 1/255 is assumed; if the answers are "
              "wrong, try --rescale 1 (raw pixels) or what its training did (--mean, --std, --resize); \"paracord show "
              "MODEL --set\" with these writes them into the file",
              model);
}

void cli_prepare_print(const pc_classifier *classifier, const char *label)
{
    pc_preparation p = pc_classifier_preparation(classifier);
    char *text = pc_preparation_text(&p);
    if (text)
        printf("%s = %s\n", label, text);
    pc_text_free(text);
}

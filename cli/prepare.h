/* prepare.h: the options by which predict, eval and show are told how pictures become numbers and what classes are
 * called, where a model file does not say so or says it wrongly. */
#ifndef CLI_PREPARE_H
#define CLI_PREPARE_H

#include <paracord/classifier.h>

#include "command.h"

typedef struct cli_preparation {
    const char *rescale, *mean, *std, *resize, *classes;
    bool no_exif;
    int size[2]; /* height, width; 0: not given */
    int shorter; /* 0: not given */
} cli_preparation;

extern const cli_choice cli_prepare_resizes[];

/* Rows for a settings struct `type` with such a member. */
#define CLI_PREPARE_ROWS(type, member)                                                                                   \
    {"rescale",                                                                                                          \
     0,                                                                                                                  \
     CLI_TEXT,                                                                                                           \
     offsetof(type, member.rescale),                                                                                     \
     NULL,                                                                                                               \
     "FACTOR",                                                                                                           \
     .help = "Multiply pixels (0 to 255) by FACTOR: 1/255, 1 for raw pixels, 1/127.5 with --mean 1 for -1 to 1",         \
     .group = "How pictures become numbers, where the file does not say so"},                                            \
        {"mean",                                                                                                         \
         0,                                                                                                              \
         CLI_TEXT,                                                                                                       \
         offsetof(type, member.mean),                                                                                    \
         NULL,                                                                                                           \
         "R,G,B",                                                                                                        \
         .help = "Then subtract these (or one number)"},                                                                 \
        {"std", 0, CLI_TEXT, offsetof(type, member.std), NULL, "R,G,B", .help = "Then divide by these (or one number)"}, \
        {"resize",                                                                                                       \
         0,                                                                                                              \
         CLI_CHOICE,                                                                                                     \
         offsetof(type, member.resize),                                                                                  \
         NULL,                                                                                                           \
         "NAME",                                                                                                         \
         .help = "How pictures are resized",                                                                             \
         .choices = cli_prepare_resizes},                                                                                \
        {"size",                                                                                                         \
         0,                                                                                                              \
         CLI_SIZE,                                                                                                       \
         offsetof(type, member.size),                                                                                    \
         NULL,                                                                                                           \
         "PIXELS",                                                                                                       \
         .help = "Where the network takes any size: resize to PIXELS x PIXELS, or to HEIGHTxWIDTH",                      \
         .min = 1,                                                                                                       \
         .max = 16384},                                                                                                  \
        {"shorter",                                                                                                      \
         0,                                                                                                              \
         CLI_INT,                                                                                                        \
         offsetof(type, member.shorter),                                                                                 \
         NULL,                                                                                                           \
         "PIXELS",                                                                                                       \
         .help = "Resize to a shorter side of PIXELS and take the middle of the network's size",                         \
         .min = 1,                                                                                                       \
         .max = 16384},                                                                                                  \
        {"no-exif",                                                                                                      \
         0,                                                                                                              \
         CLI_FLAG,                                                                                                       \
         offsetof(type, member.no_exif),                                                                                 \
         NULL,                                                                                                           \
         NULL,                                                                                                           \
         .help = "Take pictures as they are stored, as Keras does, instead of turning them upright by Exif"},            \
    {                                                                                                                    \
        "classes", 0, CLI_TEXT, offsetof(type, member.classes), NULL, "A,B,...",                                         \
            .help = "What the classes are called, in the order of the network's outputs"                                 \
    }

/* Anything was given. */
bool cli_prepare_given(const cli_preparation *given);

/* The classifier in the file `model`, with what was given set; NULL: an error, told, and the exit status. */
pc_classifier *cli_prepare_open(const cli_command *command, const cli_preparation *given, const char *model,
                                const char *device, int *status);

/* Set what was given; CLI_FINE, or an error, told. What does not fit this classifier is wrong usage. */
int cli_prepare(const cli_command *command, const cli_preparation *given, pc_classifier *classifier);

/* Say on stderr that the preparation is assumed, where it is, and what to do; `model` is the file's path. */
void cli_prepare_warn(const cli_command *command, const pc_classifier *classifier, const char *model);

/* "Prepared    = 64x64 RGB by nearest neighbour, ..." on stdout. */
void cli_prepare_print(const pc_classifier *classifier, const char *label);

#endif

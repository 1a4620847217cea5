/* gpt.h: what gpt train, sample and eval share. */
#ifndef CLI_GPT_H
#define CLI_GPT_H

#include <paracord/gpt_train.h>

#include "command.h"
#include "progress.h"

/* How far a training is, at most ten times a second. */
void cli_gpt_progress_show(cli_progress *progress, const pc_gpt_progress *at);

/* What a network wrote: line by line behind a bar, control characters made harmless. */
void cli_gpt_print_sample(FILE *out, const char *text);

/* A network with its tokens. */
typedef struct cli_writer {
    pc_module *net;
    pc_tokenizer *tokens;
} cli_writer;

/* Of a folder; false: an error, told. */
bool cli_gpt_open(const cli_call *call, const char *folder, const char *device, cli_writer *gpt);
void cli_gpt_close(cli_writer *gpt);

#endif

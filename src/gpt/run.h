/* run.h: what a training of a GPT tells whoever writes its report. Any text may hold any bytes. */
#ifndef PC__GPT_RUN_H
#define PC__GPT_RUN_H

#include "train/curve.h"

#include <paracord/gpt_train.h>

typedef struct pc__gpt_tested {
    double step, loss, test_loss;
} pc__gpt_tested;

struct pc_gpt_run {
    const char *title, *device, *settings, *shared, *network; /* settings, shared: "name=value" lines */
    int64_t step, steps, parameters, tokens, bytes;           /* tokens: of a step */
    double seconds, tokens_per_second, mfu;
    bool running;
    pc__curve curve; /* the training loss by step */
    pc__gpt_tested *tested;
    int tested_count, tested_room;
    char *sample; /* the last one */
};

#endif

/* run_shots.h: pictures for a run's report, as thumbnails with what was said about them. */
#ifndef PC__RUN_SHOTS_H
#define PC__RUN_SHOTS_H

#include "train/run.h"

enum { PC__RUN_MISTAKES = 24, PC__RUN_SAMPLES = 12 };

typedef struct pc__run_shots {
    pc__report_sample mistakes[PC__RUN_MISTAKES]; /* the surest first */
    pc__report_sample samples[PC__RUN_SAMPLES];   /* at equal distances */
    int mistake_count, sample_count;
} pc__run_shots;

/* Of the pictures that run->shown is about; `shots`, empty before, is to be released also after a failure. */
pc_status pc__run_shots_take(const pc__run *run, const pc_loader *loader, pc__run_shots *shots);
void pc__run_shots_free(pc__run_shots *shots);

#endif

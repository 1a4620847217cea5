/* run_settings.h: what a run was asked for, as rows of its report. */
#ifndef PC__RUN_SETTINGS_H
#define PC__RUN_SETTINGS_H

#include "train/run.h"

enum { PC__RUN_SETTINGS = 32 };

typedef struct pc__run_settings {
    pc__report_setting rows[PC__RUN_SETTINGS]; /* values are in `text`, or the run's */
    char text[PC__RUN_SETTINGS][128];
    int count;
} pc__run_settings;

void pc__run_settings_take(const pc__run *run, pc__run_settings *to);

#endif

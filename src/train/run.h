/* run.h: one training on a folder of pictures, from settings to files. */
#ifndef PC__RUN_H
#define PC__RUN_H

#include "train/fit.h"
#include "train/metrics.h"
#include "train/model_file.h"
#include "train/report.h"

typedef struct pc__run {
    pc_train_settings s; /* with defaults filled in */
    pc_device device;
    pc__fit fit;
    pc_resize resize;
    pc_init_kind init;
    const char **class_names;                    /* of the training folder */
    char *train_folder, *test_folder;            /* from pc__alloc; test may be NULL */
    bool split;                                  /* the test pictures are a share of the training folder */
    char *checkpoint, *metrics, *model, *report; /* paths */
    char *settings;                              /* for the checkpoint */
    bool resumed;
    int lock;            /* a descriptor of the folder, -1: none */
    double last_save;    /* when this session last wrote a checkpoint; 0: not yet */
    double save_seconds; /* what that took */
    double seconds;      /* of this session */
    pc__history history;
    pc__report_skipped *skipped; /* the first ones */
    int skipped_count, skipped_room;
    pc_status skipped_status; /* of remembering them */
} pc__run;

/* run_data.c: find the folders and load the pictures; class_names is set. */
pc_status pc__run_load_data(pc__run *run);

/* run_folder.c: make, lock and tidy the folder of the run. Then where to begin: at the checkpoint when resuming and
 * there is one, else at the start, in an emptied folder; an unfinished run is not overwritten unasked. */
pc_status pc__run_open_folder(pc__run *run);
pc_status pc__run_find_start(pc__run *run);
void pc__run_close_folder(pc__run *run);

/* run_report.c: the report of a finished run. */
pc_status pc__run_report(pc__run *run);

/* run_text.c: what is about to happen, as lines; from pc__alloc. And run->settings. */
char *pc__run_describe(const pc__run *run);
pc_status pc__run_settings_text(pc__run *run);

#endif

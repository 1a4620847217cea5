/* run.h: one training on a folder of pictures, from settings to files. */
#ifndef PC__RUN_H
#define PC__RUN_H

#include "train/fit.h"
#include "train/metrics.h"
#include "train/model_file.h"
#include "train/report.h"

/* How often something is written: as a share of the time pays for, by what the last time took. */
typedef struct pc__pace {
    double share, longest; /* of the time; seconds after which it is written in any case */
    double least;          /* seconds between two */
    double last, took;     /* when it was last written in this session, 0: not yet; what that took */
} pc__pace;
bool pc__pace_pays(const pc__pace *pace);
void pc__pace_took(pc__pace *pace, double start);

/* Picture files for the report: the first ones that were found. */
typedef struct pc__run_files {
    pc__report_file *files;
    int count, room;
} pc__run_files;

typedef struct pc__run {
    pc_train_options s; /* with defaults filled in */
    pc_device device;
    pc__fit fit;
    pc_resize resize;
    pc_fill_mode fill;
    double mean[PC_PREPARATION_CHANNELS], std[PC_PREPARATION_CHANNELS]; /* of pixels in [0, 1] */
    pc_init_kind init;
    const char *arch;                            /* what pc__arch_new takes: s.arch, or the description in that file */
    char *description;                           /* from pc__alloc; NULL: there is none */
    char head[64];                               /* the name of the network's last layer, for init_from and freeze */
    char *begun;                                 /* what was taken from init_from, in words; NULL: nothing */
    const char **class_names;                    /* of the training folder */
    char *train_folder, *test_folder;            /* from pc__alloc; test may be NULL */
    bool split;                                  /* the test pictures are a share of the training folder */
    char *checkpoint, *metrics, *model, *report; /* paths */
    char *settings, *about;                      /* for the checkpoint */
    char *network;                               /* as a table, for reports; NULL: not made yet */
    int64_t *counts;                             /* of training pictures, of each class */
    pc_zero *zero;                               /* of several ranks that share parameters out; NULL: they do not */
    pc_module *kept; /* on the CPU: the network with the weights of the best epoch; NULL: the last one's are kept */
    bool resumed;
    pc__pace saving_model, saving_report;
    int model_epoch; /* whose weights model.h5 has, as far as this session wrote it; 0: none */
    int lock;        /* a descriptor of the folder, -1: none */
    pc__pace saving;
    double start, seconds; /* of this session */
    pc__answers shown;     /* of the test pictures, by the weights of the epoch `shown_epoch`; 0: there are none */
    int shown_epoch;
    int silent_epochs; /* the last so many epochs left out some class */
    pc__history history;
    pc__run_files skipped, damaged;
    pc_status files_status;        /* of remembering them */
    pc_train_callbacks only_stops; /* what a rank that does not speak has of them */
} pc__run;

/* What pictures become. */
static inline pc__frame pc__run_frame(const pc__run *run)
{
    return (pc__frame){run->s.height, run->s.width, run->s.channels};
}

/* run_ranks.c: as one of the ranks that options name; with parameters shared out, where they ask for it; whether the first one
 * goes on from a checkpoint, for all; the most pictures that a rank has of a batch, and that it learns from at once, and the
 * fewest of these; what decoded pictures may take, where ranks share a host. */
void pc__run_in_ranks(pc__run *run);
pc_status pc__run_share_out(pc__run *run);
pc_status pc__run_agree_start(pc__run *run);
int pc__run_part(const pc__run *run);
int pc__run_at_once(const pc__run *run);
int64_t pc__run_least_part(const pc__run *run);
int64_t pc__run_cache(const pc__run *run);

/* Threads are the process's: the first of its ranks says how many. */
bool pc__run_sets_threads(const pc__run *run);

/* run_normal.c: mean and std as the settings say. PC_ERR_ARGUMENT. */
pc_status pc__run_normal(pc__run *run);
/* run_begin.c: how the network begins. Settings that go together; the weights of the file that is named, unless a checkpoint
 * will have them; what is frozen. And behind pc__run_find_start the weights where there was no checkpoint. */
pc_status pc__run_check_begin(const pc__run *run);
pc_status pc__run_begin(pc__run *run);
pc_status pc__run_freeze(const pc__run *run, pc_module *net); /* as the run's network is */
pc_status pc__run_begin_late(pc__run *run);

/* run_data.c: find the folders and load the pictures; class_names is set. */
pc_status pc__run_load_data(pc__run *run);

/* run_folder.c: make, lock and tidy the folder of the run. Then where to begin: at the checkpoint when resuming and
 * there is one, else at the start, in an emptied folder; an unfinished run is not overwritten unasked. */
pc_status pc__run_open_folder(pc__run *run);
pc_status pc__run_find_start(pc__run *run);
void pc__run_close_folder(pc__run *run);

/* run_save.c: checkpoint and network. The epoch whose weights are the result so far: the best one or the last one; its
 * epoch is 0 where none is finished. At the end of an epoch the network is written when it is another one than in the
 * file and that pays; at the end of the session in any case, and before any epoch is finished as training stands. */
pc_status pc__run_save_checkpoint(pc__run *run);
const pc_epoch_result *pc__run_kept(const pc__run *run);
pc_status pc__run_offer_model(pc__run *run);
pc_status pc__run_save_model(pc__run *run);
pc__model_file pc__run_model(const pc__run *run);

/* run_classes.c: count the training pictures of each class; tell, behind the lines of pc__run_describe, when they are
 * uneven; weigh them as the settings ask; warn of classes that no test picture is taken for, once it lasts, and at the
 * end. */
pc_status pc__run_count_classes(pc__run *run);
bool pc__run_is_uneven(const pc__run *run);
void pc__run_describe_classes(pc__text *text, const pc__run *run);
pc_status pc__run_weigh_classes(pc__run *run);
void pc__run_watch_classes(pc__run *run, const pc_epoch_result *result);
void pc__run_warn_of_kept(const pc__run *run);

/* run_passed.c: behind a batch, and at the end of an epoch (result not NULL): as pc__fit.passed. */
pc_status pc__run_passed(void *run, pc__fit *fit, const pc_epoch_result *result);

/* run_report.c: the report, as the run stands. */
pc_status pc__run_report(pc__run *run);

/* At the end of an epoch, where that pays. What cannot be written then is a warning. */
void pc__run_offer_report(pc__run *run);

/* Where the answers to the test pictures are not those of the network that is kept, as after resuming: ask it. */
pc_status pc__run_look(pc__run *run);

/* run_text.c: what is about to happen, as lines; from pc__alloc. And run->settings, run->about. */
char *pc__run_describe(const pc__run *run);
pc_status pc__run_settings_text(pc__run *run);

#endif

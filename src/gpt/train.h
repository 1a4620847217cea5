/* train.h: a training's inside: parts, the checkpoint, what a report is told. */
#ifndef PC__GPT_TRAIN_H
#define PC__GPT_TRAIN_H

#include "gpt/model.h"
#include "gpt/run.h"
#include "io/safetensors.h"

#include <paracord/amp.h>
#include <paracord/data_parallel.h>
#include <paracord/schedule.h>
#include <paracord/step.h>

#include <limits.h>

typedef struct pc__gpt_training {
    pc_gpt_train_options o; /* with defaults filled in */
    pc_device device;
    pc_tokenizer *tokenizer; /* NULL: the data are tokens, and nobody knows their words */
    int64_t vocabulary;
    pc_corpus *corpus;
    pc_module *gpt;
    pc_optimizer *optimizer;
    pc_schedule schedule;
    pc_tensor *x, *y, *loss; /* of a step; loss: float32 [1], the sum since it was last read */
    pc_step *step;
    int rank, ranks;
    pc_group *network;    /* ranks that have the parts of one network (o.tensor_parallel); NULL: each has all of it */
    pc_group *data;       /* ranks that have the same part, one of each copy of the network; NULL: there is one copy */
    int copy, copies;     /* this rank's number in that group, and its size */
    int first, all;       /* o.batch is this copy's part, from row `first` on of `all` */
    double weight;        /* of this copy's mean loss in that of all copies, times their number */
    pc_ddp *ddp;          /* of `data`; NULL: it is alone, or */
    pc_zero *zero;        /* parameters are shared out, too */
    pc_module *joined;    /* the network as a whole, where it is cut; NULL: not now */
    pc_group *own;        /* of one that is alone and has a pc_zero all the same; NULL: none */
    int64_t host_bytes;   /* of pinned host memory that a pc_zero has in the device's place */
    bool stopping;        /* a rank was asked to */
    int lock;             /* the folder, opened and locked by the first rank; -1: not */
    char settings[1024];  /* what must be the same for going on */
    char shared[256];     /* how ranks share the work, which may change: the same kind of lines */
    char *words;          /* the description for whoever watches */
    double peak;          /* operations a second; NaN: unknown */
    int64_t summed;       /* steps in `loss` */
    double best;          /* the lowest test loss; infinite: none yet */
    double began, before; /* seconds: when this part of the training began; what others took */
    pc_gpt_run run;
    pc_gpt_progress at;
} pc__gpt_training;

/* What a checkpoint says of itself, which is that of all ranks. The digits of its checksum, without an end; zeros in files
 * that have none. */
typedef struct pc__gpt_standing {
    int64_t there; /* 0: there is none to go on from, and nothing below */
    int64_t step, draws;
    int64_t batch; /* of all ranks together; 0: it does not say */
    char sum[16];
} pc__gpt_standing;

/* train_ranks.c: what ranks have in common. The groups are made, and the batch is cut to this rank's; whether all go on from one
 * checkpoint, or none does, and where the batch is chosen by memory it is that checkpoint's; the network is trained together; the
 * step of the optimiser; the network is whole in the first rank, or as training has it, and which one that is there; a number, as
 * the mean of all; whether one is asked to stop, where `now` lets the ranks speak; what went wrong in this one, for the others; the
 * end. Alone they do nothing but the step, the checkpoint's batch, and join where something is in host memory. */
pc_status pc__gpt_ranks_begin(pc__gpt_training *t);
pc_status pc__gpt_ranks_agree_start(pc__gpt_training *t, const pc__gpt_standing *at);
pc_status pc__gpt_ranks_agree_batch(pc__gpt_training *t);
pc_status pc__gpt_ranks_join(pc__gpt_training *t);
pc_status pc__gpt_ranks_step(pc__gpt_training *t);
pc_status pc__gpt_ranks_whole(pc__gpt_training *t, bool whole);
pc_module *pc__gpt_ranks_network(const pc__gpt_training *t);
void pc__gpt_ranks_seed(const pc__gpt_training *t);
pc_status pc__gpt_ranks_mean(pc__gpt_training *t, double *number);
pc_status pc__gpt_ranks_stop(pc__gpt_training *t, bool asked, bool now, bool *stop);
void pc__gpt_ranks_fail(pc__gpt_training *t, pc_status status);
void pc__gpt_ranks_free(pc__gpt_training *t);

/* train_parts.c: everything that a training needs, and its end. */
pc_status pc__gpt_parts(pc__gpt_training *t);
void pc__gpt_parts_free(pc__gpt_training *t);

/* train_options.c: refuse what cannot be, and fill in what is usual. */
pc_status pc__gpt_options_settle(pc_gpt_train_options *o);

/* train_words.c: t->settings, t->shared and t->words of a training that is made. */
pc_status pc__gpt_describe(pc__gpt_training *t);

/* A step's work for pc_step; and without the optimiser's part, for measuring. */
pc_status pc__gpt_learn(void *training);
pc_status pc__gpt_forward_backward(pc__gpt_training *t);

/* Make x and y for so many stretches. */
pc_status pc__gpt_make_batch(pc__gpt_training *t, int batch);

/* train_need.c: choose or check the batch by the memory that plans of a step ask for: fills o.batch and run.bytes. And the
 * device's speed of products of that dtype. */
pc_status pc__gpt_fit_batch(pc__gpt_training *t);
double pc__gpt_peak(pc_device device, pc_dtype dtype);

/* Whether a network that is elsewhere, and writes, would fit on the device beside the training. */
bool pc__gpt_fits(const pc__gpt_training *t, const pc_module *network);

/* train_checkpoint.c: one file, written whole or not at all. Where parameters are shared out, or cut, all ranks write. */
pc_status pc__gpt_checkpoint_save(pc__gpt_training *t, const char *path);

/* train_checkpoint_sum.c: write the checksum of that file, which is to be `path`, into it; PC_ERR_FORMAT where a file has
 * another one than its own. Files of before there were any have none. */
pc_status pc__gpt_checkpoint_seal(const char *temporary, const char *path);
pc_status pc__gpt_checkpoint_check(const pc_weights *file);

/* train_pieces.c: of weights and moments: names, with whole tensors' shapes, and what of them this rank has; in both is room
 * for two more. The whole ones are the scope's; the lists are freed, after failures too. */
typedef struct pc__gpt_pieces {
    pc_parameter *list;
    pc__weights_part *parts;
    int count, part_count;
} pc__gpt_pieces;
pc_status pc__gpt_pieces_find(const pc__gpt_training *t, pc__gpt_pieces *pieces);
void pc__gpt_pieces_free(pc__gpt_pieces *pieces);

/* train_checkpoint_load.c: all ranks read. First what the file says, of which nothing is believed yet. */
pc_status pc__gpt_checkpoint_look(const char *path, pc__gpt_standing *at);
pc_status pc__gpt_checkpoint_load(pc__gpt_training *t, const char *path);

/* PC_ERR_STATE unless the file is of a training that has come to its end: a new one would overwrite it. */
pc_status pc__gpt_checkpoint_spare(const pc__gpt_training *t, const char *path);

/* train_folder.c: "FOLDER/NAME" in path. Whether there is a training in the folder to go on with; what is in the way of a
 * new one is PC_ERR_STATE. The folder is made and this training's; unless it goes on, what an earlier one has left goes,
 * and the tokens are written. It has a checkpoint now. It is given back. */
pc_status pc__gpt_path(const pc__gpt_training *t, const char *name, char path[PATH_MAX]);
pc_status pc__gpt_folder_look(pc__gpt_training *t, bool *resumed);
pc_status pc__gpt_folder_open(pc__gpt_training *t, bool resumed);
pc_status pc__gpt_folder_saved(const pc__gpt_training *t);
void pc__gpt_folder_close(pc__gpt_training *t);

#endif

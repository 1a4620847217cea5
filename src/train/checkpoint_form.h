/* checkpoint_form.h: the form of the file: "PCCKPT07", the length of the rest and its checksum; a header; the text that
 * says what the network is, or in its place what pc_fit measures (checkpoint_measured.h); the groups of the loss curve;
 * then the tensors in order (checkpoint_order.h), each with dtype and shape in front of its numbers
 * (checkpoint_tensor.c). Little-endian, as everything that Paracord runs on. "PCCKPT06" has but a count in front of
 * them, and "PCCKPT05" also lacks the header's last field. A change of the header, or of what its fields mean, takes a
 * new number in the first word. */
#ifndef PC__CHECKPOINT_FORM_H
#define PC__CHECKPOINT_FORM_H

#include "train/checkpoint.h"

/* Eight bytes a field: no gaps, and the same for every compiler. */
typedef struct pc__checkpoint_epoch {
    int64_t epoch, epochs;
    double loss, accuracy, test_loss, test_accuracy, seconds, images_per_second;
    int64_t has_test;
    double balanced;
    int64_t never_named, uneven;
    int64_t metrics;
    double metric[PC_METRICS_MAX];
} pc__checkpoint_epoch;

typedef struct pc__checkpoint_header {
    char settings[PC__SETTINGS_MOST]; /* and behind their end, where there is room, the optimiser's name */
    int64_t finished;
    int64_t epoch, batch;
    double loss_sum;
    int64_t correct, seen;
    double seconds;
    pc__checkpoint_epoch last, best;
    uint64_t seed, draws; /* of the thread's generator */
    int64_t step;         /* of the optimiser */
    double lr;
    int64_t parameters, tensors,
        kept;      /* tensors: the parameters, their optimiser's state, buffers; kept: of the best epoch */
    int64_t about; /* bytes */
    int64_t curve_width, curve_count;
    int64_t ignored; /* of those seen */
} pc__checkpoint_header;
_Static_assert(sizeof(pc__checkpoint_header) == 1024 + (18 + 2 * 21) * 8, "a header has no gaps");

/* A file that was read, and found whole. */
typedef struct pc__checkpoint_file {
    uint8_t *bytes; /* from pc__alloc, owned */
    pc__checkpoint_header header;
    const char *about; /* header.about bytes */
    pc__curve curve;
    const uint8_t *tensors;
    size_t tensor_bytes;
    bool counts; /* of an older version: of a tensor it only says how many numbers it has */
} pc__checkpoint_file;

/* One tensor of it. */
typedef struct pc__checkpoint_tensor {
    pc_dtype dtype;
    int ndim;
    int64_t shape[PC_MAX_DIMS]; /* not in files of counts */
    int64_t count;
    const uint8_t *numbers;
} pc__checkpoint_tensor;

/* PC_ERR_FORMAT when it is damaged, of another version, or says what no training can be in. */
PC__SHARED pc_status pc__checkpoint_open(const char *path, pc__checkpoint_file *file);
PC__SHARED void pc__checkpoint_close(pc__checkpoint_file *file);

/* The first bytes of a file are those of a checkpoint, of this version or an older one. */
bool pc__is_checkpoint(const char *path);

/* Put front and header and what follows them up to the tensors; for a tensor what it is, and zeros, whose place in `out` is what
 * is returned; then, behind the last tensor, length and checksum. */
void pc__checkpoint_put_head(pc__text *out, const pc__checkpoint_header *header, const char *about,
                             const pc__curve *curve);
size_t pc__checkpoint_put_room(pc__text *out, const pc_tensor *t);
void pc__checkpoint_seal(pc__text *out);

/* The next tensor of the file, which begins *at bytes into its tensors; *at goes on behind it. In files of counts it is of the
 * dtype `older`. False: there is none that is whole, of which `is` has what could be read. */
bool pc__checkpoint_next(const pc__checkpoint_file *file, size_t *at, pc_dtype older, pc__checkpoint_tensor *is);
pc_status pc__checkpoint_pass(const char *path, const pc__checkpoint_file *file, size_t *at, pc_dtype older);

/* The same, and it has the dtype and the shape of t; and the error, with that name, of one at `at` that has not. */
bool pc__checkpoint_fits(const pc__checkpoint_file *file, size_t *at, const pc_tensor *t, pc__checkpoint_tensor *is);
pc_status pc__checkpoint_misfit(const char *path, const pc__checkpoint_file *file, size_t at, const pc_tensor *t,
                                const char *name);

/* Copy it into t. */
pc_status pc__checkpoint_take(const char *path, const pc__checkpoint_file *file, size_t *at, pc_tensor *t,
                              const char *name);

/* checkpoint_settings.c: PC_ERR_STATE names the first option that differs between the settings of the file and of the run;
 * `own`: they are text of the program's own, as pc_fit has it. And what else differs that the file cannot be taken by: the
 * optimiser, the network, what is kept of the best epoch. */
pc_status pc__checkpoint_check_settings(const char *path, const char *was, const char *now, bool own);
pc_status pc__checkpoint_check_fit(const char *path, const pc__checkpoint_file *file, const pc__fit *fit);

/* The error of a file that cannot be gone on from. */
pc_status pc__checkpoint_damaged(const char *path, const char *how);

/* The same where tensors end elsewhere than the network's, of which dtypes may be the cause in files that do not say them. */
pc_status pc__checkpoint_cut(const char *path, const pc__checkpoint_file *file, const char *how);

#endif

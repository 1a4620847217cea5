/* checkpoint_form.h: the form of the file: "PCCKPT06", the length of the rest and its checksum; a header; the text that
 * says what the network is; the groups of the loss curve; then the tensors in order, each with its element count.
 * Little-endian, as everything that Paracord runs on. "PCCKPT05" is the same without the header's last field. A change of
 * the header, or of what its fields mean, takes a new number in the first word. */
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
    char settings[1024]; /* and behind their end, where there is room, the optimiser's name */
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
} pc__checkpoint_file;

/* PC_ERR_FORMAT when it is damaged, of another version, or says what no training can be in. */
PC__SHARED pc_status pc__checkpoint_open(const char *path, pc__checkpoint_file *file);
PC__SHARED void pc__checkpoint_close(pc__checkpoint_file *file);

/* The first bytes of a file are those of a checkpoint, of this version or an older one. */
bool pc__is_checkpoint(const char *path);

/* Put front and header and what follows them up to the tensors; for a tensor its count and zeros, whose place in `out` is what
 * is returned; then, behind the last tensor, length and checksum. */
void pc__checkpoint_put_head(pc__text *out, const pc__checkpoint_header *header, const char *about,
                             const pc__curve *curve);
size_t pc__checkpoint_put_room(pc__text *out, const pc_tensor *t);
void pc__checkpoint_seal(pc__text *out);

/* Copy the next tensor of the file, which begins *at bytes into its tensors, into t; *at goes on behind it. */
pc_status pc__checkpoint_take(const char *path, const pc__checkpoint_file *file, size_t *at, pc_tensor *t);

/* Go on behind a tensor of this dtype; false where there is none. */
bool pc__checkpoint_skip(const pc__checkpoint_file *file, size_t *at, pc_dtype dtype);
pc_status pc__checkpoint_pass(const char *path, const pc__checkpoint_file *file, size_t *at, pc_dtype dtype);

/* checkpoint_settings.c: PC_ERR_STATE names the first option that differs between the settings of the file and of the run;
 * `own`: they are text of the program's own, as pc_fit has it. And what else differs that the file cannot be taken by: the
 * optimiser, the network, what is kept of the best epoch. */
pc_status pc__checkpoint_check_settings(const char *path, const char *was, const char *now, bool own);
pc_status pc__checkpoint_check_fit(const char *path, const pc__checkpoint_file *file, const pc__fit *fit);

/* The error of a file that cannot be gone on from. */
pc_status pc__checkpoint_damaged(const char *path, const char *how);

#endif

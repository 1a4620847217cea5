/* keras_h5.h: the little of HDF5 that Keras files need, quiet, and with errors that name the file. Internal to
 * keras_*.c. */
#ifndef PC__KERAS_H5_H
#define PC__KERAS_H5_H

#include "base/base.h"

#include <hdf5.h>

/* A list of texts from an attribute. */
typedef struct pc__names {
    char **items;
    int count, capacity;
} pc__names;
pc_status pc__names_add(pc__names *names, const char *text, size_t n);
void pc__names_free(pc__names *names);

/* An open file, and an object in it: the file itself or one of its groups. A file is one thread's at a time. */
typedef struct pc__h5_file pc__h5_file;
typedef struct pc__h5_node {
    pc__h5_file *file;
    int64_t id;
} pc__h5_node;

/* Open a file to read, or the `n` bytes of one in memory, which stay where they are until it is closed; `path` is for
 * messages then. Says what it is when it is no HDF5 file. */
pc_status pc__h5_open(const char *path, pc__h5_node *root);
pc_status pc__h5_open_bytes(const char *path, const void *bytes, size_t n, pc__h5_node *root);

/* What reading a file may take in any case: bytes of memory, and seconds of computing. A file of more than a few
 * megabytes gets more, by its size. Tests change them. */
typedef struct pc__h5_limits {
    int64_t memory;
    int seconds;
} pc__h5_limits;
extern pc__h5_limits pc__h5_limit;

/* Close a group, or a file with all that is open in it. */
void pc__h5_close(pc__h5_node node);

/* A group inside `parent`. */
pc_status pc__h5_group(const char *path, pc__h5_node parent, const char *name, pc__h5_node *group);

/* Is there anything of that name? */
bool pc__h5_has(pc__h5_node parent, const char *name);

/* A text attribute into *text (from pc__alloc); NULL when there is none. */
pc_status pc__h5_text(const char *path, pc__h5_node object, const char *name, char **text);

/* A list of texts, whole or split by Keras into name0, name1, ...; *found (may be NULL) says whether there was one. */
pc_status pc__h5_names(const char *path, pc__h5_node object, const char *name, pc__names *names, bool *found);

/* Rank and shape of a dataset; rank -1 when `name` is no dataset or has more than PC__KERAS_RANK_MAX dimensions. */
void pc__h5_shape(pc__h5_node group, const char *name, int *rank, int64_t *shape);

/* A dataset of real numbers as float32 in *values (from pc__alloc). Its shape has to be `shape`, where -1 is open and
 * is filled in. `what` names it in errors. */
pc_status pc__h5_floats(const char *path, pc__h5_node group, const char *name, const char *what, int rank,
                        int64_t *shape, float **values);

/* One number. False when `name` is no scalar dataset of the kind. */
bool pc__h5_integer(pc__h5_node group, const char *name, int64_t *value);
bool pc__h5_real(pc__h5_node group, const char *name, double *value);

/* Writing is HDF5's own, in this process: take its lock and silence it, then give both back. */
typedef struct pc__h5_quiet {
    H5E_auto2_t print;
    void *context;
} pc__h5_quiet;
pc__h5_quiet pc__h5_enter(void);
void pc__h5_leave(pc__h5_quiet quiet);

/* Record PC_ERR_FORMAT, or PC_ERR_MEMORY where HDF5 got none, with HDF5's innermost words as the cause. */
#define pc__h5_fail(...) pc__h5_fail_at(__FILE__, __LINE__, __VA_ARGS__)
pc_status pc__h5_fail_at(const char *file, int line, const char *format, ...) PC_PRINTF(3, 4);

/* A copy of a file in memory, to be changed there. */
pc_status pc__h5_edit(const char *path, const void *bytes, size_t n, hid_t *file);

/* Remove an attribute, whole or split into name0, name1, ...; none is fine. */
void pc__h5_remove_attribute(hid_t object, const char *name);

/* A file in memory, so that a full disk is never HDF5's to handle. */
pc_status pc__h5_create(const char *path, hid_t *file);
pc_status pc__h5_add_group(const char *path, hid_t parent, const char *name, hid_t *group);
pc_status pc__h5_put_text(const char *path, hid_t object, const char *name, const char *text);
pc_status pc__h5_put_names(const char *path, hid_t object, const char *name, char *const *items, int count);
pc_status pc__h5_put(const char *path, hid_t group, const char *name, int rank, const int64_t *shape, hid_t type,
                     const void *values);
/* The file in memory as it would stand on the disk: *n bytes into what `take` gives for so many, which has recorded an
 * error when that is NULL. */
pc_status pc__h5_image(const char *path, hid_t file, void *(*take)(void *context, uint64_t bytes), void *context,
                       size_t *n);
/* Write the file in memory to the disk at `path`. */
pc_status pc__h5_commit(const char *path, hid_t file);

/* "(3, 3, 1, 32)", None for -1. */
typedef struct pc__shape_text {
    char text[112];
} pc__shape_text;
pc__shape_text pc__keras_shape_text(int rank, const int64_t *shape);

#endif

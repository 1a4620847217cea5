/* keras_h5.h: the little of HDF5 that Keras files need, quiet, and with errors that name the file. Internal to
 * keras_*.c. Every function wants pc__h5_enter() before it, on the same thread. */
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

/* HDF5 has global state and prints by default: take the lock and silence it, then give both back. */
typedef struct pc__h5_quiet {
    H5E_auto2_t print;
    void *context;
} pc__h5_quiet;
pc__h5_quiet pc__h5_enter(void);
void pc__h5_leave(pc__h5_quiet quiet);

/* Record PC_ERR_FORMAT with HDF5's innermost words as the cause. */
#define pc__h5_fail(...) pc__h5_fail_at(__FILE__, __LINE__, __VA_ARGS__)
pc_status pc__h5_fail_at(const char *file, int line, const char *format, ...) PC_PRINTF(3, 4);

/* Open a file to read; says what it is when it is no HDF5 file. */
pc_status pc__h5_open(const char *path, hid_t *file);

/* The descriptor of the file that `object` is in, and where its address 0 lies. False for addresses of odd sizes. */
bool pc__h5_raw(hid_t object, int *fd, uint64_t *base);
bool pc__h5_bytes(int fd, uint64_t at, uint8_t *bytes, size_t n);

/* PC_OK when HDF5 can be trusted with the attributes of `object`; `name` is the one that is wanted. */
pc_status pc__h5_attributes_check(const char *path, hid_t object, const char *name);

/* An access list (of class H5P_GROUP_ACCESS, H5P_DATASET_ACCESS) that follows no link into another file. */
hid_t pc__h5_inside(hid_t class);

/* A group inside `parent`. */
pc_status pc__h5_group(const char *path, hid_t parent, const char *name, hid_t *group);
bool pc__h5_has_group(hid_t parent, const char *name);

/* A text attribute into *text (from pc__alloc); NULL when there is none. */
pc_status pc__h5_text(const char *path, hid_t object, const char *name, char **text);

/* A list of texts, whole or split by Keras into name0, name1, ...; *found (may be NULL) says whether there was one. */
pc_status pc__h5_names(const char *path, hid_t object, const char *name, pc__names *names, bool *found);

/* The `count` texts of variable length that an open attribute refers to. */
pc_status pc__h5_heap_texts(const char *path, const char *name, hid_t attribute, int64_t count, pc__names *names);

/* Rank and shape of a dataset; rank -1 when `name` is no dataset or has more than PC__KERAS_RANK_MAX dimensions. */
void pc__h5_shape(hid_t group, const char *name, int *rank, int64_t *shape);

/* A dataset of real numbers as float32 in *values (from pc__alloc). Its shape has to be `shape`, where -1 is open and
 * is filled in. `what` names it in errors. */
pc_status pc__h5_floats(const char *path, hid_t group, const char *name, const char *what, int rank, int64_t *shape,
                        float **values);

/* One number. False when `name` is no scalar dataset of the kind. */
bool pc__h5_integer(hid_t group, const char *name, int64_t *value);
bool pc__h5_real(hid_t group, const char *name, double *value);

/* Writing: into a file in memory, so that a full disk is never HDF5's to handle. */
pc_status pc__h5_create(const char *path, hid_t *file);
pc_status pc__h5_add_group(const char *path, hid_t parent, const char *name, hid_t *group);
pc_status pc__h5_put_text(const char *path, hid_t object, const char *name, const char *text);
pc_status pc__h5_put_names(const char *path, hid_t object, const char *name, char *const *items, int count);
pc_status pc__h5_put(const char *path, hid_t group, const char *name, int rank, const int64_t *shape, hid_t type,
                     const void *values);
/* Write the file in memory to the disk at `path`. */
pc_status pc__h5_commit(const char *path, hid_t file);

/* "(3, 3, 1, 32)", None for -1. */
typedef struct pc__shape_text {
    char text[112];
} pc__shape_text;
pc__shape_text pc__keras_shape_text(int rank, const int64_t *shape);

#endif

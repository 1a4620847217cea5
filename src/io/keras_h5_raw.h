/* keras_h5_raw.h: HDF5 itself, asked about one file. This runs in the child that reads a file (keras_h5_answer.c), or
 * in the program's own process where there can be no child; nothing above it knows HDF5's handles for reading. */
#ifndef PC__KERAS_H5_RAW_H
#define PC__KERAS_H5_RAW_H

#include "io/keras_part.h"

/* Where the bytes of a file are: an open descriptor, or memory. */
typedef struct pc__h5_source {
    int fd;               /* when there are no bytes */
    const uint8_t *bytes; /* or NULL */
    uint64_t size;
    int64_t limit; /* bytes of memory that reading one thing of it may take */
} pc__h5_source;

/* keras_h5_source.c: `n` bytes from `at` on; false when the file has none there. */
bool pc__h5_bytes(const pc__h5_source *source, uint64_t at, void *bytes, size_t n);

/* Open it for HDF5, which calls no file system for it. `source` has to outlive the file. */
pc_status pc__h5_source_open(const char *path, const pc__h5_source *source, hid_t *file);

/* Where the bytes of the file that `object` is in are, and where its address 0 lies. False for addresses of odd sizes.
 */
bool pc__h5_raw(hid_t object, const pc__h5_source **source, uint64_t *base);

/* keras_h5_check.c: PC_OK when HDF5 can be trusted with the attributes of `object`; `name` is the one that is wanted.
 */
pc_status pc__h5_attributes_check(const char *path, hid_t object, const char *name);

/* Bytes of a reference to a text of variable length: its length (4), address (8) and number (4). */
#define PC__H5_REFERENCE 16

/* keras_h5_heap.c: the `count` texts of variable length that an open attribute refers to. */
pc_status pc__h5_heap_texts(const char *path, const char *name, hid_t attribute, int64_t count, pc__names *names);

/* keras_h5_texts.c: a list of texts, whole or split into name0, name1, ... */
pc_status pc__h5_raw_names(const char *path, hid_t object, const char *name, pc__names *names, bool *found);

/* keras_h5_read.c: groups and datasets. No link into another file is followed. */
pc_status pc__h5_raw_group(const char *path, hid_t parent, const char *name, hid_t *group);
void pc__h5_raw_shape(hid_t group, const char *name, int *rank, int64_t *shape);
bool pc__h5_raw_scalar(hid_t group, const char *name, H5T_class_t class, hid_t type, void *value);

/* A dataset of real numbers whose shape is `shape`, open sizes filled in, and fit to be read: *count numbers. */
pc_status pc__h5_raw_floats(const char *path, hid_t group, const char *name, const char *what, int rank, int64_t *shape,
                            hid_t *dataset, size_t *count);

#endif

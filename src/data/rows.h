/* rows.h: samples that are rows of arrays, in memory or in files. */
#ifndef PC__ROWS_H
#define PC__ROWS_H

#include "data/batch.h"

#include <paracord/samples.h>

/* One array. */
typedef struct pc__row_array {
    pc_field field;     /* as batches have it */
    const char *memory; /* the first row; NULL: in a file */
    pc_tensor *held;    /* that memory's, owned */
    char *path;         /* of the file, from pc__alloc, owned, for errors */
    int fd;             /* where path is not NULL */
    int64_t offset;     /* of the first row in it */
    bool narrowed;      /* float64 there, float32 in the batch */
} pc__row_array;

/* A loader of `count` arrays of `rows` rows, which are its own then, on failure too. The array of arrays is copied. */
pc_loader *pc__loader_of_rows(pc__row_array *arrays, int count, int64_t rows, uint64_t fingerprint,
                              const pc_batch_options *options);

void pc__row_arrays_close(pc__row_array *arrays, int count);

#endif

/* zip.h: files out of a zip archive in memory, such as Keras's .keras: stored or deflated, below 4 GB. Sizes come from
 * the archive's directory and are checked before memory is taken; names are only compared. */
#ifndef PC__ZIP_H
#define PC__ZIP_H

#include "base/base.h"

typedef struct pc__zip {
    const char *path; /* for messages; borrowed, as the bytes are */
    const uint8_t *bytes;
    size_t size;
    size_t directory, directory_size; /* where its central directory is */
} pc__zip;

/* PC_ERR_FORMAT for what is no whole archive. Nothing is to be closed. */
pc_status pc__zip_open(const char *path, const void *bytes, size_t n, pc__zip *zip);

/* A file of at most `most` bytes, checked: *n of them at *bytes. Where it is deflated they are in *own (from
 * pc__alloc), else in the archive, and *own is NULL. PC_ERR_NOT_FOUND, with no error on record, when the archive has
 * none of that name; PC_ERR_FORMAT: damaged or absurd; PC_ERR_UNSUPPORTED: encrypted, or packed in a way that is not
 * known. */
pc_status pc__zip_take(const pc__zip *zip, const char *name, size_t most, const uint8_t **bytes, size_t *n,
                       uint8_t **own);

/* The same archive with other text in the files of these names: *n bytes at *bytes (from pc__alloc). Everything else
 * stays packed as it is. */
typedef struct pc__zip_text {
    const char *name, *text;
} pc__zip_text;
pc_status pc__zip_replace(const pc__zip *zip, const pc__zip_text *texts, int count, uint8_t **bytes, size_t *n);

#endif

/* pictures.h: the decoded pictures of a folder, decoded once on all cores and kept as bytes. */
#ifndef PC__PICTURES_H
#define PC__PICTURES_H

#include "data/folder.h"

/* How to decode a folder, and who hears of each picture that cannot be: in the order of the files, with its whole path
 * and the reason. */
typedef struct pc__decode_options {
    int size; /* to size x size, RGB */
    pc_resize resize;
    bool strict; /* fail with the error of the first broken picture instead */
    void (*broken)(void *context, const char *path, const char *why); /* may be NULL */
    void *context;
} pc__decode_options;

/* Decode every file of `folder` into `pixels` ([files, size, size, 3]; NULL: only try). is_broken[i] says which could
 * not be. PC_ERR_MEMORY when memory ran out, which breaks no picture. */
pc_status pc__pictures_decode(const pc__folder *folder, const pc__decode_options *options, uint8_t *pixels,
                              bool *is_broken);

typedef struct pc__pictures {
    pc__folder folder; /* files: those that could be decoded */
    int size, skipped;
    uint8_t *pixels; /* [files, size, size, 3] */
} pc__pictures;

/* Scan, check, split and decode `root` as the options say. On failure *pictures is empty. */
pc_status pc__pictures_load(const char *root, const pc_loader_options *options, pc__pictures *pictures);

void pc__pictures_free(pc__pictures *pictures);

/* Bytes of one picture. */
static inline size_t pc__picture_bytes(int size)
{
    return (size_t)size * (size_t)size * 3;
}

#endif

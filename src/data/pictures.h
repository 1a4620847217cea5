/* pictures.h: the pictures of a folder: which there are, decoded once on all cores to see that they can be, and kept as
 * bytes as far as there is room. The others are decoded again whenever they are asked for. */
#ifndef PC__PICTURES_H
#define PC__PICTURES_H

#include "data/folder.h"
#include "io/frame.h"

/* How to decode a folder, and who hears of each picture that cannot be, or that is damaged but all there: in the order
 * of the files, with its whole path and the reason. Both may be NULL. */
typedef struct pc__decode_options {
    pc__frame frame; /* what they become */
    int shorter;     /* the frame is the middle of pictures of such a shorter side (image.h); 0: all of them */
    pc_resize resize;
    bool no_exif;
    bool strict; /* fail with the error of the first picture that is broken or damaged instead */
    void (*broken)(void *context, const char *path, const char *why);
    void (*damaged)(void *context, const char *path, const char *why);
    void *context;
} pc__decode_options;

/* What came of a file. */
typedef enum pc__decoded { PC__DECODED_WHOLE, PC__DECODED_DAMAGED, PC__DECODED_BROKEN } pc__decoded;

/* Decode file i of the folder into `pixels` (NULL: only try); damage may be NULL (decode.c). */
pc_status pc__picture_decode(const pc__folder *folder, int i, const pc__decode_options *options, uint8_t *pixels,
                             pc_image_damage *damage);

/* Decode every file of `folder` on all cores (decode.c), file i to slot i * slots / files of `pixels` ([slots, height,
 * width, channels]) where that is another one than the next file's. slots 0: only try. PC_ERR_MEMORY when memory ran
 * out, and PC_ERR_FILE when the system could not open or read a file, as where too many are open: these break no picture. */
pc_status pc__pictures_decode(const pc__folder *folder, const pc__decode_options *options, uint8_t *pixels,
                              int64_t slots, pc__decoded *decoded);

/* Files are spread evenly over the slots there are: the slot of file i of n, or -1. */
static inline int64_t pc__slot_of(int64_t i, int64_t n, int64_t slots)
{
    const int64_t slot = i * slots / n;
    return slot != (i + 1) * slots / n ? slot : -1;
}

/* Decoded pictures; shared by the parts of a folder, one thread at a time. */
typedef struct pc__cache {
    uint8_t *pixels;
    int owners;
} pc__cache;

typedef struct pc__pictures {
    pc__folder folder; /* files: those of this part that could be decoded */
    pc__frame frame;
    int shorter;
    pc_resize resize;
    bool no_exif;
    int skipped, damaged;
    pc__cache *cache;
    int64_t *slot;    /* of each file in the cache; -1: it is decoded whenever it is asked for */
    int64_t streamed; /* files for which that is so */
} pc__pictures;

/* Scan, check and decode `root` as the options say, all of it whatever .split says. On failure *pictures is empty. */
pc_status pc__pictures_load(const char *root, const pc_loader_options *options, pc__pictures *pictures);

/* Move the first int(n * share) pictures of each class's n to *validation, which shares the cache. A class too small
 * for that keeps them all. On failure nothing has moved. */
pc_status pc__pictures_divide(pc__pictures *pictures, double share, pc__pictures *validation);

void pc__pictures_free(pc__pictures *pictures);

/* The pixels of file i: in the cache, or decoded into `room` (a frame of bytes). From any thread. PC_ERR_FILE or
 * PC_ERR_FORMAT when it cannot be read any more. */
pc_status pc__pictures_get(const pc__pictures *pictures, int64_t i, uint8_t *room, const uint8_t **pixels);

/* Copy the pixels of n files to `to`, on up to `threads` threads. */
pc_status pc__pictures_copy(const pc__pictures *pictures, const int64_t *files, int64_t n, int threads, uint8_t *to);

#endif

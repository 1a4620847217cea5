/* loader.h: batches of samples, epoch after epoch.
 *
 *     pc_loader *pictures = pc_loader("catdog/train", .size = 64, .batch = 32, .shuffle = true, .device = dev);
 *     pc_batch batch;
 *     while (pc_loader_next(pictures, &batch))         // one epoch; the next call begins the next one
 *         PC_SCOPE { train(batch.x, batch.y); }
 *     pc_loader_free(pictures);
 *
 * Every loader has a number of samples, goes through them in batches, in an order that follows from seed and epoch, can
 * go on at any batch of any epoch, and makes batches ahead of the program on a thread of its own. This header has that,
 * and the loader of a folder of pictures; samples.h has loaders of tensors, of a function of yours, and of .npy, CSV and
 * tar files. What a batch holds depends on seed, epoch and sample alone. Threads: a loader is used by one thread at a
 * time.
 *
 * Folders are taken as by Keras's flow_from_directory and torchvision's ImageFolder: classes are the sub-folders by
 * sorted name, files are sorted (bytewise, by path) and sought in sub-folders too. Links are followed, hidden files and
 * folders left out. A file with the suffix of a picture counts as one, of a format that is not read (.heic, .avif, .jxl, .jp2)
 * too; what it really is shows when it is decoded.
 * Pictures are decoded once, on all cores, and kept as bytes (height x width x channels each) as far as .cache has room,
 * the rest decoded again as it is needed; every epoch augments them anew.
 *
 * On another device than the CPU all samples are copied there once where they fit (half of its free memory:
 * pc_loader_resident says what was decided), pictures as bytes. What pc_loader_next queues on the program's current
 * stream is then one kernel that gathers the batch, augments it and brings its labels, or for other samples one for each
 * tensor. The host waits at the first batch of an epoch alone, until the device has that epoch's order.
 *
 * Where they do not fit, batches cross from pinned memory on a stream of the loader's own, while the device works on the
 * one before, and pc_loader_next queues what is left to do there. It waits for the host's part alone, unless the program
 * is three batches ahead of what the device has copied. Either way the bits are those of batches on the CPU.
 */
#ifndef PARACORD_LOADER_H
#define PARACORD_LOADER_H

#include <paracord/augment.h>
#include <paracord/image.h>
#include <paracord/tensor.h>

PC_BEGIN

typedef struct pc_loader pc_loader;

typedef enum pc_split { PC_SPLIT_ALL, PC_SPLIT_TRAINING, PC_SPLIT_VALIDATION } pc_split;

/* Where samples live, for batches on another device than the CPU. The environment variable
 * PARACORD_RESIDENT=no says PC_RESIDENCE_NO for all loaders. */
typedef enum pc_residence {
    PC_RESIDENCE_AUTO, /* on the device too, where they fit */
    PC_RESIDENCE_NO    /* in host memory alone */
} pc_residence;

typedef struct pc_loader_options {
    int reserved_;
    int size;          /* pictures are resized to size x size; 0 means 64 */
    int height, width; /* or to this, whatever their proportions: both, or neither (0: size) */
    int shorter;       /* or to a shorter side of this, of which the middle height x width is taken (image.h); 0: not */
    int channels;      /* 1 grey, 3 RGB; 0 means 3 */
    int batch;         /* 0 means 32; the last batch of an epoch may be shorter */
    bool shuffle;
    uint64_t seed;
    pc_resize resize;
    bool no_exif;       /* take pictures as they are stored, not turned upright (image.h) */
    pc_augment augment; /* rescale 0 means 1/255 here: pixels in [0, 1] */
    bool flip;          /* short for augment.flip_horizontal */
    pc_device device;   /* of the batches */
    /* The validation part is the first share of each class's sorted files, training the rest (Keras's rule); files that
     * cannot be decoded belong to neither, and are told by both. A class too small for the share has all its pictures
     * in training. */
    pc_split split;
    double validation_share; /* 0 to below 1; read when split is not PC_SPLIT_ALL */
    bool strict;             /* a picture that cannot be decoded is an error; otherwise it is skipped and listed */
    /* Batches made ahead by one thread, where the host makes them. 0 means 2; -1: none, all cores make each when it is
     * asked for. */
    int prefetch;
    /* Called for each skipped picture, in order of the files, by the thread that makes the loader: "folder/cat/1.jpg",
     * "is truncated: the file ends inside the picture". */
    void (*skipped)(void *context, const char *path, const char *why);
    /* The same for each damaged picture that is used all the same, since all its pixels are there. */
    void (*damaged)(void *context, const char *path, const char *why);
    void *context;
    /* Bytes that decoded pictures may take in host memory. 0: half of what is left (pc_memory_left); -1: none. What
     * does not fit is decoded from its file again in each epoch, ahead of the program and on all cores; the batches'
     * bits are the same. A file that has gone by then is PC_ERR_FILE where its batch is made. */
    int64_t cache;
    /* Classes in this order rather than by sorted name (for evaluating a model): each must have a folder, and
     * each folder be one of them. Read while the loader is made. */
    const char *const *class_names;
    int class_count;
    pc_residence resident;
} pc_loader_options;

#define PC_FIELDS_MAX 8 /* tensors of a batch */

/* What each sample has in one of a batch's tensors, which is then [n, shape...]. PC_SHAPE_SCALAR: one number. */
typedef struct pc_field {
    pc_dtype dtype;
    pc_shape shape; /* at most 7 dimensions */
} pc_field;

/* The tensors are the loader's, until the next batch. Of a folder: x is [n, channels, height, width] float32 in
 * channels-last memory; y, with two classes: [n, 1] float32, 0 or 1; with more: [n] int64. */
typedef struct pc_batch {
    pc_tensor *x, *y;      /* the first two of `tensor`; y NULL: there is only one */
    int64_t n;             /* samples in it */
    int64_t first;         /* samples of this epoch before it, those before the whole batch where it is a part of one */
    const int64_t *sample; /* their numbers, for pc_loader_picture and the like; valid until the next batch */
    pc_tensor *tensor[PC_FIELDS_MAX];
    int tensors;
    int64_t epoch; /* from 0 */
    /* Where ranks share batches (pc_loader_share): the samples of all ranks together, and those of them that are here, n
     * or 0. Elsewhere both are n. */
    int64_t whole, part;
} pc_batch;

/* A loader of the pictures in `folder`: pc_loader("train", .batch = 64). The caller owns it. NULL and the error:
 * PC_ERR_ARGUMENT (an option), PC_ERR_DEVICE, PC_ERR_FILE (no such folder, or one that cannot be read, or a picture
 * that the system cannot open or read, as where too many files are open), PC_ERR_NOT_FOUND (no class folders, one class
 * only, a class without pictures or without readable ones, or that class_names does not have: named; no class large
 * enough for a validation share), with strict the error of the first broken picture (PC_ERR_FORMAT mostly),
 * PC_ERR_MEMORY. */
PC_API PC_MUST_USE pc_loader *pc_loader_new(const char *folder, pc_loader_options options);
#define pc_loader(...) PC_LOADER_(__VA_ARGS__, )
#define PC_LOADER_(folder, ...) pc_loader_new((folder), PC_OPTIONS(pc_loader_options, __VA_ARGS__))
PC_API void pc_loader_free(pc_loader *loader);

/* The next batch of the epoch. False at its end (the next call then begins the next epoch), and on failure: pc_failed()
 * tells them apart, and the next call tries the same batch again. False leaves *batch zeroed. No scope owns x and y;
 * pc_tensor_retain keeps one for longer. PC_ERR_STATE in a recording, whose launches would have one batch again and again:
 * pc_copy it in front of each to tensors that the recording is of. */
PC_API bool pc_loader_next(pc_loader *loader, pc_batch *batch);

/* Go on with batch number `batch` (from 0) of epoch `epoch` (from 0); batch pc_loader_batches() is the epoch's end.
 * Ends the batch that is out. PC_ERR_RANGE. */
PC_API PC_MUST_USE pc_status pc_loader_seek(pc_loader *loader, int64_t epoch, int64_t batch);

/* From the next batch on this loader gives the part of every batch that is rank's, of so many ranks; size 1: whole batches
 * again. Order and batches are those of the whole: the same for any number of ranks, and so is what pc_loader_seek means.
 * A batch is cut into parts that follow each other, as equal as can be, the first ones larger by one. A mean over a part,
 * times part * size / whole, has as its mean over the ranks the mean over the whole batch. Where a batch has fewer samples
 * than there are ranks, the others get its first sample: n is 1 and part 0, and by that weight it counts for nothing, in
 * pc_fit for the norms of all ranks' samples (pc_sync_batch_norm) neither; a loop of one's own leaves such batches out then.
 * Facts of the loader are those of the whole; pc_evaluate measures the rank's samples. Ends the batch that is out.
 * PC_ERR_ARGUMENT. */
PC_API PC_MUST_USE pc_status pc_loader_share(pc_loader *loader, int rank, int size);

/* Facts. Names and paths live as long as the loader. */
PC_API int64_t pc_loader_count(const pc_loader *loader);    /* samples */
PC_API int64_t pc_loader_batches(const pc_loader *loader);  /* per epoch */
PC_API int64_t pc_loader_skipped(const pc_loader *loader);  /* pictures or rows that could not be used */
PC_API int64_t pc_loader_damaged(const pc_loader *loader);  /* pictures that are used though they are damaged */
PC_API int64_t pc_loader_streamed(const pc_loader *loader); /* pictures that are not kept decoded */
/* What its batches have: fields[0..room-1] are filled as far as there are so many; returns how many there are. */
PC_API int pc_loader_fields(const pc_loader *loader, pc_field *fields, int room);

/* True when the samples live on the device of the batches. why[0..n-1] gets a line that says how that was decided
 * (why may be NULL with n = 0); it is logged too (PC_LOG_INFO). */
PC_API bool pc_loader_resident(const pc_loader *loader, char *why, size_t n);

/* Classes of the labels; 0 where these have no names. */
PC_API int pc_loader_class_count(const pc_loader *loader);
PC_API const char *pc_loader_class_name(const pc_loader *loader, int label);

/* Sample number i, in the order of classes and files, broken ones left out: its file (below the folder), its label,
 * its decoded pixels (borrowed; of a picture that is not kept: decoded anew, until the next call). PC_ERR_RANGE; of a
 * picture that is not kept PC_ERR_FILE and PC_ERR_FORMAT too; PC_ERR_UNSUPPORTED where samples are no folder's. */
typedef struct pc_picture {
    const char *path;
    int label;
    pc_image image;
} pc_picture;
PC_API PC_MUST_USE pc_status pc_loader_picture(const pc_loader *loader, int64_t i, pc_picture *picture);

/* A number for resuming on the same data: of a folder it changes when files or labels do (names and order, not content),
 * of samples as samples.h says. */
PC_API uint64_t pc_loader_fingerprint(const pc_loader *loader);

/* Who hears of what is found, picture by picture in sorted order, as .skipped and .damaged of a loader do: that one
 * cannot be decoded, or that it is damaged though all its pixels are there. Each may be NULL. */
typedef struct pc_folder_callbacks {
    void *context;
    void (*broken)(void *context, const char *path, const char *why);
    void (*damaged)(void *context, const char *path, const char *why);
} pc_folder_callbacks;

typedef struct pc_folder_report {
    int64_t pictures, broken, damaged;
    int classes; /* folders by name: those in train, test and the like, or in `folder` itself */
} pc_folder_report;

/* Try to decode every picture below `folder` (class folders or not, train/ and test/ too). PC_OK also when some are
 * broken; PC_ERR_FILE (as of pc_loader_new), PC_ERR_MEMORY. callbacks and report may be NULL. */
PC_API PC_MUST_USE pc_status pc_pictures_check(const char *folder, const pc_folder_callbacks *callbacks,
                                               pc_folder_report *report);

PC_END
#endif

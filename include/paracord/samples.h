/* samples.h: loaders (loader.h) of data of one's own: tensors, a function, .npy, CSV and tar files.
 *
 *     pc_loader *houses = pc_loader_from_tensors(x, y, .batch = 64, .shuffle = true, .device = dev);
 *
 *     static pc_status draw(void *context, int64_t sample, int64_t epoch, void *const *to)
 *     {
 *         render(context, sample, (float *)to[0]);     // 64 x 64 numbers
 *         *(int64_t *)to[1] = sample % 10;
 *         return PC_OK;
 *     }
 *     pc_samples drawn = {.count = 5000, .fields = 2, .sample = draw,
 *                         .field = {{PC_F32, PC_SHAPE(1, 64, 64)}, {PC_I64}}};
 *     pc_loader *drawings = pc_loader_from_samples(&drawn, .batch = 32);
 *
 * Training (fit.h) takes floating y as numbers to come close to, and integers as labels.
 */
#ifndef PARACORD_SAMPLES_H
#define PARACORD_SAMPLES_H

#include <paracord/loader.h>

PC_BEGIN

/* How samples become batches; options of all loaders here. */
typedef struct pc_batch_options {
    int reserved_;
    int batch; /* 0 means 32 */
    bool shuffle;
    bool drop_last; /* leave out the samples at the end of an epoch that are no whole batch */
    uint64_t seed;
    pc_device device; /* of the batches */
    int prefetch;     /* batches made ahead; 0 means 2, -1 none */
    pc_residence resident;
    /* The validation part is a share of the samples, int(count * share), which are drawn once and for all: which ones
     * follows from their number alone, not from the seed. */
    pc_split split;
    double validation_share;
} pc_batch_options;

/* Samples by a function of yours. It runs on the loader's thread, ahead of the program, and for samples that stay on the
 * device once before; what it fails with (pc_fail) is the error of the batch. */
typedef struct pc_samples {
    int reserved_;
    int64_t count;
    int fields; /* 1 to PC_FIELDS_MAX */
    pc_field field[PC_FIELDS_MAX];
    /* Write sample number `sample`, from 0, into to[0..fields-1], each its shape in C order. Or n of them, one behind the
     * other. One of the two. What is written is to follow from sample and epoch. */
    pc_status (*sample)(void *context, int64_t sample, int64_t epoch, void *const *to);
    pc_status (*batch)(void *context, const int64_t *samples, int64_t n, int64_t epoch, void *const *to);
    void *context;
    void (*release)(void *context); /* when the loader goes, or cannot be made; may be NULL */
    bool threads;                   /* `sample` may run in several threads at once: it takes all cores then */
    bool by_epoch;                  /* samples differ from epoch to epoch: they are not kept on the device */
    /* Names of the classes, where the second field is labels: an int64 each. Copied. */
    const char *const *class_names;
    int class_count;
    uint64_t fingerprint; /* for pc_loader_fingerprint, beside counts and fields */
} pc_samples;

/* The caller owns the loader. NULL and the error: PC_ERR_ARGUMENT, PC_ERR_DTYPE, PC_ERR_SHAPE, PC_ERR_DEVICE,
 * PC_ERR_MEMORY, PC_ERR_NOT_FOUND (no samples, or none in the part that was asked for). */
PC_API PC_MUST_USE pc_loader *pc_loader_new_samples(const pc_samples *samples, pc_batch_options options);
#define pc_loader_from_samples(...) PC_LOADER_FROM_SAMPLES_(__VA_ARGS__, )
#define PC_LOADER_FROM_SAMPLES_(samples, ...)                                                                          \
    pc_loader_new_samples((samples), PC_OPTIONS(pc_batch_options, __VA_ARGS__))

/* The rows of `count` tensors, any dtypes: sample i is row i of each. They are held, not copied, unless they are on
 * another device than the CPU or not contiguous; do not change them meanwhile. The fingerprint is of shapes and dtypes.
 * Errors as above; sizes that differ are PC_ERR_SHAPE. */
PC_API PC_MUST_USE pc_loader *pc_loader_new_tensors(pc_tensor *const *tensors, int count, pc_batch_options options);

/* The same of two; y may be NULL. */
PC_API PC_MUST_USE pc_loader *pc_loader_new_pair(pc_tensor *x, pc_tensor *y, pc_batch_options options);
#define pc_loader_from_tensors(x, ...) PC_LOADER_FROM_TENSORS_(x, __VA_ARGS__, )
#define PC_LOADER_FROM_TENSORS_(x, y, ...) pc_loader_new_pair((x), (y), PC_OPTIONS(pc_batch_options, __VA_ARGS__))

/* The same of .npy files: the rows of `x_path`, and of `y_path`, which may be NULL. Files in C order are read row by row
 * as batches need them, so they may be larger than memory; one that became shorter meanwhile is PC_ERR_FILE at the batch.
 * float64 becomes float32 in the batches; a finite number beyond float32 is PC_ERR_RANGE at the batch, which names its
 * row (pc_npy_load keeps float64, and pc_loader_from_tensors takes it). The fingerprint is of shapes, dtypes, lengths
 * and times of last change. Errors of pc_npy_load too. */
PC_API PC_MUST_USE pc_loader *pc_loader_new_npy(const char *x_path, const char *y_path, pc_batch_options options);
#define pc_loader_from_npy(x_path, ...) PC_LOADER_FROM_NPY_(x_path, __VA_ARGS__, )
#define PC_LOADER_FROM_NPY_(x_path, y_path, ...)                                                                       \
    pc_loader_new_npy((x_path), (y_path), PC_OPTIONS(pc_batch_options, __VA_ARGS__))

/* --- CSV --- */

/* What a field without a value does: an empty one, NA, N/A, NaN, null, none or ?, in capitals or not. */
typedef enum pc_csv_missing {
    PC_CSV_MISSING_FAILS, /* PC_ERR_FORMAT, with line and column */
    PC_CSV_MISSING_SKIPS, /* its line is left out (pc_loader_skipped) */
    PC_CSV_MISSING_FILLS  /* .fill stands there; not in y, where it fails */
} pc_csv_missing;

typedef struct pc_csv_options {
    int reserved_;
    /* Columns: names of the first line or numbers from 1, "age, rooms, 7-9". x NULL: all that are not in y; y NULL: none.
     * A name counts before a number; of one that two columns have, the number is to be said (PC_ERR_ARGUMENT). */
    const char *x, *y;
    /* y is one column that names classes: labels, int64 [n], by sorted name (whole numbers by their size), or by
     * class_names where these are given: other names are PC_ERR_NOT_FOUND then. Blanks around a name in the file are none
     * of it. */
    bool classes;
    const char *const *class_names;
    int class_count;
    bool no_header; /* the first line has data too */
    char separator; /* 0 means ',' */
    pc_csv_missing missing;
    double fill;
} pc_csv_options;

/* Read a CSV file: RFC 4180, UTF-8 or the like, all of it at once. Empty lines are passed over, but in a file of one column,
 * where a value is missing in those that others follow. *x is float32 [rows, columns]; *y the same, or labels,
 * or NULL where no columns were asked for (y may be NULL then). Both on the CPU, the scope's or the caller's. PC_ERR_FILE,
 * PC_ERR_FORMAT (names the line), PC_ERR_NOT_FOUND (no such column, no rows), PC_ERR_ARGUMENT. */
PC_API PC_MUST_USE pc_status pc_csv_read(const char *path, pc_csv_options options, pc_tensor **x, pc_tensor **y);

/* A loader of its rows. The fingerprint is of their numbers. */
PC_API PC_MUST_USE pc_loader *pc_loader_new_csv(const char *path, pc_csv_options csv, pc_batch_options options);
#define pc_loader_from_csv(path, ...) PC_LOADER_FROM_CSV_(path, __VA_ARGS__, )
#define PC_LOADER_FROM_CSV_(path, csv, ...) pc_loader_new_csv((path), (csv), PC_OPTIONS(pc_batch_options, __VA_ARGS__))

/* --- tokens --- */

typedef struct pc_token_options {
    int reserved_;
    int64_t length;     /* tokens of a sample; 0 means 1024 */
    int64_t vocabulary; /* how many tokens there are; 0 means 65,536 */
} pc_token_options;

/* A loader of a file of tokens (pc_corpus_open of text.h says which): sample i has the tokens from i * length on, int64
 * [length], and as y what follows each of them. Tokens behind the last whole sample are left out. They are read as batches
 * need them, on the loader's thread; the fingerprint is of the file's size. Errors as of pc_corpus_open, and
 * PC_ERR_NOT_FOUND for a file of no whole sample. */
PC_API PC_MUST_USE pc_loader *pc_loader_new_tokens(const char *path, pc_token_options tokens, pc_batch_options options);
#define pc_loader_from_tokens(path, ...) PC_LOADER_FROM_TOKENS_(path, __VA_ARGS__, )
#define PC_LOADER_FROM_TOKENS_(path, tokens, ...)                                                                      \
    pc_loader_new_tokens((path), (tokens), PC_OPTIONS(pc_batch_options, __VA_ARGS__))

/* --- tar shards --- */

typedef struct pc_tar_options {
    int reserved_;
    /* Endings of the members that are x and y, "jpg;jpeg;png"; of a sample that has several of them the first in this list
     * counts. x NULL: those of pictures, and npy. y NULL: cls; "": there is none. A member that ends in npy is an array; in cls, a whole number; any other one is a picture. */
    const char *x, *y;
    int height, width, channels; /* what pictures are brought to, as pc_loader_options; 0: 64, 64, 3 */
    int shorter;
    pc_resize resize;
    bool no_exif;
} pc_tar_options;

/* A loader of WebDataset's shards: tar files by a path with *, ? and [...] as in file names ("shards/train-*.tar"), sorted
 * by name, or with {000..146} and {a,b}, in this order, of which each must be there. Members whose names are the same up to
 * the first dot, one behind the other, are a sample ("0001.jpg", "0001.cls"); a hard link has the bytes of the member that it
 * leads to, where that is of a sample of the same file. Samples that lack x or y are left out (pc_loader_skipped), and one
 * that has a member twice is PC_ERR_FORMAT. Pictures are float32 [channels, height, width], 0 to 1, decoded when a batch needs
 * them, on all cores; arrays are all of one shape and dtype; labels int64. Where the files are not
 * compressed the loader knows the places of all members and reads those that it needs, in any order; compressed ones are
 * kept in memory, unpacked. The fingerprint is of names and sizes. At most 64 shards are open at a time; one that is opened
 * again and is not what it was (another size or time of change) is PC_ERR_FILE, the error of its batch.
 * PC_ERR_NOT_FOUND (no such files, or no samples), PC_ERR_FORMAT (no tar file, truncated, a label that is no number),
 * PC_ERR_UNSUPPORTED (a build without libarchive), PC_ERR_MEMORY (what is unpacked takes more than half of what is left).
 * A member that is damaged is the error of its batch. */
PC_API PC_MUST_USE pc_loader *pc_loader_new_tar(const char *pattern, pc_tar_options tar, pc_batch_options options);
#define pc_loader_from_tar(pattern, ...) PC_LOADER_FROM_TAR_(pattern, __VA_ARGS__, )
#define PC_LOADER_FROM_TAR_(pattern, tar, ...)                                                                         \
    pc_loader_new_tar((pattern), (tar), PC_OPTIONS(pc_batch_options, __VA_ARGS__))

PC_END
#endif

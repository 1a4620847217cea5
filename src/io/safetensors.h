/* safetensors.h: an open safetensors file, inside. A file is the length of its header (8 bytes, little-endian), the header
 * (a JSON object: for each name {"dtype", "shape", "data_offsets": [begin, end]}, and "__metadata__", texts by keys), and
 * the tensors' bytes in C order, without gaps. */
#ifndef PC__SAFETENSORS_H
#define PC__SAFETENSORS_H

#include "io/file.h"
#include "tensor/tensor.h"

#include <paracord/weights.h>

/* What stands in files: name, bits of a number, the dtype that it is read as, how (0: as it is, 'w': whole numbers made
 * wider, 'x': not at all). */
#define PC__WEIGHT_TYPES(X)                                                                                            \
    X("BOOL", 8, PC_BOOL, 0)                                                                                           \
    X("U8", 8, PC_U8, 0)                                                                                               \
    X("I8", 8, PC_I32, 'w')                                                                                            \
    X("I16", 16, PC_I32, 'w')                                                                                          \
    X("U16", 16, PC_I32, 'w')                                                                                          \
    X("I32", 32, PC_I32, 0)                                                                                            \
    X("U32", 32, PC_I64, 'w')                                                                                          \
    X("I64", 64, PC_I64, 0)                                                                                            \
    X("U64", 64, PC_I64, 'x')                                                                                          \
    X("F16", 16, PC_F16, 0)                                                                                            \
    X("BF16", 16, PC_BF16, 0)                                                                                          \
    X("F32", 32, PC_F32, 0)                                                                                            \
    X("F64", 64, PC_F64, 0)                                                                                            \
    X("F8_E4M3", 8, PC_F16, 'x')                                                                                       \
    X("F8_E5M2", 8, PC_F16, 'x')                                                                                       \
    X("F8_E8M0", 8, PC_F16, 'x')                                                                                       \
    X("F8_E4M3FNUZ", 8, PC_F16, 'x')                                                                                   \
    X("F8_E5M2FNUZ", 8, PC_F16, 'x')                                                                                   \
    X("F6_E2M3", 6, PC_F16, 'x')                                                                                       \
    X("F6_E3M2", 6, PC_F16, 'x')                                                                                       \
    X("F4", 4, PC_F16, 'x')                                                                                            \
    X("C64", 64, PC_F32, 'x')

typedef struct pc__weight_type {
    const char *name;
    int bits; /* of what is read whole bytes */
    pc_dtype dtype;
    char how;
} pc__weight_type;

/* The row of a file's word, and the one that a dtype is written as; NULL for none. */
const pc__weight_type *pc__weight_type_named(const char *name);
const pc__weight_type *pc__weight_type_for(pc_dtype dtype);

typedef struct pc__weight {
    char *name;
    const pc__weight_type *type;
    int ndim; /* may be more than a tensor can have */
    int64_t shape[PC_MAX_DIMS];
    int64_t count;      /* of numbers */
    int64_t begin, end; /* bytes behind the header */
    bool strided;       /* of torch.save: it does not lie in C order, but by `strides`, in numbers, and may have gaps */
    bool unfinished;    /* of it: its numbers are to be negated, or the like, when they are read */
    int64_t strides[PC_MAX_DIMS];
    int shard;  /* of an index: the file that it is in */
    bool named; /* of such a file: the index has it */
} pc__weight;

typedef struct pc__weight_note {
    char *key, *text;
} pc__weight_note;

struct pc_weights {
    char *path;
    int fd;
    int64_t start; /* of the tensors in the file */
    pc__weight *list;
    pc__weight_note *notes;
    int count, room, note_count, note_room;
    pc_weights **shards; /* of an index: the files that it names, opened */
    int shard_count, shard_room;
};

enum { PC__WEIGHTS_HEADER_MAX = 100 << 20 }; /* bytes of a header, by the format; and of an index */

/* A file that is no index. */
pc_weights *pc__weights_open_one(const char *path);

/* weights_index.c: whether a file of which that is the front is an index, and fill in the list of `w`, which is one of size bytes,
 * open, and closed by it. PC_ERR_FORMAT, and what opening its files gives. On failure what was read by then is there. */
bool pc__is_weights_index(const uint8_t *front);
pc_status pc__weights_index(pc_weights *w, int64_t size);

/* Read the header's n bytes into `weights`, whose path is set, and check it against `left`, the bytes behind it. On failure
 * what was read by then is there. */
pc_status pc__weights_header(pc_weights *weights, const char *bytes, size_t n, int64_t left);

/* Put the list into the order of its names, which must differ: PC_ERR_FORMAT. */
pc_status pc__weights_sort(const pc_weights *weights);

/* The first tensor whose name is something, a point and `name`; NULL for none. How many there are. */
const pc__weight *pc__weights_behind(const pc_weights *w, const char *name, int *count);

/* PC_ERR_UNSUPPORTED for one that is unfinished. */
pc_status pc__weights_finished(const pc_weights *w, const pc__weight *t);

/* All n bytes of the file at `from`. */
pc_status pc__weights_bytes(const pc_weights *w, int64_t from, void *to, size_t n);

/* Where somebody's share of a tensor lies in it: runs of one length, at equal distances. Byte x of the share is byte first +
 * x / run * step + x % run of the tensor, where x % run is below `kept`, and behind that nothing of the tensor. Of run 0 the
 * share is the tensor. */
typedef struct pc__runs {
    int64_t run, step, first, kept;
} pc__runs;

/* How many of a share's bytes from x to end lie together, and where in the tensor; *at is -1: nowhere. */
int64_t pc__runs_next(const pc__runs *runs, int64_t x, int64_t end, int64_t *at);

/* A part of tensor number `tensor` of a list: t's elements in C order, from byte `at` of the share on. */
typedef struct pc__weights_part {
    int tensor;
    int64_t at;
    pc_tensor *t;
    pc__runs runs;
} pc__weights_part;

/* A file by several processes: one begins it, which is a draft of `path` (io/file.h) with the header and room for all tensors,
 * which are asked for their shapes and dtypes alone; the tensors begin at byte *start. Each puts its parts, which are on
 * the disk then; and one commits it, or drops it. */
pc_status pc__weights_begin(const char *path, const pc_parameter *list, int count, const pc_weights_note_pair *notes,
                            pc__draft *draft, int64_t *start);
pc_status pc__weights_put(const char *path, const char *temporary, int64_t start, const pc_parameter *list,
                          const pc__weights_part *parts, int count);

/* The tensor of that name; NULL without an error. */
const pc__weight *pc__weights_find(const pc_weights *weights, const char *name);

#endif

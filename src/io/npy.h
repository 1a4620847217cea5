/* npy.h: NumPy's .npy files, versions 1 and 2, as plain buffers. No pickles, no records, no big-endian numbers.
 *
 *     pc__npy array;
 *     PC__TRY(pc__npy_read("x.npy", &array));       // array.data in C order, whatever the file has
 *     ...
 *     pc__npy_free(&array);
 */
#ifndef PC__NPY_H
#define PC__NPY_H

#include "base/base.h"

#include <paracord/tensor.h>

#define PC__NPY_RANK_MAX 8

/* code, NumPy's name, bytes of an element */
#define PC__NPY_TYPES(X)                                                                                               \
    X(PC__NPY_F64, "<f8", 8)                                                                                           \
    X(PC__NPY_F32, "<f4", 4)                                                                                           \
    X(PC__NPY_F16, "<f2", 2)                                                                                           \
    X(PC__NPY_I64, "<i8", 8)                                                                                           \
    X(PC__NPY_I32, "<i4", 4)                                                                                           \
    X(PC__NPY_U8, "|u1", 1)                                                                                            \
    X(PC__NPY_BOOL, "|b1", 1)

typedef enum pc__npy_type {
#define PC__NPY_ENUM(code, name, size) code,
    PC__NPY_TYPES(PC__NPY_ENUM)
#undef PC__NPY_ENUM
        PC__NPY_TYPE_COUNT
} pc__npy_type;

typedef struct pc__npy {
    pc__npy_type type;
    int rank; /* 0: one number */
    int64_t shape[PC__NPY_RANK_MAX];
    void *data; /* row-major; booleans are 0 or 1 */
} pc__npy;

/* Read a file; data comes from pc__alloc and is the caller's (pc__npy_free). Arrays in Fortran order are transposed.
 * Bytes behind the array are ignored, as NumPy does. PC_ERR_FILE, PC_ERR_FORMAT (no .npy, truncated),
 * PC_ERR_UNSUPPORTED (a type or rank that is not above). On failure *array is empty. */
pc_status pc__npy_read(const char *path, pc__npy *array);

/* The same from bytes in memory; `path` is for errors. */
pc_status pc__npy_parse(const char *path, const void *bytes, size_t n, pc__npy *array);

/* What an open file holds, and where: of a regular file whose numbers are all there. array.data is NULL. Errors as above.
 */
typedef struct pc__npy_place {
    pc__npy array;
    int64_t offset; /* of the data */
    bool fortran;   /* first index fastest */
} pc__npy_place;
pc_status pc__npy_find(const char *path, int fd, pc__npy_place *place);

/* The dtype of its tensors (npy_tensor.c). */
pc_dtype pc__npy_dtype(pc__npy_type type);

/* Write a file (version 1), as a whole or not at all. */
pc_status pc__npy_write(const char *path, const pc__npy *array);

/* Bytes of an element, and of the data. */
size_t pc__npy_element_bytes(pc__npy_type type);
size_t pc__npy_bytes(const pc__npy *array);

void pc__npy_free(pc__npy *array);

#endif

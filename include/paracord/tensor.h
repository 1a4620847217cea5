/* tensor.h: arrays of numbers on a device.
 *
 *     pc_tensor *a = pc_arange(1, 7, 1, PC_I32, dev);              // [6]
 *     pc_tensor *b = pc_reshape(a, PC_SHAPE(2, -1));               // [2, 3], the same memory
 *     pc_print(b);                                                 // tensor([[1, 2, 3],
 *                                                                  //         [4, 5, 6]], dtype=int32)
 *
 * A tensor is metadata on the host and a storage on a device. Views share their storage. Tensors are reference counted:
 * what a call returns belongs to the innermost open PC_SCOPE of the thread, or to the caller, who then releases it with
 * pc_tensor_free. NULL in gives NULL out and keeps the first error.
 *
 * Threads: a tensor may be read by several threads at once; writing it needs the program's own order.
 */
#ifndef PARACORD_TENSOR_H
#define PARACORD_TENSOR_H

#include <paracord/device.h>
#include <paracord/half.h>
#include <paracord/scope.h>

PC_BEGIN

#define PC_MAX_DIMS 8

/* type, PyTorch's name, C type, one of b (bool) i (integer) f (floating point). In the order of promotion; only the two
 * 16-bit ones become float32 together. */
#define PC_DTYPE_LIST(X)                                                                                               \
    X(PC_BOOL, "bool", bool, 'b')                                                                                      \
    X(PC_U8, "uint8", uint8_t, 'i')                                                                                    \
    X(PC_I32, "int32", int32_t, 'i')                                                                                   \
    X(PC_I64, "int64", int64_t, 'i')                                                                                   \
    X(PC_F16, "float16", pc_f16, 'f')                                                                                  \
    X(PC_BF16, "bfloat16", pc_bf16, 'f')                                                                               \
    X(PC_F32, "float32", float, 'f')                                                                                   \
    X(PC_F64, "float64", double, 'f')

typedef enum pc_dtype {
#define PC_DTYPE_ENUM(code, name, type, kind) code,
    PC_DTYPE_LIST(PC_DTYPE_ENUM)
#undef PC_DTYPE_ENUM
        PC_DTYPE_COUNT
} pc_dtype;

/* "float32"; bytes of one element. */
PC_API const char *pc_dtype_name(pc_dtype dtype);
PC_API size_t pc_dtype_size(pc_dtype dtype);

/* A list of dimensions as a value: PC_SHAPE(2, 3); PC_SHAPE_SCALAR has none. Also used for lists of dimensions. */
typedef struct pc_shape {
    int ndim; /* 0..8; -1 when more were written */
    int64_t dim[PC_MAX_DIMS];
} pc_shape;

PC_API pc_shape pc_shape_of(int ndim, const int64_t *dims);
#ifdef __cplusplus
PC_END
template <typename... T> inline pc_shape pc_shape_list(T... dims)
{
    const int64_t list[] = {static_cast<int64_t>(dims)...};
    return pc_shape_of(static_cast<int>(sizeof...(dims)), list);
}
PC_BEGIN
#define PC_SHAPE(...) pc_shape_list(__VA_ARGS__)
#define PC_SHAPE_SCALAR pc_shape_of(0, nullptr)
#else
#define PC_SHAPE(...)                                                                                                  \
    pc_shape_of((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__})
#define PC_SHAPE_SCALAR pc_shape_of(0, NULL)
#endif

typedef struct pc_tensor pc_tensor;

/* --- ownership --- */

/* One more reference, for keeping a tensor beyond its scope; returns t. Each is given back by pc_tensor_free. */
PC_API pc_tensor *pc_tensor_retain(pc_tensor *t);

/* Give a reference back; NULL is fine. Not for tensors that an open scope owns: the scope will do it. */
PC_API void pc_tensor_free(pc_tensor *t);

/* Hand t from the innermost scope to the one outside, or to the caller where there is none. Returns t, or NULL when
 * t is NULL or memory ran out. */
PC_API pc_tensor *pc_keep(pc_tensor *t);

/* --- making tensors: all on `device`, all contiguous --- */

PC_API PC_MUST_USE pc_tensor *pc_empty(pc_shape shape, pc_dtype dtype, pc_device device); /* not initialised */
PC_API PC_MUST_USE pc_tensor *pc_zeros(pc_shape shape, pc_dtype dtype, pc_device device); /* every element 0 */
PC_API PC_MUST_USE pc_tensor *pc_ones(pc_shape shape, pc_dtype dtype, pc_device device);  /* every element 1 */

/* Every element `value`. PC_ERR_ARGUMENT for one that integers do not hold (uint8 takes -255 to -1 from its other end,
 * as in PyTorch). */
PC_API PC_MUST_USE pc_tensor *pc_full(pc_shape shape, double value, pc_dtype dtype, pc_device device);

/* A zero-dim tensor: -> []. In arithmetic it does not promote a tensor of the same kind, as in PyTorch. */
PC_API PC_MUST_USE pc_tensor *pc_scalar(double value, pc_dtype dtype, pc_device device);

/* start, start + step, ... below (for a negative step: above) end: -> [ceil((end - start) / step)]. Integers count in
 * whole numbers: PC_ERR_ARGUMENT for another start or step. */
PC_API PC_MUST_USE pc_tensor *pc_arange(double start, double end, double step, pc_dtype dtype, pc_device device);

/* From the thread's generator (random.h): the same bits on every device and processor. Floating dtypes; float64 has no more
 * bits of it than float32, 24. */
PC_API PC_MUST_USE pc_tensor *pc_rand(pc_shape shape, pc_dtype dtype, pc_device device);  /* uniform in [0, 1) */
PC_API PC_MUST_USE pc_tensor *pc_randn(pc_shape shape, pc_dtype dtype, pc_device device); /* standard normal */

/* A copy of host memory: `data` holds the elements in C order, of type dtype. */
PC_API PC_MUST_USE pc_tensor *pc_from_data(const void *data, pc_shape shape, pc_dtype dtype, pc_device device);

/* Host memory used in place, without a copy, as a CPU tensor. It must be aligned to dtype's size (PC_ERR_ARGUMENT), and
 * outlive every view of it; release(context), when not NULL, is called once nothing uses it any more. */
PC_API PC_MUST_USE pc_tensor *pc_from_memory(void *data, pc_shape shape, pc_dtype dtype, void (*release)(void *),
                                             void *context);

/* --- asking: NULL is no error here, so that what failed can be asked about --- */

PC_API pc_dtype pc_tensor_dtype(const pc_tensor *t);   /* PC_F32 for NULL */
PC_API pc_device pc_tensor_device(const pc_tensor *t); /* type -1 for NULL */
PC_API pc_shape pc_tensor_shape(const pc_tensor *t);   /* no dimensions for NULL */
PC_API int pc_tensor_ndim(const pc_tensor *t);
PC_API int64_t pc_tensor_size(const pc_tensor *t, int dim); /* dim may count from the end: -1 is the last; -1 for bad */
PC_API int64_t pc_tensor_stride(const pc_tensor *t, int dim); /* in elements */
PC_API int64_t pc_tensor_count(const pc_tensor *t);           /* number of elements; 0 for NULL */
PC_API bool pc_tensor_is_contiguous(const pc_tensor *t);      /* C order without gaps */

/* The first element's address of a tensor on the CPU, when queued copies from and to it are done. The pointer lives as
 * long as the tensor. Elements follow in C order when the tensor is contiguous. From then on the program may use the
 * memory any time, so copies between it and a device take no chances: they read it before they return, and the host
 * waits until they have written it. pc_map does without. PC_ERR_DEVICE for tensors elsewhere. */
PC_API PC_MUST_USE void *pc_data(pc_tensor *t);

/* --- pinned memory: host memory that a device copies by itself, while the host goes on --- */

/* A CPU tensor in pinned memory for `device` and all of its kind (in ordinary memory when that is the CPU); not
 * initialised. And t copied into such memory; t itself (one more owner) when it is pinned already. pc_is_pinned is true
 * too of a device's tensor whose bytes lie there (pc_zero with .offload). */
PC_API PC_MUST_USE pc_tensor *pc_empty_pinned(pc_shape shape, pc_dtype dtype, pc_device device);
PC_API PC_MUST_USE pc_tensor *pc_pin(pc_tensor *t, pc_device device);
PC_API bool pc_is_pinned(const pc_tensor *t);

/* The host's turn with a CPU tensor's memory, from map to unmap: map waits until queued copies of it are done (to read
 * only: those that write it) and returns the address of the first element; after unmap the address is not to be used
 * any more. Meanwhile copies between it and a device are PC_ERR_STATE. To write counts as an op in place: a backward
 * pass that needs what was there fails. Every map has its unmap; they nest. */
typedef enum pc_map_access { PC_MAP_READ, PC_MAP_WRITE } pc_map_access;
PC_API PC_MUST_USE void *pc_map(pc_tensor *t, pc_map_access access);
PC_API PC_MUST_USE pc_status pc_unmap(pc_tensor *t);

/* The address of the first element on its device, for kernels of the program's own; nothing is waited for: what is
 * queued for it may not even have started until its stream is waited for (stream.h). From then on the program may use
 * the memory any time, as with pc_data. Host code that follows the address of a GPU's memory faults. */
PC_API PC_MUST_USE void *pc_device_pointer(pc_tensor *t);

/* The single element of a tensor of one element, read back to the host; NaN and an error otherwise. */
PC_API double pc_item(const pc_tensor *t);

/* The same of an integer or bool tensor, exact for every int64; INT64_MIN and an error otherwise (PC_ERR_DTYPE for a
 * floating one). */
PC_API int64_t pc_item_i64(const pc_tensor *t);

/* Copy all elements in C order to `host`, which has room for `bytes` = count * size of dtype. Waits. */
PC_API PC_MUST_USE pc_status pc_read(const pc_tensor *t, void *host, size_t bytes);

/* --- views: the same memory, seen otherwise; gradients flow through --- */

/* (d) The same elements in C order: t -> `shape`. One dimension may be -1 and is worked out. Copies only where no view
 * can do it. */
PC_API PC_MUST_USE pc_tensor *pc_reshape(pc_tensor *t, pc_shape shape);

/* (d) Dimensions in another order: [n, c, h, w] -> [n, h, w, c] by 0, 2, 3, 1. */
PC_API PC_MUST_USE pc_tensor *pc_permute(pc_tensor *t, pc_shape order); /* dimension i is t's order[i] */
PC_API PC_MUST_USE pc_tensor *pc_transpose(pc_tensor *t, int dim0,
                                           int dim1); /* dim0 and dim1 change places: [n, m] -> [m, n] */

/* (d) Elements start, start + step, ... below stop along dim: [.., n, ..] -> [.., ceil((stop - start) / step), ..].
 * Negative start and stop count from the end and both are clamped, as in Python; step >= 1. PC_END_OF_DIM stands for "to
 * the end". */
#define PC_END_OF_DIM INT64_MAX
PC_API PC_MUST_USE pc_tensor *pc_slice(pc_tensor *t, int dim, int64_t start, int64_t stop, int64_t step);

PC_API PC_MUST_USE pc_tensor *pc_squeeze(pc_tensor *t,
                                         int dim); /* (d) a dimension of size 1 goes: [n, 1] -> [n]; others stay */
PC_API PC_MUST_USE pc_tensor *pc_unsqueeze(pc_tensor *t, int dim); /* (d) one comes, at dim: [n] -> [n, 1] */

/* (d) Dimensions of size 1 repeat without a copy: [n, 1] -> [n, m]; -1 keeps a dimension; new ones may come in front. */
PC_API PC_MUST_USE pc_tensor *pc_expand(pc_tensor *t, pc_shape shape);

/* (d) One dimension from start_dim to the last: [n, c, h, w] -> [n, c h w]. */
PC_API PC_MUST_USE pc_tensor *pc_flatten_from(pc_tensor *t, int start_dim);

/* --- copies ---
 *
 * Each result has an owner of its own, as that of every op: the scope, or you. Where it is t itself, that is one more
 * owner of t: without a scope both are freed. */

/* (d) t in C order: t -> t's shape: t itself when it already is, else a copy. */
PC_API PC_MUST_USE pc_tensor *pc_contiguous(pc_tensor *t);

/* (d) A copy with memory of its own, same strides order as t: t -> t's shape. */
PC_API PC_MUST_USE pc_tensor *pc_clone(pc_tensor *t);

/* (d) t converted to a dtype: floats to integers truncate (NaN and what int32 or int64 does not hold become its least
 * number, on every device), anything to bool is "not zero". t itself (one more owner) when nothing changes. */
PC_API PC_MUST_USE pc_tensor *pc_cast(pc_tensor *t, pc_dtype dtype);

/* (d) t on another device and in another dtype: t -> t's shape; t itself (one more owner) when nothing changes. With
 * non_blocking the host does not wait for the copy: every later use of the result waits by itself. Between accelerators
 * of different kinds (cuda and sim) the bytes go through the host's memory: it waits for the source, always, and such a
 * copy is not recorded. */
PC_API PC_MUST_USE pc_tensor *pc_to(pc_tensor *t, pc_device device, pc_dtype dtype, bool non_blocking);

/* --- text --- */

/* As PyTorch prints it: "tensor([1, 2, 3], device='cuda:0')", shortened above 1000 elements. Returns text that the
 * caller gives to pc_text_free, or NULL. */
PC_API PC_MUST_USE char *pc_tensor_text(const pc_tensor *t);

/* The same, with a newline, to stdout or to a stream. A failure stays in the thread's error. */
PC_API void pc_print(const pc_tensor *t);
PC_API void pc_print_to(const pc_tensor *t, FILE *out);

/* --- .npy files --- */

/* Read a .npy file (versions 1 to 3, little-endian, C or Fortran order) of one of the dtypes here, onto a device; and
 * write one, whole or not at all. The format has no bfloat16: pc_cast such a tensor to PC_F32, which holds every value
 * of it, and back after reading. */
PC_API PC_MUST_USE pc_tensor *pc_npy_load(const char *path, pc_device device);
PC_API PC_MUST_USE pc_status pc_npy_save(const pc_tensor *t, const char *path);

PC_END
#endif

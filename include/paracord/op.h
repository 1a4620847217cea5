/* op.h: ops of your own, which the library treats as its own: shape rule, gradient rule, a kernel for each kind of
 * device.
 *
 *     static pc_status cube(const pc_op_run *run)                       // the CPU's kernel: a plain loop
 *     {
 *         const float *x = run->in[0].data;
 *         float *y = run->out[0].data;
 *         for (int64_t i = 0; i < run->out[0].count; i++)
 *             y[i] = x[i] * x[i] * x[i];
 *         return PC_OK;
 *     }
 *
 *     const pc_op *op = pc_op_register(&(pc_op_spec){.name = "cube", .inputs = 1, .outputs = 1, .cpu = cube});
 *     pc_tensor *y;
 *     pc_status status = pc_op_call(op, &x, 1, NULL, &y);
 *
 * A call is queued on the calling thread's current stream, ordered with all other work by the data it shares, and keeps
 * its memory until it is done. It is recorded by the tape, where there is a gradient rule, and by graphs and steps
 * (pc_graph_begin, pc_step_new), which launch its kernel again. Timelines, plans and errors of work that fails later
 * have its name. docs/adding-an-op.md walks through one.
 *
 * Errors: whatever a rule or a kernel returns other than PC_OK is the call's error, or that of the work, with the op's
 * name in front of what it said by pc_fail. Rules and kernels must be thread-safe, and must not change what they are
 * given but for what they are to fill in.
 */
#ifndef PARACORD_OP_H
#define PARACORD_OP_H

#include <paracord/tensor.h>

PC_BEGIN

typedef struct pc_op pc_op;

#define PC_OP_INPUTS_MAX 8
#define PC_OP_OUTPUTS_MAX 3
#define PC_OP_NAME_MAX 47         /* characters */
#define PC_OP_ATTRIBUTES_MAX 4096 /* bytes */
#define PC_OPS_MAX 256            /* in a process */

/* What a tensor is, without its numbers. */
typedef struct pc_op_meta {
    pc_dtype dtype;
    pc_shape shape;
} pc_op_meta;

/* The shape rule: `in` are the call's inputs; describe each output in `out`. For an op that writes in place `out` are
 * the tensors that the call gave: check them and change nothing. Inputs that the op does not take are refused here, by
 * pc_fail. Called once for each call, in its thread, before anything is queued. */
typedef pc_status (*pc_op_shape_fn)(const pc_op_meta *in, const void *attributes, pc_op_meta *out);

/* A tensor as kernels see it: plain memory of the device. */
typedef struct pc_op_view {
    void *data; /* of the first element */
    pc_dtype dtype;
    int ndim;
    int64_t shape[PC_MAX_DIMS], strides[PC_MAX_DIMS]; /* strides in elements */
    int64_t count;                                    /* elements in all; may be 0 */
} pc_op_view;

/* One run of a kernel. */
typedef struct pc_op_run {
    const pc_op_view *in, *out;
    const void *attributes; /* a copy of the call's */
    pc_device device;
    void *stream; /* cuda: the cudaStream_t; otherwise NULL */
} pc_op_run;

/* A kernel. Outputs are in C order, and inputs too unless the op is `strided`. It must not call into Paracord but for
 * pc_fail and pc_op_parallel.
 *
 * `cpu` computes at once: on `cpu` in the calling thread; on `sim`, whose memory is the host's, later, in a thread of
 * the device's. In a recording it runs at each launch.
 *
 * `cuda` is a function of the host, called in the thread that queues the work, or that ends the recording, which
 * launches kernels into run->stream and returns without waiting: what the stream is given has to be such that CUDA can
 * capture it (kernels, copies on the device, memsets; no allocation, no other stream that is not forked from it). The
 * stream's device is the thread's current one, data are device pointers, and the program may use any CUDA runtime,
 * since streams are the driver's. Check cudaGetLastError and pass on its words:
 *
 *     return pc_fail(PC_ERR_BACKEND, "%s", cudaGetErrorString(status));
 */
typedef pc_status (*pc_op_kernel_fn)(const pc_op_run *run);

/* What the gradient rule works with. It makes in_grad[i], of the shape of input i, where needs[i], by ops of any kind
 * (pc_mul, pc_op_call), and may leave it NULL where there is none; nothing is recorded meanwhile, and what it makes
 * goes with the scope around it. NULL flows: where an op fails, in_grad[i] = NULL and PC_OK tell it. */
typedef struct pc_op_gradient {
    const void *attributes;
    pc_device device;
    const pc_op_meta *in_meta, *out_meta;
    pc_tensor *const *in, *const *out; /* NULL but for those in `saves` */
    pc_tensor *const *out_grad;        /* NULL where no gradient arrived; one has arrived at least */
    const bool *needs;
    pc_tensor **in_grad; /* to be filled in; all NULL */
} pc_op_gradient;
typedef pc_status (*pc_op_gradient_fn)(const pc_op_gradient *gradient);

/* What a call writes. */
typedef enum pc_op_writes {
    PC_OP_NEW,        /* new tensors, which it makes */
    PC_OP_UPDATES,    /* tensors that the call gives, which the kernel reads or leaves in part */
    PC_OP_OVERWRITES, /* tensors that the call gives, every element, without having read any */
} pc_op_writes;

/* For pc_op_spec.saves. */
#define PC_OP_SAVE_INPUT(i) (1u << (i))
#define PC_OP_SAVE_OUTPUT(i) (1u << (PC_OP_INPUTS_MAX + (i)))

/* What an op is. Not the options of a call but a definition: it holds as long as the process. */
typedef struct pc_op_spec {
    const char *name;    /* copied: letters, digits, "_.:-"; no op, of the library or the program, has it yet */
    int inputs, outputs; /* 1 to 8 (0 where it writes in place), 1 to 3 */
    /* Of a plain struct that each call gives and that is copied; what it points to must live as long as the call and
     * its recordings, and stay as it is. */
    size_t attribute_bytes;
    pc_op_writes writes;
    bool strided; /* the kernels take any strides; otherwise inputs that have gaps or another order are copied first */
    /* A kernel does more than fill in its outputs by its inputs and attributes (it draws, counts, writes a file):
     * recordings never leave a call out, nor compute it once for two. */
    bool side_effects;
    unsigned saves; /* for the gradient rule: PC_OP_SAVE_INPUT(0) | PC_OP_SAVE_OUTPUT(1). What is not saved is freed */
    pc_op_shape_fn shape;       /* NULL: every output is as the first input */
    pc_op_gradient_fn gradient; /* NULL: results require no gradient */
    pc_op_kernel_fn cpu, cuda;  /* one may be NULL: a call there is then PC_ERR_UNSUPPORTED, naming op, dtype, device */
} pc_op_spec;

/* Make an op known. It stays as long as the process; nobody owns it. Any thread, at any time. NULL: PC_ERR_ARGUMENT for
 * a spec that makes no sense or a name that is taken, PC_ERR_UNSUPPORTED for more than PC_OPS_MAX. */
PC_API PC_MUST_USE const pc_op *pc_op_register(const pc_op_spec *spec);

/* The op of that name which the program has registered, or NULL, which is no error. Names that begin with "paracord."
 * are the library's, which registers some of its own ops by this call, and are never found. Any thread. */
PC_API const pc_op *pc_op_find(const char *name);

/* Call it on `n` inputs, all on one device; they are taken as they are (no promotion, no autocast). `attributes`:
 * attribute_bytes of them, or NULL where it has none. `outputs` has room for as many tensors as the op has outputs: new
 * ones, which belong to the innermost open scope or to the caller (all NULL on failure); or, for an op that writes in
 * place, the tensors to write. Those are refused as by pc_copy: they must not require gradients, repeat elements or
 * share memory; inputs that share some with them are copied first. PC_ERR_ARGUMENT, PC_ERR_DEVICE, PC_ERR_SHAPE,
 * PC_ERR_MEMORY, PC_ERR_UNSUPPORTED, and what the shape rule says. */
PC_API PC_MUST_USE pc_status pc_op_call(const pc_op *op, pc_tensor *const *inputs, int n, const void *attributes,
                                        pc_tensor **outputs);

/* For CPU kernels: part(context, i) for every i in 0..n-1, on as many threads as pay for `work` in all (floating-point
 * operations, or bytes times four), at most pc_threads_get(); returns when all are done. Parts must not wait for each
 * other. */
typedef void (*pc_op_part_fn)(void *context, int64_t i);
PC_API void pc_op_parallel(int64_t n, int64_t work, pc_op_part_fn part, void *context);

PC_END
#endif

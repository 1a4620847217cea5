/* nn.h: networks: modules with parameters, initialisers, optimisers.
 *
 *     pc_module *net = pc_sequential(
 *         pc_conv2d(3, 32, 3, .stride = 3, .activation = PC_ACTIVATION_RELU), pc_max_pool2d(2),
 *         pc_flatten(), pc_linear(3200, 128, .activation = PC_ACTIVATION_RELU), pc_linear(128, 1));
 *     pc_optimizer *adam = pc_adam(net, .lr = 1e-3);
 *     PC_SCOPE {
 *         pc_tensor *loss = pc_bce_with_logits(pc_forward(net, x), y);
 *         if (pc_backward(loss) != PC_OK || pc_optimizer_step(adam) != PC_OK)
 *             return pc_report(stderr);
 *     }
 *     pc_optimizer_free(adam);
 *     pc_module_free(net);
 *
 * Modules are made on the CPU in float32 and moved with pc_module_to. A module owns its parameters and children; the
 * caller owns the outermost one. Scopes do not own modules. Constructors return NULL with the error set; a NULL child
 * makes its parent NULL and releases the others. Threads: forward passes of one module may run in several threads at
 * once; anything that changes it may not.
 */
#ifndef PARACORD_NN_H
#define PARACORD_NN_H

#include <paracord/ops.h>
#include <paracord/sample.h>
#ifdef __cplusplus
#include <initializer_list>
#endif

PC_BEGIN

typedef struct pc_module pc_module;

/* --- what every module can do --- */

/* The module's function of x. x and the result as the constructor says. NULL and the error on failure. */
PC_API PC_MUST_USE pc_tensor *pc_forward(pc_module *module, pc_tensor *x);

/* Release it and all below; NULL is fine. A part of another module is not released: PC_ERR_STATE is recorded. */
PC_API void pc_module_free(pc_module *module);

/* Training or evaluation mode, for the module and all below it. Modules start in training mode. pc_predict and
 * pc_evaluate put the calling thread into evaluation mode meanwhile, and leave the module's: a forward function of your
 * own asks pc_module_is_training, which says what holds for the calling thread. */
PC_API void pc_module_set_training(pc_module *module, bool training);
PC_API bool pc_module_is_training(const pc_module *module);

/* Move all parameters and buffers to a device and dtype; integer buffers keep theirs. A tensor under two names stays one.
 * On failure some may have moved. Optimisers are made after it: a step of one that was made before is PC_ERR_STATE. So is
 * this of a module that pc_ddp or pc_zero (data_parallel.h) trains. */
PC_API PC_MUST_USE pc_status pc_module_to(pc_module *module, pc_device device, pc_dtype dtype);

/* Parameters of the module and all below, by PyTorch's names ("0.weight", "linear.bias"), in order of construction. Where
 * modules are nested so that a name is longer than 95 bytes, what goes by names is PC_ERR_ARGUMENT: lists, files,
 * optimisers, freezing. */
typedef struct pc_parameter {
    char name[96];
    pc_tensor *tensor; /* borrowed */
} pc_parameter;

/* Fill list[0..room-1], and return how many there are; -1 where a name is too long. `list` may be NULL with room 0. */
PC_API int pc_module_parameter_list(const pc_module *module, pc_parameter *list, int room);

/* The parameter of that name, borrowed; NULL and PC_ERR_NOT_FOUND. */
PC_API pc_tensor *pc_module_parameter(const pc_module *module, const char *name);

/* How many numbers all parameters have together. */
PC_API int64_t pc_module_parameter_elements(const pc_module *module);

/* Forget the gradients of all parameters. */
PC_API void pc_module_zero_grad(pc_module *module);

/* The state dict: parameters and buffers, such as the running statistics of a BatchNorm2d ("1.running_mean"), by
 * PyTorch's names and in its order; buffers follow their module's parameters. As pc_module_parameter_list. */
PC_API int pc_module_state_list(const pc_module *module, pc_parameter *list, int room);

/* The buffer of that name, borrowed; NULL and PC_ERR_NOT_FOUND. */
PC_API pc_tensor *pc_module_buffer(const pc_module *module, const char *name);

/* Copy values into the parameters and buffers of the same names (a state dict). Every one must be named exactly once,
 * with its shape: PC_ERR_NOT_FOUND names those that are missing or unexpected, PC_ERR_SHAPE the first of another shape,
 * and nothing is changed. pc_module_load_matching (module.h) takes what there is. */
PC_API PC_MUST_USE pc_status pc_module_load(pc_module *module, const pc_parameter *state, int count);

/* Children in order; borrowed. */
PC_API int pc_module_child_count(const pc_module *module);
PC_API pc_module *pc_module_child(const pc_module *module, int i);

/* The module as PyTorch prints it. Text for pc_text_free; and printed with a newline to stdout. */
PC_API PC_MUST_USE char *pc_module_text(const pc_module *module);
PC_API void pc_module_print(const pc_module *module);

/* --- layers --- */

typedef enum pc_init_kind {
    PC_INIT_TORCH,  /* PyTorch's default: weights and biases uniform in +-1/sqrt(fan_in) */
    PC_INIT_GLOROT, /* Keras's: weights uniform in +-sqrt(6 / (fan_in + fan_out)), biases 0 (Glorot, Bengio 2010) */
    PC_INIT_HE,     /* weights uniform in +-sqrt(6 / fan_in), biases 0 (He et al. 2015) */
    PC_INIT_KINDS
} pc_init_kind;

typedef struct pc_linear_options {
    int reserved_;
    bool no_bias;
    pc_activation_kind activation;
    pc_init_kind init;
} pc_linear_options;

/* [..., in] -> [..., out]; parameters weight [out, in], bias [out]. */
PC_API PC_MUST_USE pc_module *pc_linear_new(int64_t in, int64_t out, pc_linear_options options);

typedef struct pc_embedding_options {
    int reserved_;
    bool padded;         /* there is a row that stands for nothing: padding_idx, made 0 and left so */
    int64_t padding_idx; /* below 0 it counts from the end */
} pc_embedding_options;

/* int64 or int32 of any shape -> [its shape, columns], rows of a table; parameter weight [rows, columns], standard normal. */
PC_API PC_MUST_USE pc_module *pc_embedding_new(int64_t rows, int64_t columns, pc_embedding_options options);

typedef struct pc_conv2d_options {
    int reserved_;
    int stride, padding; /* both directions; 0 means 1 and 0 */
    bool no_bias;
    pc_activation_kind activation;
    pc_init_kind init;
    int dilation, groups; /* 0 means 1 */
    bool same;            /* the padding that keeps rows and columns, with stride 1 */
    /* Rows and columns apart: where one of the two is not 0, they take the place of what is above. */
    int kernel_size[2], strides[2], paddings[2], dilations[2];
} pc_conv2d_options;

/* [n, in, h, w] -> [n, out, h', w'] (see pc_fn_conv2d); parameters weight [out, in / groups, kernel, kernel], bias [out].
 * Works in channels-last memory and leaves its result so. */
PC_API PC_MUST_USE pc_module *pc_conv2d_new(int64_t in, int64_t out, int kernel, pc_conv2d_options options);

typedef struct pc_conv_transpose2d_options {
    int reserved_;
    int stride, padding, output_padding; /* both directions; 0 means 1, 0 and 0 */
    bool no_bias;
    pc_activation_kind activation;
    pc_init_kind init;
    int dilation, groups;                                                          /* 0 means 1 */
    int kernel_size[2], strides[2], paddings[2], output_paddings[2], dilations[2]; /* as of pc_conv2d_options */
} pc_conv_transpose2d_options;

/* [n, in, h, w] -> [n, out, h', w'] (see pc_fn_conv_transpose2d); parameters weight [in, out / groups, kernel, kernel],
 * bias [out]. Leaves its result in channels-last memory. */
PC_API PC_MUST_USE pc_module *pc_conv_transpose2d_new(int64_t in, int64_t out, int kernel,
                                                      pc_conv_transpose2d_options options);

typedef struct pc_conv1d_options {
    int reserved_;
    int stride, padding; /* 0 means 1 and 0 */
    bool no_bias;
    pc_activation_kind activation;
    pc_init_kind init;
    int dilation, groups; /* 0 means 1 */
    bool same;            /* the padding that keeps the length, with stride 1 */
} pc_conv1d_options;

/* [n, in, length] -> [n, out, length'] (see pc_fn_conv1d); parameters weight [out, in / groups, kernel], bias [out]. */
PC_API PC_MUST_USE pc_module *pc_conv1d_new(int64_t in, int64_t out, int kernel, pc_conv1d_options options);

typedef struct pc_pool2d_options {
    int reserved_;
    int stride;                      /* 0 means kernel */
    int padding;                     /* at most half the kernel */
    bool ceil_mode, exclude_padding; /* as pc_fn_pool2d_options has them */
} pc_pool2d_options;

/* The largest number, or the mean, of each window of kernel x kernel: [n, c, h, w] -> [n, c, h', w']. */
PC_API PC_MUST_USE pc_module *pc_max_pool2d_new(int kernel, pc_pool2d_options options);
PC_API PC_MUST_USE pc_module *pc_avg_pool2d_new(int kernel, pc_pool2d_options options);

/* [n, c, h, w] -> [n, c, rows, columns], 0 meaning as many as there are (pc_fn_adaptive_avg_pool2d). */
PC_API PC_MUST_USE pc_module *pc_adaptive_avg_pool2d(int64_t rows, int64_t columns);
PC_API PC_MUST_USE pc_module *pc_adaptive_max_pool2d(int64_t rows, int64_t columns);

/* [n, c, h, w] -> [n, c, h', w'] (pc_fn_upsample): pc_upsample(.scale = {2}, .mode = PC_UPSAMPLE_BILINEAR). */
PC_API PC_MUST_USE pc_module *pc_upsample_new(pc_fn_upsample_options options);
#define pc_upsample(...) pc_upsample_new(PC_OPTIONS(pc_fn_upsample_options, __VA_ARGS__))

/* [n, ...] -> [n, product of the rest] */
PC_API PC_MUST_USE pc_module *pc_flatten(void);

/* relu, sigmoid or tanh as a module of its own. */
PC_API PC_MUST_USE pc_module *pc_activation(pc_activation_kind kind);

/* Zeros with probability p while training; nothing in evaluation. */
PC_API PC_MUST_USE pc_module *pc_dropout(double p);

typedef struct pc_layer_norm_options {
    int reserved_;
    double eps;     /* 0 means 1e-5; of RMSNorm 2^-23, of float64 2^-52 */
    bool no_affine; /* neither weight nor bias */
    bool no_bias;
} pc_layer_norm_options;

/* Each row, the last dimensions, whose sizes are `normalized`, to mean 0 and variance 1 (pc_fn_layer_norm); parameters
 * weight and bias of that shape. RMSNorm: by the mean square alone, without a bias (pc_fn_rms_norm). */
PC_API PC_MUST_USE pc_module *pc_layer_norm_new(pc_shape normalized, pc_layer_norm_options options);
PC_API PC_MUST_USE pc_module *pc_rms_norm_new(pc_shape normalized, pc_layer_norm_options options);

/* [n, channels, ...]: each of so many groups of channels of each sample (pc_fn_group_norm); parameters weight and bias
 * [channels]. */
PC_API PC_MUST_USE pc_module *pc_group_norm_new(int64_t groups, int64_t channels, pc_layer_norm_options options);

typedef struct pc_batch_norm_options {
    int reserved_;
    double eps;      /* 0 means 1e-5 */
    double momentum; /* 0 means 0.1 */
    bool cumulative; /* running statistics are the mean over all batches so far: PyTorch's momentum=None */
    bool no_affine;  /* neither weight nor bias */
    bool no_bias;
    bool no_running; /* no running statistics: evaluation goes by its own batch */
} pc_batch_norm_options;

/* Each channel over the whole batch (pc_fn_batch_norm); in evaluation by the running statistics. Parameters weight and
 * bias, buffers running_mean, running_var [channels] and num_batches_tracked, an int64. BatchNorm1d: [n, channels] or
 * [n, channels, length]; BatchNorm2d: [n, channels, h, w]. */
PC_API PC_MUST_USE pc_module *pc_batch_norm1d_new(int64_t channels, pc_batch_norm_options options);
PC_API PC_MUST_USE pc_module *pc_batch_norm2d_new(int64_t channels, pc_batch_norm_options options);

typedef struct pc_multihead_attention_options {
    int reserved_;
    bool causal; /* a place attends to itself and to those in front of it */
    bool no_bias;
    double dropout; /* of weights, while training */
} pc_multihead_attention_options;

/* Multi-head self-attention, [..., length, size] -> the same: in each of `heads` heads scaled dot-product attention
 * (pc_fn_attention) of size / heads numbers. Parameters, as torch.nn.MultiheadAttention has them: in_proj_weight
 * [3 size, size], in_proj_bias [3 size], out_proj.weight [size, size], out_proj.bias [size]. */
PC_API PC_MUST_USE pc_module *pc_multihead_attention_new(int64_t size, int heads,
                                                         pc_multihead_attention_options options);

/* One after another. Neighbours that belong together run as one kernel: convolution, activation and max-pooling; linear
 * and activation. Owns the children, on failure too. The macro makes them from left to right, so that the same seed
 * gives the same weights with every compiler. */
PC_API PC_MUST_USE pc_module *pc_sequential_new(pc_module *const *children, int count);
#ifdef __cplusplus
PC_END
inline pc_module *pc_sequential_list(std::initializer_list<pc_module *> children)
{
    return pc_sequential_new(children.begin(), static_cast<int>(children.size()));
}
PC_BEGIN
#define pc_sequential(...) pc_sequential_list({__VA_ARGS__})
#else
#define pc_sequential(...)                                                                                             \
    pc_sequential_new((pc_module *[]){__VA_ARGS__}, (int)(sizeof((pc_module *[]){__VA_ARGS__}) / sizeof(pc_module *)))
#endif

/* The constructors with options by name: pc_conv2d(3, 32, 3, .stride = 3), pc_linear(128, 10). */
#define pc_linear(in, ...) PC_LINEAR_(in, __VA_ARGS__, )
#define PC_LINEAR_(in, out, ...) pc_linear_new((in), (out), PC_OPTIONS(pc_linear_options, __VA_ARGS__))
#define pc_embedding(rows, ...) PC_EMBEDDING_(rows, __VA_ARGS__, )
#define PC_EMBEDDING_(rows, columns, ...)                                                                              \
    pc_embedding_new((rows), (columns), PC_OPTIONS(pc_embedding_options, __VA_ARGS__))
#define pc_multihead_attention(size, ...) PC_MULTIHEAD_ATTENTION_(size, __VA_ARGS__, )
#define PC_MULTIHEAD_ATTENTION_(size, heads, ...)                                                                      \
    pc_multihead_attention_new((size), (heads), PC_OPTIONS(pc_multihead_attention_options, __VA_ARGS__))
#define pc_conv2d(in, out, ...) PC_CONV2D_(in, out, __VA_ARGS__, )
#define PC_CONV2D_(in, out, kernel, ...)                                                                               \
    pc_conv2d_new((in), (out), (kernel), PC_OPTIONS(pc_conv2d_options, __VA_ARGS__))
#define pc_conv_transpose2d(in, out, ...) PC_CONV_TRANSPOSE2D_(in, out, __VA_ARGS__, )
#define PC_CONV_TRANSPOSE2D_(in, out, kernel, ...)                                                                     \
    pc_conv_transpose2d_new((in), (out), (kernel), PC_OPTIONS(pc_conv_transpose2d_options, __VA_ARGS__))
#define pc_conv1d(in, out, ...) PC_CONV1D_(in, out, __VA_ARGS__, )
#define PC_CONV1D_(in, out, kernel, ...)                                                                               \
    pc_conv1d_new((in), (out), (kernel), PC_OPTIONS(pc_conv1d_options, __VA_ARGS__))
#define pc_max_pool2d(...) PC_MAX_POOL2D_(__VA_ARGS__, )
#define PC_MAX_POOL2D_(kernel, ...) pc_max_pool2d_new((kernel), PC_OPTIONS(pc_pool2d_options, __VA_ARGS__))
#define pc_avg_pool2d(...) PC_AVG_POOL2D_(__VA_ARGS__, )
#define PC_AVG_POOL2D_(kernel, ...) pc_avg_pool2d_new((kernel), PC_OPTIONS(pc_pool2d_options, __VA_ARGS__))

#define pc_layer_norm(...) PC_LAYER_NORM_(__VA_ARGS__, )
#define PC_LAYER_NORM_(shape, ...) pc_layer_norm_new((shape), PC_OPTIONS(pc_layer_norm_options, __VA_ARGS__))
#define pc_rms_norm(...) PC_RMS_NORM_(__VA_ARGS__, )
#define PC_RMS_NORM_(shape, ...) pc_rms_norm_new((shape), PC_OPTIONS(pc_layer_norm_options, __VA_ARGS__))
#define pc_group_norm(groups, ...) PC_GROUP_NORM_(groups, __VA_ARGS__, )
#define PC_GROUP_NORM_(groups, channels, ...)                                                                          \
    pc_group_norm_new((groups), (channels), PC_OPTIONS(pc_layer_norm_options, __VA_ARGS__))
#define pc_batch_norm1d(...) PC_BATCH_NORM1D_(__VA_ARGS__, )
#define PC_BATCH_NORM1D_(channels, ...) pc_batch_norm1d_new((channels), PC_OPTIONS(pc_batch_norm_options, __VA_ARGS__))
#define pc_batch_norm2d(...) PC_BATCH_NORM2D_(__VA_ARGS__, )
#define PC_BATCH_NORM2D_(channels, ...) pc_batch_norm2d_new((channels), PC_OPTIONS(pc_batch_norm_options, __VA_ARGS__))

/* --- modules of your own --- */

typedef struct pc_module_class {
    const char *name; /* as printed; static storage */
    /* Returns what an op or another module's forward returned. To hand on x itself: pc_cast(x, pc_tensor_dtype(x)), so
     * that the result has an owner of its own. NULL with the error set on failure. */
    pc_tensor *(*forward)(pc_module *module, pc_tensor *x);
    void (*describe)(const pc_module *module, char *text, size_t n); /* what stands in the brackets; may be NULL */
    void (*destroy)(pc_module *module);                              /* before the parameters go; may be NULL */
    /* Of several tensors several (pc_forward_many): fill in out[0..out_count-1], or return the error's status. In a scope
     * of its own: what it makes goes at the end, but for `out`, which may be anybody's. With it, forward may be NULL. */
    pc_status (*forward_many)(pc_module *module, pc_tensor *const *in, int in_count, pc_tensor **out, int out_count);
    int inputs, outputs; /* so many it takes and gives: other numbers are PC_ERR_ARGUMENT; 0: any */
} pc_module_class;

/* A module of a class of yours (kept by reference; module.h has what needs no class) with `bytes` of zeroed data of its own (pc_module_data). */
PC_API PC_MUST_USE pc_module *pc_module_new(const pc_module_class *type, size_t bytes);
PC_API void *pc_module_data(const pc_module *module);
PC_API const pc_module_class *pc_module_type(const pc_module *module);

/* Register a parameter (a contiguous tensor; one more owner of it; it starts to collect gradients) or a child
 * (ownership moves to the module, on failure too). A child that is a part of a module already, or that holds `module`
 * itself, is PC_ERR_ARGUMENT and stays where it is; more than 1000 levels of modules are PC_ERR_ARGUMENT. Names without
 * dots, kept as copies; NULL tensors and children fail. */
PC_API PC_MUST_USE pc_status pc_module_add_parameter(pc_module *module, const char *name, pc_tensor *tensor);
PC_API PC_MUST_USE pc_status pc_module_add_child(pc_module *module, const char *name, pc_module *child);

/* Register a buffer: a tensor that goes where the module goes and is in its state dict, but that no optimiser trains;
 * one more owner of it. Names as of parameters. */
PC_API PC_MUST_USE pc_status pc_module_add_buffer(pc_module *module, const char *name, pc_tensor *tensor);

/* A new CPU float32 tensor initialised from the thread's generator, for parameters. */
PC_API PC_MUST_USE pc_tensor *pc_init_weight(pc_shape shape, pc_init_kind kind, int64_t fan_in, int64_t fan_out);

/* --- optimisers --- */

typedef struct pc_optimizer pc_optimizer;

typedef struct pc_sgd_options {
    int reserved_;
    double lr; /* 0 means 0.01 */
    double momentum, weight_decay;
    bool nesterov;
} pc_sgd_options;

typedef struct pc_adam_options {
    int reserved_;
    double lr;           /* 0 means 0.001 */
    double beta1, beta2; /* 0 means 0.9 and 0.999 */
    double epsilon;      /* 0 means 1e-8 (PyTorch); Keras uses 1e-7 */
    double weight_decay;
} pc_adam_options;

typedef struct pc_rmsprop_options {
    int reserved_;
    double lr;      /* 0 means 0.01 */
    double alpha;   /* of the mean of squares; 0 means 0.99 */
    double epsilon; /* 0 means 1e-8 */
    double momentum, weight_decay;
} pc_rmsprop_options;

typedef struct pc_lion_options {
    int reserved_;
    double lr;           /* 0 means 0.0001 */
    double beta1, beta2; /* 0 means 0.9 and 0.99 */
    double weight_decay;
} pc_lion_options;

/* Over all parameters that `module` has now; a tensor with two names counts once. Two tensors that share memory are
 * PC_ERR_ARGUMENT. The caller owns the optimiser. Formulas as in torch.optim. AdamW (Loshchilov and Hutter 2019) takes the
 * decay from the weight, times the rate; its weight_decay of 0 means 0.01, as in PyTorch (without any it is Adam). Lion
 * (Chen et al. 2023) does the same, and else goes by the sign: w -= lr (sign(beta1 m + (1 - beta1) g) + decay w), then
 * m = beta2 m + (1 - beta2) g. */
PC_API PC_MUST_USE pc_optimizer *pc_sgd_new(pc_module *module, pc_sgd_options options);
PC_API PC_MUST_USE pc_optimizer *pc_adam_new(pc_module *module, pc_adam_options options);
PC_API PC_MUST_USE pc_optimizer *pc_adamw_new(pc_module *module, pc_adam_options options);
PC_API PC_MUST_USE pc_optimizer *pc_rmsprop_new(pc_module *module, pc_rmsprop_options options);
PC_API PC_MUST_USE pc_optimizer *pc_lion_new(pc_module *module, pc_lion_options options);
#define pc_sgd(...) PC_SGD_(__VA_ARGS__, )
#define PC_SGD_(module, ...) pc_sgd_new((module), PC_OPTIONS(pc_sgd_options, __VA_ARGS__))
#define pc_adam(...) PC_ADAM_(__VA_ARGS__, )
#define PC_ADAM_(module, ...) pc_adam_new((module), PC_OPTIONS(pc_adam_options, __VA_ARGS__))
#define pc_adamw(...) PC_ADAMW_(__VA_ARGS__, )
#define PC_ADAMW_(module, ...) pc_adamw_new((module), PC_OPTIONS(pc_adam_options, __VA_ARGS__))
#define pc_rmsprop(...) PC_RMSPROP_(__VA_ARGS__, )
#define PC_RMSPROP_(module, ...) pc_rmsprop_new((module), PC_OPTIONS(pc_rmsprop_options, __VA_ARGS__))
#define pc_lion(...) PC_LION_(__VA_ARGS__, )
#define PC_LION_(module, ...) pc_lion_new((module), PC_OPTIONS(pc_lion_options, __VA_ARGS__))
PC_API void pc_optimizer_free(pc_optimizer *optimizer);

/* Update every parameter that has a gradient, all in one kernel, and forget the gradients: there is no zero_grad to
 * forget. Gradients of several backward passes before a step add up. The step count of Adam is one for all parameters
 * and stays when none has a gradient, or on failure. On the CPU subnormal numbers count as 0 here, where epsilon is at least
 * 1e-10 and but for lion. */
PC_API PC_MUST_USE pc_status pc_optimizer_step(pc_optimizer *optimizer);

/* Begin anew: moments and velocity are 0, no step was counted, gradients are forgotten; learning rate and the other
 * settings stay. Also the way on after queued work of a step failed (stream.h): load weights (pc_module_load), then
 * this. Recordings of pc_step stay good. */
PC_API PC_MUST_USE pc_status pc_optimizer_reset(pc_optimizer *optimizer);

/* The learning rate, for schedules (schedule.h): finite, at least 0; for others PC_ERR_ARGUMENT is recorded and it stays.
 * Recordings of pc_step read it on the device and stay good. NaN for NULL. */
PC_API double pc_optimizer_lr(const pc_optimizer *optimizer);
PC_API void pc_optimizer_set_lr(pc_optimizer *optimizer, double lr);

typedef enum pc_clip_kind {
    PC_CLIP_NONE,
    PC_CLIP_NORM,  /* all gradients times min(1, most / (norm + 1e-6)), norm: of all of them as one vector */
    PC_CLIP_VALUE, /* each number between -most and most */
    PC_CLIP_KINDS
} pc_clip_kind;

/* Steps take gradients clipped so, as torch.nn.utils.clip_grad_norm_ and clip_grad_value_ would leave them. It is done as
 * the step reads them: pc_grad shows them as they came. most: finite, above 0; not looked at for PC_CLIP_NONE. Else
 * PC_ERR_ARGUMENT. */
PC_API PC_MUST_USE pc_status pc_optimizer_set_clip(pc_optimizer *optimizer, pc_clip_kind kind, double most);

/* The norm of the gradients of the last step that was clipped by it, before clipping; waits for that step. PC_ERR_STATE
 * where there was none. */
PC_API PC_MUST_USE pc_status pc_optimizer_gradient_norm(const pc_optimizer *optimizer, double *norm);

typedef struct pc_group_options {
    int reserved_;
    int max_dims;        /* only parameters of at most so many dimensions: 1 for biases and norms; 0 means all */
    double lr_scale;     /* their rate is the optimiser's times this; 0 means 1 */
    double weight_decay; /* 0 means the optimiser's */
    bool no_decay;
} pc_group_options;

/* Parameters whose names match `pattern`, with *, ? and [...] as in file names ("*" for all), get a rate and a decay of
 * their own: pc_optimizer_group(adamw, "*", .max_dims = 1, .no_decay = true). A parameter is in the group that named it
 * last. At most seven groups; none that matches, or other numbers: PC_ERR_ARGUMENT and nothing changes. */
PC_API PC_MUST_USE pc_status pc_optimizer_add_group(pc_optimizer *optimizer, const char *pattern,
                                                    pc_group_options options);
#define pc_optimizer_group(optimizer, ...) PC_OPTIMIZER_GROUP_(optimizer, __VA_ARGS__, )
#define PC_OPTIMIZER_GROUP_(optimizer, pattern, ...)                                                                   \
    pc_optimizer_add_group((optimizer), (pattern), PC_OPTIONS(pc_group_options, __VA_ARGS__))

PC_END
#endif

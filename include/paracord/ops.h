/* ops.h: functions of tensors.
 *
 *     pc_tensor *y = pc_relu(pc_add(pc_matmul(x, w), b));
 *
 * Shapes broadcast as in NumPy and PyTorch; dtypes promote as in PyTorch (bool < uint8 < int32 < int64 < float16,
 * bfloat16 < float32 < float64; float16 and bfloat16 make float32; zero-dim tensors only across kinds). What is
 * computed in float16 or bfloat16 is computed in float32 and rounded where it is stored. All inputs must be on one
 * device. Work is enqueued on the thread's current stream of that device. Every op returns a new tensor (owned as
 * tensor.h says) or NULL with the thread's error set: PC_ERR_SHAPE, PC_ERR_DTYPE, PC_ERR_DEVICE, PC_ERR_ARGUMENT,
 * PC_ERR_MEMORY. NULL inputs give NULL. Ops marked (d) have a gradient for their floating-point inputs. Where an answer
 * is not PyTorch's, docs/pytorch.md says so and why.
 */
#ifndef PARACORD_OPS_H
#define PARACORD_OPS_H

#include <paracord/tensor.h>

PC_BEGIN

/* --- element by element: the result has the memory order of the first input of its shape, where that is dense --- */

PC_API PC_MUST_USE pc_tensor *pc_add(pc_tensor *a, pc_tensor *b); /* (d) a + b */
PC_API PC_MUST_USE pc_tensor *pc_sub(pc_tensor *a, pc_tensor *b); /* (d) a - b */
PC_API PC_MUST_USE pc_tensor *pc_mul(pc_tensor *a, pc_tensor *b); /* (d) a * b */
PC_API PC_MUST_USE pc_tensor *pc_div(pc_tensor *a, pc_tensor *b); /* (d) a / b; integers give float32 */

/* (d) The same with a number on the right; the dtype of `a` stays, but integers and a fraction give float32. */
PC_API PC_MUST_USE pc_tensor *pc_add_scalar(pc_tensor *a, double b); /* a + b */
PC_API PC_MUST_USE pc_tensor *pc_sub_scalar(pc_tensor *a, double b); /* a - b */
PC_API PC_MUST_USE pc_tensor *pc_mul_scalar(pc_tensor *a, double b); /* a * b */
PC_API PC_MUST_USE pc_tensor *pc_div_scalar(pc_tensor *a, double b); /* a / b */

/* Of one dtype, their common one. NaN wins. Equals share the gradient. */
PC_API PC_MUST_USE pc_tensor *pc_minimum(pc_tensor *a, pc_tensor *b); /* (d) the smaller of a and b */
PC_API PC_MUST_USE pc_tensor *pc_maximum(pc_tensor *a, pc_tensor *b); /* (d) the larger of a and b */

/* (d) min(max(a, low), high); without the bound that is infinite, -INFINITY low or INFINITY high. The gradient on a bound
 * is 0. Integers and a fraction give float32. */
PC_API PC_MUST_USE pc_tensor *pc_clamp(pc_tensor *a, double low, double high);

/* (d) a to the power of b; the gradient of b is 0 where a is 0 and b is not below. Integers stay integers, powers below 0
 * cut to whole numbers; a whole number below 0 is PC_ERR_ARGUMENT for them, and a fraction gives float32. */
PC_API PC_MUST_USE pc_tensor *pc_pow(pc_tensor *a, pc_tensor *b);
PC_API PC_MUST_USE pc_tensor *pc_pow_scalar(pc_tensor *a, double b); /* a to the power of a number */

/* Integers become float32 first, except for neg, abs, square, relu, floor, round and sign, which keep them. */
PC_API PC_MUST_USE pc_tensor *pc_neg(pc_tensor *a);     /* (d) -a */
PC_API PC_MUST_USE pc_tensor *pc_exp(pc_tensor *a);     /* (d) e to the power of a */
PC_API PC_MUST_USE pc_tensor *pc_log(pc_tensor *a);     /* (d) natural logarithm of a */
PC_API PC_MUST_USE pc_tensor *pc_sqrt(pc_tensor *a);    /* (d) square root */
PC_API PC_MUST_USE pc_tensor *pc_rsqrt(pc_tensor *a);   /* (d) 1 / sqrt(a) */
PC_API PC_MUST_USE pc_tensor *pc_abs(pc_tensor *a);     /* (d) |a|; gradient 0 at 0 */
PC_API PC_MUST_USE pc_tensor *pc_square(pc_tensor *a);  /* (d) a * a */
PC_API PC_MUST_USE pc_tensor *pc_sin(pc_tensor *a);     /* (d) sine of a in radians */
PC_API PC_MUST_USE pc_tensor *pc_cos(pc_tensor *a);     /* (d) cosine of a in radians */
PC_API PC_MUST_USE pc_tensor *pc_floor(pc_tensor *a);   /* (d) whole number below; gradient 0, as of the next two */
PC_API PC_MUST_USE pc_tensor *pc_round(pc_tensor *a);   /* (d) nearest whole number, halves to the even one */
PC_API PC_MUST_USE pc_tensor *pc_sign(pc_tensor *a);    /* (d) -1, 0 or 1; 0 of NaN */
PC_API PC_MUST_USE pc_tensor *pc_relu(pc_tensor *a);    /* (d) max(a, 0); NaN stays NaN; gradient 0 at 0 */
PC_API PC_MUST_USE pc_tensor *pc_sigmoid(pc_tensor *a); /* (d) 1 / (1 + exp(-a)) */
PC_API PC_MUST_USE pc_tensor *pc_tanh(pc_tensor *a);    /* (d) (exp(a) - exp(-a)) / (exp(a) + exp(-a)) */
PC_API PC_MUST_USE pc_tensor *pc_erf(pc_tensor *a);     /* (d) 2 / sqrt(pi) * integral of exp(-t^2), 0 to a */
PC_API PC_MUST_USE pc_tensor *pc_relu6(pc_tensor *a);   /* (d) min(max(a, 0), 6); gradient 0 at 0 and at 6 */
PC_API PC_MUST_USE pc_tensor *pc_silu(pc_tensor *a);    /* (d) a * sigmoid(a), also called swish */
PC_API PC_MUST_USE pc_tensor *pc_gelu(pc_tensor *a);    /* (d) a / 2 * (1 + erf(a / sqrt(2))) */

PC_API PC_MUST_USE pc_tensor *pc_softplus(pc_tensor *a); /* (d) log(1 + exp(a)) */

/* (d) a / 2 * (1 + tanh(sqrt(2 / pi) * (a + 0.044715 a^3))) */
PC_API PC_MUST_USE pc_tensor *pc_gelu_tanh(pc_tensor *a);

/* (d) The gradient at 0 is that of below. */
PC_API PC_MUST_USE pc_tensor *pc_leaky_relu(pc_tensor *a, double slope); /* a > 0 ? a : a * slope */
PC_API PC_MUST_USE pc_tensor *pc_elu(pc_tensor *a, double alpha);        /* a > 0 ? a : alpha * (exp(a) - 1) */

/* Comparisons give bool. */
PC_API PC_MUST_USE pc_tensor *pc_eq(pc_tensor *a, pc_tensor *b); /* a == b */
PC_API PC_MUST_USE pc_tensor *pc_ne(pc_tensor *a, pc_tensor *b); /* a != b */
PC_API PC_MUST_USE pc_tensor *pc_lt(pc_tensor *a, pc_tensor *b); /* a < b */
PC_API PC_MUST_USE pc_tensor *pc_le(pc_tensor *a, pc_tensor *b); /* a <= b */
PC_API PC_MUST_USE pc_tensor *pc_gt(pc_tensor *a, pc_tensor *b); /* a > b */
PC_API PC_MUST_USE pc_tensor *pc_ge(pc_tensor *a, pc_tensor *b); /* a >= b */

/* Logic gives bool: of what is no bool, whether it is not 0. */
PC_API PC_MUST_USE pc_tensor *pc_logical_not(pc_tensor *a);               /* a is 0 */
PC_API PC_MUST_USE pc_tensor *pc_logical_and(pc_tensor *a, pc_tensor *b); /* both */
PC_API PC_MUST_USE pc_tensor *pc_logical_or(pc_tensor *a, pc_tensor *b);  /* one or both */
PC_API PC_MUST_USE pc_tensor *pc_logical_xor(pc_tensor *a, pc_tensor *b); /* one and not both */

/* Bits of integers, in their common dtype; bools as logic has them. PC_ERR_DTYPE for floating dtypes. */
PC_API PC_MUST_USE pc_tensor *pc_bitwise_not(pc_tensor *a);               /* ~a */
PC_API PC_MUST_USE pc_tensor *pc_bitwise_and(pc_tensor *a, pc_tensor *b); /* a & b */
PC_API PC_MUST_USE pc_tensor *pc_bitwise_or(pc_tensor *a, pc_tensor *b);  /* a | b */
PC_API PC_MUST_USE pc_tensor *pc_bitwise_xor(pc_tensor *a, pc_tensor *b); /* a ^ b */

/* Bool. */
PC_API PC_MUST_USE pc_tensor *pc_isnan(pc_tensor *a);    /* a is NaN */
PC_API PC_MUST_USE pc_tensor *pc_isfinite(pc_tensor *a); /* a is neither NaN nor infinite */

/* (d) condition ? a : b; condition is bool. */
PC_API PC_MUST_USE pc_tensor *pc_where(pc_tensor *condition, pc_tensor *a, pc_tensor *b);

/* --- reductions --- */

/* Over all elements, to a zero-dim tensor: a -> []. Integers and bool sum, and multiply, to int64; mean needs floating
 * point. Of no elements max and min are PC_ERR_SHAPE. */
PC_API PC_MUST_USE pc_tensor *pc_sum(pc_tensor *a);  /* (d) the sum */
PC_API PC_MUST_USE pc_tensor *pc_mean(pc_tensor *a); /* (d) the sum by their number; NaN for none */
PC_API PC_MUST_USE pc_tensor *pc_prod(pc_tensor *a); /* (d) the product; 1 for none */
PC_API PC_MUST_USE pc_tensor *pc_max(pc_tensor *a);  /* (d) the largest; NaN wins; ties share the gradient */
PC_API PC_MUST_USE pc_tensor *pc_min(pc_tensor *a);  /* (d) the smallest, as max */

/* Over the listed dimensions (negative ones count from the end; none listed means all): [n, m] -> [n] over dimension 1. With
 * keepdim they stay, with size 1. */
PC_API PC_MUST_USE pc_tensor *pc_sum_dims(pc_tensor *a, pc_shape dims, bool keepdim);  /* (d) the sum */
PC_API PC_MUST_USE pc_tensor *pc_mean_dims(pc_tensor *a, pc_shape dims, bool keepdim); /* (d) the mean */

/* Along one dimension: [n, m] -> [n] along dimension 1. Argmax and argmin give int64 and take the first of equals; the
 * gradient of pc_max_dim and pc_min_dim goes to that one, and its position is stored in *indices when that is not NULL. */
PC_API PC_MUST_USE pc_tensor *pc_prod_dim(pc_tensor *a, int dim, bool keepdim); /* (d) the product */
PC_API PC_MUST_USE pc_tensor *pc_max_dim(pc_tensor *a, int dim, bool keepdim,
                                         pc_tensor **indices); /* (d) the largest */
PC_API PC_MUST_USE pc_tensor *pc_min_dim(pc_tensor *a, int dim, bool keepdim,
                                         pc_tensor **indices);                /* (d) the smallest */
PC_API PC_MUST_USE pc_tensor *pc_argmax(pc_tensor *a, int dim, bool keepdim); /* the place of the largest */
PC_API PC_MUST_USE pc_tensor *pc_argmin(pc_tensor *a, int dim, bool keepdim); /* the place of the smallest */

/* Bool, but uint8 of uint8; counts are int64. NaN is not 0. Over all elements, a -> [], or the listed dimensions. */
PC_API PC_MUST_USE pc_tensor *pc_any(pc_tensor *a); /* any element is not 0; of none: false */
PC_API PC_MUST_USE pc_tensor *pc_any_dims(pc_tensor *a, pc_shape dims,
                                          bool keepdim); /* [n, m] -> [n] over dimension 1 */
PC_API PC_MUST_USE pc_tensor *pc_all(pc_tensor *a);      /* no element is 0; of none: true */
PC_API PC_MUST_USE pc_tensor *pc_all_dims(pc_tensor *a, pc_shape dims, bool keepdim); /* [n, m] -> [n] */
PC_API PC_MUST_USE pc_tensor *pc_count_nonzero(pc_tensor *a);                         /* how many are not 0 */
PC_API PC_MUST_USE pc_tensor *pc_count_nonzero_dims(pc_tensor *a, pc_shape dims);     /* [n, m] -> [n] */

/* (d) Variance: the sum of (a - mean)^2, divided by the number of elements less `correction` (1 of a sample, 0 of all that
 * there is), and its root; of all elements, a -> [], or over the listed dimensions. NaN for no elements; infinite, or NaN of
 * equals, where nothing is left to divide by. Floating dtypes. The gradient of std is 0 where that is 0. */
PC_API PC_MUST_USE pc_tensor *pc_var(pc_tensor *a, double correction);
PC_API PC_MUST_USE pc_tensor *pc_std(pc_tensor *a, double correction); /* its square root */

/* (d) The same over the listed dimensions: [n, m] -> [n] over dimension 1. */
PC_API PC_MUST_USE pc_tensor *pc_var_dims(pc_tensor *a, pc_shape dims, double correction, bool keepdim);
PC_API PC_MUST_USE pc_tensor *pc_std_dims(pc_tensor *a, pc_shape dims, double correction,
                                          bool keepdim); /* its square root */

/* (d) Vector norm, a -> []: (sum of |a|^order)^(1 / order); of order INFINITY the largest |a|, of -INFINITY the smallest,
 * whose gradient ties share, of order 0 how many are not 0, without a gradient. Floating dtypes. The gradient is 0 where the
 * norm is 0. PC_ERR_SHAPE for no elements, where the order is infinite or below 0. */
PC_API PC_MUST_USE pc_tensor *pc_norm(pc_tensor *a, double order);

/* (d) The same over the listed dimensions: [n, m] -> [n] over dimension 1. */
PC_API PC_MUST_USE pc_tensor *pc_norm_dims(pc_tensor *a, double order, pc_shape dims, bool keepdim);

/* --- products --- */

/* (d) Matrix product, the sum of a[i][j] * b[j][l] over j: [n, k] x [k, m] -> [n, m]; vectors as in PyTorch ([k] x [k]
 * -> [], [n, k] x [k] -> [n], [k] x [k, m] -> [m]); further leading dimensions are batches and broadcast. Floating
 * dtypes. */
PC_API PC_MUST_USE pc_tensor *pc_matmul(pc_tensor *a, pc_tensor *b);

/* (d) c + a b: a [n, k], b [k, m], c that broadcasts to the result -> [n, m]. Floating dtypes. */
PC_API PC_MUST_USE pc_tensor *pc_addmm(pc_tensor *c, pc_tensor *a, pc_tensor *b);

/* (d) The sum of a[i] * b[i]: [n] and [n] -> []. Floating dtypes. */
PC_API PC_MUST_USE pc_tensor *pc_dot(pc_tensor *a, pc_tensor *b);

/* (d) a[i] * b[j]: [n] and [m] -> [n, m]. */
PC_API PC_MUST_USE pc_tensor *pc_outer(pc_tensor *a, pc_tensor *b);

/* What follows a product. The first four are part of its kernel, the others an op behind it. */
typedef enum pc_activation_kind {
    PC_ACTIVATION_NONE,
    PC_ACTIVATION_RELU,
    PC_ACTIVATION_SIGMOID,
    PC_ACTIVATION_TANH,
    PC_ACTIVATION_GELU,
    PC_ACTIVATION_GELU_TANH,
    PC_ACTIVATION_SILU
} pc_activation_kind;

/* (d) activation(x weight^T + bias): x [..., in], weight [out, in], bias [out] or NULL -> [..., out]. A bias of another
 * shape that broadcasts to the result does so. */
PC_API PC_MUST_USE pc_tensor *pc_fn_linear(pc_tensor *x, pc_tensor *weight, pc_tensor *bias,
                                           pc_activation_kind activation);

/* --- pictures: x [n, c, h, w]; the memory order of x (NCHW or channels last) is the result's too; of one channel its
 * stride says which, 1 for channels last --- */

typedef struct pc_fn_conv2d_options {
    int reserved_;
    int stride[2];  /* rows, columns; 0 means 1 */
    int padding[2]; /* zeros on each side */
    pc_activation_kind activation;
    int pool;        /* max-pool the result by pool x pool windows, stride pool (rest dropped); 0 or 1: no pooling */
    int dilation[2]; /* rows, columns from one tap of the kernel to the next; 0 means 1 */
    int groups; /* each share of the outputs sees its share of the channels alone; as many as these: depthwise; 0 means 1 */
    bool same; /* as much padding as keeps rows and columns, the odd one behind; with stride 1 and padding 0 */
} pc_fn_conv2d_options;

/* (d) pool(activation(conv(x, weight) + bias)): weight [out, in / groups, kh, kw], bias [out] or NULL -> [n, out, h', w']
 * with h' = floor((h + 2 padding - dilation (kh - 1) - 1) / stride) + 1, then floor(h' / pool). Cross-correlation, as
 * everywhere. PC_ERR_ARGUMENT where groups do not divide both numbers of channels. */
PC_API PC_MUST_USE pc_tensor *pc_fn_conv2d(pc_tensor *x, pc_tensor *weight, pc_tensor *bias,
                                           pc_fn_conv2d_options options);

typedef struct pc_fn_conv_transpose2d_options {
    int reserved_;
    int stride[2], padding[2]; /* rows, columns; 0 means 1 and 0 */
    int output_padding[2];     /* more rows and columns at the end; below the stride or the dilation */
    int dilation[2], groups;   /* 0 means 1 */
} pc_fn_conv_transpose2d_options;

/* (d) What leads back from a convolution's result to the shape of its input, its gradient: x [n, in, h, w], weight [in,
 * out / groups, kh, kw], bias [out] or NULL -> [n, out, h', w'] with h' = (h - 1) stride - 2 padding +
 * dilation (kh - 1) + output_padding + 1. */
PC_API PC_MUST_USE pc_tensor *pc_fn_conv_transpose2d(pc_tensor *x, pc_tensor *weight, pc_tensor *bias,
                                                     pc_fn_conv_transpose2d_options options);

typedef struct pc_fn_conv1d_options {
    int reserved_;
    int stride, padding; /* 0 means 1 and 0 */
    pc_activation_kind activation;
    int dilation, groups; /* 0 means 1 */
    bool same;            /* as of pc_fn_conv2d */
} pc_fn_conv1d_options;

/* (d) activation(conv(x, weight) + bias) along one dimension: x [n, in, length], weight [out, in / groups, k], bias [out]
 * or NULL -> [n, out, length'], length' as rows of pc_fn_conv2d. */
PC_API PC_MUST_USE pc_tensor *pc_fn_conv1d(pc_tensor *x, pc_tensor *weight, pc_tensor *bias,
                                           pc_fn_conv1d_options options);

typedef struct pc_fn_pool2d_options {
    int reserved_;
    int kernel[2];
    int stride[2];        /* 0 means kernel */
    int padding[2];       /* at most half the kernel; maximum ignores it, average counts it as zeros */
    bool ceil_mode;       /* windows that begin in the picture, or in the padding before it, may go beyond its end */
    bool exclude_padding; /* the mean is over the picture's own elements: PyTorch's count_include_pad=False */
} pc_fn_pool2d_options;

/* x [n, c, h, w] -> [n, c, h', w'] with h' = floor((h + 2 padding - kernel) / stride) + 1: the numbers of each window.
 * In ceil_mode the quotient is rounded up, less a window that would begin behind the picture; what lies beyond the
 * padding is not counted. PC_ERR_SHAPE for pictures without rows or columns, or of 2^31 elements a channel and more. */
PC_API PC_MUST_USE pc_tensor *pc_fn_max_pool2d(pc_tensor *x,
                                               pc_fn_pool2d_options options); /* (d) the largest of each window */
PC_API PC_MUST_USE pc_tensor *pc_fn_avg_pool2d(pc_tensor *x,
                                               pc_fn_pool2d_options options); /* (d) the mean of each window */

/* (d) x [n, c, h, w] -> [n, c, rows, columns], where 0 rows or columns are as many as x has: of windows that cover x:
 * row i is of rows floor(i h / rows) to ceil((i + 1) h / rows) - 1. */
PC_API PC_MUST_USE pc_tensor *pc_fn_adaptive_avg_pool2d(pc_tensor *x, int64_t rows,
                                                        int64_t columns); /* the mean of each */
PC_API PC_MUST_USE pc_tensor *pc_fn_adaptive_max_pool2d(pc_tensor *x, int64_t rows,
                                                        int64_t columns); /* the largest number */

/* --- networks --- */

PC_API PC_MUST_USE pc_tensor *pc_softmax(pc_tensor *a, int dim);     /* (d) exp(a) / sum exp(a) along dim */
PC_API PC_MUST_USE pc_tensor *pc_log_softmax(pc_tensor *a, int dim); /* (d) a - log sum exp(a) along dim */

/* (d) Of each row, the numbers that share all but the last dimensions, whose sizes are `normalized`; x [..., normalized]
 * -> x's shape. Times weight, plus bias, both of the normalized shape or NULL. Parameters are of x's dtype, or float32
 * beside 16 bits. (d) in all three. layer_norm: (x - mean) / sqrt(variance + eps), the variance being the mean of (x -
 * mean)^2. PC_ERR_SHAPE for rows of 2^31 elements and more. */
PC_API PC_MUST_USE pc_tensor *pc_fn_layer_norm(pc_tensor *x, pc_shape normalized, pc_tensor *weight, pc_tensor *bias,
                                               double eps);
/* (d) The same without a mean: x / sqrt(mean of x^2 + eps), times weight; x [..., normalized] -> x's shape. */
PC_API PC_MUST_USE pc_tensor *pc_fn_rms_norm(pc_tensor *x, pc_shape normalized, pc_tensor *weight, double eps);

/* (d) As layer_norm, of x [n, channels, ...] -> x's shape, for each sample over each of so many groups of neighbouring
 * channels; weight and bias are [channels]. The result has the memory order of x, which may be channels last. */
PC_API PC_MUST_USE pc_tensor *pc_fn_group_norm(pc_tensor *x, int64_t groups, pc_tensor *weight, pc_tensor *bias,
                                               double eps);

/* (d) And for each channel over all samples and places: x [n, channels, ...] -> x's shape. Training: running mean and
 * variance, [channels], become (1 - momentum) old + momentum new, where the new variance is that with n - 1 as its
 * divisor; both may be NULL; an empty x leaves them. One number for each channel is PC_ERR_SHAPE. Not training: by the
 * running ones, which stay. */
PC_API PC_MUST_USE pc_tensor *pc_fn_batch_norm(pc_tensor *x, pc_tensor *running_mean, pc_tensor *running_var,
                                               pc_tensor *weight, pc_tensor *bias, bool training, double momentum,
                                               double eps);

/* (d) Each element is 0 with probability p, else a / (1 - p). Takes one step of the thread's generator. p in [0, 1].
 * Integers only with p 0 or 1. */
PC_API PC_MUST_USE pc_tensor *pc_fn_dropout(pc_tensor *a, double p);

typedef struct pc_fn_attention_options {
    int reserved_;
    bool causal;     /* query i attends to keys 0 to i only, whatever the mask says */
    double scale;    /* 0 means 1 / sqrt(e) */
    double dropout;  /* the probability with which a weight becomes 0, the rest being divided by 1 - dropout */
    pc_tensor *mask; /* NULL, bool (true: attends) or floating (added to the scores); broadcasts to [..., l, s] */
} pc_fn_attention_options;

/* (d) Scaled dot-product attention, softmax(scale q k^T + mask) v: q [..., l, e], k [..., s, e], v [..., s, ev] ->
 * [..., l, ev]; leading dimensions broadcast. One floating dtype, any strides; the result has the memory order of q. Memory
 * is linear in l and s: no tensor of the scores is made. A row that attends to no key is 0. A dropout takes one step of the
 * thread's generator. The mask has no gradient: PC_ERR_UNSUPPORTED where it requires one. */
PC_API PC_MUST_USE pc_tensor *pc_fn_attention(pc_tensor *q, pc_tensor *k, pc_tensor *v,
                                              pc_fn_attention_options options);

/* (d) The same of q, k and v that are the three entries of one tensor, qkv [3, ..., l, e] -> [..., l, e]. Its gradient is
 * one tensor, too, in the memory order of qkv. As a projection gives them:
 *
 *     pc_tensor *qkv = pc_reshape(pc_fn_linear(x, weight, bias, PC_ACTIVATION_NONE), PC_SHAPE(b, t, 3, heads, e));
 *     pc_tensor *y = pc_fn_self_attention(pc_permute(qkv, PC_SHAPE(2, 0, 3, 1, 4)), (pc_fn_attention_options){...});
 *     y = pc_reshape(pc_transpose(y, 1, 2), PC_SHAPE(b, t, heads * e)); */
PC_API PC_MUST_USE pc_tensor *pc_fn_self_attention(pc_tensor *qkv, pc_fn_attention_options options);

/* (d) Binary cross-entropy: the mean over all elements of max(x, 0) - x y + log(1 + exp(-|x|)); x are logits, y targets
 * in [0, 1]: two of one shape -> []. */
PC_API PC_MUST_USE pc_tensor *pc_bce_with_logits(pc_tensor *x, pc_tensor *y);

/* (d) Mean over rows of -log softmax(x)[label]: x [n, classes], labels [n] int64 -> []; rows of -100 do not count
 * (loss.h). Another label outside 0..classes-1 is PC_ERR_RANGE and names row and label. */
PC_API PC_MUST_USE pc_tensor *pc_cross_entropy(pc_tensor *x, pc_tensor *labels);

/* (d) The same with weights, which Keras calls class_weight, of a [2] for the targets 0 and 1: two of one shape -> []. Each
 * sample's loss is multiplied by its class's weight, and the sum divided by the number of samples: not by that of their
 * weights, as PyTorch's weight= does. The gradient is that in x. */
PC_API PC_MUST_USE pc_tensor *pc_bce_with_logits_weighted(pc_tensor *x, pc_tensor *y, pc_tensor *weights);

/* (d) And with weights of classes, floating [classes], that count in the same way: x [n, classes], labels [n] int64 ->
 * []. Rows of -100 do not count: they have no loss, and are none of the samples that the sum is divided by. */
PC_API PC_MUST_USE pc_tensor *pc_cross_entropy_weighted(pc_tensor *x, pc_tensor *labels, pc_tensor *weights);

/* (d) Mean of (x - y)^2: two of one shape -> [], in their common dtype, which is floating. */
PC_API PC_MUST_USE pc_tensor *pc_mse(pc_tensor *x, pc_tensor *y);

/* --- joining and picking --- */

/* (d) Join along dim: [n, k] and [m, k] -> [n + m, k] along dimension 0; other sizes must agree. dtypes promote. Dense
 * pictures whose channels are all last in memory keep that order. */
PC_API PC_MUST_USE pc_tensor *pc_cat(pc_tensor *const *tensors, int count, int dim);

/* (d) Join along a new dimension: count of [n, k] -> [count, n, k] for dimension 0; all of one shape. dtypes promote. */
PC_API PC_MUST_USE pc_tensor *pc_stack(pc_tensor *const *tensors, int count, int dim);

/* (d) Views of the parts of `a` along dim, of `size` entries each, the last one of what is left: [n, m] -> [size, m] and
 * so on along dimension 0. They go to pieces[0] to pieces[count - 1], each owned as a result is (tensor.h). As many as
 * there are must be asked for: PC_ERR_ARGUMENT says how many that is. */
PC_API PC_MUST_USE pc_status pc_split_dim(pc_tensor *a, int dim, int64_t size, pc_tensor **pieces, int count);

/* (d) The same of `count` parts of one size, the least that suffices: [n, m] -> [size, m]. */
PC_API PC_MUST_USE pc_status pc_chunk(pc_tensor *a, int dim, pc_tensor **pieces, int count);

/* (d) `value` where mask, which is bool, is true, else a: they broadcast, a [n, m], mask [m] -> [n, m]. The dtype is
 * a's: PC_ERR_ARGUMENT where it does not hold `value`. */
PC_API PC_MUST_USE pc_tensor *pc_masked_fill(pc_tensor *a, pc_tensor *mask, double value);

/* (d) The entries `index` (int64 or int32, one-dimensional or zero-dim) along dim: a [n, m], index [k] -> [k, m] along
 * dimension 0. A zero-dim `a` has the entry 0. An
 * index out of range is PC_ERR_RANGE. */
PC_API PC_MUST_USE pc_tensor *pc_index_select(pc_tensor *a, int dim, pc_tensor *index);

/* --- by indices: int64 or int32. One out of range is PC_ERR_RANGE, with the op, the entry and the range; none counts from
 * the end unless it says so. Sums are added in a fixed order, on every device --- */

typedef struct pc_fn_embedding_options {
    int reserved_;
    bool padded;         /* there is a row that stands for nothing: padding_idx, whose gradient is 0 */
    int64_t padding_idx; /* below 0 it counts from the end */
} pc_fn_embedding_options;

/* (d) Rows of a table: weight [rows, columns], indices of any shape -> [indices' shape, columns]. */
PC_API PC_MUST_USE pc_tensor *pc_fn_embedding(pc_tensor *weight, pc_tensor *indices, pc_fn_embedding_options options);

/* (d) a with the rows of `source` along dim added to those at `index`: a -> a's shape; index as of pc_index_select,
 * source of a's dtype and shape, but for dim, where it has as many rows as index has entries. Of several rows for one
 * place all are added. */
PC_API PC_MUST_USE pc_tensor *pc_index_add(pc_tensor *a, int dim, pc_tensor *index, pc_tensor *source);

/* (d) The same with the rows in their place: a -> a's shape. Of several rows for one place the last one is copied. */
PC_API PC_MUST_USE pc_tensor *pc_index_copy(pc_tensor *a, int dim, pc_tensor *index, pc_tensor *source);

/* (d) a[index] = values, or += with accumulate, in a new tensor: index of any shape along dimension 0, entries below 0 from
 * the end; values of a's dtype broadcast to [index's shape, a's further dimensions]: a -> a's shape. */
PC_API PC_MUST_USE pc_tensor *pc_index_put(pc_tensor *a, pc_tensor *index, pc_tensor *values, bool accumulate);

/* (d) Element by element along dim, for two dimensions and dim 1: result[i][j] = a[i][index[i][j]]: index -> index's shape,
 * which in the other dimensions is at most a's. */
PC_API PC_MUST_USE pc_tensor *pc_gather(pc_tensor *a, int dim, pc_tensor *index);

/* (d) a with source[i][j] added at [i][index[i][j]], for dim 1. The index is nowhere larger than source, nor, but for
 * dim, than a; source has a's dtype. */
PC_API PC_MUST_USE pc_tensor *pc_scatter_add(pc_tensor *a, int dim, pc_tensor *index, pc_tensor *source);

/* int64: 1 at the index and 0 elsewhere: [n] -> [n, classes]. */
PC_API PC_MUST_USE pc_tensor *pc_one_hot(pc_tensor *indices, int64_t classes);

/* --- order: of equals the first one comes first; NaN is the largest --- */

/* (d) Sorted along dim: a -> a's shape; and in *indices, when that is not NULL, int64 places of the values. */
PC_API PC_MUST_USE pc_tensor *pc_sort(pc_tensor *a, int dim, bool descending, pc_tensor **indices);

/* The places alone: a -> a's shape. */
PC_API PC_MUST_USE pc_tensor *pc_argsort(pc_tensor *a, int dim, bool descending);

/* (d) The k largest, or smallest, along dim, the largest (smallest) first, and their places as of pc_sort: [n, m] -> [n,
 * k] along dimension 1. */
PC_API PC_MUST_USE pc_tensor *pc_topk(pc_tensor *a, int64_t k, int dim, bool largest, pc_tensor **indices);

/* int64: sorted [n], values -> values' shape: how many of `sorted`, ascending along its last dimension, are less than
 * the value (right: less or equal). `sorted` is [n], or has the values' other dimensions. They meet in their common
 * dtype. */
PC_API PC_MUST_USE pc_tensor *pc_searchsorted(pc_tensor *sorted, pc_tensor *values, bool right);

/* int64: [rows, n] -> [rows, count]: places drawn by weights [n] or [rows, n], which are at least 0 and need not add up
 * to 1, from the thread's generator (random.h): one step of it. Without replacement each place is drawn at most once,
 * and there must be `count` weights above 0; else one. Rows that are not so, or have an infinite weight, are PC_ERR_RANGE: on
 * devices that work later it is told as an index n that is out of range. So are more than 2^24 places. Whatever the
 * dtype, it is by 48 bits of the generator and sums in float64: what is less than 2^-1022 of a row's largest weight is 0. */
PC_API PC_MUST_USE pc_tensor *pc_multinomial(pc_tensor *weights, int64_t count, bool replacement);

/* --- arranging: new tensors --- */

typedef enum pc_pad_mode {
    PC_PAD_CONSTANT,
    PC_PAD_REFLECT,  /* as in a mirror on the outermost element, which is not there twice */
    PC_PAD_REPLICATE /* the outermost element again and again */
} pc_pad_mode;

/* (d) So many elements more before and after each of the last dimensions, [n] -> [before + n + after]: pc_pad(x,
 * PC_SHAPE(1, 2), PC_SHAPE(1, 2), ...) is for rows 1 and for columns 2 on both sides. Numbers below 0 cut. `value` is
 * for constants. */
PC_API PC_MUST_USE pc_tensor *pc_pad(pc_tensor *a, pc_shape before, pc_shape after, pc_pad_mode mode, double value);

/* (d) The order along each of dims turned round: a -> a's shape. Dense memory keeps its order of dimensions. */
PC_API PC_MUST_USE pc_tensor *pc_flip(pc_tensor *a, pc_shape dims);

/* (d) Element i along dims[k] moves to i + shifts[k], round the end; without dims all elements in C order, by one shift:
 * a -> a's shape. Memory as of pc_cat. */
PC_API PC_MUST_USE pc_tensor *pc_roll(pc_tensor *a, pc_shape shifts, pc_shape dims);

/* (d) Copies one after another, `times` along each dimension: [n, m] -> [times n, times m]; new ones come in front. */
PC_API PC_MUST_USE pc_tensor *pc_repeat(pc_tensor *a, pc_shape times);

/* (d) The same of fewer numbers than there are dimensions, for the last ones: [n, m] -> [n, times m]. */
PC_API PC_MUST_USE pc_tensor *pc_tile(pc_tensor *a, pc_shape times);

/* (d) Of each matrix of the last two dimensions what is on a diagonal (0: the main one; 1: the one above it) and below
 * it, or above it: a -> a's shape. The rest is 0. Dense memory keeps its order of dimensions. */
PC_API PC_MUST_USE pc_tensor *pc_tril(pc_tensor *a, int64_t diagonal); /* on and below the diagonal */
PC_API PC_MUST_USE pc_tensor *pc_triu(pc_tensor *a, int64_t diagonal); /* on and above the diagonal */

/* (d) The sum of an element and all in front of it along dim. Integers and bool give int64. */
PC_API PC_MUST_USE pc_tensor *pc_cumsum(pc_tensor *a, int dim);

/* --- in place: no gradient; an error where the tape would need the old value ---
 *
 * What is read may share memory with what is written, as in pc_copy(m, pc_transpose(m, 0, 1)): the result is that of
 * values which were all read before (a copy is made where memory is shared in other places than the same). A tensor
 * that has an element several times (pc_expand) cannot be written, PC_ERR_ARGUMENT; pc_fill can fill it. */

/* y += a x; same shape and dtype. The factor of integers is whole: PC_ERR_ARGUMENT. */
PC_API PC_MUST_USE pc_status pc_saxpy(pc_tensor *y, double a, pc_tensor *x);

/* Copy `from` into `to`, converted and broadcast. Between kinds of accelerators as by pc_to. */
PC_API PC_MUST_USE pc_status pc_copy(pc_tensor *to, pc_tensor *from);

/* Every element becomes `value`: PC_ERR_ARGUMENT where integers do not hold it. */
PC_API PC_MUST_USE pc_status pc_fill(pc_tensor *t, double value);

typedef struct pc_mandelbrot_options {
    int reserved_;
    double x_min, x_max, y_min, y_max; /* the region of the plane; all 0: -2 to 1, -1 to 1 */
    int iterations;                    /* 0: 20 */
} pc_mandelbrot_options;

/* The Mandelbrot set in `counts`, [height, width], contiguous: element (row, column) stands for
 *
 *     c = (x_min + column * ((x_max - x_min) / width)) + (y_min + row * ((y_max - y_min) / height)) i
 *
 * With z = c, then z = z * z + c and so on, uint8 and int32 count how many z have |z| < 2 before the first that has
 * not, `iterations` at most; float32 counts in fractions of a step, without edges between one count and the next. In
 * float64 throughout, every operation rounded for itself: whole counts are the same on every device, those of a plain
 * loop. */
PC_API PC_MUST_USE pc_status pc_mandelbrot(pc_tensor *counts, pc_mandelbrot_options options);

PC_END
#endif

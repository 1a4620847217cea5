/* layers.h: what Sequential and the file formats need to know of the layers. */
#ifndef PC__LAYERS_H
#define PC__LAYERS_H

#include "nn/module.h"

typedef struct pc__linear_layer {
    int64_t in, out;
    pc_activation_kind activation;
} pc__linear_layer;

typedef struct pc__conv2d_layer {
    int64_t in, out;
    int kernel[2];
    pc_fn_conv2d_options spec; /* pool is what Sequential fuses */
    int extra[2];              /* more padding below and to the right: "same" where it comes out uneven */
} pc__conv2d_layer;

typedef struct pc__pool2d_layer {
    pc_fn_pool2d_options spec;
    int extra[2];         /* as for convolutions */
    bool exclude_padding; /* averages: over the picture's own pixels, as Keras does */
} pc__pool2d_layer;

typedef struct pc__activation_layer {
    pc_activation_kind kind;
} pc__activation_layer;

typedef struct pc__embedding_layer {
    int64_t rows, columns;
    pc_fn_embedding_options spec;
} pc__embedding_layer;

typedef struct pc__dropout_layer {
    double p;
} pc__dropout_layer;

PC__SHARED extern const pc_module_class pc__linear_class, pc__conv2d_class, pc__flatten_class;
extern const pc_module_class pc__max_pool2d_class, pc__avg_pool2d_class, pc__dropout_class, pc__sequential_class;
extern const pc_module_class pc__module_list_class;

/* "relu" and so on; NULL for none. */
const char *pc__activation_name(pc_activation_kind kind);

/* The layer's data when the module is of that class, else NULL. */
static inline void *pc__layer(const pc_module *module, const pc_module_class *type)
{
    return module && module->type == type ? (void *)module->data : NULL;
}
const pc__activation_layer *pc__activation_of(const pc_module *module);

/* Convolutions with any kernel, stride and padding, rows and columns apart. */
pc_module *pc__conv2d_layer_new(int64_t in, int64_t out, const int kernel[2], const pc_fn_conv2d_options *spec,
                                bool no_bias, pc_init_kind init);
/* Options of rows and columns: those given apart, else the one for both; 0 means `otherwise`. */
void pc__pair_of(int to[2], const int apart[2], int both, int otherwise);

pc_module *pc__pool2d_layer_new(const pc_module_class *type, const pc_fn_pool2d_options *spec);

/* x [n, c, h, w] with extra[0] rows below and extra[1] columns to the right, filled with `value`; x itself for none. */
pc_tensor *pc__pad_end(pc_tensor *x, const int extra[2], double value);

/* A layer's forward pass with what follows it fused in: activation and pool replace the layer's own when set. */
pc_tensor *pc__linear_forward(const pc_module *module, pc_tensor *x, pc_activation_kind activation);
pc_tensor *pc__conv2d_forward(const pc_module *module, pc_tensor *x, pc_activation_kind activation, int pool);

/* The forward function of Sequential, for classes whose children have names of their own: one after another. */
pc_tensor *pc__run_in_order(pc_module *module, pc_tensor *x);
static inline bool pc__is_chain(const pc_module *module)
{
    return module->type->forward == pc__run_in_order;
}

/* Some children of a module, to be run one after another. */
typedef struct pc__chain {
    const pc_module *module;
    const int *steps; /* their numbers; NULL: all, in order */
    int count;
} pc__chain;

/* Run number i and those behind it that fuse with it; *next is the first one not run. */
pc_tensor *pc__chain_run(const pc__chain *chain, int i, pc_tensor *x, int *next);

#endif

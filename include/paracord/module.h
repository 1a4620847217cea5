/* module.h: networks put together: residual blocks, lists and dictionaries of modules, functions as modules, several
 * inputs and outputs.
 *
 *     pc_module *block = pc_residual(
 *         pc_sequential(pc_conv2d(64, 64, 3, .padding = 1, .no_bias = true), pc_batch_norm2d(64),
 *                       pc_activation(PC_ACTIVATION_RELU),
 *                       pc_conv2d(64, 64, 3, .padding = 1, .no_bias = true), pc_batch_norm2d(64)),
 *         .activation = PC_ACTIVATION_RELU);                    // y = relu(body(x) + x)
 *
 * Threads and ownership as in nn.h. docs/modules.md goes through all of it.
 */
#ifndef PARACORD_MODULE_H
#define PARACORD_MODULE_H

#include <paracord/nn.h>

PC_BEGIN

/* --- modules of modules --- */

typedef struct pc_residual_options {
    int reserved_;
    /* NULL: x itself; but NULL back while the thread has an error, by which a shortcut could not be made */
    pc_module *shortcut;
    pc_activation_kind activation;
} pc_residual_options;

/* activation(body(x) + shortcut(x)), which both have one shape (He et al. 2015). Its children are "body" and "shortcut".
 * Owns both, on failure too. */
PC_API PC_MUST_USE pc_module *pc_residual_new(pc_module *body, pc_residual_options options);
#define pc_residual(...) PC_RESIDUAL_(__VA_ARGS__, )
#define PC_RESIDUAL_(body, ...) pc_residual_new((body), PC_OPTIONS(pc_residual_options, __VA_ARGS__))

/* Children "0", "1" and so on, without a forward pass of their own: for a module of yours that goes through them
 * (pc_module_child). pc_forward of it is PC_ERR_UNSUPPORTED. Owns the children, on failure too; there may be none. */
PC_API PC_MUST_USE pc_module *pc_module_list_new(pc_module *const *children, int count);

/* One more behind the last, of a list or a Sequential; owned by it, on failure too. */
PC_API PC_MUST_USE pc_status pc_module_append(pc_module *list, pc_module *child);

typedef struct pc_named_module {
    const char *name; /* without dots; copied */
    pc_module *module;
} pc_named_module;

/* The same by names (pc_module_child_named): pc_module_dict({"encoder", a}, {"decoder", b}). */
PC_API PC_MUST_USE pc_module *pc_module_dict_new(const pc_named_module *children, int count);

/* A module of a class of yours, without data of its own, with these children:
 * pc_module_of(&type, {"conv", pc_conv2d(3, 8, 3)}, {"norm", pc_batch_norm2d(8)}). Owns them, on failure too. */
PC_API PC_MUST_USE pc_module *pc_module_of_new(const pc_module_class *type, const pc_named_module *children, int count);

#ifdef __cplusplus
PC_END
inline pc_module *pc_module_of_list(const pc_module_class *type, std::initializer_list<pc_named_module> children)
{
    return pc_module_of_new(type, children.begin(), static_cast<int>(children.size()));
}
inline pc_module *pc_module_list_of(std::initializer_list<pc_module *> children)
{
    return pc_module_list_new(children.begin(), static_cast<int>(children.size()));
}
inline pc_module *pc_module_dict_of(std::initializer_list<pc_named_module> children)
{
    return pc_module_dict_new(children.begin(), static_cast<int>(children.size()));
}
PC_BEGIN
#define pc_module_list(...) pc_module_list_of({__VA_ARGS__})
#define pc_module_dict(...) pc_module_dict_of({__VA_ARGS__})
#define pc_module_of(type, ...) pc_module_of_list((type), {__VA_ARGS__})
#else
#define pc_module_of(type, ...)                                                                                        \
    pc_module_of_new((type), (pc_named_module[]){__VA_ARGS__},                                                         \
                     (int)(sizeof((pc_named_module[]){__VA_ARGS__}) / sizeof(pc_named_module)))
#define pc_module_list(...)                                                                                            \
    pc_module_list_new((pc_module *[]){__VA_ARGS__}, (int)(sizeof((pc_module *[]){__VA_ARGS__}) / sizeof(pc_module *)))
#define pc_module_dict(...)                                                                                            \
    pc_module_dict_new((pc_named_module[]){__VA_ARGS__},                                                               \
                       (int)(sizeof((pc_named_module[]){__VA_ARGS__}) / sizeof(pc_named_module)))
#endif

/* The child of that name, or of "layer1.0.conv" what is below; borrowed. NULL and PC_ERR_NOT_FOUND. */
PC_API pc_module *pc_module_child_named(const pc_module *module, const char *name);

/* pc_forward of that child: what a forward function of yours is made of. */
PC_API PC_MUST_USE pc_tensor *pc_forward_child(pc_module *module, const char *name, pc_tensor *x);

/* The name of child i; NULL where there is none. It lives as long as the module gets no more children. */
PC_API const char *pc_module_child_name(const pc_module *module, int i);

/* --- a function as a module --- */

/* Returns a tensor of anybody's, x too; what else it makes goes with a scope around it. NULL with the error set. */
typedef pc_tensor *(*pc_module_fn)(void *context, pc_tensor *x);

/* function(context, x), for what needs no parameters: it stands where a layer stands. `context` is kept as it is, and may
 * be NULL. Recorded steps (step.h) call the function while they are recorded, and repeat what it queued. */
PC_API PC_MUST_USE pc_module *pc_function_module(pc_module_fn function, void *context);

/* --- several inputs and outputs --- */

/* Of in_count tensors out_count: a class's forward_many, or its forward of one tensor to one. Results as of pc_forward;
 * on failure all are NULL. A class that cannot: PC_ERR_ARGUMENT. */
PC_API PC_MUST_USE pc_status pc_forward_many(pc_module *module, pc_tensor *const *in, int in_count, pc_tensor **out,
                                             int out_count);

/* The one result of two inputs. */
PC_API PC_MUST_USE pc_tensor *pc_forward2(pc_module *module, pc_tensor *a, pc_tensor *b);

/* --- state dicts that fit in part, and parameters that stay as they are --- */

typedef struct pc_load_report {
    int loaded, missing, unexpected; /* names that both have; that the state lacks; that the module lacks */
    char missing_names[512], unexpected_names[512]; /* "0.bias, 2.bias", with "..." where there are more */
} pc_load_report;

/* pc_module_load of what has the same name, PyTorch's strict=False: the rest of the module stays as it is, and what else
 * the state has is passed over. `report` may be NULL. A name that both have with different shapes is PC_ERR_SHAPE, and
 * nothing is changed. */
PC_API PC_MUST_USE pc_status pc_module_load_matching(pc_module *module, const pc_parameter *state, int count,
                                                     pc_load_report *report);

/* Parameters whose names match `pattern`, with *, ? and [...] as in file names ("body.*"; "*" for all), collect no
 * gradients any more, so that optimisers leave them as they are, weight decay and all; what they have collected is
 * forgotten, and a backward pass that comes later brings them nothing. And they collect them again. Buffers such as running
 * statistics go by the module's mode, not by this.
 * PC_ERR_NOT_FOUND where none matches. */
PC_API PC_MUST_USE pc_status pc_module_freeze(pc_module *module, const char *pattern);
PC_API PC_MUST_USE pc_status pc_module_unfreeze(pc_module *module, const char *pattern);

/* --- what a network costs --- */

/* A table of a forward pass on an input of that shape, of the parameters' dtype: for each module that it goes through
 * what it gives, its own parameters, the floating-point operations of its own products, convolutions and attention (a
 * multiplication and an addition are two) and the bytes of what its own work makes; and the sums. In evaluation mode,
 * under the thread's autocast. Nothing is computed and no memory is taken: the pass is recorded and dropped, so a forward
 * function that reads numbers on the host is refused. Text for pc_text_free; NULL and the error. */
PC_API PC_MUST_USE char *pc_module_describe(pc_module *module, pc_shape input);

/* The same of one result of these tensors, whose dtypes and shapes count. */
PC_API PC_MUST_USE char *pc_module_describe_inputs(pc_module *module, pc_tensor *const *in, int in_count);

/* --- functions around a forward pass --- */

/* In front of a module's forward pass: may look at the inputs, and put others into in[i]. What it makes goes with a scope
 * around it, unless it is used. Another status than PC_OK ends the pass. */
typedef pc_status (*pc_before_fn)(void *context, pc_module *module, pc_tensor **in, int in_count);

/* Behind it: may look at the results, and put others into out[i]. */
typedef pc_status (*pc_after_fn)(void *context, pc_module *module, pc_tensor *const *in, int in_count, pc_tensor **out,
                                 int out_count);

/* From now on they are called around every forward pass of the module, in the order in which they were added; one of the
 * two may be NULL. The number of the hook, above 0, for pc_module_remove_hook; 0 and the error. A layer with a hook is
 * called by itself, not as a part of its neighbours' calls. Recorded steps (step.h) call hooks while they are recorded, which is
 * anew after one was added or removed, and launches repeat what hooks queued; one that reads numbers on the host makes
 * runs plain calls (pc_step_why). */
PC_API int pc_module_add_hook(pc_module *module, pc_before_fn before, pc_after_fn after, void *context);

/* PC_ERR_NOT_FOUND where the module has no hook of that number. */
PC_API PC_MUST_USE pc_status pc_module_remove_hook(pc_module *module, int hook);

/* --- activations that are not kept --- */

/* (d) pc_forward, of which only x and the result are kept: the backward pass runs it again, with the same draws of
 * dropouts, autocast and mode, to have what its gradients need (Chen et al. 2016; torch.utils.checkpoint). It takes less
 * memory and a second forward pass. Results have the bits of pc_forward, and so have gradients; those that are sums of several
 * uses may be added up in another order. Running statistics count a batch once. Where nothing is differentiated it is
 * pc_forward.
 *
 * The module lives until the backward pass is done. Its forward pass may differentiate by x and by parameters, not by
 * other results of ops that it has from elsewhere. PC_ERR_STATE in the backward pass where pc_module_set_training has
 * changed a mode since and not changed it back, in that of a recorded step for a forward pass outside of it, and where the
 * second forward pass uses a parameter that the first one did not and that several ranks or devices train
 * (data_parallel.h). */
PC_API PC_MUST_USE pc_tensor *pc_checkpoint(pc_module *module, pc_tensor *x);

/* Whether each forward pass of the module is such a one; of up to four inputs and one result, others are kept. Names in the state
 * dict stay as they are. */
PC_API void pc_module_set_checkpoint(pc_module *module, bool on);

PC_END
#endif

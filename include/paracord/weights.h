/* weights.h: safetensors files: named tensors, as Hugging Face and most who publish weights keep them. State dicts of
 * torch.save (.pth, .pt) are read, too, by what is in the file, and nothing in them is run. Where that is a training's
 * checkpoint, its tensors are those of the one dictionary in it that is called state_dict, model, model_state_dict or
 * model_state; if there is none, or several are, tensors of all dictionaries (and lists) in it count, with the names of these in
 * front: "generator.0.weight", which .prefix = "generator." then takes as a module's "0.weight". An index as transformers writes it
 * beside weights in several files (model.safetensors.index.json) is opened as if they were one, of the tensors that it names and
 * without notes; all of its files are open as long as it is.
 *
 *     if (pc_weights_save(net, "net.safetensors") != PC_OK)
 *         return pc_report(stderr);
 *     ...
 *     if (pc_weights_load(net, "net.safetensors", (pc_weights_options){0}) != PC_OK)
 *         return pc_report(stderr);
 *
 * And by hand, of a file of anybody's:
 *
 *     pc_weights *file = pc_weights_open("model.safetensors");
 *     for (int i = 0; i < pc_weights_count(file); i++) {
 *         pc_weights_entry entry;
 *         if (pc_weights_query(file, i, &entry) == PC_OK)
 *             printf("%s: %s\n", entry.name, pc_dtype_name(entry.dtype));
 *     }
 *     pc_tensor *table = pc_weights_read(file, "transformer.wte.weight", dev);
 *     pc_weights_free(file);
 *
 * A file is read tensor by tensor, so that what is read takes no more memory than the largest of them does. What a file
 * says of itself is checked when it is opened: each tensor's place, size and type, and that together they are all of the
 * file; the rest is PC_ERR_FORMAT. Files are written whole or not at all.
 *
 * Threads: an open file may be read by several threads at once.
 */
#ifndef PARACORD_WEIGHTS_H
#define PARACORD_WEIGHTS_H

#include <paracord/nn.h>

PC_BEGIN

typedef struct pc_weights pc_weights; /* an open file */

/* Open a file, and read its header. NULL: PC_ERR_FILE, PC_ERR_FORMAT (which says what is wrong), PC_ERR_MEMORY. */
PC_API PC_MUST_USE pc_weights *pc_weights_open(const char *path);
PC_API void pc_weights_free(pc_weights *weights);

/* How many tensors there are; 0 for NULL. */
PC_API int pc_weights_count(const pc_weights *weights);

typedef struct pc_weights_entry {
    const char *name; /* the file's, as long as that is open */
    const char *type; /* the file's word for what it holds: "F32" */
    pc_dtype dtype;   /* of the tensor that it is read as */
    pc_shape shape;
    bool readable; /* of a type and number of dimensions that pc_weights_read takes, and not to be negated */
} pc_weights_entry;

/* Of tensor number i, in the order of the names; and of the one of that name: PC_ERR_RANGE, PC_ERR_NOT_FOUND. */
PC_API PC_MUST_USE pc_status pc_weights_query(const pc_weights *weights, int i, pc_weights_entry *entry);
PC_API PC_MUST_USE pc_status pc_weights_find(const pc_weights *weights, const char *name, pc_weights_entry *entry);

/* The tensor of that name, on a device, in the file's dtype. int8, int16 and uint16 become int32, and uint32 int64. NULL:
 * PC_ERR_NOT_FOUND, PC_ERR_UNSUPPORTED (other types, more than 8 dimensions, of torch.save what is to be negated when it is
 * read), PC_ERR_FILE. */
PC_API PC_MUST_USE pc_tensor *pc_weights_read(const pc_weights *weights, const char *name, pc_device device);

/* What the file notes under a key, as long as it is open; NULL where it notes nothing there. No error. */
PC_API const char *pc_weights_note(const pc_weights *weights, const char *key);

typedef struct pc_weights_note_pair {
    const char *key, *text;
} pc_weights_note_pair;

/* Write tensors under their names, and notes, of which the last has the key NULL (`notes` may be NULL). Names must differ,
 * and all is UTF-8: PC_ERR_ARGUMENT. Waits for what is queued. */
PC_API PC_MUST_USE pc_status pc_weights_write(const char *path, const pc_parameter *list, int count,
                                              const pc_weights_note_pair *notes);

/* --- of modules --- */

typedef struct pc_weights_options {
    int reserved_;
    /* Names in the file begin with it, and go on as the module's: "transformer."; what begins otherwise is not looked at. NULL:
     * none */
    const char *prefix;
    bool partial; /* what the module lacks in the file stays as it is, but something must be there; what the file has
                   * besides is not looked at */
    const char
        *leave; /* what has such a name, with *, ? and [...] as in file names ("fc.*"), stays as it is, and is not
                        * looked at in the file; NULL: nothing */
} pc_weights_options;

/* Write parameters and buffers of a module, in their dtypes, under its names (pc_module_state_list). Of a network that is cut up
 * among ranks (tensor_parallel.h) the file has whole ones: all ranks of the group call it, at the same time, with one path
 * (PC_ERR_ARGUMENT: paths differ), the first one writes, and where it fails in one it fails in all. Of several copies of such a network (pc_ddp) one need do it. */
PC_API PC_MUST_USE pc_status pc_weights_save(const pc_module *module, const char *path);

/* Read them, converted to the module's dtypes and moved to its device. Unless it is partial, each must be there, and
 * nothing else: PC_ERR_NOT_FOUND names it. Only a num_batches_tracked may be missing, as in files from before PyTorch 0.4.1,
 * and stays as it is. PC_ERR_SHAPE names the tensor and both shapes, PC_ERR_DTYPE both types where
 * whole numbers would become fractions or fractions whole numbers. The header is compared first: nothing has changed
 * then. A file that cannot be read to its end, PC_ERR_FILE, leaves what was read by then. A network that is cut up among ranks
 * gets this rank's parts of the file's whole ones; no rank waits for another. Parts in a file are PC_ERR_SHAPE: pc_module_load
 * takes those, of pc_weights_read. */
PC_API PC_MUST_USE pc_status pc_weights_load(pc_module *module, const char *path, pc_weights_options options);

PC_END
#endif

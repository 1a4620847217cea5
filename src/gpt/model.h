/* model.h: a GPT's inside. */
#ifndef PC__GPT_MODEL_H
#define PC__GPT_MODEL_H

#include "nn/module.h"

#include <paracord/gpt.h>

#define PC__GPT_EPS 1e-5

extern const pc_module_class pc__gpt_class;

/* PC_ERR_ARGUMENT where a network cannot be of these sizes. */
pc_status pc__gpt_check(const pc_gpt_options *options);

/* Without a draw the weights are not set: a file will. */
pc_module *pc__gpt_make(const pc_gpt_options *options, bool draw);

/* Its options, resolved; NULL, with PC_ERR_ARGUMENT for `who`, for other modules. */
const pc_gpt_options *pc__gpt_of(const pc_module *module, const char *who);

/* What config.json says, and is to say, of the tokens that texts begin and end with: their numbers, that there is none, or
 * nothing, which transformers takes for GPT-2's 50256. */
typedef struct pc__gpt_ends {
    int64_t begin, end;
} pc__gpt_ends;
enum { PC__GPT_NO_TOKEN = -1, PC__GPT_UNSAID = -2 };
pc__gpt_ends *pc__gpt_ends_of(const pc_module *gpt);

/* Whether other ranks have other parts of it; PC_ERR_UNSUPPORTED for `who` where they do. */
static inline bool pc__gpt_is_cut(const pc_gpt_options *o)
{
    return o->group && pc_group_size(o->group) > 1;
}
pc_status pc__gpt_whole(const pc_gpt_options *o, const char *who);

/* The whole network of one that is cut, on the CPU, in the first rank, and NULL in the others: all call it at once. */
pc_status pc__gpt_join(const pc_module *gpt, pc_module **whole);

/* One status for all ranks: the first one's. */
pc_status pc__gpt_share_status(const pc_gpt_options *o, pc_status status);

/* The error of a network that answers with NaN alone. */
pc_status pc__gpt_no_number(const char *who);

/* How many numbers the whole network has. */
int64_t pc__gpt_elements(const pc_module *gpt);

/* The parts: transformer, its table of tokens, its table of places, block i, the last norm. */
static inline pc_module *pc__gpt_part(const pc_module *module, int i)
{
    return pc_module_child(pc_module_child(module, 0), i);
}
enum { PC__GPT_TOKENS, PC__GPT_PLACES, PC__GPT_BLOCKS, PC__GPT_NORM };
enum { PC__GPT_LN_1, PC__GPT_ATTENTION, PC__GPT_LN_2, PC__GPT_MLP };

/* What a folder's weights may be called, the first that is there: in one file, in several by an index of them, and both as older
 * folders have them. */
#define PC__GPT_WEIGHTS                                                                                                \
    "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"

/* folder.c: an error that says what to do where a file, or a classifier's folder, is in the place of a GPT's. */
pc_status pc__gpt_folder_check(const char *folder);

/* Is this a matrix that Hugging Face's files have turned? */
bool pc__gpt_is_turned(const char *name);

#endif

/* gpt.h: GPT-2 (Radford et al. 2019): the network, its files as Hugging Face has them, and texts that it writes.
 *
 *     pc_tokenizer *words = pc_tokenizer_open("gpt2");            // a folder with vocab.json, merges.txt,
 *     pc_module *gpt = pc_gpt_open("gpt2", dev);                  // config.json and model.safetensors
 *     char *text = pc_gpt_write(gpt, words, "Once upon a time", (pc_gpt_write_options){.tokens = 100, .top_k = 40});
 *     puts(text);
 *
 * And one to be trained:
 *
 *     pc_module *gpt = pc_gpt(.size = "nano", .vocabulary = pc_tokenizer_size(letters));
 *     pc_tensor *logits = pc_forward(gpt, x);                     // int64 [batch, length] -> [batch, length, vocabulary]
 *     pc_tensor *loss = pc_gpt_loss(logits, y);
 */
#ifndef PARACORD_GPT_H
#define PARACORD_GPT_H

#include <paracord/group.h>
#include <paracord/nn.h>
#include <paracord/text.h>

PC_BEGIN

typedef struct pc_gpt_options {
    int reserved_;
    const char *size; /* one of pc_gpt_size_name; NULL means "nano" */
    /* 0 means the size's */
    int layers, heads, width; /* the heads share the width */
    int context;              /* the most tokens that it looks back on */
    int64_t vocabulary;       /* 0 means GPT-2's 50257 */
    double dropout;           /* of embeddings, attention's weights and what each half of a block adds; 0: none */
    pc_group *group;          /* ranks among which it is cut up (tensor_parallel.h), who share the heads; NULL: none */
} pc_gpt_options;

/* A network on the CPU with weights drawn as GPT-2's were: normal with deviation 0.02, what adds to the residual stream by
 * sqrt(2 layers) less, biases 0. Its function takes int64 or int32 [batch, length] and gives logits [batch, length,
 * vocabulary]; length is at most its context. Parameters have Hugging Face's names (transformer.h.0.attn.c_attn.weight),
 * but matrices are [out, in] as everywhere here, where Hugging Face's are [in, out]: pc_gpt_save and pc_gpt_open turn
 * them. The last layer's weights are those of the first, transformer.wte.weight. */
PC_API PC_MUST_USE pc_module *pc_gpt_new(pc_gpt_options options);
#define pc_gpt(...) pc_gpt_new(PC_OPTIONS(pc_gpt_options, __VA_ARGS__))

/* The names of sizes, from 0 on: "nano", ... "gpt2" (124 million parameters), "gpt2-medium", "gpt2-large", "gpt2-xl";
 * NULL behind the last. */
PC_API const char *pc_gpt_size_name(int i);

/* What a size or a network has: every member but the size's name is filled. PC_ERR_ARGUMENT: no such size; a module that
 * pc_gpt_new did not make. */
PC_API PC_MUST_USE pc_status pc_gpt_size(const char *name, pc_gpt_options *options);
PC_API PC_MUST_USE pc_status pc_gpt_query(const pc_module *gpt, pc_gpt_options *options);

/* Operations that training on one token takes when `length` are looked at together: 6 for each weight but those of
 * positions, and 12 layers width length for attention (Chowdhery et al. 2022, appendix B). NaN for other modules. */
PC_API double pc_gpt_flops(const pc_module *gpt, int64_t length);

/* (d) The mean over all places of -log softmax(logits)[target]: logits [batch, length, vocabulary], targets int64
 * [batch, length]. */
PC_API PC_MUST_USE pc_tensor *pc_gpt_loss(pc_tensor *logits, pc_tensor *targets);

/* --- cut up among the ranks of a group (tensor_parallel.h) ---
 *
 *     pc_module *gpt = pc_gpt(.size = "gpt2", .group = group);            // or pc_gpt_cut(whole, group)
 *     pc_tensor *loss = pc_gpt_parallel_loss(gpt, pc_forward(gpt, x), y);
 *
 * Each rank has size/ranks of the heads and of the inner numbers of each block, and the rows of the table for a part of the
 * vocabulary; norms, positions and the biases of what adds to the residual stream are whole. Its function gives this rank's
 * part of the logits, [batch, length, ceil(vocabulary / ranks)]. pc_seed in all ranks alike: what is whole has the same
 * dropout in all ranks; heads draw by rank. pc_gpt_write is for whole networks, and says so; pc_gpt_train cuts them itself
 * (tensor_parallel). */

/* (d) pc_gpt_loss of a network's logits, this rank's part of them [batch, length, part] where it is cut; targets int64
 * [batch, length] -> [], the same in all ranks. */
PC_API PC_MUST_USE pc_tensor *pc_gpt_parallel_loss(const pc_module *gpt, pc_tensor *logits, pc_tensor *targets);

/* This rank's part of a whole network, such as one of pc_gpt_open: a new one, with its weights, where those are. The whole one
 * stays the caller's. NULL: PC_ERR_ARGUMENT. */
PC_API PC_MUST_USE pc_module *pc_gpt_cut(const pc_module *gpt, pc_group *group);

/* --- files --- */

/* A network from a folder with config.json and model.safetensors, as Hugging Face's GPT2LMHeadModel.save_pretrained leaves
 * it, or as GPT-2's are published (names without "transformer."); where there is no such file, with weights in several (an
 * index, model.safetensors.index.json), or with pytorch_model.bin or its index, as older ones did. Weights become float32.
 * NULL: PC_ERR_FILE, PC_ERR_FORMAT, PC_ERR_UNSUPPORTED (another architecture), PC_ERR_NOT_FOUND and PC_ERR_SHAPE name the tensor. */
PC_API PC_MUST_USE pc_module *pc_gpt_open(const char *folder, pc_device device);

/* Write these two files into a folder, which is made. The tokens that texts begin and end with are those of the tokenizer that it
 * was trained with by pc_gpt_train, or of the config.json that it was opened by. A network that is cut is put together: all ranks of its group call it,
 * the first one writes, and an error there is every rank's. */
PC_API PC_MUST_USE pc_status pc_gpt_save(const pc_module *gpt, const char *folder);

/* --- writing --- */

typedef struct pc_gpt_write_options {
    int reserved_;
    int64_t tokens;     /* to write; 0 means 200 */
    double temperature; /* logits are divided by it; 0 means 1. Below 0: always the likeliest token */
    int top_k;          /* draw from the k likeliest tokens; 0: from all */
    double top_p;       /* draw from the fewest tokens that have this probability together; 0 means 1: all */
    uint64_t seed;
    bool through_end; /* go on behind <|endoftext|>, where the tokenizer has it */
    /* Called with each token's bytes as soon as it is drawn, not at the ends of letters; false stops. May be NULL. */
    bool (*told)(void *context, const char *bytes, size_t count);
    void *context;
} pc_gpt_write_options;

/* Text that goes on after `start` (NULL or "": after <|endoftext|> or, where there is none, a newline or the first token),
 * without it; for pc_text_free. Keys and values of all tokens are kept, so that a token takes one pass over the weights.
 * Beyond the network's context it looks back on the last half of it, and on what it writes from there on. The same seed,
 * network and device give the same text. NULL: PC_ERR_NOT_FOUND (a letter of `start` that the vocabulary lacks),
 * PC_ERR_ARGUMENT, PC_ERR_RANGE (the network answers with NaN alone). */
PC_API PC_MUST_USE char *pc_gpt_write(pc_module *gpt, const pc_tokenizer *tokenizer, const char *start,
                                      pc_gpt_write_options options);

PC_END
#endif

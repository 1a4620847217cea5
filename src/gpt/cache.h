/* cache.h: a GPT that reads on: keys and values of all tokens that it has seen are kept, so that the next token takes one
 * pass over the weights. */
#ifndef PC__GPT_CACHE_H
#define PC__GPT_CACHE_H

#include "gpt/model.h"

typedef struct pc__gpt_cache {
    pc_module *gpt;
    const pc_gpt_options *o;
    pc_device device;
    pc_tensor **keys, **values; /* of each block: [heads, context, width / heads] */
    int64_t length;             /* tokens seen */
} pc__gpt_cache;

pc_status pc__gpt_cache_begin(pc__gpt_cache *cache, pc_module *gpt);
void pc__gpt_cache_end(pc__gpt_cache *cache);

/* Read n more tokens, n = 1 unless none was read since the start or pc__gpt_cache_forget; length + n is at most the
 * context. `logits`: vocabulary numbers of the host, of what comes behind the last one. */
pc_status pc__gpt_cache_read(pc__gpt_cache *cache, const int32_t *tokens, int64_t n, float *logits);

static inline void pc__gpt_cache_forget(pc__gpt_cache *cache)
{
    cache->length = 0;
}

#endif

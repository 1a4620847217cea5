/* write.c: text by a GPT, token after token. */
#include "gpt/cache.h"
#include "gpt/choose.h"

#include <math.h>

typedef struct writer {
    pc__gpt_cache cache;
    const pc_tokenizer *words;
    const pc_gpt_write_options *options;
    int32_t *tokens;           /* all, those of the start too */
    int64_t count, room, seen; /* seen: of tokens, by the cache as it is now */
    float *logits;
    pc__gpt_likely *likely;
    pc__text text;
} writer;

static pc_status add_token(writer *w, int32_t token)
{
    if (w->count == w->room) {
        const int64_t room = PC__MAX(256, 2 * w->room);
        int32_t *moved = pc__realloc(w->tokens, (size_t)room * sizeof *moved);
        if (!moved)
            return PC_ERR_MEMORY;
        w->tokens = moved, w->room = room;
    }
    w->tokens[w->count++] = token;
    return PC_OK;
}

static pc_status add_text(writer *w, const char *text)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *t = pc_tokenizer_encode(w->words, text, strlen(text));
        status = t ? PC_OK : pc_error_last()->status;
        const int32_t *tokens = t ? pc_data(t) : NULL;
        for (int64_t i = 0; status == PC_OK && i < pc_tensor_count(t); i++)
            status = add_token(w, tokens[i]);
    }
    return status;
}

/* What a text begins behind. */
static pc_status add_start(writer *w, const char *start)
{
    if (start && *start)
        return add_text(w, start);
    if (pc_tokenizer_end(w->words) >= 0)
        return add_token(w, (int32_t)pc_tokenizer_end(w->words));
    if (add_text(w, "\n") == PC_OK)
        return PC_OK;
    pc_error_clear();
    return add_token(w, 0);
}

static pc_status check_tokens(const writer *w)
{
    const int64_t most = w->cache.o->vocabulary, has = pc_tokenizer_size(w->words);
    if (has <= most)
        return PC_OK;
    return pc__fail(PC_ERR_ARGUMENT,
                    "pc_gpt_write: the tokenizer has %lld tokens and the network %lld; take the one that it "
                    "was trained with",
                    (long long)has, (long long)most);
}

/* Read what was not read yet; all of the last half of the context where it is full. */
static pc_status read_on(writer *w)
{
    const int64_t context = w->cache.o->context;
    int64_t from = w->seen;
    if (w->cache.length + (w->count - w->seen) > context) {
        pc__gpt_cache_forget(&w->cache);
        from = PC__MAX(0, w->count - PC__MAX(context / 2, 1));
    }
    w->seen = w->count;
    return pc__gpt_cache_read(&w->cache, w->tokens + from, w->count - from, w->logits);
}

/* *go: false at the end of the text, and where the program has had enough. */
static pc_status tell(writer *w, int32_t token, bool *go)
{
    size_t n;
    char *bytes = pc_tokenizer_decode(w->words, &token, 1, &n);
    if (!bytes)
        return pc_error_last()->status;
    pc__text_append(&w->text, bytes, n);
    *go = !w->options->told || w->options->told(w->options->context, bytes, n);
    pc_text_free(bytes);
    return w->text.failed ? PC_ERR_MEMORY : PC_OK;
}

static pc_status write_on(writer *w)
{
    const pc_gpt_write_options *o = w->options;
    const int64_t most = o->tokens ? o->tokens : 200, known = pc_tokenizer_size(w->words);
    bool go = true;
    for (int64_t i = 0; i < most && go; i++) {
        PC__TRY(read_on(w));
        const int32_t token = pc__gpt_choose(w->logits, known, o, pc_uniform(o->seed, 0, (uint64_t)i), w->likely);
        if (token < 0)
            return pc__gpt_no_number("pc_gpt_write");
        if (token == pc_tokenizer_end(w->words) && !o->through_end)
            break;
        PC__TRY(add_token(w, token));
        PC__TRY(tell(w, token, &go));
    }
    return PC_OK;
}

static pc_status check(const pc_gpt_write_options *o)
{
    if (o->tokens < 0 || o->top_k < 0 || isnan(o->temperature) || !(o->top_p >= 0 && o->top_p <= 1))
        return pc__fail(
            PC_ERR_ARGUMENT,
            "pc_gpt_write: tokens %lld, top_k %d, temperature %g, top_p %g: the first two must be at least 0, top_p "
            "0 to 1",
            (long long)o->tokens, o->top_k, o->temperature, o->top_p);
    return PC_OK;
}

static pc_status begin(writer *w, pc_module *gpt, const char *start)
{
    PC__TRY(pc__gpt_cache_begin(&w->cache, gpt));
    PC__TRY(check_tokens(w));
    const size_t n = (size_t)w->cache.o->vocabulary;
    w->logits = pc__alloc(n * sizeof *w->logits);
    w->likely = pc__alloc(n * sizeof *w->likely);
    pc__text_append(&w->text, "", 0);
    return w->logits && w->likely ? add_start(w, start) : PC_ERR_MEMORY;
}

char *pc_gpt_write(pc_module *gpt, const pc_tokenizer *tokenizer, const char *start, pc_gpt_write_options options)
{
    PC__NEED_OR(NULL, gpt);
    PC__NEED_OR(NULL, tokenizer);
    const pc_gpt_options *o = pc__gpt_of(gpt, "pc_gpt_write");
    if (!o || pc__gpt_whole(o, "pc_gpt_write") != PC_OK || check(&options) != PC_OK)
        return NULL;
    writer w = {.words = tokenizer, .options = &options};
    pc_status status = begin(&w, gpt, start);
    if (status == PC_OK)
        status = write_on(&w);
    pc__gpt_cache_end(&w.cache);
    pc__free(w.tokens);
    pc__free(w.logits);
    pc__free(w.likely);
    if (status != PC_OK || w.text.failed)
        pc__text_free(&w.text);
    return w.text.data;
}

/* loader_tokens.c: loaders of stretches of a file of tokens. */
#include "io/tokens.h"

#include <paracord/samples.h>

typedef struct stretches {
    pc__token_file file;
    int64_t length, vocabulary;
} stretches;

static pc_status read_sample(void *context, int64_t sample, int64_t epoch, void *const *to)
{
    const stretches *s = context;
    const int64_t from = sample * s->length;
    (void)epoch;
    PC__TRY(pc__token_file_read(&s->file, from, s->length, s->vocabulary, to[0]));
    return pc__token_file_read(&s->file, from + 1, s->length, s->vocabulary, to[1]);
}

static void release(void *context)
{
    stretches *s = context;
    pc__token_file_close(&s->file);
    pc__free(s);
}

static pc_status open_file(stretches *s, const char *path, const pc_token_options *o)
{
    *s = (stretches){.length = o->length ? o->length : 1024,
                     .vocabulary = o->vocabulary ? o->vocabulary : UINT16_MAX + 1};
    if (s->length < 1 || s->length > INT32_MAX || s->vocabulary < 1)
        return pc__fail(PC_ERR_ARGUMENT, "pc_loader_new_tokens: samples of %lld tokens of a vocabulary of %lld",
                        (long long)o->length, (long long)o->vocabulary);
    PC__TRY(pc__token_file_open(&s->file, path));
    if (s->file.count > s->length)
        return PC_OK;
    return pc__fail(PC_ERR_NOT_FOUND, "%s has %lld tokens; a sample of %lld needs one more than that", path,
                    (long long)s->file.count, (long long)s->length);
}

pc_loader *pc_loader_new_tokens(const char *path, pc_token_options tokens, pc_batch_options options)
{
    PC__NEED_OR(NULL, path);
    stretches *s = pc__calloc(1, sizeof *s);
    if (!s)
        return NULL;
    if (open_file(s, path, &tokens) != PC_OK) {
        release(s);
        return NULL;
    }
    const pc_samples samples = {.count = (s->file.count - 1) / s->length,
                                .fields = 2,
                                .field = {{PC_I64, PC_SHAPE(s->length)}, {PC_I64, PC_SHAPE(s->length)}},
                                .sample = read_sample,
                                .context = s,
                                .release = release,
                                .threads = true,
                                .fingerprint = (uint64_t)s->file.size};
    return pc_loader_new_samples(&samples, options);
}

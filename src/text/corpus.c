/* corpus.c: a text as tokens, in memory or in files, and stretches of it. */
#include "text/corpus.h"
#include "text/tokenizer.h"

#include "io/tokens.h"
#include "tensor/tensor.h"

#include <paracord/no_grad.h>
#include <paracord/ops.h>

#include <math.h>

struct pc_corpus {
    int32_t *wide; /* in memory: one of the two */
    uint16_t *narrow;
    pc__token_file file, testing; /* or in a file; the testing part may have one of its own */
    int64_t vocabulary;           /* of files: what tokens are below */
    int64_t count, training;      /* tokens; those of the training part, which comes first */
};

/* In half of the memory, where the numbers allow it. */
static pc_status keep(pc_corpus *c, pc__tokens *tokens, int64_t vocabulary)
{
    c->count = tokens->count;
    if (vocabulary > UINT16_MAX + 1) {
        c->wide = tokens->list;
        tokens->list = NULL;
        return PC_OK;
    }
    c->narrow = pc__alloc((size_t)tokens->count * sizeof *c->narrow);
    for (int64_t i = 0; c->narrow && i < tokens->count; i++)
        c->narrow[i] = (uint16_t)tokens->list[i];
    return c->narrow ? PC_OK : PC_ERR_MEMORY;
}

/* The share that is held out, or -1. */
static double held_out(const pc_corpus_options *options, const char *who)
{
    const double share = options->held_out == 0 ? 0.1 : options->held_out < 0 ? 0 : options->held_out;
    if (share < 1)
        return share;
    (void)pc__fail(PC_ERR_ARGUMENT, "%s: held_out is %g; it must be below 1", who, options->held_out);
    return -1;
}

static int64_t all_but(int64_t count, double share)
{
    return count - (int64_t)llround((double)count * share);
}

pc_corpus *pc_corpus_new(const pc_tokenizer *tokenizer, const char *text, size_t bytes, pc_corpus_options options)
{
    PC__NEED_OR(NULL, tokenizer);
    PC__NEED_OR(NULL, text);
    const double share = held_out(&options, "pc_corpus_new");
    if (share < 0)
        return NULL;
    if (options.testing)
        return pc__null(PC_ERR_ARGUMENT, "pc_corpus_new: testing is %s; a file of its own is for pc_corpus_open",
                        options.testing);
    pc_corpus *c = pc__calloc(1, sizeof *c);
    pc__tokens tokens = {0};
    pc_status status = c ? pc__tokenizer_encode(tokenizer, (const uint8_t *)text, bytes, &tokens) : PC_ERR_MEMORY;
    if (status == PC_OK)
        status = keep(c, &tokens, tokenizer->size);
    pc__free(tokens.list);
    if (status != PC_OK) {
        pc_corpus_free(c);
        return NULL;
    }
    c->training = all_but(c->count, share);
    return c;
}

pc_corpus *pc_corpus_open(const char *path, int64_t vocabulary, pc_corpus_options options)
{
    PC__NEED_OR(NULL, path);
    const double share = held_out(&options, "pc_corpus_open");
    if (share < 0)
        return NULL;
    if (vocabulary < 0)
        return pc__null(PC_ERR_ARGUMENT, "pc_corpus_open: a vocabulary of %lld", (long long)vocabulary);
    pc_corpus *c = pc__calloc(1, sizeof *c);
    pc_status status = c ? pc__token_file_open(&c->file, path) : PC_ERR_MEMORY;
    if (status == PC_OK && options.testing)
        status = pc__token_file_open(&c->testing, options.testing);
    if (status != PC_OK) {
        pc_corpus_free(c);
        return NULL;
    }
    c->vocabulary = vocabulary ? vocabulary : UINT16_MAX + 1;
    c->training = options.testing ? c->file.count : all_but(c->file.count, share);
    c->count = c->file.count + c->testing.count;
    return c;
}

void pc_corpus_free(pc_corpus *corpus)
{
    if (!corpus)
        return;
    pc__free(corpus->wide);
    pc__free(corpus->narrow);
    pc__token_file_close(&corpus->file);
    pc__token_file_close(&corpus->testing);
    pc__free(corpus);
}

int64_t pc_corpus_size(const pc_corpus *corpus, pc_corpus_part part)
{
    PC__NEED_OR(0, corpus);
    return part == PC_CORPUS_TRAINING ? corpus->training : corpus->count - corpus->training;
}

static pc_status check(const pc_corpus *c, pc_corpus_part part, const pc_tensor *x, const pc_tensor *y, const char *who)
{
    if (part != PC_CORPUS_TRAINING && part != PC_CORPUS_TESTING)
        return pc__fail(PC_ERR_ARGUMENT, "%s: there is no part %d", who, (int)part);
    if (x->ndim != 2 || !pc__same_shape(x, y) || x->dtype != PC_I64 || y->dtype != PC_I64)
        return pc__fail(PC_ERR_SHAPE, "%s: x is %s %s and y %s %s; both are int64 [batch, length]", who,
                        pc_dtype_name((pc_dtype)x->dtype), PC__SHAPE_OF(x), pc_dtype_name((pc_dtype)y->dtype),
                        PC__SHAPE_OF(y));
    if (pc_corpus_size(c, part) < x->shape[1] + 1)
        return pc__fail(PC_ERR_RANGE, "%s: the %s part has %lld tokens; stretches of %lld need one more than that", who,
                        part == PC_CORPUS_TRAINING ? "training" : "testing", (long long)pc_corpus_size(c, part),
                        (long long)x->shape[1]);
    return PC_OK;
}

static pc_status fill_row(const pc_corpus *c, int64_t from, int64_t *to, int64_t n)
{
    if (c->testing.path && from >= c->training)
        return pc__token_file_read(&c->testing, from - c->training, n, c->vocabulary, to);
    if (c->file.path)
        return pc__token_file_read(&c->file, from, n, c->vocabulary, to);
    for (int64_t i = 0; i < n; i++)
        to[i] = c->wide ? c->wide[from + i] : c->narrow[from + i];
    return PC_OK;
}

/* FNV-1a, of whole numbers. */
static uint64_t hashed(uint64_t hash, int64_t number)
{
    return (hash ^ (uint64_t)number) * 0x100000001b3u;
}

uint64_t pc__corpus_fingerprint(const pc_corpus *corpus)
{
    enum { STRETCHES = 64, LENGTH = 256 };
    const int64_t n = corpus->count, step = corpus->file.path ? PC__MAX(n / STRETCHES, LENGTH) : LENGTH;
    uint64_t hash = hashed(hashed(0xcbf29ce484222325u, n), corpus->training);
    for (int64_t at = 0; at < n; at += step) {
        int64_t room[LENGTH];
        const int64_t end = corpus->testing.path && at < corpus->training ? corpus->training : n,
                      length = PC__MIN(end - at, LENGTH);
        const bool read = fill_row(corpus, at, room, length) == PC_OK;
        for (int64_t i = 0; read && i < length; i++)
            hash = hashed(hash, room[i]);
        if (!read)
            pc_error_clear();
    }
    return hash;
}

/* Rows begin at these tokens of the whole text; `room` has as many numbers as x. */
static pc_status fill(const pc_corpus *c, const int64_t *starts, int64_t *room, int64_t later, pc_tensor *to)
{
    const int64_t length = to->shape[1];
    for (int64_t row = 0; row < to->shape[0]; row++)
        PC__TRY(fill_row(c, starts[row] + later, room + row * length, length));
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *host = pc_from_data(room, PC_SHAPE(to->shape[0], length), PC_I64, PC_DEVICE_CPU);
        status = host ? pc_copy(to, host) : pc_error_last()->status;
    }
    return status;
}

static pc_status fill_both(const pc_corpus *c, const int64_t *starts, pc_tensor *x, pc_tensor *y)
{
    int64_t *room = pc__alloc((size_t)pc_tensor_count(x) * sizeof *room);
    if (!room)
        return PC_ERR_MEMORY;
    pc_status status = fill(c, starts, room, 0, x);
    if (status == PC_OK)
        status = fill(c, starts, room, 1, y);
    pc__free(room);
    return status;
}

static int64_t first_of(const pc_corpus *c, pc_corpus_part part)
{
    return part == PC_CORPUS_TRAINING ? 0 : c->training;
}

/* Uniform in 0 to n - 1. */
static int64_t draw(uint64_t seed, pc_corpus_part part, int64_t step, int64_t row, int64_t n)
{
    uint32_t words[4];
    pc_philox(seed, (uint64_t)part << 32 | (uint32_t)row, (uint64_t)step, words);
    return (int64_t)((unsigned __int128)((uint64_t)words[0] << 32 | words[1]) * (uint64_t)n >> 64);
}

pc_status pc_corpus_draw(const pc_corpus *corpus, pc_corpus_part part, uint64_t seed, int64_t step, pc_tensor *x,
                         pc_tensor *y)
{
    PC__NEED(corpus);
    PC__NEED(x);
    PC__NEED(y);
    return pc__corpus_draw_rows(corpus, part, seed, step, 0, x, y);
}

pc_status pc__corpus_draw_rows(const pc_corpus *corpus, pc_corpus_part part, uint64_t seed, int64_t step, int64_t first,
                               pc_tensor *x, pc_tensor *y)
{
    PC__TRY(check(corpus, part, x, y, "pc_corpus_draw"));
    int64_t *starts = pc__alloc((size_t)x->shape[0] * sizeof *starts);
    if (!starts)
        return PC_ERR_MEMORY;
    for (int64_t row = 0; row < x->shape[0]; row++)
        starts[row] =
            first_of(corpus, part) + draw(seed, part, step, first + row, pc_corpus_size(corpus, part) - x->shape[1]);
    const pc_status status = fill_both(corpus, starts, x, y);
    pc__free(starts);
    return status;
}

pc_status pc_corpus_take(const pc_corpus *corpus, pc_corpus_part part, int64_t from, pc_tensor *x, pc_tensor *y)
{
    PC__NEED(corpus);
    PC__NEED(x);
    PC__NEED(y);
    PC__TRY(check(corpus, part, x, y, "pc_corpus_take"));
    const int64_t size = pc_corpus_size(corpus, part), length = x->shape[1], rows = x->shape[0];
    if (from < 0 || from > size || (length && rows > (size - from - 1) / length))
        return pc__fail(PC_ERR_RANGE,
                        "pc_corpus_take: %lld stretches of %lld from token %lld on go beyond the part's %lld",
                        (long long)rows, (long long)length, (long long)from, (long long)size);
    int64_t *starts = pc__alloc((size_t)rows * sizeof *starts);
    if (!starts)
        return PC_ERR_MEMORY;
    for (int64_t row = 0; row < rows; row++)
        starts[row] = first_of(corpus, part) + from + row * length;
    const pc_status status = fill_both(corpus, starts, x, y);
    pc__free(starts);
    return status;
}

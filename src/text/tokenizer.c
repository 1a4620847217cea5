/* tokenizer.c: what letters and byte pairs have in common: a vocabulary, and tokens as bytes again. */
#include "text/tokenizer.h"

#include "tensor/read.h"

pc_status pc__token_list_add(pc__token_list *list, const void *bytes, size_t n)
{
    PC__TRY(pc__grow((void **)&list->ends, &list->room, list->count, sizeof *list->ends));
    pc__text_append(&list->bytes, bytes, n);
    if (list->bytes.failed)
        return PC_ERR_MEMORY;
    list->ends[list->count++] = list->bytes.length;
    return PC_OK;
}

void pc__token_list_free(pc__token_list *list)
{
    pc__text_free(&list->bytes);
    pc__free(list->ends);
    *list = (pc__token_list){0};
}

pc_tokenizer *pc__tokenizer_of(pc__token_list *list, bool pairs)
{
    pc_tokenizer *t = pc__calloc(1, sizeof *t);
    size_t *starts = pc__alloc(((size_t)list->count + 1) * sizeof *starts);
    if (!t || !starts) {
        pc__free(starts);
        pc__free(t);
        pc__token_list_free(list);
        return NULL;
    }
    starts[0] = 0;
    if (list->count)
        memcpy(starts + 1, list->ends, (size_t)list->count * sizeof *starts);
    t->pairs = pairs;
    t->size = list->count;
    t->end = -1;
    t->starts = starts;
    t->bytes = (uint8_t *)list->bytes.data;
    list->bytes = (pc__text){0};
    pc__token_list_free(list);
    return t;
}

pc_status pc__tokenizer_merge(pc_tokenizer *t, int32_t a, int32_t b, int32_t token)
{
    const int rank = t->merges.count;
    PC__TRY(pc__grow((void **)&t->merged, &t->merged_room, rank, sizeof *t->merged));
    const int put = pc__pairs_map_put(&t->merges, pc__pair(a, b));
    if (put < 0)
        return PC_ERR_MEMORY;
    if (put == rank)
        t->merged[rank] = token;
    return PC_OK;
}

static size_t length_of(const pc_tokenizer *t, int32_t token)
{
    return t->starts[token + 1] - t->starts[token];
}

static pc_status index_letters(pc_tokenizer *t)
{
    t->letters = pc__alloc(PC__LETTERS * sizeof *t->letters);
    if (!t->letters)
        return PC_ERR_MEMORY;
    memset(t->letters, -1, PC__LETTERS * sizeof *t->letters);
    for (int32_t i = 0; i < t->size; i++) {
        int bytes;
        if (length_of(t, i))
            t->letters[pc__letter_at(t->bytes + t->starts[i], length_of(t, i), 0, &bytes)] = i;
    }
    return PC_OK;
}

pc_status pc__tokenizer_index(pc_tokenizer *t, const char *path)
{
    if (!t->pairs)
        return index_letters(t);
    const size_t end = strlen(PC__END_OF_TEXT);
    memset(t->byte, -1, sizeof t->byte);
    for (int32_t i = 0; i < t->size; i++) {
        const uint8_t *bytes = t->bytes + t->starts[i];
        if (length_of(t, i) == 1)
            t->byte[*bytes] = i;
        if (length_of(t, i) == end && memcmp(bytes, PC__END_OF_TEXT, end) == 0)
            t->end = i;
    }
    for (int i = 0; i < 256; i++)
        if (t->byte[i] < 0)
            return pc__fail(PC_ERR_FORMAT, "%s: no token stands for the byte %d alone", path, i);
    return PC_OK;
}

void pc_tokenizer_free(pc_tokenizer *t)
{
    if (!t)
        return;
    pc__free(t->bytes);
    pc__free(t->starts);
    pc__free(t->letters);
    pc__free(t->merged);
    pc__pairs_map_free(&t->merges);
    pc__free(t);
}

int64_t pc_tokenizer_size(const pc_tokenizer *tokenizer)
{
    PC__NEED_OR(0, tokenizer);
    return tokenizer->size;
}

int64_t pc_tokenizer_end(const pc_tokenizer *tokenizer)
{
    PC__NEED_OR(-1, tokenizer);
    return tokenizer->end;
}

pc_status pc__tokens_add(pc__tokens *tokens, const int32_t *list, int64_t count)
{
    if (tokens->count + count > tokens->room) {
        const int64_t room = PC__MAX(tokens->count + count, 2 * tokens->room);
        int32_t *moved = pc__realloc(tokens->list, (size_t)room * sizeof *moved);
        if (!moved)
            return PC_ERR_MEMORY;
        tokens->list = moved, tokens->room = room;
    }
    memcpy(tokens->list + tokens->count, list, (size_t)count * sizeof *list);
    tokens->count += count;
    return PC_OK;
}

pc_status pc__tokenizer_encode(const pc_tokenizer *t, const uint8_t *text, size_t n, pc__tokens *tokens)
{
    return t->pairs ? pc__pairs_encode(t, text, n, tokens) : pc__letters_encode(t, text, n, tokens);
}

pc_tensor *pc_tokenizer_encode(const pc_tokenizer *tokenizer, const char *text, size_t bytes)
{
    PC__NEED_OR(NULL, tokenizer);
    PC__NEED_OR(NULL, text);
    pc__tokens tokens = {0};
    pc_tensor *out = NULL;
    if (pc__tokenizer_encode(tokenizer, (const uint8_t *)text, bytes, &tokens) == PC_OK)
        out = pc_from_data(tokens.list ? tokens.list : &(int32_t){0}, PC_SHAPE(tokens.count), PC_I32, PC_DEVICE_CPU);
    pc__free(tokens.list);
    return out;
}

char *pc_tokenizer_decode(const pc_tokenizer *tokenizer, const int32_t *tokens, int64_t count, size_t *bytes)
{
    PC__NEED_OR(NULL, tokenizer);
    if (count)
        PC__NEED_OR(NULL, tokens);
    const pc_tokenizer *t = tokenizer;
    pc__text out = {0};
    pc__text_append(&out, "", 0);
    for (int64_t i = 0; i < count; i++) {
        if (tokens[i] < 0 || tokens[i] >= t->size) {
            pc__text_free(&out);
            return pc__null(PC_ERR_RANGE, "pc_tokenizer_decode: token %lld is %d; the vocabulary has 0 to %d",
                            (long long)i, (int)tokens[i], (int)t->size - 1);
        }
        pc__text_append(&out, (const char *)t->bytes + t->starts[tokens[i]], length_of(t, tokens[i]));
    }
    if (out.failed)
        pc__text_free(&out);
    if (bytes)
        *bytes = out.length;
    return out.data;
}

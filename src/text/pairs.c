/* pairs.c: byte-pair encoding: in each word the pair of neighbours with the lowest rank becomes one token, the first of
 * equals before the others, until no pair has a rank. */
#include "text/tokenizer.h"

#define CACHED_BYTES 64 /* of a word that is remembered */
#define CACHED_WORDS (1 << 20)

/* A pair that may be merged: where its left one is, and what it was when it was put here. */
typedef struct candidate {
    int32_t rank, at;
} candidate;

typedef struct encoder {
    const pc_tokenizer *t;
    int32_t *token, *before, *after; /* the word's tokens as a chain; -1: none, and no longer there */
    candidate *heap;
    int room, waiting, heap_room;
    pc__words_map words; /* done before */
    pc__tokens answers;  /* theirs, one behind the other */
    int64_t *ends;
    int ends_room;
} encoder;

static bool is_first(candidate a, candidate b)
{
    return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
}

static pc_status push(encoder *e, candidate c)
{
    PC__TRY(pc__grow((void **)&e->heap, &e->heap_room, e->waiting, sizeof *e->heap));
    int i = e->waiting++;
    for (; i && is_first(c, e->heap[(i - 1) / 2]); i = (i - 1) / 2)
        e->heap[i] = e->heap[(i - 1) / 2];
    e->heap[i] = c;
    return PC_OK;
}

static candidate pop(encoder *e)
{
    const candidate first = e->heap[0], last = e->heap[--e->waiting];
    int i = 0;
    for (int child; (child = 2 * i + 1) < e->waiting; i = child) {
        child += child + 1 < e->waiting && is_first(e->heap[child + 1], e->heap[child]);
        if (!is_first(e->heap[child], last))
            break;
        e->heap[i] = e->heap[child];
    }
    e->heap[i] = last;
    return first;
}

/* The rank of the pair that begins there; -1: it has none. */
static int rank_at(const encoder *e, int32_t at)
{
    if (at < 0 || e->token[at] < 0 || e->after[at] < 0)
        return -1;
    return pc__pairs_map_get(&e->t->merges, pc__pair(e->token[at], e->token[e->after[at]]));
}

static pc_status consider(encoder *e, int32_t at)
{
    const int rank = rank_at(e, at);
    return rank < 0 ? PC_OK : push(e, (candidate){rank, at});
}

static pc_status make_room(encoder *e, size_t n)
{
    if (n <= (size_t)e->room)
        return PC_OK;
    if (n > INT32_MAX / 2)
        return pc__fail(PC_ERR_UNSUPPORTED, "the text has a word of %zu bytes; the longest can have %d", n,
                        INT32_MAX / 2);
    int32_t **const all[] = {&e->token, &e->before, &e->after};
    for (int i = 0; i < 3; i++) {
        int32_t *moved = pc__realloc(*all[i], 2 * n * sizeof *moved);
        if (!moved)
            return PC_ERR_MEMORY;
        *all[i] = moved;
    }
    e->room = (int)(2 * n);
    return PC_OK;
}

/* The word's tokens are the chain from 0 on. */
static pc_status merge_word(encoder *e, const uint8_t *word, int32_t n)
{
    PC__TRY(make_room(e, (size_t)n));
    for (int32_t i = 0; i < n; i++) {
        e->token[i] = e->t->byte[word[i]];
        e->before[i] = i - 1;
        e->after[i] = i + 1 < n ? i + 1 : -1;
    }
    e->waiting = 0;
    for (int32_t i = 0; i + 1 < n; i++)
        PC__TRY(consider(e, i));
    while (e->waiting) {
        const candidate c = pop(e);
        if (rank_at(e, c.at) != c.rank)
            continue;
        const int32_t gone = e->after[c.at], next = e->after[gone];
        e->token[c.at] = e->t->merged[c.rank];
        e->token[gone] = -1;
        e->after[c.at] = next;
        if (next >= 0)
            e->before[next] = c.at;
        PC__TRY(consider(e, e->before[c.at]));
        PC__TRY(consider(e, c.at));
    }
    return PC_OK;
}

static pc_status add_word(encoder *e, const uint8_t *word, size_t n, pc__tokens *tokens)
{
    PC__TRY(make_room(e, n));
    PC__TRY(merge_word(e, word, (int32_t)n));
    for (int32_t i = 0; i >= 0; i = e->after[i])
        PC__TRY(pc__tokens_add(tokens, &e->token[i], 1));
    return PC_OK;
}

static pc_status add_cached(encoder *e, const uint8_t *word, size_t n, pc__tokens *tokens)
{
    const int known = e->words.count, number = pc__words_map_put(&e->words, word, n);
    if (number < 0)
        return PC_ERR_MEMORY;
    if (number == known) {
        PC__TRY(pc__grow((void **)&e->ends, &e->ends_room, known, sizeof *e->ends));
        PC__TRY(add_word(e, word, n, &e->answers));
        e->ends[known] = e->answers.count;
    }
    const int64_t from = number ? e->ends[number - 1] : 0;
    return pc__tokens_add(tokens, e->answers.list + from, e->ends[number] - from);
}

static pc_status encode(encoder *e, const uint8_t *text, size_t n, pc__tokens *tokens)
{
    for (size_t at = 0, end; at < n; at = end) {
        end = pc__word_end(text, n, at);
        const size_t bytes = end - at;
        if (bytes == 1)
            PC__TRY(pc__tokens_add(tokens, &e->t->byte[text[at]], 1));
        else if (bytes > CACHED_BYTES || e->words.count >= CACHED_WORDS)
            PC__TRY(add_word(e, text + at, bytes, tokens));
        else
            PC__TRY(add_cached(e, text + at, bytes, tokens));
    }
    return PC_OK;
}

pc_status pc__pairs_encode(const pc_tokenizer *t, const uint8_t *text, size_t n, pc__tokens *tokens)
{
    encoder e = {.t = t};
    const pc_status status = encode(&e, text, n, tokens);
    pc__free(e.token);
    pc__free(e.before);
    pc__free(e.after);
    pc__free(e.heap);
    pc__free(e.ends);
    pc__free(e.answers.list);
    pc__words_map_free(&e.words);
    return status;
}

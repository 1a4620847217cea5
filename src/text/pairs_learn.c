/* pairs_learn.c: which pairs a byte-pair encoding merges: again and again the most frequent one. Counts are kept as merges
 * change words; the heap is put right as pairs come to its top, since counts of pairs that are there only fall. */
#include "text/tokenizer.h"

typedef struct word {
    int64_t start; /* of its tokens in the pool */
    int32_t n;
    int64_t count; /* how often it is in the text */
} word;

typedef struct pair {
    int64_t count, counted; /* now, and when it was put into the heap */
    int32_t *words;         /* those that had it when it came up; some may come twice */
    int word_count, word_room;
} pair;

typedef struct learner {
    pc__words_map map; /* the text's words */
    word *words;
    int32_t *pool;
    pc__pairs_map keys;
    pair *pairs;
    int pair_room, known; /* known: pairs that are in the heap, or were */
    int32_t *heap;        /* numbers of pairs */
    int waiting, heap_room;
} learner;

static bool is_first(const learner *l, int32_t a, int32_t b)
{
    const pair *p = &l->pairs[a], *q = &l->pairs[b];
    return p->counted != q->counted ? p->counted > q->counted : l->keys.keys[a] < l->keys.keys[b];
}

static pc_status push(learner *l, int32_t number)
{
    PC__TRY(pc__grow((void **)&l->heap, &l->heap_room, l->waiting, sizeof *l->heap));
    l->pairs[number].counted = l->pairs[number].count;
    int i = l->waiting++;
    for (; i && is_first(l, number, l->heap[(i - 1) / 2]); i = (i - 1) / 2)
        l->heap[i] = l->heap[(i - 1) / 2];
    l->heap[i] = number;
    return PC_OK;
}

static int32_t pop(learner *l)
{
    const int32_t first = l->heap[0], last = l->heap[--l->waiting];
    int i = 0;
    for (int child; (child = 2 * i + 1) < l->waiting; i = child) {
        child += child + 1 < l->waiting && is_first(l, l->heap[child + 1], l->heap[child]);
        if (!is_first(l, l->heap[child], last))
            break;
        l->heap[i] = l->heap[child];
    }
    l->heap[i] = last;
    return first;
}

/* The pair a, b is `times` more often in word number w. */
static pc_status count(learner *l, int32_t a, int32_t b, int32_t w, int64_t times)
{
    const int known = l->keys.count, number = pc__pairs_map_put(&l->keys, pc__pair(a, b));
    if (number < 0)
        return PC_ERR_MEMORY;
    if (number == known) {
        PC__TRY(pc__grow((void **)&l->pairs, &l->pair_room, known, sizeof *l->pairs));
        l->pairs[number] = (pair){0};
    }
    pair *p = &l->pairs[number];
    p->count += times * l->words[w].count;
    if (times < 0 || (p->word_count && p->words[p->word_count - 1] == w))
        return PC_OK;
    PC__TRY(pc__grow((void **)&p->words, &p->word_room, p->word_count, sizeof *p->words));
    p->words[p->word_count++] = w;
    return PC_OK;
}

static pc_status list_words(learner *l, const uint8_t *text, size_t n)
{
    int room = 0;
    for (size_t at = 0, end; at < n; at = end) {
        end = pc__word_end(text, n, at);
        const int known = l->map.count;
        if (end - at > INT32_MAX)
            return pc__fail(PC_ERR_UNSUPPORTED, "the text has a word of %zu bytes", end - at);
        const int number = pc__words_map_put(&l->map, text + at, end - at);
        if (number < 0)
            return PC_ERR_MEMORY;
        if (number == known) {
            PC__TRY(pc__grow((void **)&l->words, &room, known, sizeof *l->words));
            const int64_t start = known ? l->words[known - 1].start + l->words[known - 1].n : 0;
            l->words[number] = (word){start, (int32_t)(end - at), 0};
        }
        l->words[number].count++;
    }
    return PC_OK;
}

static pc_status count_all(learner *l, const int32_t byte[256])
{
    const int count_of_words = l->map.count;
    const word *last = count_of_words ? &l->words[count_of_words - 1] : NULL;
    l->pool = pc__alloc(last ? (size_t)(last->start + last->n) * sizeof *l->pool : 1);
    if (!l->pool)
        return PC_ERR_MEMORY;
    for (int w = 0; w < count_of_words; w++) {
        int32_t *tokens = l->pool + l->words[w].start;
        for (int32_t i = 0; i < l->words[w].n; i++)
            tokens[i] = byte[l->map.keys[w].bytes[i]];
        for (int32_t i = 0; i + 1 < l->words[w].n; i++)
            PC__TRY(count(l, tokens[i], tokens[i + 1], w, 1));
    }
    return PC_OK;
}

static pc_status push_new(learner *l)
{
    for (; l->known < l->keys.count; l->known++)
        if (l->pairs[l->known].count > 0)
            PC__TRY(push(l, l->known));
    return PC_OK;
}

static pc_status merge_in(learner *l, int32_t w, int32_t a, int32_t b, int32_t token)
{
    int32_t *tokens = l->pool + l->words[w].start, n = l->words[w].n, to = 0;
    for (int32_t i = 0; i < n; i++, to++) {
        if (tokens[i] != a || i + 1 == n || tokens[i + 1] != b) {
            tokens[to] = tokens[i];
            continue;
        }
        if (to > 0) {
            PC__TRY(count(l, tokens[to - 1], a, w, -1));
            PC__TRY(count(l, tokens[to - 1], token, w, 1));
        }
        if (i + 2 < n) {
            PC__TRY(count(l, b, tokens[i + 2], w, -1));
            PC__TRY(count(l, token, tokens[i + 2], w, 1));
        }
        tokens[to] = token;
        i++;
    }
    l->words[w].n = to;
    return PC_OK;
}

static pc_status merge(learner *l, int32_t number, int32_t token)
{
    const int32_t a = (int32_t)(l->keys.keys[number] >> 32), b = (int32_t)(uint32_t)l->keys.keys[number];
    for (int i = 0; i < l->pairs[number].word_count; i++)
        PC__TRY(merge_in(l, l->pairs[number].words[i], a, b, token));
    pc__free(l->pairs[number].words);
    l->pairs[number].words = NULL;
    l->pairs[number].word_count = l->pairs[number].word_room = 0;
    return push_new(l);
}

/* The pair that is the most frequent now; -1: none is there twice. */
static pc_status most_frequent(learner *l, int32_t *number)
{
    *number = -1;
    while (l->waiting) {
        const int32_t top = pop(l);
        if (l->pairs[top].count == l->pairs[top].counted) {
            *number = l->pairs[top].count >= 2 ? top : -1;
            return PC_OK;
        }
        PC__TRY(push(l, top));
    }
    return PC_OK;
}

typedef struct merged {
    int32_t a, b;
} merged;

/* Tokens and merges, up to `most` tokens. */
static pc_status learn(learner *l, int64_t most, pc__token_list *list, merged **merges, int *merge_count)
{
    int room = 0;
    PC__TRY(push_new(l));
    while (list->count < most) {
        int32_t number;
        PC__TRY(most_frequent(l, &number));
        if (number < 0)
            break;
        const merged m = {(int32_t)(l->keys.keys[number] >> 32), (int32_t)(uint32_t)l->keys.keys[number]};
        const size_t start = m.a ? list->ends[m.a - 1] : 0, middle = m.b ? list->ends[m.b - 1] : 0;
        const size_t n = list->ends[m.a] - start, k = list->ends[m.b] - middle;
        char *joined = pc__alloc(n + k);
        if (!joined)
            return PC_ERR_MEMORY;
        memcpy(joined, list->bytes.data + start, n);
        memcpy(joined + n, list->bytes.data + middle, k);
        pc_status status = pc__token_list_add(list, joined, n + k);
        pc__free(joined);
        PC__TRY(status);
        PC__TRY(pc__grow((void **)merges, &room, *merge_count, sizeof **merges));
        (*merges)[(*merge_count)++] = m;
        PC__TRY(merge(l, number, list->count - 1));
    }
    return PC_OK;
}

static pc_status learn_text(const uint8_t *text, size_t n, int64_t most, pc__token_list *list, merged **merges,
                            int *merge_count)
{
    learner l = {0};
    int32_t byte[256];
    for (int i = 0; i < 256; i++) {
        const uint8_t value = pc__byte_in_order(i);
        byte[value] = i;
        PC__TRY(pc__token_list_add(list, &value, 1));
    }
    pc_status status = list_words(&l, text, n);
    status = status == PC_OK ? count_all(&l, byte) : status;
    status = status == PC_OK ? learn(&l, most, list, merges, merge_count) : status;
    status = status == PC_OK ? pc__token_list_add(list, PC__END_OF_TEXT, strlen(PC__END_OF_TEXT)) : status;
    for (int i = 0; i < l.keys.count && l.pairs; i++)
        if (i < l.pair_room)
            pc__free(l.pairs[i].words);
    pc__words_map_free(&l.map);
    pc__pairs_map_free(&l.keys);
    pc__free(l.pairs);
    pc__free(l.words);
    pc__free(l.pool);
    pc__free(l.heap);
    return status;
}

static pc_tokenizer *with_merges(pc__token_list *list, const merged *merges, int count)
{
    pc_tokenizer *t = pc__tokenizer_of(list, true);
    pc_status status = t ? pc__tokenizer_index(t, "") : PC_ERR_MEMORY;
    for (int i = 0; i < count && status == PC_OK; i++)
        status = pc__tokenizer_merge(t, merges[i].a, merges[i].b, 256 + i);
    if (status == PC_OK)
        return t;
    pc_tokenizer_free(t);
    return NULL;
}

pc_tokenizer *pc_tokenizer_new_pairs(const char *text, size_t bytes, int64_t vocabulary)
{
    PC__NEED_OR(NULL, text);
    if (vocabulary < 257 || vocabulary > 1 << 20)
        return pc__null(
            PC_ERR_ARGUMENT,
            "pc_tokenizer_new_pairs: a vocabulary of %lld; it has 256 bytes and %s at least, and 2^20 tokens "
            "at most",
            (long long)vocabulary, PC__END_OF_TEXT);
    pc__token_list list = {0};
    merged *merges = NULL;
    int count = 0;
    pc_tokenizer *t = NULL;
    if (learn_text((const uint8_t *)text, bytes, vocabulary - 1, &list, &merges, &count) == PC_OK)
        t = with_merges(&list, merges, count);
    pc__token_list_free(&list);
    pc__free(merges);
    return t;
}

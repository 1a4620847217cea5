/* tokenizer.h: a tokenizer's inside. */
#ifndef PC__TOKENIZER_H
#define PC__TOKENIZER_H

#include "text/map.h"
#include "text/words.h"

#include <paracord/text.h>

#define PC__END_OF_TEXT "<|endoftext|>"

struct pc_tokenizer {
    bool pairs; /* byte-pair encoding; else letters */
    int32_t size, end;
    uint8_t *bytes;   /* of all tokens, one behind the other */
    size_t *starts;   /* size + 1: where each token's bytes begin there */
    int32_t *letters; /* of letters: the token of each, -1: none; PC__LETTERS */
    int32_t byte[256];
    pc__pairs_map merges; /* of pairs: the number is the merge's rank */
    int32_t *merged;      /* the token that each merge gives */
    int merged_room;
};

/* Tokens as they come, for a new tokenizer. */
typedef struct pc__token_list {
    pc__text bytes;
    size_t *ends;
    int count, room;
} pc__token_list;
pc_status pc__token_list_add(pc__token_list *list, const void *bytes, size_t n);
void pc__token_list_free(pc__token_list *list);

/* A tokenizer of these tokens, which it takes; without letters and merges. NULL on failure, and the list is released. */
pc_tokenizer *pc__tokenizer_of(pc__token_list *list, bool pairs);

/* The merge of a and b into `token`, of the next rank. */
pc_status pc__tokenizer_merge(pc_tokenizer *t, int32_t a, int32_t b, int32_t token);

/* Find letters, or bytes and the end, among the tokens. PC_ERR_FORMAT with `path` where a byte has none. */
pc_status pc__tokenizer_index(pc_tokenizer *t, const char *path);

/* GPT-2's letters for bytes, so that each prints: 33 to 126, 161 to 172 and 174 to 255 stand for themselves, the others for
 * 256, 257, ... in their order. And back: -1 for a letter that stands for none. And the bytes in the order of these letters. */
uint32_t pc__byte_letter(uint8_t byte);
int pc__letter_byte(uint32_t letter);
uint8_t pc__byte_in_order(int i);

/* A list of tokens that grows. */
typedef struct pc__tokens {
    int32_t *list;
    int64_t count, room;
} pc__tokens;
pc_status pc__tokens_add(pc__tokens *tokens, const int32_t *list, int64_t count);

/* Append the text's tokens. */
pc_status pc__letters_encode(const pc_tokenizer *t, const uint8_t *text, size_t n, pc__tokens *tokens);
pc_status pc__pairs_encode(const pc_tokenizer *t, const uint8_t *text, size_t n, pc__tokens *tokens);
pc_status pc__tokenizer_encode(const pc_tokenizer *t, const uint8_t *text, size_t n, pc__tokens *tokens);

#endif

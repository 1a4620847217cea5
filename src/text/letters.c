/* letters.c: a token for each letter. */
#include "text/tokenizer.h"

static pc_status add_letter(pc__token_list *list, uint32_t letter)
{
    const uint8_t stray = (uint8_t)letter;
    if (letter >= PC__STRAY)
        return pc__token_list_add(list, &stray, 1);
    uint8_t four[4] = {(uint8_t)letter};
    size_t n = letter < 0x80 ? 1 : letter < 0x800 ? 2 : letter < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; n > 1 && i > 0; i--, letter >>= 6)
        four[i] = (uint8_t)(0x80 | (letter & 0x3f));
    if (n > 1)
        four[0] = (uint8_t)(0xf00 >> n | letter);
    return pc__token_list_add(list, four, n);
}

static pc_status list_letters(const uint8_t *text, size_t n, pc__token_list *list)
{
    bool *there = pc__calloc(PC__LETTERS, sizeof *there);
    if (!there)
        return PC_ERR_MEMORY;
    int bytes;
    for (size_t at = 0; at < n; at += (size_t)bytes)
        there[pc__letter_at(text, n, at, &bytes)] = true;
    pc_status status = PC_OK;
    for (uint32_t i = 0; i < PC__LETTERS && status == PC_OK; i++)
        if (there[i])
            status = add_letter(list, i);
    pc__free(there);
    return status;
}

pc_tokenizer *pc_tokenizer_new_letters(const char *text, size_t bytes)
{
    PC__NEED_OR(NULL, text);
    if (!bytes)
        return pc__null(PC_ERR_ARGUMENT, "pc_tokenizer_new_letters: the text is empty");
    pc__token_list list = {0};
    if (list_letters((const uint8_t *)text, bytes, &list) != PC_OK) {
        pc__token_list_free(&list);
        return NULL;
    }
    pc_tokenizer *t = pc__tokenizer_of(&list, false);
    if (t && pc__tokenizer_index(t, "") == PC_OK)
        return t;
    pc_tokenizer_free(t);
    return NULL;
}

static pc_status unknown(const uint8_t *text, size_t at, int bytes, uint32_t letter)
{
    if (letter >= PC__STRAY)
        return pc__fail(PC_ERR_NOT_FOUND, "the vocabulary has no token for byte %d, which is no UTF-8, at byte %zu",
                        text[at], at);
    return pc__fail(PC_ERR_NOT_FOUND, "the vocabulary has no token for \"%.*s\" (U+%04X), at byte %zu of the text",
                    letter < ' ' ? 0 : bytes, (const char *)text + at, letter, at);
}

pc_status pc__letters_encode(const pc_tokenizer *t, const uint8_t *text, size_t n, pc__tokens *tokens)
{
    int bytes;
    for (size_t at = 0; at < n; at += (size_t)bytes) {
        const uint32_t letter = pc__letter_at(text, n, at, &bytes);
        if (t->letters[letter] < 0)
            return unknown(text, at, bytes, letter);
        PC__TRY(pc__tokens_add(tokens, &t->letters[letter], 1));
    }
    return PC_OK;
}

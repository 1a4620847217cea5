/* words.h: letters of texts of any bytes, and GPT-2's words. */
#ifndef PC__WORDS_H
#define PC__WORDS_H

#include "base/base.h"

/* What byte-pair encoding does not go beyond, by GPT-2's pattern:
 * 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ . Where the word ends that begins at `at`,
 * below n. */
size_t pc__word_end(const uint8_t *text, size_t n, size_t at);

/* The code point at `at`, and how many bytes it has; a byte that is no UTF-8 is PC__STRAY + its value, and one byte. */
#define PC__STRAY 0x110000
#define PC__LETTERS (PC__STRAY + 256) /* all that there are */
uint32_t pc__letter_at(const uint8_t *text, size_t n, size_t at, int *bytes);

#endif

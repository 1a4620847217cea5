/* text.h: texts as lists of numbers for networks: tokenizers, and texts to learn from.
 *
 *     size_t bytes;
 *     char *text = pc_text_read("poems", &bytes);                // a file, or all files of a folder
 *     pc_tokenizer *letters = pc_tokenizer_new_letters(text, bytes);
 *     pc_corpus *poems = pc_corpus_new(letters, text, bytes, (pc_corpus_options){0});
 *     pc_text_free(text);
 *     ...
 *     // x and y: int64 [batch, length]; y is what follows each token of x
 *     if (pc_corpus_draw(poems, PC_CORPUS_TRAINING, seed, step, x, y) != PC_OK)
 *         return pc_report(stderr);
 *
 * A token's number is its place in the vocabulary, from 0. Texts are bytes; what is no UTF-8 in them is kept, byte by byte,
 * and comes back. Threads: tokenizers and corpora do not change, and may be used by several threads at once.
 */
#ifndef PARACORD_TEXT_H
#define PARACORD_TEXT_H

#include <paracord/tensor.h>

PC_BEGIN

/* The content of a file; or of all files of a folder and the folders in it, in the order of their names, but for those
 * whose names begin with a dot and those with a zero byte, which are no texts. Behind a file that does not end with a
 * newline stands one where another file follows. Links are followed, but not into a folder that the way there leads
 * through. Text for pc_text_free, ended by a zero byte that *bytes does not count. NULL: PC_ERR_FILE (one of
 * them cannot be read, or lies more than 64 folders deep), PC_ERR_NOT_FOUND (there is no text in the folder),
 * PC_ERR_MEMORY. */
PC_API PC_MUST_USE char *pc_text_read(const char *path, size_t *bytes);

/* --- tokenizers --- */

typedef struct pc_tokenizer pc_tokenizer;

/* A token for each letter (code point) that the text has, in the order of their code points; behind them one for each
 * byte in it that is no UTF-8. */
PC_API PC_MUST_USE pc_tokenizer *pc_tokenizer_new_letters(const char *text, size_t bytes);

/* Byte-pair encoding as GPT-2 has it (Sennrich, Haddow, Birch 2016; on bytes: Radford et al. 2019), learnt from the text:
 * 256 tokens for the bytes, then one for the most frequent pair of neighbours after another within words, as long as one
 * is there at least twice, and <|endoftext|>; `vocabulary` at most, from 257 on. Of pairs that are as frequent the one
 * with the lower numbers comes first: the merges are those of Hugging Face's trainer. */
PC_API PC_MUST_USE pc_tokenizer *pc_tokenizer_new_pairs(const char *text, size_t bytes, int64_t vocabulary);

/* Read one from a folder: vocab.json and merges.txt as GPT-2's are published (or encoder.json and vocab.bpe, as they once
 * were), or vocab.json alone of letters, as pc_tokenizer_save leaves it. Of the folder, or its vocabulary's file. NULL:
 * PC_ERR_FILE, PC_ERR_FORMAT. */
PC_API PC_MUST_USE pc_tokenizer *pc_tokenizer_open(const char *path);

/* Write these files into a folder, which is made. */
PC_API PC_MUST_USE pc_status pc_tokenizer_save(const pc_tokenizer *tokenizer, const char *folder);
PC_API void pc_tokenizer_free(pc_tokenizer *tokenizer);

/* How many tokens there are; 0 for NULL. The number of <|endoftext|>, which stands between texts; -1 where there is none. */
PC_API int64_t pc_tokenizer_size(const pc_tokenizer *tokenizer);
PC_API int64_t pc_tokenizer_end(const pc_tokenizer *tokenizer);

/* The text's tokens: int32 [their number], on the CPU. A letter that the vocabulary does not have is PC_ERR_NOT_FOUND and
 * is named. <|endoftext|> in a text is text. */
PC_API PC_MUST_USE pc_tensor *pc_tokenizer_encode(const pc_tokenizer *tokenizer, const char *text, size_t bytes);

/* The bytes of so many tokens, as text for pc_text_free with a zero byte behind it that *bytes (may be NULL) does not count.
 * PC_ERR_RANGE names a number that is no token's. */
PC_API PC_MUST_USE char *pc_tokenizer_decode(const pc_tokenizer *tokenizer, const int32_t *tokens, int64_t count,
                                             size_t *bytes);

/* --- texts to learn from --- */

typedef struct pc_corpus pc_corpus;

typedef struct pc_corpus_options {
    int reserved_;
    double held_out;     /* the share at the end of the text that is kept for testing; 0 means 0.1, below 0 none */
    const char *testing; /* of pc_corpus_open: another file, which is the testing part; NULL: a share of the first */
} pc_corpus_options;

typedef enum pc_corpus_part { PC_CORPUS_TRAINING, PC_CORPUS_TESTING } pc_corpus_part;

/* The text as tokens, which are kept in memory (2 bytes each where the vocabulary has at most 65,536). */
PC_API PC_MUST_USE pc_corpus *pc_corpus_new(const pc_tokenizer *tokenizer, const char *text, size_t bytes,
                                            pc_corpus_options options);

/* A file of tokens of 16 bits, the low byte first, as nanoGPT and llm.c prepare them (train.bin): plain, or behind llm.c's
 * header of 1,024 bytes. Tokens stay in the file and are read as stretches need them, so that it may be larger than memory.
 * `vocabulary`: how many tokens there are; 0 means 65,536. NULL: PC_ERR_FILE, PC_ERR_FORMAT (an odd number of bytes, or not
 * as many tokens as the header says), PC_ERR_UNSUPPORTED (llm.c's files of 32-bit tokens), PC_ERR_ARGUMENT,
 * PC_ERR_MEMORY. What is found out later is the error of the stretch: PC_ERR_RANGE for a token beyond the vocabulary,
 * with its place in the file, PC_ERR_FILE once the file is shorter or longer than it was. */
PC_API PC_MUST_USE pc_corpus *pc_corpus_open(const char *path, int64_t vocabulary, pc_corpus_options options);
PC_API void pc_corpus_free(pc_corpus *corpus);

/* Tokens of a part; 0 for NULL. */
PC_API int64_t pc_corpus_size(const pc_corpus *corpus, pc_corpus_part part);

/* Fill x and y, int64 [batch, length] on any device, with stretches of a part, and with what follows each token. Draw:
 * stretches begin anywhere, as seed, step and row say, on any machine, so there is nothing to save for a resume. Take:
 * they follow each other from token `from` on. PC_ERR_RANGE: the part is too short. */
PC_API PC_MUST_USE pc_status pc_corpus_draw(const pc_corpus *corpus, pc_corpus_part part, uint64_t seed, int64_t step,
                                            pc_tensor *x, pc_tensor *y);
PC_API PC_MUST_USE pc_status pc_corpus_take(const pc_corpus *corpus, pc_corpus_part part, int64_t from, pc_tensor *x,
                                            pc_tensor *y);

PC_END
#endif

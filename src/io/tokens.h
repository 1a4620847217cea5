/* tokens.h: files of tokens: 16-bit numbers, the low byte first. Plain, as nanoGPT's prepare.py writes them; or behind
 * llm.c's header of 256 int32: 20240520, version 1, the number of tokens. They are read where they are needed and stay in
 * the file: the system's page cache is what they take of memory. Nothing is mapped, since a mapping of a file that became
 * shorter ends the process where it is read. */
#ifndef PC__TOKENS_H
#define PC__TOKENS_H

#include "base/base.h"

typedef struct pc__token_file {
    char *path;
    int fd;                     /* -1: none */
    int64_t size, start, count; /* bytes of the file and of its header; tokens */
} pc__token_file;

/* True for names that end in ".bin". */
bool pc__is_token_file(const char *path);

/* PC_ERR_FILE, PC_ERR_FORMAT, PC_ERR_UNSUPPORTED, PC_ERR_MEMORY; `file` is closed then. */
pc_status pc__token_file_open(pc__token_file *file, const char *path);
void pc__token_file_close(pc__token_file *file);

/* The tokens from..from + n - 1, which there are. PC_ERR_FILE where the file is no longer as long as it was, PC_ERR_RANGE
 * for a token that a vocabulary of so many does not have. Any thread. */
pc_status pc__token_file_read(const pc__token_file *file, int64_t from, int64_t n, int64_t vocabulary, int64_t *to);

#endif

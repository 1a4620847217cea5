/* cut.h: how rows that are few and long are cut. Plain C, read by .cu files too. */
#ifndef PC__CUDA_CUT_H
#define PC__CUDA_CUT_H

#include <stddef.h>
#include <stdint.h>

enum { PC__CUT_BLOCKS = 1024 /* at most, of all rows */ };

typedef struct pc__cuda_cut {
    int64_t parts, piece; /* of each row; the last piece may be shorter */
} pc__cuda_cut;

/* Of rows of n elements of so many bytes. A piece is 8 KB or more, 32 bytes for each thread of a block of 256. Rows shorter
 * than a few pieces are not worth two kernels, nor are `many` rows, which fill a GPU as they are. It depends on sizes
 * alone, so that every GPU adds in the same order. */
static inline pc__cuda_cut pc__cuda_cut_rows(int64_t rows, int64_t n, size_t size, int64_t many)
{
    enum { PIECE_BYTES = 8192, LEAST = 4, TOGETHER = 16 };
    const int64_t least = PIECE_BYTES / (int64_t)size;
    if (rows < 1 || rows >= many || n < LEAST * least)
        return (pc__cuda_cut){1, n};
    int64_t parts = (n + least - 1) / least;
    parts = parts < PC__CUT_BLOCKS / rows ? parts : PC__CUT_BLOCKS / rows;
    const int64_t piece = ((n + parts - 1) / parts + TOGETHER - 1) / TOGETHER * TOGETHER;
    return (pc__cuda_cut){(n + piece - 1) / piece, piece};
}

#endif

/* rows.h: launchers of what goes by whole rows. */
#ifndef PC__CUDA_INDEX_ROWS_H
#define PC__CUDA_INDEX_ROWS_H

#include <stdbool.h>

#include "cuda/runtime/view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `whole` is [outer, n, row], `picked` is [outer, count, row]; entry i of picked belongs to place index[i] of whole. `row`
 * counts units: of some bytes, on which both are aligned, or of 16 bytes or one element. */
typedef struct pc__cuda_picking {
    const int64_t *index;          /* for picking */
    const unsigned *start, *order; /* for putting: sort.h */
    void *parts;                   /* for sums of rows that may be long */
    int64_t outer, n, count, row;
    int multiprocessors, early;
    pc__cuda_fault *fault;
    cudaStream_t queue;
} pc__cuda_picking;

/* picked = whole[index]; units of 16, 8, 4, 2 or 1 bytes. */
void pc__cuda_select(const pc__cuda_picking *picking, int unit, const void *whole, void *picked);

/* packs.cu: the same of many rows of few units, below PC__CUDA_LONG_PICK, by one index for all. False: these are others. */
enum { PC__CUDA_LONG_PICK = 64 };
bool pc__cuda_select_packs(const pc__cuda_picking *picking, int unit, const void *whole, void *picked);

/* whole = base, with the last entry of each place in its place; units as above. */
void pc__cuda_put_rows(const pc__cuda_picking *picking, int unit, const void *base, const void *picked, void *whole);

/* whole = base (NULL: zeros) and the sum of each place's entries; units of 16 bytes where `packed`, else elements. */
void pc__cuda_sum_rows(const pc__cuda_picking *picking, int dtype, int packed, const void *base, const void *picked,
                       void *whole);

/* Before that, where there are more than PC__CUDA_LONG_ROW entries: sums of parts of rows that have more than these, for
 * which there are two for each window, of units in the type in which they are added. */
enum { PC__CUDA_WINDOW = 128, PC__CUDA_LONG_ROW = 2 * PC__CUDA_WINDOW };
void pc__cuda_add_windows(const pc__cuda_picking *picking, int dtype, int packed, const void *picked);

/* pc__cuda_sum_rows for f32, f16 and bf16 by an index of at most so many entries, which is read as it is; entries for the place
 * `skip` are left out. */
enum { PC__CUDA_FEW_ROWS = 256 };
void pc__cuda_add_few_rows(const pc__cuda_picking *picking, int dtype, int packed, int64_t skip, const void *base,
                           const void *picked, void *whole);

/* The same where places are few, at most PC__CUDA_FEW_PLACES, and entries many: in chunks of PC__CUDA_CHUNK or PC__CUDA_LONG_CHUNK of
 * them, for each of which `parts` has all units of `whole`, in the type in which they are added. */
enum { PC__CUDA_FEW_PLACES = 1024, PC__CUDA_CHUNK = 512, PC__CUDA_LONG_CHUNK = 2048, PC__CUDA_CHUNK_LANES = 16 };
void pc__cuda_add_few_places(const pc__cuda_picking *picking, int dtype, int packed, int64_t skip, int64_t chunk,
                             const void *base, const void *picked, void *whole);

/* Whether so many may be, of slices of so many units; of short ones each block has several, and goes through all entries. */
bool pc__cuda_are_few_rows(int dtype, int64_t count, int64_t outer, int64_t slice);

#ifdef __cplusplus
}
#endif
#endif

/* corpus.h: the inside of a text as tokens. */
#ifndef PC__CORPUS_H
#define PC__CORPUS_H

#include <paracord/text.h>

/* pc_corpus_draw of the rows from `first` on of a larger batch. */
pc_status pc__corpus_draw_rows(const pc_corpus *corpus, pc_corpus_part part, uint64_t seed, int64_t step, int64_t first,
                               pc_tensor *x, pc_tensor *y);

/* A number for what there is: of all tokens of a text; of files, which may be larger than memory, of their sizes and of
 * stretches all over them. What of these cannot be read is the error of whoever needs it. */
uint64_t pc__corpus_fingerprint(const pc_corpus *corpus);

#endif

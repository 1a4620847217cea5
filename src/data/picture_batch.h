/* picture_batch.h: batches of a folder's pictures: bytes, which are augmented, and labels. */
#ifndef PC__PICTURE_BATCH_H
#define PC__PICTURE_BATCH_H

#include "data/batch.h"
#include "data/pictures.h"

/* What a source of pictures has. */
typedef struct pc__picture_data {
    pc__pictures pictures;
    pc_augment augment;
    uint8_t *shown; /* where pictures are not kept: the one that pc_loader_picture gave last */
} pc__picture_data;

extern const pc__kind pc__picture_kind;

/* NULL where the source is of another kind. */
static inline const pc__picture_data *pc__pictures_of(const pc__source *source)
{
    return source->kind == &pc__picture_kind ? source->data : NULL;
}

/* The pictures become the source's, on failure too. */
pc_status pc__picture_source(pc__source *source, pc__pictures *pictures, const pc_augment *augment);

/* Labels of n pictures: float32 [n, 1] for two classes, else int64 [n]. samples NULL: 0 to n - 1. */
pc_shape pc__label_shape(const pc__source *source, int64_t n);
pc_dtype pc__label_dtype(const pc__source *source);
void pc__fill_labels(const pc__source *source, const int64_t *samples, int64_t n, void *to);

#endif

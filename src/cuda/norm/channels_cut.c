/* channels_cut.c: which parts of x blocks of a normalisation over channels have. */
#include "cuda/norm/channels.h"

#include "base/base.h"

#include <paracord/tensor.h>

enum {
    BLOCKS = 1056, /* of parts, by which a GPU is filled */
    LEAST = 4,     /* rows of a thread */
    PIECE = 4096,  /* numbers of a plane, at least */
    LONG = 1024,   /* planes of more have a block */
    FOLDS = 264,   /* blocks of folded rows, which take longer to begin and have more under way */
};

static int64_t divisor(int64_t a, int64_t b)
{
    return b ? divisor(b, a % b) : a;
}

/* Rows of channels that are no whole accesses: some beside each other are together, where a block has threads for these. */
static void fold(pc__cuda_channels *c)
{
    const int64_t width = 16 / (int64_t)pc_dtype_size((pc_dtype)c->dtype), common = divisor(c->channels, width);
    const bool aligned = ((uintptr_t)c->x | (uintptr_t)c->dy | (uintptr_t)c->rest | (uintptr_t)c->out) % 16 == 0;
    const bool folds =
        aligned && c->channels / common <= PC__NORM_THREADS && (c->batches == 1 || c->inner % (width / common) == 0);
    c->whole = c->last && aligned && (common == width || folds);
    c->fold = c->whole ? (int)(width / common) : 1;
}

static void cut_folds(pc__cuda_channels *c)
{
    c->lanes = (int)(c->channels * c->fold / pc__cuda_channel_width(c));
    const int64_t folds = PC__MAX(c->inner / c->fold, 1), together = LEAST * (PC__NORM_THREADS / c->lanes);
    const int64_t most = (folds + together - 1) / together, pieces = PC__MIN(PC__MAX(FOLDS / c->batches, 1), most);
    c->length = (folds + pieces - 1) / pieces * c->fold;
    c->pieces = (c->inner + c->length - 1) / c->length;
}

void pc__cuda_channel_cut(pc__cuda_channels *c)
{
    int64_t pieces;
    fold(c);
    if (c->fold > 1) {
        cut_folds(c);
        return;
    }
    if (c->last) {
        const int width = pc__cuda_channel_width(c);
        const int64_t packs = (c->channels + width - 1) / width;
        for (c->lanes = 1; c->lanes < 32 && c->lanes < packs;)
            c->lanes *= 2;
        const int64_t others = c->batches * ((packs + c->lanes - 1) / c->lanes);
        const int64_t rows = LEAST * PC__NORM_THREADS / c->lanes, most = (c->inner + rows - 1) / rows;
        pieces = PC__MIN(PC__MAX(BLOCKS / others, 1), most);
    } else {
        c->lanes = c->inner > LONG ? PC__NORM_THREADS : 32;
        pieces = PC__MIN(PC__MAX(BLOCKS / (c->batches * c->channels), 1), (c->inner + PIECE - 1) / PIECE);
    }
    c->length = (c->inner + pieces - 1) / pieces;
    c->pieces = (c->inner + c->length - 1) / c->length;
}

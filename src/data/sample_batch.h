/* sample_batch.h: batches of samples that a function writes (samples.h); all kinds of data of one's own are such. */
#ifndef PC__SAMPLE_BATCH_H
#define PC__SAMPLE_BATCH_H

#include "data/batch.h"

#include <paracord/samples.h>

/* The source makes the samples' batches, and releases their context when it is closed, on failure too. */
pc_status pc__sample_source(pc__source *source, const pc_samples *samples, const pc_batch_options *options);

#endif

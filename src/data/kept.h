/* kept.h: samples that stay on the device, where they fit: a tensor of all rows for each field, and the epoch's order, by
 * which batches are taken from them. The program's thread queues it, on its current stream. (Pictures, which are
 * augmented, have resident.h.) */
#ifndef PC__KEPT_H
#define PC__KEPT_H

#include "data/batch.h"

/* Whether so many bytes of samples are to go to the device: asked for, and at most half of its free memory. `why` gets a
 * line that says it; `things`: what they are. */
pc_status pc__residence(pc_device device, const char *things, int64_t bytes, pc_residence wanted, char *why, size_t n,
                        bool *fits);

/* The source's samples on their way to its device; *kept is NULL where they do not go there. Either way `why` is the
 * reason. On failure neither. */
pc_status pc__kept_new(const pc__source *source, pc_residence wanted, char *why, size_t n, pc__kept **kept) PC_MUST_USE;
void pc__kept_free(pc__kept *kept);

/* The batch that made->first and n name, of the epoch whose order the source has. */
pc_status pc__kept_make(pc__kept *kept, const pc__source *source, pc__made *made);

#endif

/* described.h: networks that a JSON text describes, for `paracord train --arch FILE.json`; docs/training.md has the form. */
#ifndef PC__DESCRIBED_H
#define PC__DESCRIBED_H

#include "train/arch.h"

/* Is it such a text, and no name? */
bool pc__is_description(const char *arch);

/* The text of a file, from pc__alloc. PC_ERR_FILE, PC_ERR_FORMAT (not a JSON object). */
pc_status pc__description_read(const char *path, char **text);

/* The network, and its size without making it. PC_ERR_FORMAT names the line and the key, PC_ERR_SHAPE the line of a layer
 * that cannot take what comes to it. */
pc_module *pc__described_new(const char *text, pc__frame pictures, int outputs, pc_init_kind init);
pc_status pc__described_measure(const char *text, pc__frame pictures, int outputs, pc__arch_size *size);

#endif

/* arch.h: the networks that `paracord train --arch` knows. */
#ifndef PC__ARCH_H
#define PC__ARCH_H

#include "base/base.h"
#include "io/frame.h"

#include <paracord/nn.h>

/* A network for pictures of that frame that gives `outputs` logits; those of models.h too, which begin as they do whatever
 * `init` says, and those that a text describes (described.h), which stands in the place of the name. PC_ERR_ARGUMENT names the networks there are;
 * PC_ERR_SHAPE when the pictures are too small for it. */
PC__SHARED pc_module *pc__arch_new(const char *name, pc__frame pictures, int outputs, pc_init_kind init);

/* Is it one of Keras's layers, whose file Keras reads? Those of models.h and described ones are not. */
bool pc__arch_is_keras(const char *name);

/* Its size without making it: parameters, and the numbers that layers give for one picture, each counted once and the
 * largest twice (its gradient). Errors as above. */
typedef struct pc__arch_size {
    double parameters, activations;
} pc__arch_size;
pc_status pc__arch_measure(const char *name, pc__frame pictures, int outputs, pc__arch_size *size);

#endif

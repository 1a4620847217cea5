/* arch.h: the networks that `paracord train --arch` knows. */
#ifndef PC__ARCH_H
#define PC__ARCH_H

#include <paracord/nn.h>

/* A network for pictures of 3 x size x size that gives `outputs` logits. PC_ERR_ARGUMENT names the networks there are;
 * PC_ERR_SHAPE when the pictures are too small for it. */
pc_module *pc__arch_new(const char *name, int size, int outputs, pc_init_kind init);

#endif

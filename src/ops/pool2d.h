/* pool2d.h: attributes of pooling. */
#ifndef PC__OP_POOL2D_H
#define PC__OP_POOL2D_H

#include <paracord/ops.h>

typedef struct pc__pool2d_attributes {
    pc_fn_pool2d_options spec; /* with its defaults filled in */
    int64_t in_shape[4];       /* backward: of x */
    bool wants_places;         /* of maxima: a gradient will ask for them; else out[1] is empty */
} pc__pool2d_attributes;

#endif

/* pool2d.h: attributes of pooling. */
#ifndef PC__OP_POOL2D_H
#define PC__OP_POOL2D_H

#include <paracord/ops.h>

/* Windows along an axis of `size` places, i: 0 for rows, 1 for columns. Options have their defaults filled in. */
int64_t pc__pool2d_windows(const pc_fn_pool2d_options *spec, int i, int64_t size);

typedef struct pc__pool2d_attributes {
    pc_fn_pool2d_options spec; /* with its defaults filled in */
    int64_t in_shape[4];       /* of x */
    int64_t windows[2];        /* down and across */
    bool wants_places;         /* of maxima: a gradient will ask for them; else out[1] is empty */
} pc__pool2d_attributes;

#endif

/* keras_front.h: the layers that prepare the picture: the first ones of a model, as far as they scale and shift. */
#ifndef PC__KERAS_FRONT_H
#define PC__KERAS_FRONT_H

#include "io/keras.h"

#define PC__KERAS_FRONT_CHANNELS 3

/* What a model does to raw pixels before it looks at them. */
typedef struct pc__keras_front {
    bool found; /* it does: the first of its layers prepare the picture, in each branch */
    int cut;    /* how many of them are summed up here, and left to whoever prepares the picture */
    /* (x * rescale - mean) / std, by channel; 1, 0 and 1 where nothing is summed up */
    double rescale, mean[PC__KERAS_FRONT_CHANNELS], std[PC__KERAS_FRONT_CHANNELS];
} pc__keras_front;

/* Find it. `last`: the node that stays in any case. `whole`: sum up all that is x * scale + offset, one after the
 * other; otherwise a single factor at most. cut[node] becomes true for those nodes. */
pc_status pc__keras_front_find(const pc__keras_model *model, int last, bool whole, bool *cut, pc__keras_front *front);

#endif

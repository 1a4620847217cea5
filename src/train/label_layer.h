/* label_layer.h: how pictures are resized and what the classes are called, as the name of the Rescaling layer that our
 * model files begin with. Keras drops attributes that it does not know when it saves a model again; names of layers it
 * keeps:
 *
 *     prepare.area.classes.cat.dog
 *
 * Bytes other than letters, digits and _ are written as -XX (hexadecimal): the names that all versions of Keras take
 * have letters, digits and . _ -. */
#ifndef PC__LABEL_LAYER_H
#define PC__LABEL_LAYER_H

#include "io/keras.h"
#include "train/preparation.h"

/* The name into `name`; where the classes do not fit, without them. */
void pc__label_layer_print(const pc_preparation *p, const char *const *classes, int count,
                           char name[PC__KERAS_NAME_MAX]);

/* For the name of a whole model, which is not ours: with the numbers too, behind the resize mode, as in
 *
 *     prepare.nearest.by.0-2E5_0_0_0_1_1_1
 *
 * where they are rescale, mean and std by channel. */
void pc__label_model_print(const pc_preparation *p, const char *const *classes, int count,
                           char name[PC__KERAS_NAME_MAX]);

/* Take all of a preparation from such a name. False: it is none. */
bool pc__label_model_read(const char *name, pc_preparation *p);

/* Take resize and no_exif from the name of such a layer. False: it is none. */
bool pc__label_layer_read(const char *name, pc_preparation *p);

/* How many class names are in it; the first `room` of them in `names` (may be NULL with room 0). */
int pc__label_layer_classes(const char *name, char (*names)[PC_CLASS_NAME_MAX], int room);

#endif

/* keras_optimizers.c: the optimizers that files may have, by Keras's names and ours. */
#include "io/keras.h"

static const struct {
    const char *class_name, *name;
} optimizers[] = {[PC__KERAS_ADAM] = {"Adam", "adam"},
                  [PC__KERAS_SGD] = {"SGD", "sgd"},
                  [PC__KERAS_ADAMW] = {"AdamW", "adamw"},
                  [PC__KERAS_RMSPROP] = {"RMSprop", "rmsprop"},
                  [PC__KERAS_LION] = {"Lion", "lion"}};

const char *pc__keras_optimizer_class(pc__keras_optimizer optimizer)
{
    return (unsigned)optimizer < PC__COUNT(optimizers) ? optimizers[optimizer].class_name : NULL;
}

const char *pc__keras_optimizer_name(pc__keras_optimizer optimizer)
{
    return (unsigned)optimizer < PC__COUNT(optimizers) ? optimizers[optimizer].name : NULL;
}

pc__keras_optimizer pc__keras_optimizer_named(const char *name)
{
    for (int i = PC__KERAS_ADAM; i < PC__COUNT(optimizers); i++)
        if (strcmp(optimizers[i].name, name) == 0 || strcmp(optimizers[i].class_name, name) == 0)
            return (pc__keras_optimizer)i;
    return PC__KERAS_OTHER_OPTIMIZER;
}

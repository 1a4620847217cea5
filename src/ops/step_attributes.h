/* step_attributes.h: what an optimiser's update is told. Plain C that .cu files include too. */
#ifndef PC__STEP_ATTRIBUTES_H
#define PC__STEP_ATTRIBUTES_H

#include <stdbool.h>
#include <stdint.h>

/* Most groups of parameters with a rate and a decay of their own. */
#define PC__STEP_GROUPS 8

/* Formulas as in torch.optim: SGD, Adam (Kingma and Ba, 2015), AdamW (Loshchilov and Hutter, 2019), RMSprop; Lion as in
 * Chen et al., 2023. */
typedef struct pc__step_attributes {
    int count; /* parameters; the call's inputs are count parameters, count gradients, then count of each slot */
    bool
        copies; /* then count more: of one dtype of 16 bits, to get what the parameter becomes; or the parameter itself,
                    for none. Plans ask for it (plan/shadows.c), where no parameter has 16 bits */
    double lr, momentum, nesterov;
    double beta1, beta2, epsilon;
    bool decoupled; /* adam: the decay is the weight's own (AdamW), not a part of its gradient */
    int groups;     /* parameters of one group lie side by side in the lists */
    struct {
        int end; /* the number of its last parameter, and one */
        double lr_scale, weight_decay;
    } group[PC__STEP_GROUPS];
    double clip_value; /* gradients are taken between this and its negative; 0: as they are */
    int64_t step;      /* from 1; 0: an input, int64 [1], has what it counts up by one: the steps made */
    bool guarded;      /* with a loss scaler's numbers: with something found nothing is done */
    bool rated;        /* with the rate, float64 [1], in place of lr */
    bool clipped;      /* with what pc__gradient_norm left: gradients are taken times its factor */
} pc__step_attributes;

/* Inputs behind the lists, in this order, each where the attributes say so. */
typedef enum pc__step_extra {
    PC__STEP_SCALER,  /* guarded: ops/scale.h */
    PC__STEP_COUNTER, /* step 0 */
    PC__STEP_RATE,    /* rated */
    PC__STEP_CLIP,    /* clipped: float64 [2], norm and factor */
    PC__STEP_EXTRAS
} pc__step_extra;

#endif

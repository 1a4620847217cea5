/* best.h: the weights of the best epoch so far, as copies on the host. Better is the greater test accuracy (or balanced
 * accuracy), of equals the lower test loss, of equals the earlier epoch; an unknown figure (NaN) is worse than any
 * known one. */
#ifndef PC__BEST_H
#define PC__BEST_H

#include "nn/optimizer.h"

#include <paracord/train.h>

/* Those that are trained, in the order of the module. */
typedef struct pc__parameters {
    pc_tensor *const *tensor;
    int count;
} pc__parameters;

typedef struct pc__best {
    pc_tensor **values; /* one for each parameter and each buffer of the network, on the CPU; NULL: only
                         * the figures are kept */
    int count;
    bool balanced;          /* go by the balanced accuracy */
    bool by_loss;           /* go by the test loss */
    int metric;             /* go by this metric, from 1; 0: by none */
    bool greater;           /* of it: the greater the better */
    const char *watch;      /* the name of what is gone by; NULL: the owner of these has none for it */
    double least_gain;      /* better by more than this */
    pc_epoch_result result; /* of the best epoch; epoch 0: there is none yet */
} pc__best;

/* Make room: copies of the parameters and of the buffers of their network. Or let a network on the CPU, of the
 * same layers, be that room: the copies are its parameters and buffers then. */
pc_status pc__best_open(pc__best *best, const pc_module *net, pc__parameters parameters);
pc_status pc__best_open_in(pc__best *best, const pc_module *room, const pc_module *net, pc__parameters parameters);

/* Take the figures, and the values, when this epoch has test pictures and is better than the one that is
 * kept; waits for the values. */
pc_status pc__best_offer(pc__best *best, const pc_module *net, pc__parameters parameters,
                         const pc_epoch_result *result);

/* Give the network the values that are kept, and keep what they had; twice is as if nothing was done. */
pc_status pc__best_exchange(pc__best *best, const pc_module *net, pc__parameters parameters);

void pc__best_close(pc__best *best);

#endif

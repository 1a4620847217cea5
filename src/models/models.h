/* models.h: what the networks for pictures share. Each is a chain (nn/layers.h), so that whoever goes through a network
 * layer by layer sees its blocks. */
#ifndef PC__MODELS_H
#define PC__MODELS_H

#include "nn/module.h"

#include <paracord/models.h>

typedef pc_picture_network_options pc__picture_options; /* with defaults filled in; dropout: 0 is none */

pc_module *pc__vgg11(int classes, const pc__picture_options *o);
pc_module *pc__resnet18(int classes, const pc__picture_options *o);
pc_module *pc__resnet34(int classes, const pc__picture_options *o);
pc_module *pc__resnet50(int classes, const pc__picture_options *o);
pc_module *pc__mobilenet_v2(int classes, const pc__picture_options *o);
pc_module *pc__vit_tiny(int classes, const pc__picture_options *o);
pc_module *pc__vit_b_16(int classes, const pc__picture_options *o);

/* A network by its name before it is made: its parameters, and the numbers that its layers give for one picture, each
 * counted once, with the largest beside it. PC_ERR_ARGUMENT and PC_ERR_SHAPE as of pc_picture_network_new. */
typedef struct pc__picture_size {
    double parameters, activations, largest;
} pc__picture_size;
pc_status pc__picture_network_size(const char *name, int classes, pc__picture_options options, pc__picture_size *size);

/* size.c: the same of a network that there is, whose options have their defaults. */
void pc__picture_size_of(const char *name, int classes, const pc__picture_options *o, pc__picture_size *size);

/* Is there a network of that name? No error. */
bool pc__picture_network_exists(const char *name);

/* --- begin.c: first weights --- */

/* How the weights of a network begin: all that is not named here begins as layers do. */
typedef struct pc__picture_begin {
    bool convolutions; /* normal, of variance 2 / (outputs * kernel's pixels), biases 0 (He et al. 2015, by fan-out) */
    double linear;     /* the deviation of linear layers' weights, biases 0; 0: as layers begin */
} pc__picture_begin;

/* The network itself; released, and NULL, on failure or where it is NULL. */
pc_module *pc__picture_began(pc_module *net, pc__picture_begin how);

/* Normal numbers of that deviation; 0: zeros. */
pc_status pc__picture_normal(pc_tensor *t, double deviation);

#endif

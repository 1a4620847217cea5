/* described_layers.h: the layers of described networks: what each is called, takes and gives. */
#ifndef PC__DESCRIBED_LAYERS_H
#define PC__DESCRIBED_LAYERS_H

#include "io/json_read.h"
#include "train/described.h"

enum { PC__DESCRIBED_NAME = 48 };

/* What comes to a layer: channels of a picture, or flat, in `channels`, so many numbers. */
typedef struct pc__place {
    int64_t channels, high, wide;
    bool flat;
} pc__place;

typedef struct pc__describing {
    pc__json in;
    const char *begin;
    bool makes; /* else it only counts */
    pc_init_kind init;
    int outputs, depth;
    double parameters, activations, largest;
    pc__text text; /* the last word */
} pc__describing;

/* Keys of layers. */
enum {
    PC__OUT = 1,
    PC__KERNEL = 2,
    PC__STRIDE = 4,
    PC__PADDING = 8,
    PC__GROUPS = 16,
    PC__DILATION = 32,
    PC__BIAS = 64,
    PC__ACTIVATES = 128,
    PC__P = 256,
    PC__BODY = 512,
    PC__SHORTCUT = 1024,
    PC__WINDOW = PC__KERNEL | PC__STRIDE | PC__PADDING
};

typedef struct pc__described_layer pc__described_layer;

/* What there is. make: fill in *module, where it is made, and change *at to what it gives. may, must: keys. */
typedef struct pc__described_kind {
    const char *name;
    pc_status (*make)(pc__describing *r, pc__described_layer *l, pc__place *at, pc_module **module);
    int may, must;
    pc_activation_kind activation; /* of a layer that is one */
} pc__described_kind;
extern const pc__described_kind pc__described_kinds[];

struct pc__described_layer {
    const pc__described_kind *kind; /* NULL: not said yet */
    int given, line;                /* keys; the line that it begins on */
    char name[PC__DESCRIBED_NAME];
    int64_t out, kernel, stride, padding, groups, dilation;
    double p;
    bool bias, same;
    pc_activation_kind activation;
    pc_module *body, *shortcut;
    pc__place after_body, after_shortcut;
};

/* How many numbers there are. */
double pc__place_numbers(const pc__place *at);

/* The beginning of all messages. */
#define PC__DESCRIBED "the description of the network, line %d: "

#endif

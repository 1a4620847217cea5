/* models.h: networks for pictures by name, with the parameters' names of torchvision, so that its files load:
 *
 *     pc_module *net = pc_picture_network("resnet18", 1000);
 *     if (pc_weights_load(net, "resnet18.safetensors", (pc_weights_options){0}) != PC_OK)
 *         return pc_report(stderr);
 *
 * where Python wrote safetensors.torch.save_file(torchvision.models.resnet18(weights="DEFAULT").state_dict(),
 * "resnet18.safetensors"). Threads and ownership as in nn.h.
 */
#ifndef PARACORD_MODELS_H
#define PARACORD_MODELS_H

#include <paracord/module.h>

PC_BEGIN

typedef struct pc_picture_network_options {
    int reserved_;
    int channels;      /* of the pictures; 0: 3 */
    int height, width; /* of the pictures, where the network goes by it (vit_tiny, vit_b_16); 0: 224 */
    double dropout;    /* in front of the last layers; 0: torchvision's (vgg11 0.5, mobilenet_v2 0.2); below 0: none */
} pc_picture_network_options;

/* A network for pictures [n, channels, height, width] that gives `classes` logits for each, [n, classes]:
 *
 *     vgg11               eight convolutions of 3x3, three linear layers (Simonyan, Zisserman 2014); from 32 x 32 pixels on
 *     resnet18, resnet34  residual blocks of two convolutions (He et al. 2015)
 *     resnet50            residual blocks of three
 *     mobilenet_v2        inverted residual blocks with depthwise convolutions (Sandler et al. 2018)
 *     vit_tiny            a vision transformer of patches of 16 x 16 pixels, 12 layers, 192 wide, with 3 heads (Touvron et
 *                         al. 2020); height and width are multiples of 16
 *     vit_b_16            the same, 768 wide, with 12 heads (Dosovitskiy et al. 2020)
 *
 * Layers, and what parameters and buffers are called, are those of torchvision; vit_tiny is its VisionTransformer in that
 * size. Weights begin as torchvision's do, drawn from the thread's generator. NULL: PC_ERR_ARGUMENT (names the networks
 * there are; numbers that make none), PC_ERR_SHAPE (pictures that it cannot take), PC_ERR_MEMORY. */
PC_API PC_MUST_USE pc_module *pc_picture_network_new(const char *name, int classes, pc_picture_network_options options);
#define pc_picture_network(name, ...) PC_PICTURE_NETWORK_(name, __VA_ARGS__, )
#define PC_PICTURE_NETWORK_(name, classes, ...)                                                                        \
    pc_picture_network_new((name), (classes), PC_OPTIONS(pc_picture_network_options, __VA_ARGS__))

/* The name of network i, from 0; NULL behind the last one. */
PC_API const char *pc_picture_network_name(int i);

/* What the last layer of the network of that name is called, whose outputs are the classes: "fc" of resnet18. To train that
 * alone, freeze the rest (pc_module_freeze). NULL and PC_ERR_ARGUMENT for a name that is none. */
PC_API const char *pc_picture_network_head(const char *name);

PC_END
#endif

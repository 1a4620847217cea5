/* size.c: networks before they are made: their parameters, and what their layers give. */
#include "models/models.h"

typedef struct walk {
    pc__picture_size *size;
    int channels, high, wide; /* of what the last layer gave */
} walk;

/* A layer gives so many numbers. */
static void give(walk *w, double numbers)
{
    w->size->activations += numbers;
    w->size->largest = PC__MAX(w->size->largest, numbers);
}

static double area(const walk *w)
{
    return (double)w->high * w->wide;
}

/* A convolution of odd kernel with the padding that keeps the picture; `after`: norms and activations behind it, each of
 * which gives as much. */
static void conv(walk *w, int out, int kernel, int stride, int groups, bool bias, int after)
{
    w->size->parameters += (double)out * (w->channels / groups) * kernel * kernel + (bias ? out : 0);
    w->high = (w->high - 1) / stride + 1, w->wide = (w->wide - 1) / stride + 1;
    w->channels = out;
    for (int i = 0; i <= after; i++)
        give(w, out * area(w));
}

/* With a norm, and relus behind that. */
static void conv_norm(walk *w, int out, int kernel, int stride, int groups, int relus)
{
    w->size->parameters += 2.0 * out;
    conv(w, out, kernel, stride, groups, false, 1 + relus);
}

/* For each of `places`, which all share it. */
static void linear(walk *w, double in, double out, double places)
{
    w->size->parameters += (in + 1) * out;
    give(w, out * places);
}

static void vgg(walk *w, int classes, const int *layers)
{
    for (; *layers; layers++) {
        if (*layers > 0) {
            conv(w, *layers, 3, 1, 1, true, 1);
            continue;
        }
        w->high /= 2, w->wide /= 2;
        give(w, w->channels * area(w));
    }
    give(w, 512 * 7 * 7);
    linear(w, 512 * 7 * 7, 4096, 1);
    linear(w, 4096, 4096, 1);
    give(w, 4 * 4096); /* relus and dropouts */
    linear(w, 4096, classes, 1);
}

static void resnet(walk *w, int classes, const int *blocks, int expansion)
{
    conv_norm(w, 64, 7, 2, 1, 1);
    w->high = (w->high - 1) / 2 + 1, w->wide = (w->wide - 1) / 2 + 1;
    give(w, w->channels * area(w));
    for (int stage = 0; stage < 4; stage++)
        for (int i = 0; i < blocks[stage]; i++) {
            const int width = 64 << stage, stride = stage && !i ? 2 : 1;
            walk before = *w;
            if (expansion > 1)
                conv_norm(w, width, 1, 1, 1, 1);
            conv_norm(w, width, 3, stride, 1, 1);
            conv_norm(w, width * expansion, expansion > 1 ? 1 : 3, 1, 1, 0);
            if (before.channels != width * expansion || stride > 1)
                conv_norm(&before, width * expansion, 1, stride, 1, 0);
            give(w, w->channels * area(w)); /* the sum, and its relu */
            give(w, w->channels * area(w));
        }
    give(w, w->channels);
    linear(w, w->channels, classes, 1);
}

static void mobilenet(walk *w, int classes)
{
    static const int stages[][4] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                    {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    conv_norm(w, 32, 3, 2, 1, 1);
    for (int s = 0; s < PC__COUNT(stages); s++)
        for (int i = 0; i < stages[s][2]; i++) {
            const int in = w->channels, stride = i ? 1 : stages[s][3], inside = in * stages[s][0];
            if (inside != in)
                conv_norm(w, inside, 1, 1, 1, 1);
            conv_norm(w, inside, 3, stride, inside, 1);
            conv_norm(w, stages[s][1], 1, 1, 1, 0);
            if (in == w->channels && stride == 1)
                give(w, in * area(w));
        }
    conv_norm(w, 1280, 1, 1, 1, 1);
    give(w, 2 * 1280);
    linear(w, 1280, classes, 1);
}

static void vit(walk *w, int classes, double width, int layers)
{
    const double patches = (double)(w->high / 16) * (w->wide / 16), tokens = patches + 1;
    w->size->parameters += (w->channels * 256.0 + 1) * width + width + tokens * width;
    give(w, patches * width);
    give(w, tokens * width);
    give(w, tokens * width);
    for (int i = 0; i < layers; i++) {
        w->size->parameters += 4 * width;
        linear(w, width, 3 * width, tokens);
        linear(w, width, width, tokens);
        linear(w, width, 4 * width, tokens);
        give(w, 4 * width * tokens);
        linear(w, 4 * width, width, tokens);
        for (int k = 0; k < 5; k++) /* two norms, attention, two sums */
            give(w, width * tokens);
    }
    w->size->parameters += 2 * width;
    give(w, tokens * width);
    linear(w, width, classes, 1);
}

void pc__picture_size_of(const char *name, int classes, const pc__picture_options *o, pc__picture_size *size)
{
    static const int few[] = {2, 2, 2, 2}, more[] = {3, 4, 6, 3},
                     eleven[] = {64, -1, 128, -1, 256, 256, -1, 512, 512, -1, 512, 512, -1, 0};
    *size = (pc__picture_size){0};
    walk w = {size, o->channels, o->height, o->width};
    if (strcmp(name, "vgg11") == 0)
        vgg(&w, classes, eleven);
    else if (strcmp(name, "mobilenet_v2") == 0)
        mobilenet(&w, classes);
    else if (strncmp(name, "vit", 3) == 0)
        vit(&w, classes, strcmp(name, "vit_tiny") == 0 ? 192 : 768, 12);
    else
        resnet(&w, classes, strcmp(name, "resnet18") == 0 ? few : more, strcmp(name, "resnet50") == 0 ? 4 : 1);
}

/* layers.c: the network that the words of a case name, from its input on. */
#include "drawn/drawn.h"

#include <stdlib.h>
#include <string.h>

/* `at`: the shape of what the next layer gets. */
static void window(pc_shape *at, int64_t kernel, int64_t stride, int64_t padding)
{
    for (int i = 2; i < 4; i++)
        at->dim[i] = (at->dim[i] + 2 * padding - kernel) / stride + 1;
}

/* c32k3s1p1:relu */
static pc_module *convolution(pc_shape *at, const char *word, pc_activation_kind activation)
{
    int out, kernel, stride, padding;
    if (sscanf(word, "c%dk%ds%dp%d", &out, &kernel, &stride, &padding) != 4 || stride < 1 || at->ndim != 4)
        return NULL;
    pc_module *layer =
        pc_conv2d(at->dim[1], out, kernel, .stride = stride, .padding = padding, .activation = activation);
    at->dim[1] = out;
    window(at, kernel, stride, padding);
    return layer;
}

static pc_module *pooling(pc_shape *at, const char *word)
{
    const int kernel = (int)strtol(word + 2, NULL, 10);
    if (kernel < 1 || at->ndim != 4)
        return NULL;
    window(at, kernel, kernel, 0);
    return word[0] == 'm' ? pc_max_pool2d(kernel) : pc_avg_pool2d(kernel);
}

static pc_module *flatten(pc_shape *at)
{
    while (at->ndim > 2)
        at->dim[1] *= at->dim[--at->ndim];
    return pc_flatten();
}

static pc_module *layer_of(pc_shape *at, const char *word)
{
    pc_activation_kind activation = PC_ACTIVATION_NONE;
    const char *colon = strchr(word, ':');
    if (colon && activation_of(colon + 1, &activation) != PC_OK)
        return NULL;
    if (strncmp(word, "mp", 2) == 0 || strncmp(word, "ap", 2) == 0)
        return pooling(at, word);
    if (word[0] == 'c')
        return convolution(at, word, activation);
    if (strcmp(word, "f") == 0)
        return flatten(at);
    if (word[0] == 'a')
        return pc_activation(activation);
    if (word[0] == 'd')
        return pc_dropout(strtod(word + 1, NULL));
    if (word[0] != 'l' || at->ndim != 2)
        return NULL;
    const int64_t in = at->dim[1];
    at->dim[1] = strtoll(word + 1, NULL, 10);
    return pc_linear(in, at->dim[1], .activation = activation);
}

pc_module *net_of(const words *w, pc_shape x)
{
    pc_module *layers[WORDS_MOST];
    pc_shape at = x;
    int count = 0;
    for (int i = 1; i < w->count; i++)
        if (!strchr(w->word[i], '=')) {
            layers[count++] = layer_of(&at, w->word[i]);
            if (!layers[count - 1] && !pc_failed())
                (void)pc_fail(PC_ERR_ARGUMENT, "layer '%s' is not known here", w->word[i]);
        }
    return pc_sequential_new(layers, count);
}

/* preparation.c: rescale, mean and std of pictures. */
#include "train/preparation.h"

#include "train/metrics_line.h"

#include <math.h>
#include <stdlib.h>

pc_preparation pc__preparation_assumed(void)
{
    pc_preparation p = {.rescale = 1 / 255.0, .resize = PC_RESIZE_NEAREST};
    for (int c = 0; c < PC_PREPARATION_CHANNELS; c++)
        p.std[c] = 1;
    return p;
}

pc_status pc__preparation_check(const pc_preparation *p)
{
    if (!isfinite(p->rescale) || p->rescale == 0)
        return pc__fail(PC_ERR_ARGUMENT, "rescale %g: pixels are multiplied by a number other than 0, as 1/255 or 1",
                        p->rescale);
    for (int c = 0; c < PC_PREPARATION_CHANNELS; c++)
        if (!isfinite(p->mean[c]) || !isfinite(p->std[c]) || p->std[c] == 0)
            return pc__fail(PC_ERR_ARGUMENT, "mean %g and std %g of channel %d: numbers, the latter not 0", p->mean[c],
                            p->std[c], c);
    if (p->shorter < 0 || p->shorter > PC__MODEL_SIDE_MAX)
        return pc__fail(PC_ERR_ARGUMENT, "a shorter side of %d pixels: it is 1 to %d, or 0 for none", p->shorter,
                        PC__MODEL_SIDE_MAX);
    if (p->resize != PC_RESIZE_NEAREST && p->resize != PC_RESIZE_AREA)
        return pc__fail(PC_ERR_ARGUMENT, "%d is no resize mode; use PC_RESIZE_NEAREST or PC_RESIZE_AREA", p->resize);
    return PC_OK;
}

bool pc__preparation_normalizes(const pc_preparation *p)
{
    for (int c = 0; c < PC_PREPARATION_CHANNELS; c++)
        if (p->mean[c] != 0 || p->std[c] != 1)
            return true;
    return false;
}

/* ---- the note in a file */

static void print_three(pc__text *out, const char *key, const double values[PC_PREPARATION_CHANNELS])
{
    pc__text_add(out, ", \"%s\": [", key);
    for (int c = 0; c < PC_PREPARATION_CHANNELS; c++) {
        pc__text_add(out, "%s", c ? ", " : "");
        pc__json_number(out, values[c]);
    }
    pc__text_add(out, "]");
}

static void print(pc__text *out, const pc_preparation *p, const char *end)
{
    pc__text_add(out, "{\"resize\": \"%s\", \"rescale\": ", p->resize == PC_RESIZE_AREA ? "area" : "nearest");
    pc__json_number(out, p->rescale);
    if (pc__preparation_normalizes(p)) {
        print_three(out, "mean", p->mean);
        print_three(out, "std", p->std);
    }
    if (p->shorter)
        pc__text_add(out, ", \"shorter\": %d", p->shorter);
    pc__text_add(out, "%s%s}", p->no_exif ? ", \"exif\": false" : "", end);
}

void pc__preparation_print(pc__text *out, const pc_preparation *p)
{
    print(out, p, "");
}

void pc__preparation_note(pc__text *out, const pc_preparation *p)
{
    print(out, p, ", \"whole\": true");
}

/* What stands behind "key": in a flat JSON object, or NULL. */
static const char *value_of(const char *note, const char *key)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = strstr(note, quoted);
    return at ? at + strlen(quoted) + strspn(at + strlen(quoted), " ") : NULL;
}

bool pc__preparation_is_whole(const char *note)
{
    const char *whole = value_of(note, "whole");
    return whole && strncmp(whole, "true", 4) == 0;
}

static void read_three(const char *at, double values[PC_PREPARATION_CHANNELS])
{
    double read[PC_PREPARATION_CHANNELS];
    for (int c = 0; c < PC_PREPARATION_CHANNELS; c++) {
        char *end;
        if (!at || *at != (c ? ',' : '['))
            return;
        read[c] = strtod(at + 1, &end);
        if (end == at + 1)
            return;
        at = end + strspn(end, " ");
    }
    if (*at == ']')
        memcpy(values, read, sizeof read);
}

void pc__preparation_read(const char *note, pc_preparation *p)
{
    pc__plain_numbers numbers = pc__plain_numbers_begin();
    pc_preparation read = *p;
    const char *resize = value_of(note, "resize"), *rescale = value_of(note, "rescale");
    const char *exif = value_of(note, "exif"), *shorter = value_of(note, "shorter");
    if (resize)
        read.resize = strncmp(resize, "\"area\"", 6) == 0 ? PC_RESIZE_AREA : PC_RESIZE_NEAREST;
    if (rescale)
        read.rescale = strtod(rescale, NULL);
    read.shorter = shorter ? atoi(shorter) : 0;
    read_three(value_of(note, "mean"), read.mean);
    read_three(value_of(note, "std"), read.std);
    read.no_exif = exif && strncmp(exif, "false", 5) == 0;
    pc__plain_numbers_end(numbers);
    if (pc__preparation_check(&read) == PC_OK)
        *p = read;
    else
        pc_error_clear();
}

/* ---- in words */

/* 1/255 rather than 0.00392157, where that is what it is. */
static void add_factor(pc__text *text, double factor)
{
    double one_over = 1 / factor;
    if (factor == 1)
        pc__text_add(text, "raw pixels (0 to 255)");
    else if (fabs(factor) < 1 && fabs(one_over * 2 - round(one_over * 2)) < 1e-4)
        pc__text_add(text, "pixels times 1/%g", round(one_over * 2) / 2);
    else
        pc__text_add(text, "pixels times %g", factor);
}

/* One number where all channels have the same, nothing where that is `none`. */
static void add_three(pc__text *text, const char *what, const double *values, int channels, double none)
{
    bool same = true;
    for (int c = 1; c < channels; c++)
        same &= values[c] == values[0];
    if (same && values[0] == none)
        return;
    pc__text_add(text, "%s %g", what, values[0]);
    for (int c = 1; c < channels && !same; c++)
        pc__text_add(text, ",%g", values[c]);
}

char *pc_preparation_text(const pc_preparation *p)
{
    PC__NEED_OR(NULL, p);
    static const char *const sources[] = {
        [PC_PREPARATION_ASSUMED] = "assumed: the file does not say",
        [PC_PREPARATION_NOTED] = "noted in the file",
        [PC_PREPARATION_LAYER] = "a layer in the file",
        [PC_PREPARATION_GIVEN] = "given",
    };
    pc__text text = {0};
    if ((unsigned)p->source >= PC__COUNT(sources))
        return pc__null(PC_ERR_ARGUMENT, "pc_preparation_text: there is no source %d", (int)p->source);
    if (p->height && p->width)
        pc__text_add(&text, "%dx%d ", p->height, p->width);
    else
        pc__text_add(&text, "any size, ");
    pc__text_add(&text, "%s by %s, ", p->channels == 1 ? "grey" : "RGB",
                 p->resize == PC_RESIZE_AREA ? "area" : "nearest neighbour");
    if (p->shorter)
        pc__text_add(&text, "the middle of a shorter side of %d, ", p->shorter);
    add_factor(&text, p->rescale);
    int channels = p->channels == 1 ? 1 : PC_PREPARATION_CHANNELS;
    add_three(&text, ", less", p->mean, channels, 0);
    add_three(&text, ", over", p->std, channels, 1);
    pc__text_add(&text, "%s (%s)", p->no_exif ? ", not turned upright" : "", sources[p->source]);
    if (!text.failed)
        return text.data;
    pc__text_free(&text);
    return NULL;
}

/* ---- computed */

typedef struct normalize {
    pc_module *net; /* borrowed */
    float mean[PC_PREPARATION_CHANNELS], std[PC_PREPARATION_CHANNELS];
} normalize;

static pc_tensor *forward(pc_module *module, pc_tensor *x)
{
    const normalize *n = pc_module_data(module);
    pc_shape shape = x ? pc_tensor_shape(x) : (pc_shape){0};
    if (shape.ndim != 4 || shape.dim[1] > PC_PREPARATION_CHANNELS)
        return pc_failed() ? NULL : pc__null(PC_ERR_SHAPE, "mean and std of pictures need [n, c, h, w]");
    pc_tensor *y = NULL;
    PC_SCOPE {
        pc_shape per_channel = PC_SHAPE(1, shape.dim[1], 1, 1);
        pc_tensor *mean = pc_from_data(n->mean, per_channel, PC_F32, pc_tensor_device(x));
        pc_tensor *std = pc_from_data(n->std, per_channel, PC_F32, pc_tensor_device(x));
        y = pc_keep(pc_forward(n->net, pc_div(pc_sub(x, mean), std)));
    }
    return y;
}

static const pc_module_class normalize_class = {.name = "Normalize", .forward = forward};

pc_module *pc__preparation_module(const pc_preparation *p, pc_module *net)
{
    pc_module *module = pc_module_new(&normalize_class, sizeof(normalize));
    if (!module)
        return NULL;
    normalize *n = pc_module_data(module);
    n->net = net;
    for (int c = 0; c < PC_PREPARATION_CHANNELS; c++)
        n->mean[c] = (float)p->mean[c], n->std[c] = (float)p->std[c];
    return module;
}

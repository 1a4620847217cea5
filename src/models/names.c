/* names.c: the networks for pictures by name. */
#include "models/models.h"

#include <math.h>

enum { SIDE_MAX = 16384, CHANNELS_MAX = 1024, PATCH = 16 };

static const struct {
    const char *name, *head;
    int smallest;   /* sides of pictures */
    int multiple;   /* sides are multiples of it; 0: of any size */
    double dropout; /* torchvision's */
    pc_module *(*make)(int classes, const pc__picture_options *o);
} networks[] = {{"vgg11", "classifier.6", 32, 0, 0.5, pc__vgg11},
                {"resnet18", "fc", 1, 0, 0, pc__resnet18},
                {"resnet34", "fc", 1, 0, 0, pc__resnet34},
                {"resnet50", "fc", 1, 0, 0, pc__resnet50},
                {"mobilenet_v2", "classifier.1", 1, 0, 0.2, pc__mobilenet_v2},
                {"vit_tiny", "heads.head", PATCH, PATCH, 0, pc__vit_tiny},
                {"vit_b_16", "heads.head", PATCH, PATCH, 0, pc__vit_b_16}};

static int row_of(const char *name)
{
    for (int i = 0; i < PC__COUNT(networks); i++)
        if (strcmp(networks[i].name, name) == 0)
            return i;
    return -1;
}

static int find(const char *name)
{
    char list[160] = "";
    const int i = row_of(name);
    for (int k = 0, n = 0; i < 0 && k < PC__COUNT(networks); k++)
        n += snprintf(list + n, sizeof list - (size_t)n, "%s%s",
                      k == 0                         ? ""
                      : k == PC__COUNT(networks) - 1 ? " and "
                                                     : ", ",
                      networks[k].name);
    if (i < 0)
        (void)pc__fail(PC_ERR_ARGUMENT, "there is no network for pictures called \"%.40s\"; there are %s", name, list);
    return i;
}

/* Row i can be made with these options, whose defaults are filled in. */
static pc_status settle(int i, int classes, pc__picture_options *o)
{
    const int multiple = networks[i].multiple, smallest = networks[i].smallest;
    o->channels = o->channels ? o->channels : 3;
    o->height = o->height ? o->height : 224;
    o->width = o->width ? o->width : 224;
    o->dropout = o->dropout == 0 ? networks[i].dropout : fmax(o->dropout, 0);
    if (classes < 1 || o->channels < 1 || o->channels > CHANNELS_MAX || !(o->dropout <= 1))
        return pc__fail(
            PC_ERR_ARGUMENT,
            "%s: %d classes, %d channels, dropout %g: there must be at least one class, 1 to %d channels, and "
            "the dropout must be at most 1",
            networks[i].name, classes, o->channels, o->dropout, CHANNELS_MAX);
    if (o->height < 1 || o->width < 1 || o->height > SIDE_MAX || o->width > SIDE_MAX)
        return pc__fail(PC_ERR_ARGUMENT, "%s: pictures of %d x %d; sides are 1 to %d", networks[i].name, o->height,
                        o->width, SIDE_MAX);
    if (o->height < smallest || o->width < smallest)
        return pc__fail(PC_ERR_SHAPE, "pictures of %d x %d are too small for %s, which needs %d x %d", o->height,
                        o->width, networks[i].name, smallest, smallest);
    if (multiple && (o->height % multiple || o->width % multiple))
        return pc__fail(PC_ERR_SHAPE,
                        "pictures of %d x %d do not suit %s: its sides are multiples of %d, such as %d x %d", o->height,
                        o->width, networks[i].name, multiple, o->height / multiple * multiple,
                        o->width / multiple * multiple);
    return PC_OK;
}

pc_module *pc_picture_network_new(const char *name, int classes, pc_picture_network_options options)
{
    PC__NEED_OR(NULL, name);
    const int i = find(name);
    return i >= 0 && settle(i, classes, &options) == PC_OK ? networks[i].make(classes, &options) : NULL;
}

const char *pc_picture_network_name(int i)
{
    return i >= 0 && i < PC__COUNT(networks) ? networks[i].name : NULL;
}

const char *pc_picture_network_head(const char *name)
{
    PC__NEED_OR(NULL, name);
    const int i = find(name);
    return i < 0 ? NULL : networks[i].head;
}

pc_status pc__picture_network_size(const char *name, int classes, pc__picture_options options, pc__picture_size *size)
{
    const int i = find(name);
    if (i < 0)
        return PC_ERR_ARGUMENT;
    PC__TRY(settle(i, classes, &options));
    pc__picture_size_of(name, classes, &options, size);
    return PC_OK;
}

bool pc__picture_network_exists(const char *name)
{
    return row_of(name) >= 0;
}

/* sizes.c: sizes by name, and what they come to. */
#include "gpt/model.h"

#include <math.h>

static const pc_gpt_options sizes[] = {
    {.size = "nano", .layers = 4, .heads = 4, .width = 128, .context = 64},
    {.size = "micro", .layers = 6, .heads = 6, .width = 192, .context = 128},
    {.size = "mini", .layers = 6, .heads = 6, .width = 384, .context = 256},
    {.size = "small", .layers = 8, .heads = 8, .width = 512, .context = 512},
    {.size = "gpt2", .layers = 12, .heads = 12, .width = 768, .context = 1024},
    {.size = "gpt2-medium", .layers = 24, .heads = 16, .width = 1024, .context = 1024},
    {.size = "gpt2-large", .layers = 36, .heads = 20, .width = 1280, .context = 1024},
    {.size = "gpt2-xl", .layers = 48, .heads = 25, .width = 1600, .context = 1024},
};

const char *pc_gpt_size_name(int i)
{
    return i >= 0 && i < PC__COUNT(sizes) ? sizes[i].size : NULL;
}

pc_status pc_gpt_size(const char *name, pc_gpt_options *options)
{
    PC__NEED(name);
    PC__NEED(options);
    char all[256] = "";
    size_t n = 0;
    for (int i = 0; i < PC__COUNT(sizes); i++) {
        if (strcmp(sizes[i].size, name) == 0) {
            *options = sizes[i];
            options->vocabulary = 50257;
            return PC_OK;
        }
        n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", i ? ", " : "", sizes[i].size);
    }
    return pc__fail(PC_ERR_ARGUMENT, "there is no size \"%.40s\" of GPT; there are %s", name, all);
}

pc_status pc__gpt_check(const pc_gpt_options *o)
{
    if (o->layers < 1 || o->layers > 900 || o->heads < 1 || o->width < 1 || o->width > 1 << 20 || o->width % o->heads ||
        o->context < 1 || o->vocabulary < 1 || o->vocabulary > INT32_MAX)
        return pc__fail(
            PC_ERR_ARGUMENT,
            "gpt: %d layers, %d heads, width %d, context %d, vocabulary %lld: all must be at least 1, layers at "
            "most 900, and the heads must share the width equally",
            o->layers, o->heads, o->width, o->context, (long long)o->vocabulary);
    if (o->group && o->heads % pc_group_size(o->group))
        return pc__fail(PC_ERR_ARGUMENT,
                        "gpt: %d ranks cannot share %d heads equally; take a number of ranks that divides the heads",
                        pc_group_size(o->group), o->heads);
    if (!(o->dropout >= 0 && o->dropout < 1))
        return pc__fail(PC_ERR_ARGUMENT, "gpt: dropout is %g; it must be 0 to below 1", o->dropout);
    return PC_OK;
}

pc_module *pc_gpt_new(pc_gpt_options options)
{
    pc_gpt_options o;
    if (pc_gpt_size(options.size ? options.size : sizes[0].size, &o) != PC_OK)
        return NULL;
    o.layers = options.layers ? options.layers : o.layers;
    o.heads = options.heads ? options.heads : o.heads;
    o.width = options.width ? options.width : o.width;
    o.context = options.context ? options.context : o.context;
    o.vocabulary = options.vocabulary ? options.vocabulary : o.vocabulary;
    o.dropout = options.dropout;
    o.group = options.group;
    return pc__gpt_check(&o) == PC_OK ? pc__gpt_make(&o, true) : NULL;
}

pc_status pc_gpt_query(const pc_module *gpt, pc_gpt_options *options)
{
    PC__NEED(gpt);
    PC__NEED(options);
    const pc_gpt_options *o = pc__gpt_of(gpt, "pc_gpt_query");
    if (!o)
        return PC_ERR_ARGUMENT;
    *options = *o;
    return PC_OK;
}

double pc_gpt_flops(const pc_module *gpt, int64_t length)
{
    PC__NEED_OR(NAN, gpt);
    const pc_gpt_options *o = pc__gpt_of(gpt, "pc_gpt_flops");
    if (!o)
        return NAN;
    const double weights = (double)(pc__gpt_elements(gpt) - (int64_t)o->context * o->width);
    return 6 * weights + 12.0 * o->layers * o->width * (double)length;
}

/* pick.c: which instances fit a wish, and in which order. */
#include "cloud/cloud.h"

#include <math.h>
#include <stdlib.h>

/* What counts for the use, of all accelerators of the instance. 0 (it has no such units) is as good as unknown. */
static double speed_of(const pc_cloud_instance *instance, pc_cloud_use use)
{
    const pc_cloud_gpu *gpu = instance->family->gpu;
    double one = use == PC_CLOUD_INFER ? gpu->bandwidth : use == PC_CLOUD_GRAPHICS ? gpu->f32 : gpu->half;
    return one > 0 ? one * instance->gpus / instance->parts : NAN;
}

static pc_cloud_misfit judge(const pc_cloud_pick_options *wish, const pc_cloud_offer *offer)
{
    const pc_cloud_instance *i = offer->instance;
    const char *vendor = wish->vendor ? wish->vendor : "nvidia", *arch = wish->arch ? wish->arch : "x86_64";
    if (wish->use && !(i->family->uses & (int)wish->use))
        return PC_CLOUD_WRONG_USE;
    if (i->memory_gb < wish->memory_gb || i->gpus < wish->gpus || i->vcpus < wish->vcpus)
        return PC_CLOUD_TOO_LITTLE;
    if (strcmp(vendor, "any") != 0 && strcmp(vendor, i->family->gpu->vendor) != 0)
        return PC_CLOUD_VENDOR;
    if (strcmp(arch, "any") != 0 && strcmp(arch, i->family->arch) != 0)
        return PC_CLOUD_ARCH;
    if (i->parts > 1 && !wish->fractions)
        return PC_CLOUD_FRACTION;
    if (i->family->old && !wish->old)
        return PC_CLOUD_OLD;
    if (isnan(offer->price.usd))
        return wish->budget > 0 || wish->order != PC_CLOUD_FASTEST ? PC_CLOUD_NO_PRICE : PC_CLOUD_FITS;
    if (wish->budget > 0 && offer->price.usd > wish->budget)
        return PC_CLOUD_TOO_DEAR;
    return PC_CLOUD_FITS;
}

/* Less is better, unknown is last. */
static int compare(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) - isnan(b);
    return (a > b) - (a < b);
}

static int in_order(const void *left, const void *right, void *context)
{
    const pc_cloud_offer *a = left, *b = right;
    const pc_cloud_pick_options *wish = context;
    if (!a->misfit != !b->misfit)
        return (a->misfit != 0) - (b->misfit != 0);
    int order = 0;
    if (!a->misfit && wish->order == PC_CLOUD_FASTEST)
        order = compare(-a->speed, -b->speed);
    else if (!a->misfit && wish->order == PC_CLOUD_VALUE)
        order = compare(a->price.usd / a->speed, b->price.usd / b->speed);
    if (!order)
        order = compare(a->price.usd, b->price.usd);
    if (!order)
        order = compare(-a->speed, -b->speed);
    return order ? order : strcmp(a->instance->name, b->instance->name);
}

/* One of `there`, or "any"; NULL asks for nothing. */
static pc_status check_name(const char *what, const char *name, const char *const *there)
{
    pc__text list = {0};
    if (!name || !strcmp(name, "any"))
        return PC_OK;
    for (int i = 0; there[i]; i++) {
        if (!strcmp(name, there[i])) {
            pc__text_free(&list);
            return PC_OK;
        }
        pc__text_add(&list, "%s, ", there[i]);
    }
    pc_status status = pc__fail(PC_ERR_ARGUMENT, "there is no %s \"%.40s\"; there are %sany", what, name,
                                list.failed ? "..., " : list.data);
    pc__text_free(&list);
    return status;
}

static pc_status check_wish(const pc_cloud *cloud, const pc_cloud_pick_options *wish)
{
    if (!(wish->memory_gb >= 0) || wish->gpus < 0 || wish->vcpus < 0 || !(wish->budget >= 0))
        return pc__fail(PC_ERR_ARGUMENT, "a wish needs memory, accelerators, vCPUs and budget of 0 or more");
    PC__TRY(check_name("vendor", wish->vendor, pc__cloud_vendors));
    PC__TRY(check_name("architecture", wish->arch, pc__cloud_archs));
    return pc_cloud_check_region(cloud, wish->region);
}

const char *pc_cloud_trap(const pc_cloud_instance *instance)
{
    PC__NEED_OR(NULL, instance);
    const pc_cloud_family *f = instance->family;
    return !(f->trap_of_several && instance->gpus < 2) ? f->trap : NULL;
}

pc_status pc_cloud_pick(const pc_cloud *cloud, pc_cloud_pick_options wish, pc_cloud_offer **offers, int *count)
{
    PC__NEED(offers);
    PC__NEED(count);
    *offers = NULL, *count = 0;
    PC__NEED(cloud);
    PC__TRY(check_wish(cloud, &wish));
    pc_cloud_offer *found = pc__calloc((size_t)cloud->instance_count + 1, sizeof *found);
    if (!found)
        return PC_ERR_MEMORY;
    for (int i = 0; i < cloud->instance_count; i++) {
        pc_cloud_offer *offer = &found[i];
        offer->instance = &cloud->instances[i];
        offer->price = pc_cloud_price_of(cloud, offer->instance, wish.region);
        offer->speed = speed_of(offer->instance, wish.use);
        offer->misfit = judge(&wish, offer);
    }
    qsort_r(found, (size_t)cloud->instance_count, sizeof *found, in_order, &wish);
    *offers = found;
    *count = cloud->instance_count;
    return PC_OK;
}

void pc_cloud_offers_free(pc_cloud_offer *offers)
{
    pc__free(offers);
}

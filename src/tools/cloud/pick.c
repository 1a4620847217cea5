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

static bool differs(const char *wanted, const char *there)
{
    return strcmp(wanted, "any") != 0 && strcmp(wanted, there) != 0;
}

/* All that stands in the way: 1 << each misfit, or'ed. */
static int judge(const pc_cloud_pick_options *wish, const pc_cloud_offer *offer)
{
    const pc_cloud_instance *i = offer->instance;
    double usd = offer->price.usd;
    bool needs_price = wish->budget > 0 || wish->order != PC_CLOUD_FASTEST;
    const bool misfits[] = {
        [PC_CLOUD_WRONG_USE] = wish->use && !(i->family->uses & (int)wish->use),
        [PC_CLOUD_TOO_LITTLE] =
            i->memory_gb < wish->memory_gb || i->gpus < wish->gpus ||
            i->vcpus<wish->vcpus,
                     [PC_CLOUD_VENDOR] = differs(wish->vendor ? wish->vendor : "nvidia", i->family->gpu->vendor),
                     [PC_CLOUD_ARCH] = differs(wish->arch ? wish->arch : "x86_64", i->family->arch),
                     [PC_CLOUD_FRACTION] = i->parts> 1 &&
                !wish->fractions,
        [PC_CLOUD_OLD] = i->family->old && !wish->old,
        [PC_CLOUD_NO_PRICE] = isnan(usd) && needs_price,
        [PC_CLOUD_TOO_DEAR] = wish->budget > 0 && usd > wish->budget,
    };
    int all = 0;
    for (int m = 0; m < PC__COUNT(misfits); m++)
        all |= misfits[m] << m;
    return all;
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
        offer->misfits = judge(&wish, offer);
        offer->misfit = offer->misfits ? (pc_cloud_misfit)__builtin_ctz((unsigned)offer->misfits) : PC_CLOUD_FITS;
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

/* merge.c: the prices of one catalogue into another: what the user's own copy knows better than the built-in one. */
#include "cloud/cloud.h"

#include <math.h>

pc__cloud_price *pc__cloud_row(pc_cloud *cloud, const pc_cloud_instance *instance, const char *region)
{
    for (int i = 0; i < cloud->price_count; i++)
        if (cloud->prices[i].instance == instance && !strcmp(cloud->prices[i].price.region, region))
            return &cloud->prices[i];
    return NULL;
}

/* The source of that name, made where there is none. */
static pc_status keep_source(pc_cloud *cloud, const pc_cloud_source *from, const pc_cloud_source **source)
{
    int i = 0;
    while (i < cloud->source_count && strcmp(cloud->sources[i].name, from->name) != 0)
        i++;
    if (i == cloud->room)
        return pc__fail(PC_ERR_STATE, "the catalogue %s has more sources than there is room for", cloud->path);
    if (i == cloud->source_count) {
        pc_cloud_source row = {pc__cloud_keep(cloud, from->name), pc__cloud_keep(cloud, from->date),
                               pc__cloud_keep(cloud, from->text)};
        if (!row.name || !row.date || !row.text)
            return PC_ERR_MEMORY;
        cloud->sources[cloud->source_count++] = row;
    }
    *source = &cloud->sources[i];
    return PC_OK;
}

static pc_status take(pc_cloud *cloud, const pc_cloud_instance *instance, pc_cloud_price price)
{
    PC__TRY(keep_source(cloud, price.source, &price.source));
    price.region = pc__cloud_keep(cloud, price.region);
    price.date = pc__cloud_keep(cloud, price.date);
    if (!price.region || !price.date)
        return PC_ERR_MEMORY;
    if (strcmp(price.date, cloud->date) > 0)
        cloud->date = price.date;
    pc__cloud_price *row = pc__cloud_row(cloud, instance, price.region);
    if (!row)
        return pc__cloud_add_price(cloud, instance, price);
    row->price = price;
    return PC_OK;
}

pc_status pc__cloud_merge(pc_cloud *cloud, const pc_cloud *other, int *taken)
{
    *taken = 0;
    for (int i = 0; i < other->price_count; i++) {
        const pc__cloud_price *from = &other->prices[i];
        const char *name = from->instance->name;
        const pc_cloud_instance *instance = pc__cloud_instance(cloud, name, strlen(name));
        const pc__cloud_price *row = instance ? pc__cloud_row(cloud, instance, from->price.region) : NULL;
        if (!instance || isnan(from->price.usd) || (row && strcmp(row->price.date, from->price.date) > 0))
            continue;
        PC__TRY(take(cloud, instance, from->price));
        ++*taken;
    }
    return PC_OK;
}

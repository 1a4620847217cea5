/* cloud.h: a catalogue from the inside: rows as they stand in the file, and who owns the text. */
#ifndef PC__CLOUD_H
#define PC__CLOUD_H

#include "base/base.h"

#include <paracord-tools/cloud.h>

#define PC__CLOUD_FORMAT 1 /* of the file; counted up when an older Paracord could not read it */

typedef struct pc__cloud_price {
    const pc_cloud_instance *instance;
    pc_cloud_price price;
} pc__cloud_price;

/* Names and texts point into `text`, which is the file cut into fields, or into `added`. */
struct pc_cloud {
    char *path, *text;
    char **added;
    int added_count, added_capacity;
    const char *date;
    pc_cloud_source *sources; /* `room` of each of these four */
    pc_cloud_gpu *gpus;
    pc_cloud_family *families;
    pc_cloud_instance *instances;
    int source_count, gpu_count, family_count, instance_count, room;
    pc__cloud_price *prices; /* by region, in order of the instances */
    int price_count, price_capacity;
    const char **regions;
    int region_count, region_capacity;
};

/* The catalogue that is built in, with a zero behind it; made of data/cloud.txt by cmake/embed.cmake. */
extern const char pc__data_cloud_txt[];
extern const size_t pc__data_cloud_txt_size;

/* The words of a catalogue, which NULL ends; bits of an int where there may be several. */
extern const char *const pc__cloud_vendors[], *const pc__cloud_archs[], *const pc__cloud_uses[],
                                                                            *const pc__cloud_sagemaker[];

/* Cut cloud->text into rows and check them. PC_ERR_FORMAT names cloud->path, the line and the fault. */
pc_status pc__cloud_read(pc_cloud *cloud);

/* What stands before a trap of machines of several accelerators. */
#define PC__CLOUD_SEVERAL "several: "

/* The first fault of an instance's price ("is 0, ..."), or NULL. The same rule for files and updates. */
const char *pc__cloud_price_fault(double usd, const pc_cloud_instance *instance);

/* Note a price; regions are listed in order of their first. Strings are borrowed. */
pc_status pc__cloud_add_price(pc_cloud *cloud, const pc_cloud_instance *instance, pc_cloud_price price);

/* The row of an instance's price in a region, or NULL. */
pc__cloud_price *pc__cloud_row(pc_cloud *cloud, const pc_cloud_instance *instance, const char *region);

/* Of each price of `other` that is known and not older, the same here; *taken says how many. Texts are copied. */
pc_status pc__cloud_merge(pc_cloud *cloud, const pc_cloud *other, int *taken);

/* A copy of a text that lives as long as the catalogue. */
const char *pc__cloud_keep(pc_cloud *cloud, const char *text);

/* By name, NULL for none, no error. */
const pc_cloud_instance *pc__cloud_instance(const pc_cloud *cloud, const char *name, size_t n);

/* A decimal number ("0.526"), whatever the program's locale. False when it is none, or has more than 15 digits. */
bool pc__cloud_number(const char *text, double *number);

/* "2026-07-20" */
bool pc__cloud_is_date(const char *text);

#endif

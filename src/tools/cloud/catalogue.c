/* catalogue.c: opening a catalogue, the built-in one or the user's newer copy, and looking things up in it. */
#include "cloud/cloud.h"
#include "io/file.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

char *pc_cloud_user_path(void)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    pc__text path = {0};
    if (data && *data == '/') /* the specification: relative ones are to be ignored */
        pc__text_add(&path, "%s/paracord/cloud.txt", data);
    else if (home && *home)
        pc__text_add(&path, "%s/.local/share/paracord/cloud.txt", home);
    else
        return pc__null(PC_ERR_FILE, "no place for a catalogue of your own: neither XDG_DATA_HOME nor HOME is set");
    if (path.failed)
        pc__text_free(&path);
    return path.data;
}

/* Takes `text`, also when it fails. */
static pc_cloud *open_text(const char *path, char *text)
{
    pc_cloud *cloud = text ? pc__calloc(1, sizeof *cloud) : NULL;
    if (!cloud) {
        pc__free(text);
        return NULL;
    }
    cloud->text = text;
    cloud->path = pc__strdup(path);
    if (!cloud->path || pc__cloud_read(cloud) != PC_OK) {
        pc_cloud_free(cloud);
        return NULL;
    }
    return cloud;
}

static pc_cloud *open_file(const char *path)
{
    uint8_t *bytes;
    size_t n;
    if (pc__file_read(path, &bytes, &n) != PC_OK)
        return NULL;
    if (memchr(bytes, 0, n)) {
        pc__free(bytes);
        return pc__null(PC_ERR_FORMAT, "the catalogue %s is not text", path);
    }
    return open_text(path, (char *)bytes);
}

pc_cloud *pc_cloud_open_builtin(void)
{
    char *text = pc__alloc(pc__data_cloud_txt_size + 1);
    if (text)
        memcpy(text, pc__data_cloud_txt, pc__data_cloud_txt_size + 1);
    return open_text("built in", text);
}

/* Takes both: the built-in machines with what the user's copy knows better, under the name of what the prices are of.
 */
static pc_cloud *merge(pc_cloud *builtin, pc_cloud *users)
{
    int taken;
    pc_status status = pc__cloud_merge(builtin, users, &taken);
    if (status == PC_OK && taken) {
        char *path = builtin->path;
        builtin->path = users->path;
        users->path = path;
    }
    pc_cloud_free(users);
    if (status == PC_OK)
        return builtin;
    pc_cloud_free(builtin);
    return NULL;
}

/* The built-in one, with the user's own copy; a copy that cannot be read is an error: what it says would be missed in
 * silence. */
static pc_cloud *open_newest(void)
{
    pc_cloud *builtin = pc_cloud_open_builtin();
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    bool nowhere = !(data && *data == '/') && !(home && *home);
    char *path = builtin && !nowhere ? pc_cloud_user_path() : NULL;
    if (!path || access(path, F_OK) != 0) {
        if (builtin && !nowhere && !path) { /* out of memory */
            pc_cloud_free(builtin);
            builtin = NULL;
        }
        pc__free(path);
        return builtin;
    }
    pc_cloud *users = open_file(path);
    if (!users && pc_error_last()->status == PC_ERR_FORMAT) {
        pc_error error = pc__error_take();
        (void)pc__fail(error.status, "%.400s; mend it, delete it, or renew it with paracord cloud update",
                       error.message);
    }
    pc__free(path);
    if (users)
        return merge(builtin, users);
    pc_cloud_free(builtin);
    return NULL;
}

pc_cloud *pc_cloud_open(const char *path)
{
    return path ? open_file(path) : open_newest();
}

void pc_cloud_free(pc_cloud *cloud)
{
    if (!cloud)
        return;
    for (int i = 0; i < cloud->added_count; i++)
        pc__free(cloud->added[i]);
    pc__free(cloud->added);
    pc__free(cloud->sources);
    pc__free(cloud->gpus);
    pc__free(cloud->families);
    pc__free(cloud->instances);
    pc__free(cloud->prices);
    pc__free(cloud->regions);
    pc__free(cloud->path);
    pc__free(cloud->text);
    pc__free(cloud);
}

const char *pc__cloud_keep(pc_cloud *cloud, const char *text)
{
    if (pc__grow((void **)&cloud->added, &cloud->added_capacity, cloud->added_count, sizeof *cloud->added) != PC_OK)
        return NULL;
    char *copy = pc__strdup(text);
    if (copy)
        cloud->added[cloud->added_count++] = copy;
    return copy;
}

pc_status pc__cloud_add_price(pc_cloud *cloud, const pc_cloud_instance *instance, pc_cloud_price price)
{
    int region = 0;
    while (region < cloud->region_count && strcmp(cloud->regions[region], price.region) != 0)
        region++;
    if (region == cloud->region_count) {
        PC__TRY(pc__grow((void **)&cloud->regions, &cloud->region_capacity, region, sizeof *cloud->regions));
        cloud->regions[cloud->region_count++] = price.region;
    }
    price.region = cloud->regions[region];
    PC__TRY(pc__grow((void **)&cloud->prices, &cloud->price_capacity, cloud->price_count, sizeof *cloud->prices));
    cloud->prices[cloud->price_count++] = (pc__cloud_price){instance, price};
    return PC_OK;
}

const char *pc_cloud_path(const pc_cloud *cloud)
{
    PC__NEED_OR(NULL, cloud);
    return cloud->path;
}

const char *pc_cloud_date(const pc_cloud *cloud)
{
    PC__NEED_OR(NULL, cloud);
    return cloud->date;
}

#define AT(array, count, i) ((i) >= 0 && (i) < (count) ? &(array)[i] : NULL)

const pc_cloud_instance *pc_cloud_instance_at(const pc_cloud *cloud, int i)
{
    PC__NEED_OR(NULL, cloud);
    return AT(cloud->instances, cloud->instance_count, i);
}

const pc_cloud_family *pc_cloud_family_at(const pc_cloud *cloud, int i)
{
    PC__NEED_OR(NULL, cloud);
    return AT(cloud->families, cloud->family_count, i);
}

const pc_cloud_gpu *pc_cloud_gpu_at(const pc_cloud *cloud, int i)
{
    PC__NEED_OR(NULL, cloud);
    return AT(cloud->gpus, cloud->gpu_count, i);
}

const char *pc_cloud_region_at(const pc_cloud *cloud, int i)
{
    PC__NEED_OR(NULL, cloud);
    const char **region = AT(cloud->regions, cloud->region_count, i);
    return region ? *region : NULL;
}

const pc_cloud_instance *pc__cloud_instance(const pc_cloud *cloud, const char *name, size_t n)
{
    for (int i = 0; i < cloud->instance_count; i++)
        if (!strncmp(cloud->instances[i].name, name, n) && !cloud->instances[i].name[n])
            return &cloud->instances[i];
    return NULL;
}

const pc_cloud_instance *pc_cloud_find(const pc_cloud *cloud, const char *name)
{
    PC__NEED_OR(NULL, cloud);
    PC__NEED_OR(NULL, name);
    name += strncmp(name, "ml.", 3) ? 0 : 3; /* SageMaker's name for it */
    const pc_cloud_instance *found = pc__cloud_instance(cloud, name, strlen(name));
    if (found)
        return found;
    size_t n = strcspn(name, ".");
    pc__text there = {0};
    for (int i = 0; i < cloud->instance_count; i++)
        if (strlen(cloud->instances[i].family->name) == n && !strncmp(cloud->instances[i].name, name, n))
            pc__text_add(&there, "%s%s", there.length ? ", " : "", cloud->instances[i].name);
    bool family = there.length > 0;
    for (int i = 0; !family && i < cloud->family_count; i++)
        pc__text_add(&there, "%s%s", i ? ", " : "", cloud->families[i].name);
    (void)pc__fail(PC_ERR_NOT_FOUND, "there is no instance \"%.40s\" in the catalogue; there are %s%s", name,
                   family ? "" : "the families ", there.failed ? "..." : there.data);
    pc__text_free(&there);
    return NULL;
}

const pc_cloud_family *pc_cloud_find_family(const pc_cloud *cloud, const char *name)
{
    PC__NEED_OR(NULL, cloud);
    PC__NEED_OR(NULL, name);
    pc__text there = {0};
    for (int i = 0; i < cloud->family_count; i++) {
        if (!strcmp(cloud->families[i].name, name)) {
            pc__text_free(&there);
            return &cloud->families[i];
        }
        pc__text_add(&there, "%s%s", i ? ", " : "", cloud->families[i].name);
    }
    (void)pc__fail(PC_ERR_NOT_FOUND, "there is no family \"%.40s\"; there are %s", name,
                   there.failed ? "..." : there.data);
    pc__text_free(&there);
    return NULL;
}

pc_status pc_cloud_check_region(const pc_cloud *cloud, const char *region)
{
    PC__NEED(cloud);
    pc__text there = {0};
    for (int i = 0; i < cloud->region_count; i++) {
        if (!region || !strcmp(cloud->regions[i], region)) {
            pc__text_free(&there);
            return PC_OK;
        }
        pc__text_add(&there, "%s%s", i ? ", " : "", cloud->regions[i]);
    }
    const char *list = there.failed ? "..." : there.data;
    if (pc_cloud_is_region(region))
        (void)pc__fail(
            PC_ERR_NOT_FOUND,
            "there are no prices of region \"%.40s\", only of %s; paracord cloud update --region %.40s gets them",
            region, list, region);
    else
        (void)pc__fail(PC_ERR_NOT_FOUND, "there is no region \"%.40s\"; prices are known only of %s", region, list);
    pc__text_free(&there);
    return PC_ERR_NOT_FOUND;
}

pc_cloud_price pc_cloud_price_of(const pc_cloud *cloud, const pc_cloud_instance *instance, const char *region)
{
    pc_cloud_price none = {.usd = NAN, .region = region};
    PC__NEED_OR(none, cloud);
    PC__NEED_OR(none, instance);
    region = region ? region : cloud->regions[0];
    none.region = region, none.date = cloud->date;
    for (int i = 0; i < cloud->price_count; i++) {
        const pc__cloud_price *row = &cloud->prices[i];
        if (strcmp(row->price.region, region) != 0)
            continue;
        if (row->instance == instance)
            return row->price;
        none.source = row->price.source, none.date = row->price.date; /* its list did not have the instance */
    }
    return none;
}

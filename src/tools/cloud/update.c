/* update.c: prices from what `aws pricing get-products` prints: {"PriceList": [product, ...]}, each product a JSON text
 * inside a string, or an object. */
#include "cloud/cloud.h"

#if PC_HAVE_CJSON

#include <cjson/cJSON.h>
#include <math.h>

/* A price of the list. */
typedef struct listed {
    double usd;       /* 0: none, or an older one than what is known */
    char date[16];    /* when it was published */
    const char *kept; /* the date, as the catalogue keeps it */
} listed;

/* What the list says, until all of it has been read. */
typedef struct update {
    pc_cloud *cloud;
    const char *name;         /* of the list, for messages */
    const char *region;       /* wanted; NULL: the only one there is */
    char found[40], date[16]; /* of the newest price that is taken */
    char other[40];           /* the first region that is not wanted */
    listed *prices;           /* by instance */
    int products, priced, zero, older;
    pc__text strangers;
} update;

static pc_status wrong(const update *u, const char *why)
{
    return pc__fail(PC_ERR_FORMAT, "%s: %s; it must be what aws pricing get-products --service-code AmazonEC2 prints",
                    u->name, why);
}

/* A member's text, "" where there is none. */
static const char *text(const cJSON *object, const char *key)
{
    const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
    return value ? value : "";
}

static bool is(const cJSON *object, const char *key, const char *wanted)
{
    const char *value = text(object, key);
    return !*value || !strcmp(value, wanted); /* older lists lack some of the attributes */
}

/* Linux, on demand, on shared hardware, without licences, by the hour. */
static bool is_plain(const cJSON *attributes)
{
    return is(attributes, "operatingSystem", "Linux") && is(attributes, "tenancy", "Shared") &&
           is(attributes, "preInstalledSw", "NA") && is(attributes, "capacitystatus", "Used") &&
           is(attributes, "marketoption", "OnDemand") && is(attributes, "operation", "RunInstances");
}

/* US dollars an hour of the product's on-demand terms; NaN when there are none. */
static double price_of(const cJSON *product)
{
    const cJSON *terms = cJSON_GetObjectItemCaseSensitive(product, "terms"), *term, *dimension;
    cJSON_ArrayForEach(term, cJSON_GetObjectItemCaseSensitive(terms, "OnDemand"))
    {
        cJSON_ArrayForEach(dimension, cJSON_GetObjectItemCaseSensitive(term, "priceDimensions"))
        {
            double usd;
            const char *written = text(cJSON_GetObjectItemCaseSensitive(dimension, "pricePerUnit"), "USD");
            if (!strcmp(text(dimension, "unit"), "Hrs") && pc__cloud_number(written, &usd))
                return usd;
        }
    }
    return NAN;
}

static pc_status note_region(update *u, const char *region)
{
    if (!pc_cloud_is_region(region))
        return pc__fail(PC_ERR_FORMAT, "%s: \"%.40s\" is no region such as us-east-1", u->name, region);
    if (*u->found && strcmp(u->found, region) != 0)
        return pc__fail(PC_ERR_FORMAT, "%s: it has prices of %s and of %.30s; name one with --region", u->name,
                        u->found, region);
    snprintf(u->found, sizeof u->found, "%s", region);
    return PC_OK;
}

static void note_stranger(update *u, const cJSON *attributes, const char *type)
{
    if (!*text(attributes, "gpu") || (u->strangers.data && strstr(u->strangers.data, type)))
        return;
    pc__text_add(&u->strangers, "%s%.40s", u->strangers.length ? ", " : "", type);
}

static pc_status take(update *u, const cJSON *product)
{
    const cJSON *about = cJSON_GetObjectItemCaseSensitive(product, "product");
    const cJSON *attributes = cJSON_GetObjectItemCaseSensitive(about, "attributes");
    const char *type = text(attributes, "instanceType"), *region = text(attributes, "regionCode");
    const char *published = text(product, "publicationDate");
    char day[11] = "";
    if (!attributes)
        return wrong(u, "a product without attributes");
    u->products++;
    if (!*type || !*region || !is_plain(attributes))
        return PC_OK;
    if (u->region && strcmp(u->region, region) != 0) {
        if (!*u->other && pc_cloud_is_region(region))
            snprintf(u->other, sizeof u->other, "%s", region);
        return PC_OK;
    }
    double usd = price_of(product);
    const pc_cloud_instance *instance = pc__cloud_instance(u->cloud, type, strlen(type));
    if (!instance || isnan(usd)) {
        if (!instance)
            note_stranger(u, attributes, type);
        return PC_OK;
    }
    if (usd == 0) { /* capacity blocks and reservations are listed so */
        u->zero++;
        return PC_OK;
    }
    const char *fault = pc__cloud_price_fault(usd, instance);
    if (fault)
        return pc__fail(PC_ERR_FORMAT, "%s: the price of %s %s", u->name, instance->name, fault);
    snprintf(day, sizeof day, "%.10s", published);
    if (!pc__cloud_is_date(day))
        return wrong(u, "a product without a publicationDate");
    PC__TRY(note_region(u, region));
    listed *known = &u->prices[instance - u->cloud->instances];
    if (known->usd > 0 && known->usd != usd)
        return pc__fail(PC_ERR_FORMAT, "%s: two prices for %s, %.10g and %.10g", u->name, instance->name, known->usd,
                        usd);
    u->priced += known->usd == 0;
    known->usd = usd;
    if (strcmp(day, known->date) > 0)
        snprintf(known->date, sizeof known->date, "%s", day);
    return PC_OK;
}

static pc_status take_all(update *u, const cJSON *root)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "PriceList"), *item;
    if (!cJSON_IsArray(list))
        return wrong(u, cJSON_GetObjectItemCaseSensitive(root, "offerCode")
                            ? "this is a whole offer file, not a price list"
                            : "there is no PriceList in it");
    cJSON_ArrayForEach(item, list)
    {
        const char *inner = cJSON_GetStringValue(item);
        cJSON *product = inner ? cJSON_Parse(inner) : NULL;
        pc_status status = inner && !product ? wrong(u, "a product that is no JSON") : take(u, inner ? product : item);
        cJSON_Delete(product);
        PC__TRY(status);
    }
    return PC_OK;
}

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && strchr(" \t\r\n", *at) && *at)
        at++;
    return at;
}

/* One list, or its pages one behind the other, as --no-paginate gives them; the last names no next one. */
static pc_status take_pages(update *u, const char *json, size_t n)
{
    const char *end = json + n, *at = skip_space(json, end);
    bool more = true;
    if (at == end)
        return wrong(u, "it is empty");
    for (; at < end; at = skip_space(at, end)) {
        cJSON *page = cJSON_ParseWithLengthOpts(at, (size_t)(end - at), &at, false);
        pc_status status = page ? take_all(u, page) : wrong(u, "it is no JSON, or cut off");
        more = *text(page, "NextToken") != 0;
        cJSON_Delete(page);
        PC__TRY(status);
    }
    if (more)
        return wrong(u, "it is one page of several, and the next is missing (NextToken)");
    if (!u->priced)
        return pc__fail(PC_ERR_FORMAT, "%s: no price of an instance of the catalogue%s%s in its %d products%s%s%s",
                        u->name, u->region ? " in " : "", u->region ? u->region : "", u->products,
                        *u->other ? "; it has prices of " : "", u->other, *u->other ? " (--region)" : "");
    return u->strangers.failed ? PC_ERR_MEMORY : PC_OK;
}

/* Of each price the newer counts: those of the list that are older than what is known go. A list of nothing else is not
 * today's. */
static pc_status leave_older(update *u)
{
    const pc__cloud_price *first = NULL;
    const char *of = "";
    for (int i = 0; i < u->cloud->instance_count; i++) {
        listed *new = &u->prices[i];
        const pc__cloud_price *row = pc__cloud_row(u->cloud, &u->cloud->instances[i], u->found);
        if (new->usd > 0 && row && strcmp(row->price.date, new->date) > 0) {
            if (u->older++ == 0)
                first = row, of = new->date;
            new->usd = 0;
        } else if (new->usd > 0 && strcmp(new->date, u->date) > 0) {
            snprintf(u->date, sizeof u->date, "%s", new->date);
        }
    }
    return u->older < u->priced
               ? PC_OK
               : pc__fail(PC_ERR_STATE, "%s is of %s, older than the price of %s in the catalogue, which is of %s",
                          u->name, of, first->instance->name, first->price.date);
}

/* The row of the catalogue's sources that stands for this region's price list, of the day of its newest price. */
static pc_status put_source(update *u, const pc_cloud_source **source)
{
    pc_cloud *c = u->cloud;
    char name[64], about[128];
    snprintf(name, sizeof name, "aws-%s", u->found);
    snprintf(about, sizeof about, "AWS Price List of %s, by aws pricing get-products", u->found);
    int i = 0;
    while (i < c->source_count && strcmp(c->sources[i].name, name) != 0)
        i++;
    const bool newer = i == c->source_count || strcmp(u->date, c->sources[i].date) > 0;
    pc_cloud_source row = {pc__cloud_keep(c, name), newer ? pc__cloud_keep(c, u->date) : c->sources[i].date,
                           pc__cloud_keep(c, about)};
    if (!row.name || !row.date || !row.text)
        return PC_ERR_MEMORY;
    if (i == c->room)
        return pc__fail(PC_ERR_STATE, "too many updates of one open catalogue: save and open it again");
    c->sources[i] = row;
    c->source_count = PC__MAX(c->source_count, i + 1);
    *source = &c->sources[i];
    return PC_OK;
}

static pc_status keep_dates(update *u, const char *newest)
{
    for (int i = 0; i < u->cloud->instance_count; i++) {
        listed *new = &u->prices[i];
        if (new->usd == 0)
            continue;
        new->kept = strcmp(new->date, newest) == 0 ? newest : pc__cloud_keep(u->cloud, new->date);
        if (!new->kept)
            return PC_ERR_MEMORY;
    }
    return PC_OK;
}

/* Rows for the prices that have none; on failure there are as many as before. */
static pc_status make_rows(update *u, const char *region)
{
    pc_cloud *c = u->cloud;
    int prices = c->price_count, regions = c->region_count;
    for (int i = 0; i < c->instance_count; i++) {
        pc_cloud_price unknown = {.usd = NAN, .region = region, .date = c->date, .source = &c->sources[0]};
        if (u->prices[i].usd == 0 || pc__cloud_row(c, &c->instances[i], region) ||
            pc__cloud_add_price(c, &c->instances[i], unknown) == PC_OK)
            continue;
        c->price_count = prices, c->region_count = regions;
        return PC_ERR_MEMORY;
    }
    return PC_OK;
}

/* Room for all first: after that nothing can fail. */
static pc_status commit(update *u, pc_cloud_update_report *report)
{
    pc_cloud *c = u->cloud;
    const pc_cloud_source *source = NULL;
    PC__TRY(leave_older(u));
    const char *region = pc__cloud_keep(c, u->found), *newest = pc__cloud_keep(c, u->date);
    const char *strangers = u->strangers.length ? pc__cloud_keep(c, u->strangers.data) : NULL;
    if (!region || !newest || (u->strangers.length && !strangers))
        return PC_ERR_MEMORY;
    PC__TRY(keep_dates(u, newest));
    PC__TRY(put_source(u, &source));
    PC__TRY(make_rows(u, region));
    *report = (pc_cloud_update_report){.region = region,
                                       .date = newest,
                                       .products = u->products,
                                       .zero = u->zero,
                                       .older = u->older,
                                       .strangers = strangers};
    for (int i = 0; i < c->instance_count; i++) {
        const listed *new = &u->prices[i];
        pc__cloud_price *row = pc__cloud_row(c, &c->instances[i], region);
        if (new->usd == 0) {
            report->kept += *new->date == 0;
            continue;
        }
        report->added += isnan(row->price.usd);
        report->same += row->price.usd == new->usd;
        report->changed += !isnan(row->price.usd) && row->price.usd != new->usd;
        row->price = (pc_cloud_price){new->usd, row->price.region, new->kept, source};
    }
    if (strcmp(newest, c->date) > 0)
        c->date = newest;
    return PC_OK;
}

pc_status pc_cloud_update(pc_cloud *cloud, const char *json, size_t n, const char *name, const char *region,
                          pc_cloud_update_report *report)
{
    PC__NEED(report);
    *report = (pc_cloud_update_report){0};
    PC__NEED(cloud);
    PC__NEED(json);
    update u = {.cloud = cloud, .name = name ? name : "the price list", .region = region};
    u.prices = pc__calloc((size_t)cloud->instance_count + 1, sizeof *u.prices);
    if (!u.prices)
        return PC_ERR_MEMORY;
    pc_status status = take_pages(&u, json, n);
    if (status == PC_OK)
        status = commit(&u, report);
    pc__text_free(&u.strangers);
    pc__free(u.prices);
    return status;
}

#else

pc_status pc_cloud_update(pc_cloud *cloud, const char *json, size_t n, const char *name, const char *region,
                          pc_cloud_update_report *report)
{
    (void)n, (void)region;
    PC__NEED(cloud);
    PC__NEED(json);
    PC__NEED(report);
    *report = (pc_cloud_update_report){0};
    return pc__fail(PC_ERR_UNSUPPORTED,
                    "%s: reading price lists needs cJSON, and this Paracord was built without it; install libcjson-dev "
                    "(Debian, Ubuntu) and build again",
                    name ? name : "the price list");
}

#endif

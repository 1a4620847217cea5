/* Prices from a price list, as AWS's command prints it: whole or not at all. */
#include "../data/pictures.h"

#include "base/base.h"

#include "../train/faults.h"
#include <math.h>
#include <paracord-tools/cloud.h>

static test_path root;

static int prepare(void **state)
{
    (void)state;
    root = new_root();
    setenv("XDG_DATA_HOME", root.s, 1);
    return 0;
}

static int tidy(void **state)
{
    (void)state;
    remove_root(&root);
    assert_int_equal(pc_allocator_live(), 0);
    return 0;
}

#if PC_HAVE_CJSON

/* What a product of the list is, where it is not a plain one of Linux. */
typedef struct product {
    const char *type, *usd;
    const char *region, *system, *tenancy, *software, *capacity, *operation, *date; /* NULL: as usual */
    bool bare; /* an object in the list, not a text */
} product;

static const char * or (const char *value, const char *usual)
{
    return value ? value : usual;
}

static void add_product(pc__text *out, const product *p)
{
    pc__text_add(
        out,
        "{\"product\":{\"productFamily\":\"Compute Instance\",\"attributes\":{\"instanceType\":\"%s\",\"gpu\":\"1\","
        "\"vcpu\":\"4\",\"regionCode\":\"%s\",\"operatingSystem\":\"%s\",\"tenancy\":\"%s\",\"preInstalledSw\":\"%s\","
        "\"capacitystatus\":\"%s\",\"marketoption\":\"OnDemand\",\"operation\":\"%s\"},\"sku\":\"S\"},"
        "\"serviceCode\":\"AmazonEC2\",\"terms\":{\"OnDemand\":{\"S.JRTC\":{\"priceDimensions\":{\"S.JRTC.6YS6\":{"
        "\"unit\":\"Hrs\",\"pricePerUnit\":{\"USD\":\"%s\"}}},\"sku\":\"S\"}},\"Reserved\":{\"S.R\":{"
        "\"priceDimensions\":{\"x\":{\"unit\":\"Hrs\",\"pricePerUnit\":{\"USD\":\"0.1\"}}}}}},"
        "\"version\":\"2026\",\"publicationDate\":\"%s\"}",
        p->type, or (p->region, "us-east-1"), or (p->system, "Linux"), or (p->tenancy, "Shared"),
        or (p->software, "NA"), or (p->capacity, "Used"), or (p->operation, "RunInstances"), p->usd,
        or (p->date, "2026-11-20T21:04:55Z"));
}

/* A list of products that ends at the one without a type. */
static char *list_of(const product *products)
{
    pc__text list = {0};
    pc__text_add(&list, "{\"FormatVersion\":\"aws_v1\",\"PriceList\":[");
    for (int i = 0; products[i].type; i++) {
        pc__text one = {0};
        add_product(&one, &products[i]);
        pc__text_add(&list, "%s", i ? "," : "");
        if (products[i].bare)
            pc__text_add(&list, "%s", one.data);
        else
            pc__json_string(&list, one.data);
        pc__text_free(&one);
    }
    pc__text_add(&list, "]}");
    assert_false(list.failed);
    return list.data;
}

static pc_status update(pc_cloud *cloud, const product *products, const char *region, pc_cloud_update_report *report)
{
    char *list = list_of(products);
    pc_status status = pc_cloud_update(cloud, list, strlen(list), "list.json", region, report);
    pc__free(list);
    return status;
}

static pc_cloud_price price_of(const pc_cloud *cloud, const char *name, const char *region)
{
    return pc_cloud_price_of(cloud, pc_cloud_find(cloud, name), region);
}

static void prices_are_replaced(void **state)
{
    (void)state;
    static const product products[] = {{.type = "g4dn.xlarge", .usd = "0.5260000000"},
                                       {.type = "g5.xlarge", .usd = "0.9900000000", .bare = true},
                                       {.type = "g5.xlarge", .usd = "1.5", .system = "Windows"},
                                       {.type = "g5.xlarge", .usd = "1.6", .tenancy = "Dedicated"},
                                       {.type = "g5.xlarge", .usd = "1.7", .software = "SQL Std"},
                                       {.type = "g5.xlarge", .usd = "1.8", .capacity = "UnusedCapacityReservation"},
                                       {.type = "g5.xlarge", .usd = "1.9", .operation = "RunInstances:0010"},
                                       {.type = "g5.xlarge", .usd = "1.1", .region = "eu-west-1"},
                                       {.type = "g5.xlarge", .usd = "0.99"},
                                       {.type = "p5e.48xlarge", .usd = "58.5"},
                                       {.type = "p6-b200.48xlarge", .usd = "0.0000000000"},
                                       {.type = "m5.large", .usd = "0.096"},
                                       {.type = "g8.xlarge", .usd = "2.5"},
                                       {0}};
    pc_cloud *cloud = pc_cloud_open_builtin();
    pc_cloud_update_report r;
    assert_not_null_ok(cloud);
    double b200 = price_of(cloud, "p6-b200.48xlarge", NULL).usd;
    assert_ok(update(cloud, products, "us-east-1", &r));
    assert_true(r.products == 13 && r.changed == 1 && r.same == 1 && r.added == 1 && r.zero == 1 && r.kept > 50);
    assert_string_equal(r.region, "us-east-1");
    assert_string_equal(r.date, "2026-11-20");
    assert_string_equal(r.strangers, "m5.large, g8.xlarge");
    assert_string_equal(pc_cloud_date(cloud), "2026-11-20");
    pc_cloud_price price = price_of(cloud, "g5.xlarge", NULL);
    assert_true(price.usd == 0.99);
    assert_string_equal(price.date, "2026-11-20");
    assert_non_null(strstr(price.source->text, "AWS Price List of us-east-1"));
    assert_true(price_of(cloud, "p5e.48xlarge", NULL).usd == 58.5);
    price = price_of(cloud, "p6-b200.48xlarge", NULL); /* $0 is no price: it keeps its own, and its date */
    assert_true(price.usd == b200);
    assert_string_equal(price.date, "2026-07-20");

    assert_ok(pc_cloud_save(cloud, NULL)); /* and it is what the next one opens */
    pc_cloud *next = pc_cloud_open(NULL);
    assert_not_null_ok(next);
    assert_string_not_equal(pc_cloud_path(next), "built in");
    assert_true(price_of(next, "g5.xlarge", NULL).usd == 0.99);
    assert_true(price_of(next, "p5e.48xlarge", NULL).usd == 58.5);
    assert_true(isnan(price_of(next, "trn2.48xlarge", NULL).usd));

    static const product later[] = {{.type = "g5.xlarge", .usd = "0.98", .date = "2026-12-01T00:00:00Z"}, {0}};
    assert_ok(update(next, later, NULL, &r)); /* again, of the same region: its source is renewed, not there twice */
    assert_ok(pc_cloud_save(next, NULL));
    pc_cloud_free(next);
    next = pc_cloud_open(NULL);
    assert_not_null_ok(next);
    assert_true(price_of(next, "g5.xlarge", NULL).usd == 0.98);
    pc_cloud_free(next);
    pc_cloud_free(cloud);
}

static void another_region_is_added(void **state)
{
    (void)state;
    static const product products[] = {{.type = "g5.xlarge", .usd = "1.258", .region = "eu-central-1"}, {0}};
    pc_cloud *cloud = pc_cloud_open_builtin();
    pc_cloud_update_report r;
    assert_not_null_ok(cloud);
    assert_ok(update(cloud, products, NULL, &r));
    assert_string_equal(pc_cloud_region_at(cloud, 1), "eu-central-1");
    assert_null(pc_cloud_region_at(cloud, 2));
    assert_ok(pc_cloud_check_region(cloud, "eu-central-1"));
    assert_true(price_of(cloud, "g5.xlarge", "eu-central-1").usd == 1.258);
    assert_true(isnan(price_of(cloud, "g6.xlarge", "eu-central-1").usd));
    assert_true(price_of(cloud, "g5.xlarge", "us-east-1").usd == 1.006);
    pc_cloud_free(cloud);
}

/* Each price has its own day; an older one than what is known stays out, beside newer ones too. */
static void of_each_price_the_newer_counts(void **state)
{
    (void)state;
    static const product first[] = {{.type = "g6.xlarge", .usd = "0.7"},
                                    {.type = "g6.2xlarge", .usd = "0.8", .date = "2026-10-01T00:00:00Z"},
                                    {.type = "g5.xlarge", .usd = "0.9", .date = "2026-01-01T00:00:00Z"},
                                    {0}},
                         later[] = {{.type = "g6.2xlarge", .usd = "0.85", .date = "2026-11-01T00:00:00Z"},
                                    {.type = "g6.xlarge", .usd = "0.6", .date = "2026-11-02T00:00:00Z"},
                                    {0}};
    test_path own = joined(root.s, "paracord/cloud.txt");
    pc_cloud *cloud = pc_cloud_open_builtin();
    pc_cloud_update_report r;
    assert_not_null_ok(cloud);
    assert_ok(update(cloud, first, NULL, &r));
    assert_string_equal(r.date, "2026-11-20");
    assert_true(r.changed == 2 && r.older == 1 && r.products == 3);
    assert_true(price_of(cloud, "g5.xlarge", NULL).usd == 1.006);
    assert_string_equal(price_of(cloud, "g5.xlarge", NULL).date, "2026-07-20");
    assert_true(price_of(cloud, "g6.2xlarge", NULL).usd == 0.8);
    assert_string_equal(price_of(cloud, "g6.2xlarge", NULL).date, "2026-10-01");

    assert_ok(update(cloud, later, NULL, &r)); /* newer than one of them alone */
    assert_string_equal(r.date, "2026-11-01");
    assert_true(r.changed == 1 && r.older == 1);
    assert_ok(pc_cloud_save(cloud, NULL));
    pc_cloud_free(cloud);
    cloud = pc_cloud_open(NULL);
    assert_not_null_ok(cloud);
    assert_string_equal(pc_cloud_date(cloud), "2026-11-20");
    assert_string_equal(price_of(cloud, "g6.2xlarge", NULL).source->date, "2026-11-20");
    assert_true(price_of(cloud, "g6.xlarge", NULL).usd == 0.7 && price_of(cloud, "g6.2xlarge", NULL).usd == 0.85);
    assert_string_equal(price_of(cloud, "g6.xlarge", NULL).date, "2026-11-20");
    assert_string_equal(price_of(cloud, "g6.2xlarge", NULL).date, "2026-11-01");
    pc_cloud_free(cloud);
    unlink(own.s);
}

/* Each is refused, and no price is another one afterwards. */
static void wrong_lists_change_nothing(void **state)
{
    (void)state;
    static const struct {
        product products[4];
        const char *region, *words;
        pc_status status;
    } wrong[] = {
        {{{.type = "g5.xlarge", .usd = "0.9"}, {.type = "g5.xlarge", .usd = "0.91"}},
         NULL,
         "two prices for g5.xlarge, 0.9 and 0.91",
         PC_ERR_FORMAT},
        {{{.type = "g5.xlarge", .usd = "0.9"}, {.type = "g5.xlarge", .usd = "1", .region = "eu-west-1"}},
         NULL,
         "--region",
         PC_ERR_FORMAT},
        {{{.type = "g5.xlarge", .usd = "0.9"}},
         "eu-west-1",
         "no price of an instance of the catalogue in eu-west-1 in its 1 products; it has prices of us-east-1",
         PC_ERR_FORMAT},
        {{{.type = "m5.large", .usd = "0.9"}}, NULL, "no price of an instance", PC_ERR_FORMAT},
        {{{.type = "g5.xlarge", .usd = "0.0000"}}, NULL, "no price of an instance", PC_ERR_FORMAT},
        {{{.type = "g5.xlarge", .usd = "999999"}}, NULL, "g5.xlarge is no price of an hour", PC_ERR_FORMAT},
        {{{.type = "g5.xlarge", .usd = "0.9", .date = "yesterday"}}, NULL, "publicationDate", PC_ERR_FORMAT},
        {{{.type = "g5.xlarge", .usd = "0.9", .date = "2026-01-01T00:00:00Z"}},
         NULL,
         "older than the price of g5.xlarge",
         PC_ERR_STATE},
        {{{.type = "g5.xlarge", .usd = "0.9", .region = "us|east"}}, NULL, "\"us|east\" is no region", PC_ERR_FORMAT},
    };
    pc_cloud_update_report r;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        pc_cloud *cloud = pc_cloud_open_builtin();
        assert_not_null_ok(cloud);
        assert_fails(update(cloud, wrong[i].products, wrong[i].region, &r), wrong[i].status, wrong[i].words);
        assert_true(price_of(cloud, "g5.xlarge", NULL).usd == 1.006 && r.products == 0);
        assert_null(pc_cloud_region_at(cloud, 1));
        pc_cloud_free(cloud);
    }
}

static void what_is_no_list_is_refused(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"", "it is empty"},
        {"<html>", "no JSON"},
        {"[]", "no PriceList"},
        {"{\"PriceList\": 3}", "no PriceList"},
        {"{\"PriceList\": [\"{\"]}", "no JSON"},
        {"{\"PriceList\": [3]}", "without attributes"},
        {"{\"PriceList\": []}", "no price of an instance"},
        {" \n\t ", "it is empty"},
        {"{\"PriceList\": []} rest", "no JSON"},
        {"{\"PriceList\": []} []", "no PriceList"},
        {"{\"PriceList\": [], \"NextToken\": \"a\"}", "the next is missing"},
        {"{\"PriceList\": [], \"NextToken\": \"a\"}\n{\"PriceList\": [], \"NextToken\": \"b\"}", "the next is missing"},
        {"{\"offerCode\": \"AmazonEC2\", \"products\": {}}", "whole offer file"},
        {"{\"PriceList\": [\"{\\\"product\\\": {\\\"attributes\\\": 3}}\"]}", "no price of an instance"},
    };
    pc_cloud *cloud = pc_cloud_open_builtin();
    pc_cloud_update_report r;
    assert_not_null_ok(cloud);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_fails(pc_cloud_update(cloud, texts[i][0], strlen(texts[i][0]), "list.json", NULL, &r), PC_ERR_FORMAT,
                     texts[i][1]);
    char *list = list_of((product[]){{.type = "g5.xlarge", .usd = "0.9"}, {0}}); /* cut off anywhere */
    for (size_t n = 0; n < strlen(list); n++)
        assert_fails(pc_cloud_update(cloud, list, n, "list.json", NULL, &r), PC_ERR_FORMAT, "list.json");
    assert_true(price_of(cloud, "g5.xlarge", NULL).usd == 1.006);
    pc__free(list);
    pc_cloud_free(cloud);
}

/* As --no-paginate gives them: the first names a next one, the last does not. */
static void pages_are_one_list(void **state)
{
    (void)state;
    char *first = list_of((product[]){{.type = "g5.xlarge", .usd = "0.9"}, {0}});
    char *last = list_of((product[]){{.type = "g6.xlarge", .usd = "0.7"}, {0}});
    pc__text pages = {0};
    pc_cloud *cloud = pc_cloud_open_builtin();
    pc_cloud_update_report r;
    assert_not_null_ok(cloud);
    pc__text_add(&pages, "%.*s, \"NextToken\": \"abc\"}\n", (int)strlen(first) - 1, first);
    size_t one = pages.length;
    pc__text_add(&pages, "%s\n", last);
    assert_fails(pc_cloud_update(cloud, pages.data, one, "list.json", NULL, &r), PC_ERR_FORMAT, "the next is missing");
    assert_true(price_of(cloud, "g5.xlarge", NULL).usd == 1.006);
    assert_ok(pc_cloud_update(cloud, pages.data, pages.length, "list.json", NULL, &r));
    assert_true(r.products == 2 && r.changed == 2);
    assert_true(price_of(cloud, "g5.xlarge", NULL).usd == 0.9 && price_of(cloud, "g6.xlarge", NULL).usd == 0.7);
    pc__text_free(&pages);
    pc__free(first);
    pc__free(last);
    pc_cloud_free(cloud);
}

static char *swept;

static bool open_update_save(void *context)
{
    (void)context;
    pc_cloud_update_report r;
    pc_cloud *cloud = pc_cloud_open(NULL);
    bool fine = cloud && pc_cloud_update(cloud, swept, strlen(swept), "list.json", NULL, &r) == PC_OK &&
                pc_cloud_save(cloud, NULL) == PC_OK;
    if (cloud && !fine && price_of(cloud, "g5.xlarge", "us-east-1").usd != 1.006)
        fail_msg("a failed update has changed a price");
    pc_cloud_free(cloud);
    return fine;
}

/* Every allocation fails once; the price of the other region has nothing to do with us-east-1's. */
static void memory_may_run_out(void **state)
{
    (void)state;
    test_path own = joined(root.s, "paracord/cloud.txt");
    unlink(own.s);
    char *list = list_of(
        (product[]){{.type = "g5.xlarge", .usd = "1.258", .region = "eu-central-1"},
                    {.type = "g6.xlarge", .usd = "0.9", .region = "eu-central-1", .date = "2026-10-01T00:00:00Z"},
                    {.type = "g8.xlarge", .usd = "3", .region = "eu-central-1"},
                    {0}});
    swept = strdup(list);
    pc__free(list);
    fail_each("open, update, save", open_update_save, NULL, false);
    assert_int_equal(access(own.s, F_OK), 0);
    fail_each("open with an own copy, update, save", open_update_save, NULL, false);
    free(swept);
    unlink(own.s);
}

#else

static void needs_cjson(void **state)
{
    (void)state;
    pc_cloud *cloud = pc_cloud_open_builtin();
    pc_cloud_update_report r;
    assert_not_null_ok(cloud);
    assert_fails(pc_cloud_update(cloud, "{}", 2, "list.json", NULL, &r), PC_ERR_UNSUPPORTED, "libcjson-dev");
    pc_cloud_free(cloud);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#if PC_HAVE_CJSON
        cmocka_unit_test(prices_are_replaced),
        cmocka_unit_test(another_region_is_added),
        cmocka_unit_test(of_each_price_the_newer_counts),
        cmocka_unit_test(wrong_lists_change_nothing),
        cmocka_unit_test(what_is_no_list_is_refused),
        cmocka_unit_test(pages_are_one_list),
        cmocka_unit_test(memory_may_run_out),
#else
        cmocka_unit_test(needs_cjson),
#endif
    };
    return cmocka_run_group_tests_name("cloud.update", tests, prepare, tidy);
}

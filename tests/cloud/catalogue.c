/* The catalogue: what is built in is whole, what is broken is named, what is written reads back the same. */
#include "../data/pictures.h"

#include "cloud/cloud.h"

#include <math.h>
#include <paracord/memory.h>

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

/* What the built-in one must have; a refreshed one too. */
static void builtin_is_whole(void **state)
{
    (void)state;
    static const char *const families[] = {"p2",      "p3",      "p3dn",      "p4d",  "p4de", "p5",   "p5e",  "p5en",
                                           "p6-b200", "p6-b300", "p6e-gb200", "g3",   "g3s",  "g4dn", "g4ad", "g5",
                                           "g5g",     "g6",      "g6e",       "g6f",  "g7",   "g7e",  "dl1",  "inf1",
                                           "inf2",    "trn1",    "trn1n",     "trn2", "trn2u"};
    pc_cloud *cloud = pc_cloud_open(NULL);
    assert_not_null_ok(cloud);
    assert_string_equal(pc_cloud_path(cloud), "built in");
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        assert_not_null_ok(pc_cloud_find_family(cloud, families[i]));
    const pc_cloud_instance *instance;
    int priced = 0, count = 0;
    for (; (instance = pc_cloud_instance_at(cloud, count)); count++) {
        pc_cloud_price price = pc_cloud_price_of(cloud, instance, NULL);
        assert_false(price.usd == 0);
        assert_null(pc__cloud_price_fault(price.usd, instance));
        assert_true(!isnan(price.usd) || instance->family->blocks); /* what is for hire by the hour has its price */
        assert_true(pc__cloud_is_date(price.date));
        assert_string_equal(price.region, "us-east-1");
        assert_non_null(price.source);
        assert_true(instance->vcpus >= 2 && instance->host_mib >= 4096 && instance->gpus >= 1);
        assert_non_null(instance->family->gpu->source);
        priced += !isnan(price.usd);
        /* SageMaker has no bare metal, no AMD, no Graviton, no part of a GPU */
        bool none = strstr(instance->name, ".metal") || instance->parts > 1 || !strcmp(instance->family->name, "g5g") ||
                    !strcmp(instance->family->gpu->vendor, "amd");
        assert_true(!none || !instance->sagemaker);
    }
    assert_true(count >= 95 && priced >= count - 5);
    /* a machine with more of the same accelerators is not cheaper than one with fewer */
    for (int a = 0; a < count; a++)
        for (int b = 0; b < count; b++) {
            const pc_cloud_instance *x = pc_cloud_instance_at(cloud, a), *y = pc_cloud_instance_at(cloud, b);
            if (x->family == y->family && x->gpus > y->gpus && x->vcpus > y->vcpus &&
                pc_cloud_price_of(cloud, x, NULL).usd < pc_cloud_price_of(cloud, y, NULL).usd)
                fail_msg("%s is cheaper than %s", x->name, y->name);
        }
    pc_cloud_free(cloud);
}

/* The prices of the list it began from, digit by digit, where it is still of that day. */
static void builtin_has_known_rows(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double usd, memory_gb;
        int gpus, parts, vcpus;
    } rows[] = {{"g4dn.xlarge", 0.526, 16, 1, 1, 4},       {"p4d.24xlarge", 21.957642, 40, 8, 1, 96},
                {"p5en.48xlarge", 63.296, 141, 8, 1, 192}, {"p5e.48xlarge", NAN, 141, 8, 1, 192},
                {"g6f.large", 0.202, 3, 1, 8, 2},          {"inf2.48xlarge", 12.98127, 32, 12, 1, 192},
                {"p3.16xlarge", 24.48, 16, 8, 1, 64},      {"trn2.48xlarge", NAN, 96, 16, 1, 192},
                {"p2.8xlarge", 7.2, 12, 8, 1, 32},         {"g3s.xlarge", 0.75, 8, 1, 1, 4},
                {"dl1.24xlarge", 13.10904, 32, 8, 1, 96},  {"p6e-gb200.36xlarge", NAN, 186, 4, 1, 144}};
    pc_cloud *cloud = pc_cloud_open_builtin();
    assert_not_null_ok(cloud);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const pc_cloud_instance *instance = pc_cloud_find(cloud, rows[i].name);
        assert_not_null_ok(instance);
        pc_cloud_price price = pc_cloud_price_of(cloud, instance, "us-east-1");
        if (!strcmp(price.date, "2026-07-20"))
            assert_true(isnan(rows[i].usd) ? isnan(price.usd) : price.usd == rows[i].usd);
        assert_true(instance->memory_gb == rows[i].memory_gb);
        assert_int_equal(instance->gpus, rows[i].gpus);
        assert_int_equal(instance->parts, rows[i].parts);
        assert_int_equal(instance->vcpus, rows[i].vcpus);
    }
    assert_ptr_equal(pc_cloud_find(cloud, "ml.g5.xlarge"), pc_cloud_find(cloud, "g5.xlarge"));
    assert_fails(pc_cloud_find(cloud, "g5.huge") != NULL, PC_ERR_NOT_FOUND, "g5.xlarge, g5.2xlarge");
    assert_fails(pc_cloud_find(cloud, "z1.xlarge") != NULL, PC_ERR_NOT_FOUND, "the families p2, p3, ");
    assert_fails(pc_cloud_find_family(cloud, "g") != NULL, PC_ERR_NOT_FOUND, "g4dn");
    assert_fails(pc_cloud_check_region(cloud, "mars"), PC_ERR_NOT_FOUND, "us-east-1");
    pc_cloud_free(cloud);
}

static void assert_same(const pc_cloud *a, const pc_cloud *b)
{
    const pc_cloud_instance *x, *y;
    assert_string_equal(pc_cloud_date(a), pc_cloud_date(b));
    for (int i = 0; (x = pc_cloud_instance_at(a, i)); i++) {
        assert_non_null(y = pc_cloud_instance_at(b, i));
        pc_cloud_price p = pc_cloud_price_of(a, x, NULL), q = pc_cloud_price_of(b, y, NULL);
        assert_string_equal(x->name, y->name);
        assert_true(p.usd == q.usd || (isnan(p.usd) && isnan(q.usd)));
        assert_string_equal(p.date, q.date);
        assert_string_equal(p.source->text, q.source->text);
        assert_true(x->memory_gb == y->memory_gb && x->memory_mib == y->memory_mib && x->host_mib == y->host_mib);
        assert_true(x->gpus == y->gpus && x->parts == y->parts && x->vcpus == y->vcpus && x->sagemaker == y->sagemaker);
        const pc_cloud_family *f = x->family, *g = y->family;
        assert_true(f->uses == g->uses && f->old == g->old && f->blocks == g->blocks && !f->trap == !g->trap &&
                    f->trap_of_several == g->trap_of_several && (!f->trap || !strcmp(f->trap, g->trap)) &&
                    !f->link == !g->link);
        assert_string_equal(f->about, g->about);
        assert_int_equal(memcmp(&f->gpu->memory_gb, &g->gpu->memory_gb, sizeof(double)), 0);
        assert_int_equal(f->gpu->capability, g->gpu->capability);
        assert_true(f->gpu->bandwidth == g->gpu->bandwidth || isnan(f->gpu->bandwidth));
    }
    assert_null(pc_cloud_instance_at(b, a->instance_count));
}

/* The user's copy counts, unless the built-in one is newer. */
static void own_copy(void **state)
{
    (void)state;
    pc_cloud *builtin = pc_cloud_open(NULL);
    assert_not_null_ok(builtin);
    assert_ok(pc_cloud_save(builtin, NULL));
    char *path = pc_cloud_user_path();
    assert_string_equal(path, joined(root.s, "paracord/cloud.txt").s);
    pc_cloud *copy = pc_cloud_open(NULL);
    assert_not_null_ok(copy);
    assert_string_equal(pc_cloud_path(copy), path);
    assert_same(builtin, copy);
    pc_cloud_free(copy);

    builtin->date = "2001-01-01"; /* an old Paracord wrote it */
    for (int i = 0; i < builtin->price_count; i++)
        builtin->prices[i].price.date = "2001-01-01";
    assert_ok(pc_cloud_save(builtin, NULL));
    copy = pc_cloud_open(NULL);
    assert_not_null_ok(copy);
    assert_string_equal(pc_cloud_path(copy), "built in");
    pc_cloud_free(copy);

    put_bytes(root.s, "paracord/cloud.txt", "catalogue | 1", 13);
    assert_fails(pc_cloud_open(NULL) != NULL, PC_ERR_FORMAT, "delete it, or renew it with paracord cloud update");
    assert_int_equal(unlink(path), 0);
    assert_fails(pc_cloud_open(path) != NULL, PC_ERR_FILE, path);
    assert_fails(pc_cloud_save(builtin, "/proc/none/cloud.txt"), PC_ERR_FILE, "/proc/none");
    pc_text_free(path);
    pc_cloud_free(builtin);
}

#define HEAD                                                                                                           \
    "catalogue | 1 | 2026-07-20\nsource | s | - | a list\ngpu | T4 | nvidia | 7.5 | 16 | 8.1 | - | 65 | 320 | s\n"
#define FAMILY "family | g4dn | T4 | x86_64 | train infer | pcie | current | for all | -\n"
#define MACHINE "instance | g4dn.xlarge | 1 | 16384 | 4 | 16384 | training\n"
#define PRICE "price | us-east-1 | g4dn.xlarge | 0.526 | 2026-07-20 | s\n"

/* A copy that an older Paracord wrote: its prices count where they are newer, and the machines are all there. */
static void older_copy_is_merged(void **state)
{
    (void)state;
    static const char text[] = "catalogue | 1 | 2026-09-09\nsource | mine | 2026-09-09 | a list of mine\n"
                               "gpu | T4 | nvidia | 7.5 | 16 | 8.1 | - | 65 | 320 | mine\n" FAMILY MACHINE
                               "instance | g4dn.2xlarge | 1 | 16384 | 8 | 32768 | -\n"
                               "instance | g4dn.4xlarge | 1 | 16384 | 16 | 65536 | -\n"
                               "price | us-east-1 | g4dn.xlarge | 0.777 | 2026-09-09 | mine\n"
                               "price | us-east-1 | g4dn.2xlarge | 0.888 | 2026-01-01 | mine\n"
                               "price | us-east-1 | g4dn.4xlarge | ? | 2026-09-09 | mine\n"
                               "price | eu-west-1 | g4dn.xlarge | 0.999 | 2026-01-01 | mine\n";
    char *path = pc_cloud_user_path();
    pc_cloud *builtin = pc_cloud_open_builtin(), *cloud;
    assert_not_null_ok(builtin);
    put_bytes(root.s, "paracord/cloud.txt", text, sizeof text - 1);
    assert_not_null_ok(cloud = pc_cloud_open(NULL));
    assert_string_equal(pc_cloud_path(cloud), path);
    assert_string_equal(pc_cloud_date(cloud), "2026-09-09");
    assert_int_equal(cloud->instance_count, builtin->instance_count);
    for (int again = 0; again < 2; again++) { /* as it is written, too */
        pc_cloud_price price = pc_cloud_price_of(cloud, pc_cloud_find(cloud, "g4dn.xlarge"), NULL);
        assert_true(price.usd == 0.777);
        assert_string_equal(price.date, "2026-09-09");
        assert_string_equal(price.source->text, "a list of mine");
        assert_true(pc_cloud_price_of(cloud, pc_cloud_find(cloud, "g4dn.2xlarge"), NULL).usd == 0.752);
        assert_true(pc_cloud_price_of(cloud, pc_cloud_find(cloud, "g4dn.4xlarge"), NULL).usd == 1.204);
        assert_true(pc_cloud_price_of(cloud, pc_cloud_find(cloud, "g4dn.xlarge"), "eu-west-1").usd == 0.999);
        assert_string_equal(pc_cloud_region_at(cloud, 0), "us-east-1");
        assert_string_equal(pc_cloud_region_at(cloud, 1), "eu-west-1");
        assert_null(pc_cloud_region_at(cloud, 2));
        assert_ok(pc_cloud_save(cloud, NULL));
        pc_cloud_free(cloud);
        assert_not_null_ok(cloud = pc_cloud_open(NULL));
    }
    pc_cloud_free(cloud);
    pc_cloud_free(builtin);
    assert_int_equal(unlink(path), 0);
    pc_text_free(path);
}

static void small_one_is_read(void **state)
{
    (void)state;
    test_path path = joined(root.s, "small");
    static const char text[] = "\n# a comment\n" HEAD FAMILY "\r\n" MACHINE PRICE "\n   ";
    put_bytes(root.s, "small", text, sizeof text - 1);
    pc_cloud *cloud = pc_cloud_open(path.s);
    assert_not_null_ok(cloud);
    const pc_cloud_instance *i = pc_cloud_instance_at(cloud, 0);
    assert_string_equal(i->name, "g4dn.xlarge");
    assert_null(i->family->trap);
    assert_int_equal(i->family->uses, PC_CLOUD_TRAIN | PC_CLOUD_INFER);
    assert_true(i->family->gpu->tf32 == 0 && i->family->gpu->half == 65);
    assert_int_equal(i->sagemaker, PC_CLOUD_ML_TRAINING);
    assert_null(pc_cloud_instance_at(cloud, 1));
    assert_null(pc_cloud_instance_at(cloud, -1));
    pc_cloud_free(cloud);
}

/* Line 8 of each is wrong; the message says the line and the fault. */
static void faults_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *line, *words;
    } faults[] = {
        {"price | us-east-1 | g4dn.2xlarge | 0 | 2026-07-20 | s", "is 0, which is no price"},
        {"price | us-east-1 | g4dn.2xlarge | 0.000 | 2026-07-20 | s", "is 0, which is no price"},
        {"price | us-east-1 | g4dn.2xlarge | -1 | 2026-07-20 | s", "\"-1\""},
        {"price | us-east-1 | g4dn.2xlarge | nan | 2026-07-20 | s", "\"nan\""},
        {"price | us-east-1 | g4dn.2xlarge | 1e3 | 2026-07-20 | s", "\"1e3\""},
        {"price | us-east-1 | g4dn.2xlarge | 0,5 | 2026-07-20 | s", "\"0,5\""},
        {"price | us-east-1 | g4dn.2xlarge | 999999 | 2026-07-20 | s", "is no price of an hour"},
        {"price | us-east-1 | g4dn.2xlarge | 75.2 | 2026-07-20 | s", "is no price of an hour"},     /* cents */
        {"price | us-east-1 | g4dn.2xlarge | 548.96 | 2026-07-20 | s", "is no price of an hour"},   /* a month */
        {"price | us-east-1 | g4dn.2xlarge | 0.000208 | 2026-07-20 | s", "is no price of an hour"}, /* a second */
        {"price | mars | g4dn.2xlarge | 1.2 | 2026-07-20 | s", "\"mars\" is no region"},
        {"price | US East | g4dn.2xlarge | 1.2 | 2026-07-20 | s", "\"US East\" is no region"},
        {"price | us-east-1 | g4dn.2xlarge | 1.2 | - | s", "no date"},
        {"price | us-east-1 | g4dn.2xlarge | 1.2 | ? | s", "no date"},
        {"price | us-east-1 | g4dn.2xlarge | 1.2 | 20.7.2026 | s", "no date"},
        {"price | us-east-1 | g4dn.2xlarge | 1.2 | 2026-13-01 | s", "no date"},
        {"price | us-east-1 | g4dn.2xlarge | 1.2 | 2026-07-21 | s", "later than the catalogue"},
        {"price | us-east-1 | g4dn.2xlarge | 1.2 | 2026-07-20 | t", "no source t"},
        {"price | us-east-1 | g4dn.4xlarge | 1.2 | 2026-07-20 | s", "no instance g4dn.4xlarge"},
        {"price | us-east-1 | g4dn.xlarge | 1.2 | 2026-07-20 | s", "two prices"},
        {"price | us-east-1 | g4dn.2xlarge | 1.2 | 2026-07-20", "has 5 fields, this one has 4"},
        {"price | us-east-1 | g4dn.2xlarge | 1.2 | 2026-07-20 | s | s", "5 fields, this one has 6"},
        {"price | us-east-1 | | 1.2 | 2026-07-20 | s", "field 2 of this price is empty"},
        {"prise | us-east-1", "\"prise\" is no kind of row"},
        {"catalogue | 1 | 2026-07-20", "one row \"catalogue\""},
        {"source | s | - | again", "s is there twice"},
        {"instance | g4dn.xlarge | 1 | 16384 | 4 | 16384 | -", "twice"},
        {"instance | g4dn.8xlarge | 0 | 16384 | 4 | 16384 | -", "whole number from 1"},
        {"instance | g4dn.8xlarge | 1/0 | 16384 | 4 | 16384 | -", "whole number from 1"},
        {"instance | g4dn.8xlarge | 1 | 1638 | 4 | 16384 | -", "1638 MiB"},
        {"instance | g4dn.8xlarge | 1 | 16384 | 4.5 | 16384 | -", "\"4.5\""},
        {"instance | g4dn.8xlarge | 1 | 16384 | 4 | 16384 | renting", "\"renting\""},
        {"instance | g9.xlarge | 1 | 16384 | 4 | 16384 | -", "no family of g9.xlarge"},
        {"instance | g4dn | 1 | 16384 | 4 | 16384 | -", "no instance such as"},
        {"family | g7 | T5 | x86_64 | train | - | current | a | -", "no accelerator T5"},
        {"family | g7 | T4 | z80 | train | - | current | a | -", "z80"},
        {"family | g7 | T4 | x86_64 arm64 | train | - | current | a | -", "the CPU is \"x86_64 arm64\""},
        {"family | g7 | T4 | - | train | - | current | a | -", "the CPU is \"-\""},
        {"family | g7 | T4 | arm64 | train | - | young | a | -", "young"},
        {"gpu | A | nvidia | - | 16 | 1 | 1 | 1 | 1 | s", "compute capability"},
        {"gpu | A | amd | 7.5 | 16 | 1 | 1 | 1 | 1 | s", "compute capability"},
        {"gpu | A | acme | - | 16 | 1 | 1 | 1 | 1 | s", "the maker: there is no \"acme\""},
        {"gpu | A | amd | - | ? | 1 | 1 | 1 | 1 | s", "must be known"},
        {"gpu | A | amd | - | 16 | fast | 1 | 1 | 1 | s", "\"fast\""},
    };
    test_path path = joined(root.s, "broken");
    char text[1024];
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        int n = snprintf(text, sizeof text, "%s%s%sinstance | g4dn.2xlarge | 1 | 16384 | 8 | 32768 | -\n%s%s\n", HEAD,
                         FAMILY, MACHINE, PRICE, faults[i].line);
        put_bytes(root.s, "broken", text, (size_t)n);
        assert_fails(pc_cloud_open(path.s) != NULL, PC_ERR_FORMAT, faults[i].words);
        assert_fails(pc_cloud_open(path.s) != NULL, PC_ERR_FORMAT, "broken, line 8: ");
    }
    put_bytes(root.s, "broken", "", 0);
    assert_fails(pc_cloud_open(path.s) != NULL, PC_ERR_FORMAT, "is empty");
    put_bytes(root.s, "broken", HEAD, sizeof HEAD - 1);
    assert_fails(pc_cloud_open(path.s) != NULL, PC_ERR_FORMAT, "no prices");
    put_bytes(root.s, "broken", "source | s | - | a list\n", 24);
    assert_fails(pc_cloud_open(path.s) != NULL, PC_ERR_FORMAT, "before all others");
    put_bytes(root.s, "broken", "catalogue | 2 | 2026-07-20\n", 27);
    assert_fails(pc_cloud_open(path.s) != NULL, PC_ERR_FORMAT, "its format is 2");
    put_bytes(root.s, "broken", "catalogue | 1\0| 2026-07-20\n", 27);
    assert_fails(pc_cloud_open(path.s) != NULL, PC_ERR_FORMAT, "not text");
}

/* Cut off or with a byte changed anywhere it is read or refused, and nothing is leaked. */
static void damage_is_survived(void **state)
{
    (void)state;
    test_path path = joined(root.s, "damaged");
    static char text[] = HEAD FAMILY MACHINE PRICE;
    int read = 0, refused = 0;
    for (size_t i = 0; i < 2 * sizeof text - 2; i++) {
        char copy[sizeof text];
        memcpy(copy, text, sizeof text);
        bool cut = i >= sizeof text - 1;
        size_t at = cut ? i - (sizeof text - 1) : i;
        copy[at] = (char)(copy[at] ^ 0x15);
        put_bytes(root.s, "damaged", copy, cut ? at : sizeof text - 1);
        pc_cloud *cloud = pc_cloud_open(path.s);
        read += cloud != NULL, refused += cloud == NULL;
        assert_true(cloud || pc_error_last()->status == PC_ERR_FORMAT);
        pc_error_clear();
        pc_cloud_free(cloud);
    }
    assert_true(read > 20 && refused > (int)sizeof text);
}

static void regions_are_written_as_aws_does(void **state)
{
    (void)state;
    assert_true(pc_cloud_is_region("us-east-1"));
    assert_true(pc_cloud_is_region("us-gov-west-1"));
    assert_false(pc_cloud_is_region("eu-central1"));
    assert_false(pc_cloud_is_region("eu-central-0"));
    assert_false(pc_cloud_is_region("eu--central-1"));
    assert_false(pc_cloud_is_region("mars--1"));
    assert_false(pc_cloud_is_region(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_are_written_as_aws_does),
        cmocka_unit_test(builtin_is_whole),
        cmocka_unit_test(builtin_has_known_rows),
        cmocka_unit_test(own_copy),
        cmocka_unit_test(small_one_is_read),
        cmocka_unit_test(older_copy_is_merged),
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(damage_is_survived),
    };
    return cmocka_run_group_tests_name("cloud.catalogue", tests, prepare, tidy);
}

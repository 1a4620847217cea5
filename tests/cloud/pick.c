/* Which machine? Written questions with the answer that somebody who knows the price list gives (us-east-1, prices of
 * 2026-07-20), and what a wish may not be. */
#include "../support.h"

#include <math.h>
#include <paracord-tools/cloud.h>
#include <paracord/memory.h>
#include <stdlib.h>

static pc_cloud *cloud;

static int prepare(void **state)
{
    (void)state;
    cloud = pc_cloud_open_builtin();
    return cloud ? 0 : -1;
}

static int tidy(void **state)
{
    (void)state;
    pc_cloud_free(cloud);
    assert_int_equal(pc_allocator_live(), 0);
    return 0;
}

static const struct question {
    const char *question, *answer, *why;
    pc_cloud_pick_options wish;
} questions[] = {
    {"I want to try CUDA: the cheapest machine that runs it?",
     "g4dn.xlarge",
     "g4ad (AMD), g5g (Arm) and g6f (an eighth of a GPU) are cheaper and are no answer",
     {.gpus = 1}},
    {"Four GPUs of 40 GB to train on, at most $20 an hour?",
     "g6e.12xlarge",
     "p4d has eight, for $21.96",
     {.use = PC_CLOUD_TRAIN, .memory_gb = 40, .gpus = 4, .budget = 20}},
    {"Eight GPUs of 80 GB to train on, at most $30 an hour?",
     "p4de.24xlarge",
     "p5 is $55, g7e $33",
     {.use = PC_CLOUD_TRAIN, .memory_gb = 80, .gpus = 8, .budget = 30}},
    {"A 13 B model in half precision (26 GB and its cache) on one card, cheapest?",
     "g6e.xlarge",
     "24 GB are too few, the next larger is 32 in g7 for more, 48 in g6e",
     {.use = PC_CLOUD_INFER, .memory_gb = 40}},
    {"The fastest single-H100-class machine to train on for at most $10 an hour?",
     "p5.4xlarge",
     "the one p5 with one GPU",
     {.use = PC_CLOUD_TRAIN, .memory_gb = 80, .budget = 10, .order = PC_CLOUD_FASTEST}},
    {"Most tokens for the dollar on one card of 20 GB, at most $5 an hour?",
     "g5.xlarge",
     "A10G has twice the memory bandwidth of L4, for a quarter more",
     {.use = PC_CLOUD_INFER, .memory_gb = 20, .budget = 5, .order = PC_CLOUD_VALUE}},
    {"A desktop to render on, CUDA or not, whole GPU, cheapest?",
     "g4ad.xlarge",
     "AMD will do here",
     {.use = PC_CLOUD_GRAPHICS, .vendor = "any"}},
    {"A desktop for light graphics, a part of a GPU will do?",
     "g6f.large",
     "an eighth of an L4",
     {.use = PC_CLOUD_GRAPHICS, .fractions = true}},
    {"Streaming Android games: Arm and a GPU?",
     "g5g.xlarge",
     "the only one for graphics that has an Arm CPU",
     {.use = PC_CLOUD_GRAPHICS, .arch = "arm64"}},
    {"140 GB on each GPU, with a price by the hour?",
     "p5en.48xlarge",
     "p5e has no price by the hour",
     {.use = PC_CLOUD_INFER, .memory_gb = 140}},
    {"AWS's own chips to train on, cheapest?",
     "trn1.2xlarge",
     "Inferentia cannot train",
     {.use = PC_CLOUD_TRAIN, .vendor = "aws"}},
    {"96 GB on one GPU without renting eight?",
     "g7e.2xlarge",
     "p5.4xlarge has 80",
     {.use = PC_CLOUD_INFER, .memory_gb = 96}},
    {"A part of a GPU with 10 GB for a desktop?",
     "g4dn.xlarge",
     "a whole T4 costs less than half an L4",
     {.use = PC_CLOUD_GRAPHICS, .memory_gb = 10, .fractions = true}},
    {"The most training speed in one machine, at any price?",
     "p6-b200.48xlarge",
     "p6-b300 is as fast in half precision and dearer",
     {.use = PC_CLOUD_TRAIN, .order = PC_CLOUD_FASTEST}},
    {"Four of the cheapest GPUs to learn data-parallel training?",
     "g4dn.12xlarge",
     "four T4",
     {.use = PC_CLOUD_TRAIN, .gpus = 4}},
};

static void questions_are_answered(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        pc_cloud_offer *offers;
        int count;
        assert_ok(pc_cloud_pick(cloud, questions[i].wish, &offers, &count));
        if (offers[0].misfit || strcmp(offers[0].instance->name, questions[i].answer) != 0)
            fail_msg("%s\nwant %s (%s), got %s at %g", questions[i].question, questions[i].answer, questions[i].why,
                     offers[0].misfit ? "nothing" : offers[0].instance->name, offers[0].price.usd);
        pc_cloud_offers_free(offers);
    }
}

static pc_cloud_misfit misfit_of(const pc_cloud_pick_options *wish, const char *name)
{
    pc_cloud_offer *offers;
    int count;
    pc_cloud_misfit misfit = PC_CLOUD_FITS;
    bool found = false;
    assert_ok(pc_cloud_pick(cloud, *wish, &offers, &count));
    for (int i = 0; i < count; i++)
        if (!strcmp(offers[i].instance->name, name)) {
            misfit = offers[i].misfit;
            found = true;
        }
    pc_cloud_offers_free(offers);
    assert_true(found);
    return misfit;
}

/* One that is something else in two ways needs two more wishes. */
static void every_misfit_is_told(void **state)
{
    (void)state;
    pc_cloud_offer *offers;
    int count, seen = 0;
    assert_ok(pc_cloud_pick(cloud, (pc_cloud_pick_options){.vendor = "amd", .budget = 0.3}, &offers, &count));
    for (int i = 0; i < count; i++) {
        const char *name = offers[i].instance->name;
        int want = !strcmp(name, "g6f.large")     ? 1 << PC_CLOUD_VENDOR | 1 << PC_CLOUD_FRACTION
                   : !strcmp(name, "p3.2xlarge")  ? 1 << PC_CLOUD_VENDOR | 1 << PC_CLOUD_OLD | 1 << PC_CLOUD_TOO_DEAR
                   : !strcmp(name, "g4ad.xlarge") ? 1 << PC_CLOUD_TOO_DEAR
                                                  : 0;
        if (!want)
            continue;
        seen++;
        assert_int_equal(offers[i].misfits, want);
        assert_true(want & 1 << offers[i].misfit);
        assert_int_equal(want & ((1 << offers[i].misfit) - 1), 0);
    }
    assert_int_equal(seen, 3);
    pc_cloud_offers_free(offers);
}

/* Each trap is told from what it looks like. */
static void traps_are_told_apart(void **state)
{
    (void)state;
    pc_cloud_pick_options any = {.gpus = 1}, graphics = {.use = PC_CLOUD_GRAPHICS}, train = {.use = PC_CLOUD_TRAIN};
    pc_cloud_pick_options rich = {.budget = 50}, large = {.memory_gb = 40}, many = {.gpus = 2}, cores = {.vcpus = 8};
    assert_int_equal(misfit_of(&graphics, "g4ad.xlarge"), PC_CLOUD_VENDOR);
    assert_int_equal(misfit_of(&train, "g4ad.xlarge"), PC_CLOUD_WRONG_USE);
    assert_int_equal(misfit_of(&graphics, "g5g.xlarge"), PC_CLOUD_ARCH);
    assert_int_equal(misfit_of(&graphics, "g6f.large"), PC_CLOUD_FRACTION);
    assert_int_equal(misfit_of(&graphics, "p5.48xlarge"), PC_CLOUD_WRONG_USE);
    assert_int_equal(misfit_of(&any, "inf2.xlarge"), PC_CLOUD_VENDOR);
    assert_int_equal(misfit_of(&any, "p3.2xlarge"), PC_CLOUD_OLD);
    assert_int_equal(misfit_of(&any, "p5e.48xlarge"), PC_CLOUD_NO_PRICE);
    assert_int_equal(misfit_of(&rich, "p5.48xlarge"), PC_CLOUD_TOO_DEAR);
    assert_int_equal(misfit_of(&large, "g6.48xlarge"), PC_CLOUD_TOO_LITTLE); /* 8 x 24 GB are not 40 on one */
    assert_int_equal(misfit_of(&many, "g4dn.16xlarge"), PC_CLOUD_TOO_LITTLE);
    assert_int_equal(misfit_of(&cores, "g4dn.xlarge"), PC_CLOUD_TOO_LITTLE);
    assert_int_equal(misfit_of(&cores, "g4dn.2xlarge"), PC_CLOUD_FITS);
}

/* How several GPUs are joined is no matter of a machine with one. */
static void a_trap_of_several_is_none_of_one(void **state)
{
    (void)state;
    const pc_cloud_instance *one = pc_cloud_find(cloud, "g6e.xlarge"), *four = pc_cloud_find(cloud, "g6e.12xlarge");
    assert_non_null(one);
    assert_non_null(four);
    assert_null(pc_cloud_trap(one));
    assert_non_null(strstr(pc_cloud_trap(four), "joined by PCIe"));
    assert_int_equal(strncmp(pc_cloud_trap(four), "The GPUs", 8), 0);
    assert_non_null(pc_cloud_trap(pc_cloud_find(cloud, "g4dn.xlarge")));
    assert_null(pc_cloud_trap(NULL));
}

static void order_is_as_asked(void **state)
{
    (void)state;
    for (int order = PC_CLOUD_CHEAPEST; order <= PC_CLOUD_VALUE; order++) {
        pc_cloud_pick_options wish = {.use = PC_CLOUD_TRAIN, .order = (pc_cloud_order)order};
        pc_cloud_offer *o;
        int count, fitting = 0;
        assert_ok(pc_cloud_pick(cloud, wish, &o, &count));
        while (fitting < count && !o[fitting].misfit)
            fitting++;
        assert_true(fitting > 20);
        for (int i = fitting; i < count; i++)
            assert_true(o[i].misfit != PC_CLOUD_FITS);
        for (int i = 1; i < fitting; i++) {
            double a = o[i - 1].price.usd, b = o[i].price.usd;
            if (order != PC_CLOUD_CHEAPEST) {
                a = order == PC_CLOUD_FASTEST ? -o[i - 1].speed : a / o[i - 1].speed;
                b = order == PC_CLOUD_FASTEST ? -o[i].speed : b / o[i].speed;
            }
            assert_true(isnan(b) || a <= b);
        }
        pc_cloud_offers_free(o);
    }
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    pc_cloud_offer *offers;
    int count;
    const pc_cloud_pick_options wishes[] = {
        {.memory_gb = NAN}, {.memory_gb = -1}, {.gpus = -1}, {.vcpus = -4}, {.budget = -2}};
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++)
        assert_fails(pc_cloud_pick(cloud, wishes[i], &offers, &count), PC_ERR_ARGUMENT, "0 or more");
    assert_fails(pc_cloud_pick(cloud, (pc_cloud_pick_options){.region = "moon-1"}, &offers, &count), PC_ERR_NOT_FOUND,
                 "only of us-east-1");
    assert_fails(pc_cloud_pick(cloud, (pc_cloud_pick_options){.vendor = "acme"}, &offers, &count), PC_ERR_ARGUMENT,
                 "nvidia, amd, aws, intel, any");
    assert_fails(pc_cloud_pick(cloud, (pc_cloud_pick_options){.arch = "mips"}, &offers, &count), PC_ERR_ARGUMENT,
                 "x86_64");
    assert_ok(pc_cloud_pick(cloud, (pc_cloud_pick_options){.memory_gb = 1e6}, &offers, &count));
    assert_int_not_equal(offers[0].misfit, PC_CLOUD_FITS);
    pc_cloud_offers_free(offers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(questions_are_answered), cmocka_unit_test(every_misfit_is_told),
        cmocka_unit_test(traps_are_told_apart),   cmocka_unit_test(a_trap_of_several_is_none_of_one),
        cmocka_unit_test(order_is_as_asked),      cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests_name("cloud.pick", tests, prepare, tidy);
}

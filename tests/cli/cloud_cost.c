/* paracord cloud cost, as it is typed. */
#include "cloud.h"

static void cost_adds_up(void **state)
{
    (void)state;
    run(&e, "cloud", "cost", "article", data.s, "--epochs", "3", "--device", "cpu");
    assert_went_well(&e);
    assert_prints("Training  article on 12 pictures of 64 x 64, testing on 6: 3 epochs in");
    assert_prints("is of one GPU at work.");
    assert_prints("Cheapest first");
    assert_prints("Fastest first");
    assert_prints("g4dn.xlarge      T4 ");
    assert_prints("Left out");
    run(&e, "cloud", "cost", "article", data.s, "--device", "cpu", "--all");
    assert_prints("RTX PRO 6000, 1 of 8");
    assert_no_wide_line();
    run(&e, "cloud", "cost", "resnet", data.s);
    assert_refused(&e, 2, "MODEL resnet: must be article, two-conv, mlp, lenet", "did you mean resnet18?");
    run(&e, "cloud", "cost", "article", data.s, "--rate", "1000");
    assert_refused(&e, 2, "--rate: needs --on GPU too, which it was measured on");
    run(&e, "cloud", "cost", "article", data.s, "--on", "T4");
    assert_refused(&e, 2, "--on T4: needs --rate N too");
    run(&e, "cloud", "cost", "article", data.s, "--rate", "1000", "--on", "T4", "--device", "cpu");
    assert_went_well(&e);
    run(&e, "cloud", "cost", "gone.h5", data.s);
    assert_refused(&e, 1, "gone.h5", "No such file");
    run(&e, "cloud", "cost", "article", joined(root.s, "gone").s);
    assert_refused(&e, 1, "gone", "is not a folder");
    run(&e, "cloud", "cost", "article", data.s, "--device", "abacus");
    assert_refused(&e, 1, "abacus", "cpu");
    run(&e, "cloud", "cost", "article", data.s, "--budget", "0.01");
    assert_refused(&e, 1, "costs at most $0.01 an hour; the cheapest is g4dn.xlarge at $");
    run(&e, "cloud", "cost", "article", data.s, "--budget", "0.01", "--json");
    assert_int_equal(e.status, 1);
    assert_prints("\"cheapest_first\": []");
    assert_prints("\"why\": \"no-cuda\"");
    run(&e, "cloud", "cost", "lenet", data.s, "--size", "512", "--batch", "65536", "--device", "cpu");
    assert_refused(&e, 1, "batches of 65536 pictures of 512 x 512 need", "p6-b300.48xlarge, has 270 GB", "--batch");
    run(&e, "cloud", "cost", "article");
    assert_refused(&e, 2, "DIR is missing", "usage: paracord cloud cost");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cost_adds_up),
    };
    return cmocka_run_group_tests_name("cli.cloud_cost", tests, prepare, tidy);
}

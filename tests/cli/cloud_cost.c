/* paracord cloud cost, as it is typed. */
#include "cloud.h"

/* A folder "many" with n pictures of two classes, all of them the same one. */
static void link_many(int n)
{
    put_picture(root.s, "one.png", 1);
    for (int i = 0; i < n; i++) {
        char name[64];
        snprintf(name, sizeof name, "many/%s/%d.png", i % 2 ? "cat" : "dog", i);
        assert_int_equal(link(joined(root.s, "one.png").s, placed(root.s, name).s), 0);
    }
}

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
    assert_refused(&e, 2, "abacus", "cpu");
    run(&e, "cloud", "cost", "article", data.s, "--budget", "0.01");
    assert_refused(&e, 1, "costs at most $0.01 an hour; the cheapest is g4dn.xlarge at $");
    run(&e, "cloud", "cost", "article", data.s, "--budget", "0.01", "--json");
    assert_int_equal(e.status, 1);
    assert_prints("\"cheapest_first\": []");
    assert_prints("\"why\": \"no-cuda\"");
    link_many(2800);
    run(&e, "cloud", "cost", "lenet", joined(root.s, "many").s, "--size", "1024", "--batch", "65536", "--device",
        "cpu");
    assert_refused(&e, 1, "batches of 2240 pictures of 1024 x 1024 need", "p6-b300.48xlarge, has 270 GB", "--batch");
    run(&e, "cloud", "cost", "article");
    assert_refused(&e, 2, "DIR is missing", "usage: paracord cloud cost");
}

/* What is large, small or one is written as such, and every row has its columns. */
static void numbers_keep_their_columns(void **state)
{
    (void)state;
    run(&e, "cloud", "cost", "mlp", data.s, "--size", "8", "--epochs", "1", "--device", "cpu");
    assert_went_well(&e);
    assert_prints("testing on 6: 1 epoch in batches of");
    assert_prints(" kB of memory traffic");
    assert_prints(" us ");
    size_t end = 0;
    for (const char *line = strstr(e.out, "  instance"); line && strncmp(line, "Model", 5);
         line = strchr(line, '\n') + 1)
        if (!strncmp(line, "  ", 2)) {
            size_t n = strcspn(line, "\n");
            if (end && n != end)
                fail_msg("%zu columns and not %zu: %.*s", n, end, (int)n, line);
            end = n;
        }
    assert_true(end > 0);
    run(&e, "cloud", "cost", "mobilenet_v2", data.s, "--size", "224", "--device", "cpu");
    assert_went_well(&e);
    assert_prints(" GFLOP and ");
    assert_null(strstr(e.out, "e+0"));
    run(&e, "cloud", "cost", "mlp", data.s, "--size", "4097");
    assert_refused(&e, 2, "--size 4097", "8 to 4096");
    run(&e, "help", "cloud", "cost");
    assert_prints("paracord train wrote");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cost_adds_up),
        cmocka_unit_test(numbers_keep_their_columns),
    };
    return cmocka_run_group_tests_name("cli.cloud_cost", tests, prepare, tidy);
}

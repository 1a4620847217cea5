/* The words of paracord bench: what figures of GPUs and links, good and bad, are said to mean. */
#include "support.h"

#include "bench.h"

#include <math.h>

static bench_limits limits;

static int prepare(void **state)
{
    (void)state;
    limits = (bench_limits){.pcie = {5, 16, 5, 16}};
    return 0;
}

static bench_result fast(double rate, double limit, const char *origin)
{
    return (bench_result){.median = 1e-3,
                          .low = 0.99e-3,
                          .high = 1.01e-3,
                          .amount = rate * 1e-3,
                          .limit = {limit, origin},
                          .beside = NAN};
}

static void assert_says(bench_kind kind, bench_result r, const char *words)
{
    const bench_row row = {.name = "row", .kind = kind, .unit = "B"};
    char text[512];
    assert_string_equal(bench_verdict(&row, &r, &limits, text, sizeof text), words);
}

static void assert_link(bench_link link, double rate, const char *words)
{
    limits.pcie = link;
    assert_says(BENCH_LINK, fast(rate, bench_link_rate(5, 16), "PCIe 5.0 x16"), words);
}

static void links_have_their_rates(void **state)
{
    (void)state;
    assert_true(fabs(bench_link_rate(3, 16) - 15.754e9) < 1e7);
    assert_true(fabs(bench_link_rate(4, 8) - 15.754e9) < 1e7);
    assert_true(fabs(bench_link_rate(5, 16) - 63.015e9) < 1e7);
    assert_true(fabs(bench_link_rate(1, 1) - 0.25e9) < 1);
    assert_true(isnan(bench_link_rate(0, 16)));
    assert_true(isnan(bench_link_rate(5, 0)));
    assert_true(isnan(bench_link_rate(99, 16)));
}

static void a_slow_link_is_named(void **state)
{
    (void)state;
    assert_link((bench_link){5, 8, 5, 16}, 26.5e9, "copies at 42% of PCIe 5.0 x16: the link runs at x8");
    assert_link((bench_link){3, 16, 5, 16}, 13e9, "copies at 21% of PCIe 5.0 x16: the link runs at PCIe 3.0");
    assert_link((bench_link){4, 4, 5, 16}, 7e9, "copies at 11% of PCIe 5.0 x16: the link runs at PCIe 4.0 x4");
    assert_link((bench_link){5, 16, 5, 16}, 55e9, "copies at 87% of PCIe 5.0 x16: as fast as such a link gets");
    /* a link that was asleep when it was looked at, and woke for the copies */
    assert_link((bench_link){1, 16, 5, 16}, 55e9, "copies at 87% of PCIe 5.0 x16: as fast as such a link gets");
    assert_link((bench_link){1, 16, 5, 16}, 20e9,
                "copies at 32% of PCIe 5.0 x16: the link itself is whole; look for other copies, the IOMMU, or memory "
                "of the other CPU socket");
    assert_link((bench_link){0, 8, 5, 16}, 26.5e9, "copies at 42% of PCIe 5.0 x16: the link runs at x8");
    assert_link((bench_link){5, 16, 5, 16}, 20e9,
                "copies at 32% of PCIe 5.0 x16: the link itself is whole; look for other copies, the IOMMU, or memory "
                "of the other CPU socket");
    assert_link((bench_link){0, 0, 5, 16}, 55e9, "copies at 87% of PCIe 5.0 x16: as fast as such a link gets");
    assert_says(BENCH_LINK, fast(5e9, NAN, NULL), "how fast the link could be is unknown");
}

static void nvlinks_are_no_pcie(void **state)
{
    (void)state;
    limits.pcie = (bench_link){3, 8, 5, 16};
    assert_says(BENCH_PEER, fast(390e9, 450e9, "its NVLinks"),
                "copies between devices at 87% of its NVLinks: as fast as such a link gets");
}

static void ordinary_memory_is_compared_with_pinned(void **state)
{
    (void)state;
    bench_result r = fast(10e9, 63e9, "PCIe 5.0 x16");
    r.beside = 53e9;
    assert_says(BENCH_PAGEABLE, r, "pinned memory is 5.3 times as fast");
    r.beside = 10.5e9;
    assert_says(BENCH_PAGEABLE, r, "as fast as from pinned memory");
    r.beside = NAN;
    assert_says(BENCH_PAGEABLE, r, "goes through pinned memory in pieces");
}

static void memory_and_products_have_shares(void **state)
{
    (void)state;
    assert_says(BENCH_MEMORY, fast(4.2e12, 4.8e12, "datasheet of H200"), "as fast as this device's memory gets");
    assert_says(BENCH_MEMORY, fast(2.6e12, 4.8e12, "datasheet of H200"), "a part of what this device's memory gives");
    assert_says(BENCH_HOST, fast(1e9, 20e9, "measured: reading"), "far below what the host's memory gives");
    const bench_row one = {.kind = BENCH_HOST, .which = BENCH_ONE_THREAD};
    const bench_result third = fast(7e9, 20e9, "measured: reading");
    char text[512];
    assert_string_equal(bench_verdict(&one, &third, &limits, text, sizeof text),
                        "one thread gets 35% of what the host's memory gives");
    assert_says(BENCH_MEMORY, fast(4e12, NAN, NULL), "how fast this device's memory could be is unknown");
    assert_says(BENCH_PRODUCT, fast(750e12, 989e12, "datasheet of H200"), "as fast as large products get");
    assert_says(BENCH_PRODUCT, fast(1200e12, 989e12, "datasheet of H200"),
                "above that limit, which then is another board's");
    strcpy(limits.clocks, "software power cap");
    assert_says(BENCH_PRODUCT, fast(500e12, 989e12, "datasheet of H200"),
                "a part of the arithmetic's limit; clocks are held down by software power cap");
    limits.clocks[0] = 0;
    assert_says(BENCH_PRODUCT, fast(1e12, NAN, NULL), "how fast this type could be is unknown");
}

static void calls_are_told_in_what_they_cost(void **state)
{
    (void)state;
    bench_result r = {.median = 3e-6, .low = 3e-6, .high = 3e-6, .beside = 4e12, .limit = {NAN, NULL}};
    assert_says(BENCH_LAUNCH, r, "sums of fewer than 1,000,000 elements take less time than their call");
    r.beside = NAN;
    assert_says(BENCH_LAUNCH, r, "");
    r.beside = 6e-6;
    assert_says(BENCH_NODE, r, "2.0 times as quick as a call: record what is called often");
    assert_says(BENCH_SYNC, r, "waiting costs little here");
    r.beside = 3e-6;
    assert_says(BENCH_NODE, r, "no quicker than a call: here a recording wins little");
    r.beside = 0.5e-6;
    assert_says(BENCH_SYNC, r, "a result waited for costs 6 calls that are not");
}

static void overlap_is_what_is_hidden(void **state)
{
    (void)state;
    bench_result r = fast(10e9, 10e9, "alone"); /* as long as the longer of the two */
    r.beside = 2e-3;
    assert_says(BENCH_OVERLAP, r, "100% of the shorter is hidden behind the longer");
    r.limit.rate = 20e9; /* twice as long: one after the other */
    r.beside = 1e-3;
    assert_says(BENCH_OVERLAP, r,
                "0% of the shorter is hidden behind the longer: copies and computing mostly wait for each other");
}

static void disks_set_the_pace_or_not(void **state)
{
    (void)state;
    bench_result r = fast(1.9e9, 2e9, "alone");
    r.beside = 0;
    assert_says(BENCH_DISK, r, "the disk sets the pace; copying hides behind it");
    r.limit.rate = 4e9;
    assert_says(BENCH_DISK, r, "copying adds to reading");
    r.beside = 1;
    assert_says(BENCH_DISK, r, "this folder lies in memory: --disk names one on a disk");
}

static void unrest_and_absence_are_told(void **state)
{
    (void)state;
    bench_result r = fast(4.2e12, 4.8e12, "datasheet of H200");
    r.high = 1.4e-3;
    assert_says(BENCH_MEMORY, r, "as fast as this device's memory gets; times differ by 41%: something else runs here");
    strcpy(r.why, "there is one device of its kind");
    assert_says(BENCH_PEER, r, "not measured: there is one device of its kind");
    char little[12]; /* words that do not fit are cut, never written beyond */
    const bench_row row = {.kind = BENCH_PEER};
    assert_string_equal(bench_verdict(&row, &r, &limits, little, sizeof little), "not measure");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(links_have_their_rates, prepare),
        cmocka_unit_test_setup(a_slow_link_is_named, prepare),
        cmocka_unit_test_setup(nvlinks_are_no_pcie, prepare),
        cmocka_unit_test_setup(ordinary_memory_is_compared_with_pinned, prepare),
        cmocka_unit_test_setup(memory_and_products_have_shares, prepare),
        cmocka_unit_test_setup(calls_are_told_in_what_they_cost, prepare),
        cmocka_unit_test_setup(overlap_is_what_is_hidden, prepare),
        cmocka_unit_test_setup(disks_set_the_pace_or_not, prepare),
        cmocka_unit_test_setup(unrest_and_absence_are_told, prepare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The limits beside paracord bench's results, by recorded machines, and the picture of a GPU's figures. */
#include "../train/folder.h"

#include "bench.h"

#include <paracord/cloud.h>

#include <math.h>

#define MACHINE(name) PC_TEST_GOLDEN "/machines/" name ".txt"

#define assert_near(value, wanted)                                                                                     \
    do {                                                                                                               \
        if (!(fabs((value) / (wanted)-1) < 1e-3))                                                                      \
            fail_msg("%s is %g, want %g", #value, (double)(value), (double)(wanted));                                  \
    } while (0)

static void a_known_gpu_has_its_datasheet(void **state)
{
    (void)state;
    bench_limits l;
    bench_known_limits(&l, 0, MACHINE("healthy-h200"));
    assert_string_equal(l.model, "NVIDIA H200");
    assert_string_equal(l.memory.origin, "datasheet of H200");
    assert_near(l.memory.rate, 4.8e12);
    assert_near(l.math[BENCH_F64].rate, 67e12); /* that of its matrix units */
    assert_near(l.math[BENCH_F32].rate, 67e12);
    assert_near(l.math[BENCH_TF32].rate, 494e12);
    assert_near(l.math[BENCH_BF16].rate, 989e12);
    assert_string_equal(l.link.origin, "PCIe 5.0 x16");
    assert_near(l.link.rate, 63.0e9);
}

static void links_are_looked_up(void **state)
{
    (void)state;
    bench_limits l;
    bench_known_limits(&l, 1, MACHINE("narrow-link"));
    assert_int_equal(l.pcie.width, 8);
    assert_int_equal(l.pcie.width_max, 16);
    assert_string_equal(l.link.origin, "PCIe 4.0 x16");
    assert_near(l.link.rate, 31.5e9);
    bench_known_limits(&l, 0, MACHINE("narrow-link"));
    assert_int_equal(l.pcie.width, 16); /* its neighbour sits well */
    bench_known_limits(&l, 0, MACHINE("healthy-8xh100"));
    assert_string_equal(l.peer.origin, "its NVLinks");
    assert_near(l.peer.rate, 450e9);
}

static void what_nobody_knows_is_unknown(void **state)
{
    (void)state;
    bench_limits l;
    const int nobody[] = {-1, 17};
    for (int i = 0; i < 2; i++) {
        bench_known_limits(&l, nobody[i], MACHINE("healthy-h200"));
        assert_true(isnan(l.memory.rate) && isnan(l.link.rate) && isnan(l.peer.rate) && isnan(l.math[BENCH_F32].rate));
        assert_string_equal(l.model, "");
    }
}

/* Boards of PCIe are slower than those of the catalogue; words of another name are no name. */
static void names_of_drivers_are_found(void **state)
{
    (void)state;
    pc_cloud *cloud = pc_cloud_open_builtin();
    assert_non_null(cloud);
    static const char *const known[][2] = {{"NVIDIA H200", "H200"},
                                           {"NVIDIA H100 80GB HBM3", "H100"},
                                           {"NVIDIA A100-SXM4-40GB", "A100 40GB"},
                                           {"Tesla T4", "T4"}};
    for (int i = 0; i < 4; i++) {
        const pc_cloud_gpu *gpu = pc_cloud_gpu_named(cloud, known[i][0]);
        assert_non_null(gpu);
        assert_string_equal(gpu->name, known[i][1]);
    }
    static const char *const unknown[] = {"NVIDIA H100 PCIe", "NVIDIA GeForce RTX 4090", "NVIDIA GH200 480GB", ""};
    for (int i = 0; i < 4; i++)
        assert_null(pc_cloud_gpu_named(cloud, unknown[i]));
    pc_cloud_free(cloud);
}

static void place(bench *b, const char *name, double flops, double bytes, double seconds)
{
    for (int i = 0; i < bench_row_count; i++)
        if (!strcmp(bench_rows[i].name, name)) {
            b->chosen[i] = true;
            b->results[i] = (bench_result){.median = seconds, .flops = flops, .bytes = bytes, .amount = bytes};
        }
}

/* Each type has its roof and its dot. */
static void a_gpu_has_five_roofs(void **state)
{
    (void)state;
    static bench b;
    const double side = 8192, flops = 2 * side * side * side, pairs = 3 * side * side;
    bench_known_limits(&b.limits, 0, MACHINE("healthy-h200"));
    place(&b, "add", 1 << 27, 12.0 * (1 << 27), 0.39e-3);
    place(&b, "saxpy", 2.0 * (1 << 27), 12.0 * (1 << 27), 0.38e-3);
    place(&b, "product.f64", flops, 8 * pairs, 18.6e-3);
    place(&b, "product.f32", flops, 4 * pairs, 21.8e-3);
    place(&b, "product.tf32", flops, 4 * pairs, 2.7e-3);
    place(&b, "product.f16", flops, 2 * pairs, 1.5e-3);
    place(&b, "product.bf16", flops, 2 * pairs, 1.4e-3);
    test_path root = folder_in_memory(), path = joined(root.s, "roof.svg");
    assert_true(bench_roofline(&b, path.s));
    static char svg[32768];
    FILE *file = fopen(path.s, "r");
    assert_non_null(file);
    svg[fread(svg, 1, sizeof svg - 1, file)] = 0;
    fclose(file);
    static const char *const parts[] = {">memory: 4.80 TB/s<",      ">f64, f32: 67.0 TFLOP/s<",   ">tf32: 494 TFLOP/s<",
                                        ">f16, bf16: 989 TFLOP/s<", ">product.f64 59.1 TFLOP/s<", ">product.bf16 785 "};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strstr(svg, parts[i]))
            fail_msg("no %s in %s", parts[i], svg);
    if (getenv("PC_TEST_KEEP"))
        puts(svg);
    remove_root(&root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_known_gpu_has_its_datasheet), cmocka_unit_test(links_are_looked_up),
        cmocka_unit_test(what_nobody_knows_is_unknown),  cmocka_unit_test(names_of_drivers_are_found),
        cmocka_unit_test(a_gpu_has_five_roofs),
    };
    return cmocka_run_group_tests_name("cli.bench_limits", tests, NULL, NULL);
}

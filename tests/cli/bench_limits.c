/* The limits beside paracord bench's results, by recorded machines, and the picture of a GPU's figures. */
#include "../train/folder.h"

#include "bench.h"
#include "bench_plot.h"
#include "whole.h"

#include <paracord-tools/cloud.h>
#include <paracord/image.h>

#include <math.h>

#define MACHINE(name) PC_TEST_GOLDEN "/machines/" name ".txt"

#define assert_near(value, wanted)                                                                                     \
    do {                                                                                                               \
        if (!(fabs((value) / (wanted)-1) < 1e-3))                                                                      \
            fail_msg("%s is %g, want %g", #value, (double)(value), (double)(wanted));                                  \
    } while (0)

static void ask(bench_limits *l, int index, const char *recording)
{
    pc_machine *machine = pc_machine(.root = recording);
    assert_non_null(machine);
    bench_known_limits(l, machine, index);
    pc_machine_free(machine);
}

static void a_known_gpu_has_its_datasheet(void **state)
{
    (void)state;
    bench_limits l;
    ask(&l, 0, MACHINE("healthy-h200"));
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
    ask(&l, 1, MACHINE("narrow-link"));
    assert_int_equal(l.pcie.width, 8);
    assert_int_equal(l.pcie.width_max, 16);
    assert_string_equal(l.link.origin, "PCIe 4.0 x16");
    assert_near(l.link.rate, 31.5e9);
    ask(&l, 0, MACHINE("narrow-link"));
    assert_int_equal(l.pcie.width, 16); /* its neighbour sits well */
    ask(&l, 0, MACHINE("healthy-8xh100"));
    assert_string_equal(l.peer.origin, "its NVLinks");
    assert_near(l.peer.rate, 450e9);
}

static void what_nobody_knows_is_unknown(void **state)
{
    (void)state;
    bench_limits l;
    const int nobody[] = {-1, 17};
    for (int i = 0; i < 2; i++) {
        ask(&l, nobody[i], MACHINE("healthy-h200"));
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
            const bool product = bench_rows[i].kind == BENCH_PRODUCT;
            b->results[i] = (bench_result){.median = seconds,
                                           .flops = flops,
                                           .bytes = bytes,
                                           .amount = product ? flops : bytes,
                                           .limit = product ? b->limits.math[bench_rows[i].which] : b->limits.memory};
        }
}

static void place_h200(bench *b)
{
    const double side = 8192, flops = 2 * side * side * side, pairs = 3 * side * side;
    ask(&b->limits, 0, MACHINE("healthy-h200"));
    place(b, "add", 1 << 27, 12.0 * (1 << 27), 0.39e-3);
    place(b, "saxpy", 2.0 * (1 << 27), 12.0 * (1 << 27), 0.38e-3);
    place(b, "product.f64", flops, 8 * pairs, 18.6e-3);
    place(b, "product.f32", flops, 4 * pairs, 21.8e-3);
    place(b, "product.tf32", flops, 4 * pairs, 2.7e-3);
    place(b, "product.f16", flops, 2 * pairs, 1.5e-3);
    place(b, "product.bf16", flops, 2 * pairs, 1.4e-3);
}

/* PC_TEST_KEEP=FOLDER keeps the pictures, to be looked at. */
static test_path picture_path(const test_path *root, const char *name)
{
    const char *keep = getenv("PC_TEST_KEEP");
    return joined(keep ? keep : root->s, name);
}

static void write_picture(const bench *b, const char *path, bool (*write)(const void *plot, FILE *out))
{
    static bench_plot plot;
    bench_draw(b, &plot);
    assert_true(cli_write_whole(NULL, path, write, &plot));
}

/* Each type has its roof and its dot. */
static void a_gpu_has_five_roofs(void **state)
{
    (void)state;
    static bench b;
    place_h200(&b);
    test_path root = folder_in_memory(), path = picture_path(&root, "roof.svg");
    write_picture(&b, path.s, bench_write_svg);
    static char svg[32768];
    FILE *file = fopen(path.s, "r");
    assert_non_null(file);
    svg[fread(svg, 1, sizeof svg - 1, file)] = 0;
    fclose(file);
    static const char *const parts[] = {
        ">memory: 4.80 TB/s<",      ">f64, f32: 67.0 TFLOP/s<",        ">tf32: 494 TFLOP/s<",
        ">f16, bf16: 989 TFLOP/s<", ">product.f64 59.1 TFLOP/s, 88%<", ">product.bf16 785 TFLOP/s, 79%<",
        ">saxpy 706 GFLOP/s, 88%<"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strstr(svg, parts[i]))
            fail_msg("no %s in %s", parts[i], svg);
    remove_root(&root);
}

/* Whether any pixel of the picture has this colour. */
static bool has_colour(const pc_image *picture, bench_ink ink)
{
    const uint32_t colour = bench_colours[ink].light;
    const uint8_t *p = picture->pixels;
    for (size_t i = 0; i < (size_t)picture->width * (size_t)picture->height; i++, p += 3)
        if (((uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2]) == colour)
            return true;
    return false;
}

static void pixels_show_the_same(void **state)
{
    (void)state;
    static bench b;
    pc_image picture;
    place_h200(&b);
    test_path root = folder_in_memory(), path = picture_path(&root, "roof.png");
    write_picture(&b, path.s, bench_write_png);
    assert_ok(pc_image_read(path.s, PC_OPTIONS(pc_image_options, .channels = 3), &picture));
    assert_true(picture.width >= 1600 && picture.height >= 900);
    for (bench_ink ink = INK_PAPER; ink < INKS; ink++)
        if (ink != INK_FRAME && !has_colour(&picture, ink))
            fail_msg("nothing has the colour of %s", bench_colours[ink].name);
    pc_image_free(&picture);
    remove_root(&root);
}

/* Every letter has strokes of whole points, within its line. */
static void letters_can_be_drawn(void **state)
{
    (void)state;
    for (int c = '!'; c <= '~'; c++) {
        int width;
        const char *at = bench_letter((char)c, &width);
        if (!*at || width < 0 || width > 9)
            fail_msg("%c: \"%s\", %d wide", c, at, width);
        while (*at) {
            at += *at == '~' || *at == '@';
            const size_t n = strcspn(at, " ");
            if (n < 4 || n % 2 || n > 24 || strspn(at, "0123456789abcd") != n)
                fail_msg("%c: a stroke \"%s\"", c, at);
            at += n + (at[n] == ' ');
        }
    }
    int width;
    assert_string_equal(bench_letter('\377', &width), bench_letter('?', &width));
}

/* Labels that want the same place stand below each other, in the picture, whatever the figures. */
static void labels_never_meet(void **state)
{
    (void)state;
    static bench b;
    static bench_plot plot;
    static const char *const names[] = {"product.f64", "product.f32", "product.tf32", "product.f16", "product.bf16"};
    uint32_t random = 1;
    for (int round = 0; round < 2000; round++) {
        bench_known_limits(&b.limits, NULL, -1);
        b.limits.memory = (bench_limit){25e9, "measured"};
        for (int i = 0; i < 5; i++) {
            random = random * 1664525u + 1013904223u;
            const double rate = 1e10 * exp(4.0 * (double)(random >> 8) / 0x1p24 * (round % 2));
            b.limits.math[i] = (bench_limit){rate * (1 + (random >> 8) % 3), "measured"};
            place(&b, names[i], 2e9, 1e7, 2e9 / rate);
        }
        bench_draw(&b, &plot);
        double last = 0;
        for (int i = 0; i < plot.word_count; i++) {
            const bench_words *w = &plot.words[i];
            if (w->x < 650)
                continue;
            if (!(w->y > last + 12 && w->y < plot.height))
                fail_msg("\"%s\" at %g, the one above at %g", w->text, w->y, last);
            last = w->y;
        }
        assert_true(last > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_known_gpu_has_its_datasheet), cmocka_unit_test(links_are_looked_up),
        cmocka_unit_test(what_nobody_knows_is_unknown),  cmocka_unit_test(names_of_drivers_are_found),
        cmocka_unit_test(a_gpu_has_five_roofs),          cmocka_unit_test(pixels_show_the_same),
        cmocka_unit_test(letters_can_be_drawn),          cmocka_unit_test(labels_never_meet),
    };
    return cmocka_run_group_tests_name("cli.bench_limits", tests, NULL, NULL);
}

/* Pictures whose middle was overwritten: what the decoder would make up is no picture, and what it got over is told. */
#include "io/pictures.h"

static const pc_image_options strict = {.strict = true};

#if PC_HAVE_JPEG
/* `name` with `n_with` bytes over its middle, a third of the way into the pixels. */
static uint8_t *overwritten(const char *name, const void *with, size_t n_with, size_t *n)
{
    uint8_t *bytes = read_golden(name, n);
    const uint8_t *scan = memmem(bytes, *n, "\xff\xda", 2);
    assert_non_null(scan);
    const size_t first = (size_t)(scan - bytes) + 16;
    assert_true(first + n_with < *n);
    memcpy(bytes + first + (*n - first) / 3, with, n_with);
    return bytes;
}

static void a_middle_that_is_gone(void **state)
{
    (void)state;
    static const char *const names[] = {"420.jpg", "progressive.jpg", "cmyk.jpg", "grey.jpg"};
    static const struct {
        const char *bytes;
        size_t n;
    } with[] = {{"\xff\xff\xff\xff\xff\x13\x01\x02", 8}, {"\xff\x31\xff\x58", 4}, {"\xff\xd9", 2}};
    static const pc_image_options ways[] = {
        {0}, {.width = 7, .height = 5}, {.width = 7, .height = 5, .resize = PC_RESIZE_AREA}, {.strict = true}};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++)
            for (int w = 0; w < 4; w++) {
                size_t n;
                uint8_t *bytes = overwritten(names[i], with[k].bytes, with[k].n, &n);
                pc_image image;
                assert_fails(used(pc_image_decode(bytes, n, "hurt.jpg", ways[w], &image)), PC_ERR_FORMAT,
                             "hurt.jpg is ");
                assert_null(image.pixels);
                free(bytes);
            }
    size_t n;
    uint8_t *bytes = overwritten("420.jpg", "\xff\x31", 2, &n);
    pc_image image;
    assert_fails(used(pc_image_decode(bytes, n, "hurt.jpg", ways[0], &image)), PC_ERR_FORMAT,
                 "hurt.jpg is damaged inside the picture, at row ");
    free(bytes);
}

/* The pixels are all there, and something else is not: a picture, and the words for it. */
static void what_was_got_over_is_told(void **state)
{
    (void)state;
    size_t n;
    uint8_t *bytes = read_golden("420.jpg", &n), *longer = malloc(n + 40);
    assert_non_null(longer);
    memcpy(longer, bytes, n - 2);
    memset(longer + n - 2, 7, 40); /* stray bytes before the end mark; the decoder has read ahead over a few */
    memcpy(longer + n + 38, "\xff\xd9", 2);
    for (int way = 0; way < 3; way++) {
        pc_image image;
        pc_image_damage damage = {"old"};
        const pc_image_options options = {.width = way ? 6 : 0,
                                          .height = way ? 6 : 0,
                                          .resize = way == 2 ? PC_RESIZE_AREA : PC_RESIZE_NEAREST,
                                          .damage = &damage};
        assert_ok(pc_image_decode(bytes, n, "fine.jpg", options, &image));
        assert_string_equal(damage.words, "");
        pc_image_free(&image);
        assert_ok(pc_image_decode(longer, n + 40, "stray.jpg", options, &image));
        assert_non_null(strstr(damage.words, " extraneous bytes before marker 0xd9"));
        pc_image_free(&image);
        assert_ok(pc_image_decode(bytes, n - 2, "open.jpg", options, &image));
        assert_non_null(strstr(damage.words, "Premature end"));
        pc_image_free(&image);
    }
    pc_image image;
    assert_fails(used(pc_image_decode(longer, n + 40, "stray.jpg", strict, &image)), PC_ERR_FORMAT, "is damaged");
    free(longer);
    free(bytes);
}
#endif

#if PC_HAVE_PNG
static void png_as_well(void **state)
{
    (void)state;
    size_t n;
    uint8_t *bytes = read_golden("rgb.png", &n);
    pc_image image;
    pc_image_damage damage;
    const pc_image_options telling = {.damage = &damage};
    assert_ok(pc_image_decode(bytes, n, "fine.png", telling, &image));
    assert_string_equal(damage.words, "");
    pc_image_free(&image);
    assert_ok(pc_image_decode(bytes, n - 12, "open.png", telling, &image));
    assert_non_null(strstr(damage.words, "the file ends"));
    pc_image_free(&image);
    uint8_t *data = memmem(bytes, n, "IDAT", 4);
    assert_non_null(data);
    memcpy(data + 40, "damage", 6); /* pixels have a checksum */
    assert_fails(used(pc_image_decode(bytes, n, "hurt.png", telling, &image)), PC_ERR_FORMAT, "hurt.png is");
    free(bytes);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#if PC_HAVE_JPEG
        cmocka_unit_test(a_middle_that_is_gone),
        cmocka_unit_test(what_was_got_over_is_told),
#endif
#if PC_HAVE_PNG
        cmocka_unit_test(png_as_well),
#endif
    };
    return cmocka_run_group_tests_name("io.lost", tests, NULL, NULL);
}

/* WebP, GIF, TIFF, BMP and PNM: the pixels that Pillow makes of them (golden/images.py); cut off, bent and hostile ones are
 * errors with a reason; each format has a word where its library is missing. */
#include "io/pictures.h"

#include <paracord/memory.h>
#include <paracord/random.h>

static const char *const names[] = {
    "bmp_rgb.bmp",
    "bmp_palette.bmp",
    "bmp_grey.bmp",
    "bmp_bits.bmp",
    "bmp_alpha.bmp",
    "bmp_runs.bmp",
    "pnm_bits.pnm",
    "pnm_bits_text.pnm",
    "pnm_grey.pnm",
    "pnm_grey7.pnm",
    "pnm_grey_text.pnm",
    "pnm_rgb.pnm",
    "pnm_rgb1000.pnm",
    "pnm_rgb_text.pnm",
#if PC_HAVE_WEBP
    "webp_lossy.webp",
    "webp_lossless.webp",
    "webp_turned.webp",
    "webp_moving.webp",
    "xmp_turned3.webp",
#endif
#if PC_HAVE_GIF
    "gif_plain.gif",
    "gif_interlaced.gif",
    "gif_moving.gif",
    "gif_transparent.gif",
#endif
#if PC_HAVE_TIFF
    "tiff_rgb.tiff",
    "tiff_pages.tiff",
    "tiff_lzw.tiff",
    "tiff_grey.tiff",
    "tiff_palette.tiff",
    "tiff_turned.tiff",
    "tiff_alpha.tiff",
    "tiff_alpha_planes.tiff",
    "tiff_alpha16.tiff",
    "tiff_alpha16_planes.tiff",
    "tiff_multiplied.tiff",
    "tiff_multiplied_planes.tiff",
    "tiff_multiplied16.tiff",
    "tiff_beside.tiff",
    "tiff_rgb16.tiff",
    "tiff_grey_alpha.tiff",
    "tiff_white4.tiff",
    "tiff_bits2.tiff",
    "tiff_bits1.tiff",
    "tiff_palette4.tiff",
    "tiff_cmyk.tiff",
    "tiff_cmyk_planes.tiff",
#endif
};

#define PC__HEAD(n) ((n) < 60 ? (n) : 60)

enum { NAMES = sizeof names / sizeof *names };

static void the_same_pixels_as_pillow(void **state)
{
    (void)state;
    for (int i = 0; i < NAMES; i++) {
        size_t n;
        uint8_t *bytes = read_golden(names[i], &n);
        compare_with_golden(bytes, n, names[i]);
        free(bytes);
    }
}

/* The suffix says nothing: a TIFF called .jpg is a TIFF. Grey ones are grey. */
static void by_their_bytes(void **state)
{
    (void)state;
    size_t n;
    uint8_t *bytes = read_golden("bmp_grey.bmp", &n);
    pc_image image;
    assert_ok(pc_image_decode(bytes, n, "photo.jpg", (pc_image_options){0}, &image));
    assert_int_equal(image.channels, 1);
    pc_image_free(&image);
    free(bytes);
}

/* Frames and pages behind the one that is taken. */
static bool has_more(const char *name)
{
    return strstr(name, "moving") || strstr(name, "pages");
}

/* Cut off inside the picture it is broken; behind it, in what is not taken, damaged: taken and told, unless strict. */
static void cut_off_anywhere(void **state)
{
    (void)state;
    for (int i = 0; i < NAMES; i++) {
        size_t n;
        uint8_t *bytes = read_golden(names[i], &n);
        int damaged = 0;
        for (size_t length = 12; length < (has_more(names[i]) ? n : n * 4 / 5); length += 1 + n / 50) {
            uint8_t *part = malloc(length); /* its own block: reading behind it is noticed */
            assert_non_null(part);
            memcpy(part, bytes, length);
            pc_image image;
            pc_image_damage damage;
            const pc_status status =
                pc_image_decode(part, length, "cut", (pc_image_options){.damage = &damage}, &image);
            if (status == PC_OK && (!has_more(names[i]) || !strstr(damage.words, "the file ends too early")))
                fail_msg("%s: %zu of %zu bytes pass as a picture (%s)", names[i], length, n, damage.words);
            if (status == PC_OK) {
                pc_image_free(&image);
                assert_fails(used(pc_image_decode(part, length, "cut", (pc_image_options){.strict = true}, &image)),
                             PC_ERR_FORMAT, "cut is damaged");
                damaged++;
            } else
                assert_non_null(strstr(pc_error_last()->message, "cut is "));
            pc_error_clear();
            free(part);
        }
        assert_true(!has_more(names[i]) || damaged > 5);
        free(bytes);
    }
}

/* What is whole is not called damaged. */
static void whole_ones_pass_strict_minds(void **state)
{
    (void)state;
    for (int i = 0; i < NAMES; i++) {
        size_t n;
        uint8_t *bytes = read_golden(names[i], &n);
        pc_image image;
        assert_ok(pc_image_decode(bytes, n, names[i], (pc_image_options){.strict = true}, &image));
        pc_image_free(&image);
        free(bytes);
    }
}

static void bent_bytes(void **state)
{
    (void)state;
    enum { ROUNDS = 150 };
    int bad = 0;
    for (int i = 0; i < NAMES; i++) {
        size_t n;
        uint8_t *bytes = read_golden(names[i], &n), *bent = malloc(n);
        assert_non_null(bent);
        for (int round = 0; round < ROUNDS; round++) {
            uint32_t w[4];
            pc_image image;
            memcpy(bent, bytes, n);
            for (uint32_t k = 0; k < 3; k++) {
                pc_philox(7, (uint64_t)i, (uint64_t)round * 4 + k, w);
                bent[w[0] % (k ? n : PC__HEAD(n))] = (uint8_t)w[1];
            }
            const pc_image_options options = {.width = w[2] % 2 ? 7 : 0, .height = w[2] % 2 ? 6 : 0};
            if (pc_image_decode(bent, n, "bent", options, &image) == PC_OK)
                pc_image_free(&image);
            else
                bad++;
            pc_error_clear();
        }
        free(bent);
        free(bytes);
    }
    assert_true(bad > ROUNDS);
    assert_int_equal(pc_allocator_live(), 0);
}

static void expect(const void *bytes, size_t n, pc_status status, const char *words)
{
    pc_image image;
    assert_fails(used(pc_image_decode(bytes, n, "huge", (pc_image_options){.width = 5, .height = 4}, &image)), status,
                 words);
}

#if PC_HAVE_TIFF
/* The number of a TIFF's tag in little-endian order that has one value of 16 bits. */
static void set_tag(uint8_t *bytes, size_t n, int tag, int value)
{
    const uint8_t entry[] = {(uint8_t)tag, (uint8_t)(tag >> 8), 3, 0, 1, 0, 0, 0};
    uint8_t *at = memmem(bytes, n, entry, sizeof entry);
    assert_non_null(at);
    at[sizeof entry] = (uint8_t)value;
}

/* Colours that would come out wrong are told, with the way out. */
static void colours_that_are_not_read(void **state)
{
    (void)state;
    enum { PHOTOMETRIC = 262, CIELAB = 8, ICCLAB = 9, ITULAB = 10, PLANAR = 284, SAMPLE_FORMAT = 339 };
    for (int kind = CIELAB; kind <= ITULAB; kind++) {
        size_t n;
        uint8_t *bytes = read_golden("tiff_rgb.tiff", &n);
        set_tag(bytes, n, PHOTOMETRIC, kind);
        expect(bytes, n, PC_ERR_FORMAT, "CIE L*a*b*, which are not read: convert it to sRGB");
        free(bytes);
    }
    size_t n;
    uint8_t *bytes = read_golden("tiff_rgb16.tiff", &n);
    const uint8_t planar[] = {PLANAR & 0xff, PLANAR >> 8}, format[] = {SAMPLE_FORMAT & 0xff, SAMPLE_FORMAT >> 8};
    uint8_t *tag = memmem(bytes + n / 2, n - n / 2, planar, sizeof planar);
    assert_non_null(tag);
    memcpy(tag, format, sizeof format);
    for (int kind = 2; kind <= 3; kind++) {
        tag[8] = (uint8_t)kind;
        expect(bytes, n, PC_ERR_FORMAT, "signed or floating-point samples, which are not read");
    }
    free(bytes);
}
#endif

/* A BMP of one row without a palette, `bits` a pixel. */
static size_t small_bmp(uint8_t *bytes, uint8_t width, uint8_t bits, const void *row, uint8_t n)
{
    memset(bytes, 0, 54);
    memcpy(bytes, "BM", 2);
    bytes[10] = 54, bytes[14] = 40, bytes[18] = width, bytes[22] = 1, bytes[26] = 1, bytes[28] = bits;
    memcpy(bytes + 54, row, n);
    return 54 + n;
}

static void check_small(const uint8_t *bytes, size_t n, const uint8_t *pixels, int width)
{
    pc_image image;
    assert_ok(pc_image_decode(bytes, n, "small", (pc_image_options){.channels = 3}, &image));
    assert_int_equal(image.width, width);
    assert_memory_equal(image.pixels, pixels, (size_t)width * 3);
    pc_image_free(&image);
}

/* The smallest that there are have no room for masks; parts of 16 bits are rounded down, as Pillow's are. */
static void small_bitmaps(void **state)
{
    (void)state;
    uint8_t bytes[64];
    size_t n = small_bmp(bytes, 1, 24, "\1\2\3\0", 4);
    check_small(bytes, n, (const uint8_t *)"\3\2\1", 1);
    const uint16_t words[] = {1 << 10 | 2 << 5 | 3, 30 << 10 | 29 << 5 | 28};
    n = small_bmp(bytes, 2, 16, words, sizeof words);
    check_small(
        bytes, n,
        (const uint8_t[]){1 * 255 / 31, 2 * 255 / 31, 3 * 255 / 31, 30 * 255 / 31, 29 * 255 / 31, 28 * 255 / 31}, 2);
    bytes[30] = 3; /* masks that are not there */
    expect(bytes, n, PC_ERR_FORMAT, "huge is truncated");
}

/* Numbers as text may stand in any way, comments among them. */
static void portable_maps(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        const char *words;
    } wrong[] = {{"P5 2 1 255\n\1", "huge is truncated"},
                 {"P5 2 1", "huge is truncated"},
                 {"P5 2 1 255", "huge is truncated"},
                 {"P2 2 1 255\n1", "huge is truncated"},
                 {"P3 1 1 255 1 2 x", "no number where one should be"},
                 {"P2 2 1 7 1 8", "a value is greater than the greatest"},
                 {"P1 2 1 0 2", "a value is greater than the greatest"},
                 {"P2 0 1 7 1 8", "its width or height is 0"},
                 {"P2 1 65536 7 1 8", "beyond 65535"},
                 {"P2 1 -1 7 1 8", "no number where one should be"},
                 {"P2 99999999999999999999 1 7 1 8", "beyond 65535"},
                 {"P5 1 1 65536 1 8", "its greatest value is 0 or beyond 65535"},
                 {"P5 1 1 255#1", "no space behind its header"},
                 {"P6 65535 65535 255\n1", "huge is truncated"},
                 {"P2 65535 65535 255\n1", "huge is truncated"},
                 {"P7 1 1 255\n1", "is a text file"},
                 {"P3a file that begins so", "is a text file"},
                 {"P3 is what it begins with", "no number where one should be"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        pc_image image;
        assert_int_equal(pc_image_decode(wrong[i].bytes, strlen(wrong[i].bytes), "huge", (pc_image_options){0}, &image),
                         PC_ERR_FORMAT);
        if (!strstr(pc_error_last()->message, wrong[i].words) && !strstr(pc_error_last()->cause, wrong[i].words))
            fail_msg("want \"%s\", got: %s: %s", wrong[i].words, pc_error_last()->message, pc_error_last()->cause);
        pc_error_clear();
    }
    static const char text[] = "P3# one\n#two\n2#x\r1\f100\t0 50#y\n100 0025 1\n99 # end";
    check_small((const uint8_t *)text, sizeof text - 1, (const uint8_t *)"\0\x80\xff\x40\3\xfc", 2);
    check_small((const uint8_t *)"P1\n3 1\n10\n1", 11, (const uint8_t *)"\0\0\0\xff\xff\xff\0\0\0", 3);
    check_small((const uint8_t *)"P5 1 1 65535\n\x80\x80", 15, (const uint8_t *)"\x80\x80\x80", 1);
    check_small((const uint8_t *)"P5 1 1 3\n\4", 10, (const uint8_t *)"\xff\xff\xff", 1);
}

/* Headers that ask for gigabytes. */
static void huge_ones(void **state)
{
    (void)state;
    size_t n;
    uint8_t *bytes = read_golden("bmp_rgb.bmp", &n);
    memcpy(bytes + 18, "\0\x3f\0\0\0\x3f\0\0", 8);
    expect(bytes, n, PC_ERR_FORMAT, "huge is truncated");
    memcpy(bytes + 18, "\xff\xff\0\0\xff\xff\0\0", 8);
    expect(bytes, n, PC_ERR_FORMAT, "huge is truncated");
    memcpy(bytes + 18, "\xff\xff\xff\x7f\xff\xff\xff\x7f", 8);
    expect(bytes, n, PC_ERR_FORMAT, "cannot be decoded");
    free(bytes);
    bytes = read_golden("bmp_runs.bmp", &n);
    memcpy(bytes + 18, "\0\x3f\0\0\0\x3f\0\0", 8);
    expect(bytes, n, PC_ERR_FORMAT, "huge is truncated");
    free(bytes);
#if PC_HAVE_GIF
    bytes = read_golden("gif_plain.gif", &n);
    memcpy(bytes + 6, "\xff\xff\xff\xff", 4);
    expect(bytes, n, PC_ERR_FORMAT, "claims to be 65535 x 65535");
    free(bytes);
#endif
#if PC_HAVE_WEBP
    bytes = read_golden("webp_turned.webp", &n);
    uint8_t *lossless = memmem(bytes, n, "VP8L", 4), *extended = memmem(bytes, n, "VP8X", 4);
    assert_true(lossless && extended);
    memcpy(lossless + 9, "\xff\xff\xff\x0f", 4); /* 16384 x 16384 */
    memcpy(extended + 12, "\xff\x3f\0\xff\x3f\0", 6);
    expect(bytes, n, PC_ERR_FORMAT, "which takes 1.9 GB of memory; 1.1 GB are the most");
    free(bytes);
#endif
}

#if PC_HAVE_TIFF
/* As a JPEG whose Exif says so; and a long side is told as what it is. */
static void sides_and_turns_of_tiffs(void **state)
{
    (void)state;
    static const uint8_t turned[] = {0x12, 1, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0}, width[] = {0, 1, 4, 0, 1, 0, 0, 0};
    size_t n;
    uint8_t *bytes = read_golden("tiff_turned.tiff", &n), *tag = memmem(bytes, n, turned, sizeof turned);
    assert_non_null(tag);
    for (int orientation = 0; orientation <= 9; orientation += 9) {
        pc_image got, stored;
        pc_image_damage damage;
        tag[8] = (uint8_t)orientation;
        assert_ok(pc_image_decode(bytes, n, "odd", PC_OPTIONS(pc_image_options, .damage = &damage), &got));
        assert_string_equal(damage.words, "");
        tag[8] = 6;
        assert_ok(pc_image_decode(bytes, n, "six", PC_OPTIONS(pc_image_options, .no_exif = true), &stored));
        assert_same_pixels(&got, &stored, "a TIFF of another orientation");
        pc_image_free(&got);
        pc_image_free(&stored);
    }
    tag = memmem(bytes, n, width, sizeof width);
    assert_non_null(tag);
    memcpy(tag + 8, "\x70\x11\1\0", 4);
    expect(bytes, n, PC_ERR_FORMAT, "70000 x 15 pixels: sides are 1 to 65535");
    free(bytes);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_pixels_as_pillow),
        cmocka_unit_test(by_their_bytes),
#if PC_HAVE_TIFF
        cmocka_unit_test(sides_and_turns_of_tiffs),
#endif
        cmocka_unit_test(cut_off_anywhere),
        cmocka_unit_test(whole_ones_pass_strict_minds),
        cmocka_unit_test(bent_bytes),
        cmocka_unit_test(small_bitmaps),
        cmocka_unit_test(portable_maps),
        cmocka_unit_test(huge_ones),
#if PC_HAVE_TIFF
        cmocka_unit_test(colours_that_are_not_read),
#endif
    };
    return cmocka_run_group_tests_name("io.formats", tests, NULL, NULL);
}

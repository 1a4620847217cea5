/* Pictures that are none, cut off, bent or bombs, and memory that runs out: an error with a reason each time. */
#include "io/pictures.h"

#include <paracord/memory.h>
#include <paracord/random.h>

static const pc_image_options plain = {0};

static void expect(const void *bytes, size_t n, pc_image_options options, pc_status status, const char *words)
{
    pc_image image;
    assert_fails(used(pc_image_decode(bytes, n, "picture.jpg", options, &image)), status, words);
    assert_null(image.pixels);
    assert_fails(used(pc_image_decode(bytes, n, "picture.jpg", options, &image)), status, "picture.jpg");
}

static void other_formats_have_names(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *words;
        size_t n;
    } files[] = {
        {"", "an empty file", 0},
        {"\0\0\0\x18"
         "ftypheic",
         "a HEIC", 12},
        {"\0\0\0\x18"
         "ftypavif",
         "an AVIF", 12},
        {"%PDF-1.7 .....", "a PDF", 14},
        {"PK\3\4..........", "a ZIP archive", 14},
        {" <!DOCTYPE HTML><p>", "an HTML page", 19},
        {"just some words\n", "a text file", 16},
        {"a", "a text file", 1},
        {"\1\2\3\4\5\6", "no picture format", 6},
        {"\xff", "no picture format", 1},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        expect(files[i].bytes, files[i].n, plain, PC_ERR_FORMAT, files[i].words);
}

#if PC_HAVE_JPEG && PC_HAVE_PNG

static const pc_image_options strict = {.strict = true}, tiny = {.width = 5, .height = 4};

static void cut_off_anywhere(void **state)
{
    (void)state;
    static const char *const names[] = {"420.jpg", "progressive.jpg", "restart.jpg",   "cmyk.jpg",
                                        "rgb.png", "palette.png",     "interlaced.png"};
    for (int i = 0; i < 7; i++) {
        size_t n;
        uint8_t *bytes = read_golden(names[i], &n);
        const size_t tail = i < 4 ? 8 : 16; /* the last bits and the end mark */
        for (size_t length = 2; length < n - tail; length += i < 4 && length > 700 ? 7 : 31) {
            uint8_t *part = malloc(length); /* its own block: reading behind it is noticed */
            assert_non_null(part);
            memcpy(part, bytes, length);
            const char *words = length > 3 || i < 4 ? "is truncated" : "picture.jpg";
            expect(part, length, plain, PC_ERR_FORMAT, words);
            expect(part, length, strict, PC_ERR_FORMAT, words);
            expect(part, length, tiny, PC_ERR_FORMAT, words);
            free(part);
        }
        free(bytes);
    }
}

/* All pixels are there, but the end mark is not, or something else is: only strict minds. */
static void damage_that_strict_minds(void **state)
{
    (void)state;
    static const char *const names[] = {"420.jpg", "rgb.png"};
    static const size_t marks[] = {2, 12};
    for (int i = 0; i < 2; i++) {
        size_t n;
        uint8_t *bytes = read_golden(names[i], &n);
        pc_image image;
        assert_ok(pc_image_decode(bytes, n, names[i], strict, &image));
        pc_image_free(&image);
        assert_ok(pc_image_decode(bytes, n - marks[i], names[i], plain, &image));
        pc_image_free(&image);
        expect(bytes, n - marks[i], strict, PC_ERR_FORMAT, "is truncated");
        free(bytes);
    }
    size_t n;
    uint8_t *bytes = read_golden("420.jpg", &n), longer[8192];
    memcpy(longer, bytes, 2);
    memcpy(longer + 2, "\0\0\0\0", 4); /* stray bytes before the first marker */
    memcpy(longer + 6, bytes + 2, n - 2);
    pc_image image;
    assert_ok(pc_image_decode(longer, n + 4, "stray", plain, &image));
    pc_image_free(&image);
    expect(longer, n + 4, strict, PC_ERR_FORMAT, "is damaged");
    assert_non_null(bytes);
    free(bytes);
}

static void the_cause_is_the_library_s(void **state)
{
    (void)state;
    size_t n;
    pc_image image;
    uint8_t *bytes = read_golden("420.jpg", &n);
    pc_error_clear();
    assert_int_equal(pc_image_decode(bytes, n / 2, "cut.jpg", plain, &image), PC_ERR_FORMAT);
    assert_non_null(strstr(pc_error_last()->cause, "premature end of data segment"));
    pc_error_clear();
    free(bytes);
}

/* The size that the header claims is written over: width and height are `at` bytes behind the mark. */
static void claim(uint8_t *bytes, size_t n, const char *mark, size_t mark_length, size_t at, const uint8_t *size,
                  size_t size_length)
{
    uint8_t *header = memmem(bytes, n, mark, mark_length);
    assert_non_null(header);
    memcpy(header + at, size, size_length);
}

static void sizes_beyond_reason(void **state)
{
    (void)state;
    size_t n;
    uint8_t *bytes = read_golden("420.jpg", &n);
    claim(bytes, n, "\xff\xc0", 2, 5, (const uint8_t *)"\xff\x00\xff\x00", 4);
    expect(bytes, n, plain, PC_ERR_FORMAT, "claims to be 65280 x 65280");
    claim(bytes, n, "\xff\xc0", 2, 5, (const uint8_t *)"\x10\x00\xff\x00", 4);
    expect(bytes, n, plain, PC_ERR_FORMAT, "is truncated");
    expect(bytes, n, tiny, PC_ERR_FORMAT, "is truncated");
    claim(bytes, n, "\xff\xc0", 2, 5, (const uint8_t *)"\x00\x00\x00\x00", 4);
    expect(bytes, n, plain, PC_ERR_FORMAT, "cannot be decoded");
    free(bytes);
    bytes = read_golden("interlaced.png", &n);
    pc_image image;
    claim(bytes, n, "IHDR", 4, 4, (const uint8_t *)"\x7f\xff\xff\xff\x7f\xff\xff\xff", 8);
    assert_int_equal(pc_image_decode(bytes, n, "huge.png", plain, &image), PC_ERR_FORMAT);
    pc_error_clear();
    free(bytes);
}

/* A progressive picture takes memory for all of it before its first pixel: told from the header. */
static void progressive_pictures_of_gigabytes(void **state)
{
    (void)state;
    size_t n;
    uint8_t *bytes = read_golden("progressive.jpg", &n);
    claim(bytes, n, "\xff\xc2", 2, 11, (const uint8_t *)"\x11", 1); /* every colour at full resolution */
    claim(bytes, n, "\xff\xc2", 2, 5, (const uint8_t *)"\x40\x00\x3f\x00", 4);
    expect(bytes, n, tiny, PC_ERR_FORMAT, "progressive JPEG of 16128 x 16384 pixels in 3 colours, which takes 1.6 GB");
    expect(bytes, n, plain, PC_ERR_FORMAT, "1.1 GB are the most: make it smaller, or sequential");
    claim(bytes, n, "\xff\xc2", 2, 5, (const uint8_t *)"\x2d\x78\x22\x1a", 4);
    expect(bytes, n, tiny, PC_ERR_FORMAT, "is truncated"); /* 102 megapixels, as large cameras make them, are read */
    free(bytes);
}

/* The first scan of a progressive file again and again. */
static void too_many_scans(void **state)
{
    (void)state;
    size_t n;
    uint8_t *bytes = read_golden("progressive.jpg", &n);
    const uint8_t *first = memmem(bytes, n, "\xff\xda", 2);
    assert_non_null(first);
    const size_t scan = (size_t)(first - bytes);
    size_t length = 2;
    while (bytes[scan + length] != 0xff || bytes[scan + length + 1] == 0)
        length++;
    const size_t total = scan + 300 * length + 2;
    uint8_t *bomb = malloc(total), *at = bomb;
    assert_non_null(bomb);
    memcpy(at, bytes, scan);
    at += scan;
    for (int i = 0; i < 300; i++, at += length)
        memcpy(at, bytes + scan, length);
    memcpy(at, "\xff\xd9", 2);
    expect(bomb, total, plain, PC_ERR_FORMAT, "more than 100 scans");
    free(bomb);
    free(bytes);
}

static void grey_of_16_bits_keeps_its_high_byte(void **state)
{
    (void)state;
    /* 2 x 1 pixels: 0x1234 and 0xfedc, stored without compression */
    static const uint8_t png[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\2\0\0\0\1\x10\0\0\0\0\x81\xd9\xfc\x15"
                                 "\0\0\0\x10IDAT\x78\x01\x01\x05\0\xfa\xff\0\x12\x34\xfe\xdc\x03\xc1\x02!\xe8\x1c\x1b&"
                                 "\0\0\0\0IEND\xae\x42\x60\x82";
    pc_image image;
    assert_ok(pc_image_decode(png, sizeof png - 1, "16.png", plain, &image));
    assert_int_equal(image.channels, 1);
    assert_int_equal(image.pixels[0], 0x12);
    assert_int_equal(image.pixels[1], 0xfe);
    pc_image_free(&image);
}

static void bent_bytes(void **state)
{
    (void)state;
    static const char *const names[] = {"420.jpg", "progressive.jpg", "turn1.jpg",  "cmyk.jpg",
                                        "rgb.png", "interlaced.png",  "palette.png"};
    enum { ROUNDS = 700 };
    int good = 0, bad = 0;
    for (int i = 0; i < 7; i++) {
        size_t n;
        uint8_t *bytes = read_golden(names[i], &n), *bent = malloc(n);
        assert_non_null(bent);
        for (int round = 0; round < ROUNDS; round++) {
            uint32_t w[4];
            pc_image image;
            memcpy(bent, bytes, n);
            pc_philox(5, (uint64_t)i, (uint64_t)round, w);
            for (uint32_t k = 0; k <= w[0] % 4; k++) {
                uint32_t place[4];
                pc_philox(6, (uint64_t)i, (uint64_t)round * 4 + k, place);
                bent[place[0] % n] = (uint8_t)(place[1] % 3 ? place[2] : bent[place[0] % n] ^ 1u << place[2] % 8);
            }
            const size_t length = w[1] % 8 == 0 ? w[2] % n : n;
            const pc_image_options options = {.width = w[3] % 3 ? 7 : 0,
                                              .height = w[3] % 3 ? 6 : 0,
                                              .resize = (pc_resize)(w[3] / 3 % 2),
                                              .strict = w[3] / 6 % 2};
            if (pc_image_decode(bent, length, "bent", options, &image) == PC_OK) {
                good++;
                pc_image_free(&image);
            } else {
                bad++;
                if (pc_error_last()->status != PC_ERR_FORMAT || !strstr(pc_error_last()->message, "bent"))
                    fail_msg("%s, round %d: %s (%s)", names[i], round, pc_error_last()->message,
                             pc_error_last()->cause);
                pc_error_clear();
            }
        }
        free(bent);
        free(bytes);
    }
    assert_true(good > 100 && bad > 100);
    assert_int_equal(pc_allocator_live(), 0);
}

static int allocations_left;

static void *meagre_alloc(void *context, size_t bytes, size_t alignment)
{
    (void)context;
    if (allocations_left-- <= 0)
        return NULL;
    void *block = NULL;
    return posix_memalign(&block, alignment, bytes) == 0 ? block : NULL;
}

static void *meagre_resize(void *context, void *block, size_t bytes)
{
    (void)context;
    return allocations_left-- <= 0 ? NULL : realloc(block, bytes);
}

static void meagre_free(void *context, void *block)
{
    (void)context;
    free(block);
}

static pc_status encode_and_forget(const uint8_t *bytes, size_t n, bool jpeg)
{
    pc_image image;
    uint8_t *out;
    size_t out_n;
    pc_status status = pc_image_decode(bytes, n, "meagre", plain, &image);
    if (status == PC_OK)
        status = jpeg ? pc_image_encode_jpeg(&image, 80, &out, &out_n) : pc_image_encode_png(&image, &out, &out_n);
    if (status == PC_OK)
        pc_image_bytes_free(out);
    pc_image_free(&image);
    return status;
}

static pc_status decode_and_forget(const uint8_t *bytes, size_t n, pc_image_options options)
{
    pc_image image;
    pc_status status = pc_image_decode(bytes, n, "meagre", options, &image);
    pc_image_free(&image);
    return status;
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    static const char *const names[] = {"420.jpg", "cmyk.jpg", "turn1.jpg", "grey.jpg", "rgb.png", "interlaced.png"};
    static const pc_image_options options[] = {{0},
                                               {.width = 5, .height = 4},
                                               {.width = 5, .height = 4, .resize = PC_RESIZE_AREA, .channels = 1},
                                               {.width = 30, .height = 24, .channels = 3}};
    const pc_allocator meagre = {meagre_alloc, meagre_resize, meagre_free, NULL};
    assert_ok(pc_allocator_set(&meagre));
    int failures = 0;
    for (int i = 0; i < 6 * 6; i++) {
        size_t n;
        uint8_t *bytes = read_golden(names[i / 6], &n);
        for (int k = 0;; k++) {
            allocations_left = k;
            pc_error_clear();
            pc_status status =
                i % 6 < 4 ? decode_and_forget(bytes, n, options[i % 6]) : encode_and_forget(bytes, n, i % 6 == 4);
            assert_int_equal(pc_allocator_live(), 0);
            assert_int_equal(status, pc_error_last()->status);
            if (status == PC_OK)
                break;
            assert_int_equal(status, PC_ERR_MEMORY);
            failures++;
            assert_true(k < 200);
        }
        free(bytes);
    }
    assert_true(failures > 60);
    pc_error_clear();
    assert_ok(pc_allocator_set(NULL));
}
#endif

#if !PC_HAVE_JPEG
static void without_libjpeg(void **state)
{
    (void)state;
    pc_image image;
    assert_ok(pc_image_new(2, 2, 3, &image));
    uint8_t *bytes;
    size_t n;
    expect("\xff\xd8\xff\xe0", 4, plain, PC_ERR_UNSUPPORTED, "libjpeg-dev");
    assert_fails(used(pc_image_encode_jpeg(&image, 80, &bytes, &n)), PC_ERR_UNSUPPORTED, "libjpeg-dev");
    pc_image_free(&image);
}
#endif

#if !PC_HAVE_PNG
static void without_libpng(void **state)
{
    (void)state;
    pc_image image;
    assert_ok(pc_image_new(2, 2, 3, &image));
    uint8_t *bytes;
    size_t n;
    expect("\x89PNG\r\n\x1a\n", 8, plain, PC_ERR_UNSUPPORTED, "libpng-dev");
    assert_fails(used(pc_image_encode_png(&image, &bytes, &n)), PC_ERR_UNSUPPORTED, "libpng-dev");
    pc_image_free(&image);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_formats_have_names),
#if PC_HAVE_JPEG && PC_HAVE_PNG
        cmocka_unit_test(cut_off_anywhere),
        cmocka_unit_test(damage_that_strict_minds),
        cmocka_unit_test(the_cause_is_the_library_s),
        cmocka_unit_test(sizes_beyond_reason),
        cmocka_unit_test(progressive_pictures_of_gigabytes),
        cmocka_unit_test(too_many_scans),
        cmocka_unit_test(grey_of_16_bits_keeps_its_high_byte),
        cmocka_unit_test(bent_bytes),
        cmocka_unit_test(every_allocation_fails_once),
#endif
#if !PC_HAVE_JPEG
        cmocka_unit_test(without_libjpeg),
#endif
#if !PC_HAVE_PNG
        cmocka_unit_test(without_libpng),
#endif
    };
    return cmocka_run_group_tests_name("io.damage", tests, NULL, NULL);
}

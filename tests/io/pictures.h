/* pictures.h: golden files and synthetic pictures for the tests of pictures. */
#ifndef PC_TEST_PICTURES_H
#define PC_TEST_PICTURES_H

#include <paracord/image.h>

#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The status as an argument: assert_fails would ignore it, and it must not be ignored. */
static inline pc_status used(pc_status status)
{
    return status;
}

static inline uint8_t *read_golden(const char *name, size_t *n)
{
    char path[512];
    snprintf(path, sizeof path, "%s/images/%s", PC_TEST_GOLDEN, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("no golden file %s", path);
    fseek(file, 0, SEEK_END);
    *n = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*n + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *n, file), *n);
    bytes[*n] = 0;
    fclose(file);
    return bytes;
}

/* A smooth picture that no symmetry maps to itself. */
static inline pc_image paint(int width, int height, int channels)
{
    pc_image image;
    assert_ok(pc_image_new(width, height, channels, &image));
    for (int y = 0, i = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < channels; c++)
                image.pixels[i++] = (uint8_t)(128 + 70 * sin((x + 20 * c) / 7.0) + 50 * cos(y / (5.0 + c) + x / 30.0));
    return image;
}

static inline size_t bytes_of(const pc_image *image)
{
    return (size_t)image->width * (size_t)image->height * (size_t)image->channels;
}

static inline void assert_same_pixels(const pc_image *got, const pc_image *want, const char *what)
{
    assert_int_equal(got->width, want->width);
    assert_int_equal(got->height, want->height);
    assert_int_equal(got->channels, want->channels);
    for (size_t i = 0; i < bytes_of(want); i++)
        if (got->pixels[i] != want->pixels[i])
            fail_msg("%s: byte %zu of %zu: got %d, want %d", what, i, bytes_of(want), got->pixels[i], want->pixels[i]);
}

/* The picture is decoded to what Pillow makes of it, in each size (golden/images.py). */
static inline void compare_with_golden(const uint8_t *bytes, size_t n, const char *picture)
{
    char name[64];
    size_t left;
    snprintf(name, sizeof name, "%.*s.ppm", (int)strcspn(picture, "."), picture);
    uint8_t *golden = read_golden(name, &left), *at = golden, *end = golden + left;
    while (at < end) {
        pc_image want = {.channels = 3}, got;
        int head;
        assert_int_equal(sscanf((char *)at, "P6 %d %d 255%n", &want.width, &want.height, &head), 2);
        want.pixels = at + head + 1;
        at = want.pixels + bytes_of(&want);
        pc_image_options options = {.channels = 3, .width = want.width, .height = want.height};
        assert_ok(pc_image_decode(bytes, n, picture, options, &got));
        assert_same_pixels(&got, &want, picture);
        pc_image_free(&got);
    }
    free(golden);
}

static inline double mean_difference(const pc_image *a, const pc_image *b)
{
    double sum = 0;
    assert_int_equal(bytes_of(a), bytes_of(b));
    for (size_t i = 0; i < bytes_of(a); i++)
        sum += abs(a->pixels[i] - b->pixels[i]);
    return sum / (double)bytes_of(a);
}

#endif

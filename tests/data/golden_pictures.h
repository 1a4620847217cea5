/* golden_pictures.h: pictures that a formula draws, and what another library makes of them. */
#ifndef PC_TEST_GOLDEN_PICTURES_H
#define PC_TEST_GOLDEN_PICTURES_H

#include "support.h"

#include <stdio.h>
#include <stdlib.h>

/* The status as an argument: assert_fails would ignore it, and it must not be ignored. */
static inline pc_status used(pc_status status)
{
    return status;
}

/* The numbers of a file in tests/golden, to be freed, and their bytes. */
static inline void *read_npy(const char *name, size_t *bytes)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", PC_TEST_GOLDEN, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    uint8_t head[10];
    assert_int_equal(fread(head, 1, sizeof head, file), sizeof head);
    fseek(file, 0, SEEK_END);
    const long start = 10 + head[8] + 256 * head[9];
    *bytes = (size_t)(ftell(file) - start);
    fseek(file, start, SEEK_SET);
    void *data = malloc(*bytes);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *bytes, file), *bytes);
    fclose(file);
    return data;
}

static inline void draw_picture(uint8_t *pixels, int height, int width, int channels)
{
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < channels; c++)
                *pixels++ = (uint8_t)(x * 37 + y * 101 + c * 59 + x * y * 7);
}

#endif

/* jpeg_planes.c: a resized JPEG straight from its Y, Cb and Cr planes.
 *
 * Nearest: libjpeg's upsampling ("fancy": a triangle filter in whole numbers) and colour conversion are repeated here
 * for the few pixels that are taken; the results are the same bits. Area: libjpeg decodes at a reduced size, and each
 * plane is averaged at the resolution it is stored in. */
#include "io/codec.h"

#if PC_HAVE_JPEG
#include "base/simd.h"
#include "io/jpeg.h"

/* Below this many picture pixels for each one taken, libjpeg's SIMD code on whole rows is faster. */
enum { WORTH_IT = 3 };

bool pc__jpeg_planes_fit(const pc__jpeg *jpeg)
{
    const struct jpeg_decompress_struct *c = &jpeg->c;
    const pc_image *image = &jpeg->picture->image;
    const int64_t source = (int64_t)jpeg->source_width * jpeg->source_height;
    if (c->jpeg_color_space != JCS_YCbCr && c->jpeg_color_space != JCS_GRAYSCALE)
        return false;
    for (int i = 0; i < c->num_components; i++)
        if (c->max_h_samp_factor % c->comp_info[i].h_samp_factor != 0 ||
            c->max_v_samp_factor % c->comp_info[i].v_samp_factor != 0)
            return false;
    return source >= WORTH_IT * (int64_t)image->width * image->height;
}

void pc__jpeg_planes_close(pc__jpeg *jpeg)
{
    for (int i = 0; i < PC__COUNT(jpeg->planes); i++) {
        pc__free(jpeg->planes[i].samples);
        pc__free(jpeg->planes[i].at);
        pc__free(jpeg->planes[i].beside);
        pc__free(jpeg->planes[i].picked);
        pc__area_close(&jpeg->planes[i].area);
    }
    pc__free(jpeg->columns);
    pc__free(jpeg->lines);
}

static void *need(pc__jpeg *jpeg, size_t bytes)
{
    void *block = pc__alloc(bytes);
    if (!block)
        pc__jpeg_leave(jpeg, PC_ERR_MEMORY);
    return block;
}

static void open_planes(pc__jpeg *jpeg)
{
    const struct jpeg_decompress_struct *c = &jpeg->c;
    for (int i = 0; i < c->num_components; i++) {
        const jpeg_component_info *component = &c->comp_info[i];
        const int dct = PC__DCT_SIZE(component), block = component->h_samp_factor * dct;
        pc__plane *plane = &jpeg->planes[i];
        plane->width = (int)component->downsampled_width;
        plane->height = (int)component->downsampled_height;
        plane->across = c->max_h_samp_factor / component->h_samp_factor;
        plane->down = c->max_v_samp_factor / component->v_samp_factor;
        plane->group = component->v_samp_factor * dct;
        plane->stride =
            ((size_t)component->width_in_blocks * (size_t)dct + (size_t)block - 1) / (size_t)block * (size_t)block;
        plane->samples = need(jpeg, plane->stride * (size_t)plane->group * 2);
    }
}

static const uint8_t *row_of(const pc__plane *plane, int y)
{
    y = PC__MAX(0, PC__MIN(y, plane->height - 1));
    return plane->samples + (size_t)(y % (2 * plane->group)) * plane->stride;
}

/* The next MCU row of all planes, behind the one that came before. */
static void read_planes(pc__jpeg *jpeg, int mcu_row)
{
    enum { ROWS_MAX = MAX_SAMP_FACTOR * DCTSIZE };
    struct jpeg_decompress_struct *c = &jpeg->c;
    JSAMPROW rows[3][ROWS_MAX];
    JSAMPARRAY planes[3] = {rows[0], rows[1], rows[2]};
    for (int i = 0; i < c->num_components; i++) {
        const pc__plane *plane = &jpeg->planes[i];
        for (int y = 0; y < plane->group; y++)
            rows[i][y] = plane->samples + (size_t)((mcu_row & 1) * plane->group + y) * plane->stride;
    }
    jpeg_read_raw_data(c, planes, (JDIMENSION)(c->max_v_samp_factor * PC__MIN_DCT_SIZE(c)));
}

/* Which samples the columns taken need. The triangle filter mixes in the neighbour on the side of the pixel; at the
 * picture's edge the last sample stands for what is outside. */
static void find_samples(pc__plane *plane, const int *columns, int n)
{
    for (int i = 0; i < n; i++) {
        const int x = columns[i], at = x / plane->across;
        plane->at[i] = at;
        plane->beside[i] = x & 1 ? PC__MIN(at + 1, plane->width - 1) : PC__MAX(at - 1, 0);
    }
}

static void pick_smooth_across(const pc__plane *plane, const uint8_t *row, const int *columns, int n)
{
    const int *at = plane->at, *beside = plane->beside;
    uint8_t *restrict picked = plane->picked;
    for (int i = 0; i < n; i++)
        picked[i] = (uint8_t)((3 * row[at[i]] + row[beside[i]] + 1 + (columns[i] & 1)) >> 2);
}

static void pick_smooth_down(const pc__plane *plane, int y, int n)
{
    const uint8_t *row = row_of(plane, y >> 1), *other = row_of(plane, (y >> 1) + (y & 1 ? 1 : -1));
    const int *at = plane->at;
    uint8_t *restrict picked = plane->picked;
    for (int i = 0; i < n; i++)
        picked[i] = (uint8_t)((3 * row[at[i]] + other[at[i]] + 1 + (y & 1)) >> 2);
}

static void pick_smooth_both(const pc__plane *plane, int y, const int *columns, int n)
{
    const uint8_t *row = row_of(plane, y >> 1), *other = row_of(plane, (y >> 1) + (y & 1 ? 1 : -1));
    const int *at = plane->at, *beside = plane->beside;
    uint8_t *restrict picked = plane->picked;
    for (int i = 0; i < n; i++) {
        const int near = 3 * row[at[i]] + other[at[i]], far = 3 * row[beside[i]] + other[beside[i]];
        picked[i] = (uint8_t)((3 * near + far + 8 - (columns[i] & 1)) >> 4);
    }
}

static void pick_plain(const pc__plane *plane, const uint8_t *row, int n)
{
    const int *at = plane->at;
    uint8_t *restrict picked = plane->picked;
    for (int i = 0; i < n; i++)
        picked[i] = row[at[i]];
}

/* The samples of picture row y at the columns taken. Which filter applies when is libjpeg's choice (jdsample.c):
 * planes of up to two columns are repeated, and so are all other ratios. */
static void pick_row(const pc__plane *plane, int y, const int *columns, int n)
{
    const bool wide = plane->width > 2;
    const uint8_t *row = row_of(plane, y / plane->down);
    if (plane->across == 2 && plane->down == 2 && wide)
        pick_smooth_both(plane, y, columns, n);
    else if (plane->across == 2 && plane->down == 1 && wide)
        pick_smooth_across(plane, row, columns, n);
    else if (plane->across == 1 && plane->down == 2)
        pick_smooth_down(plane, y, n);
    else
        pick_plain(plane, row, n);
}

static uint8_t clamp(int value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* JFIF's conversion in libjpeg's 16-bit fixed point. */
PC__SIMD static void to_rgb(const uint8_t *luma, const uint8_t *blue, const uint8_t *red, int n, uint8_t *restrict out)
{
    enum { HALF = 1 << 15, R_CR = 91881, G_CB = 22554, G_CR = 46802, B_CB = 116130 };
    for (int i = 0; i < n; i++) {
        const int y = luma[i], cb = blue[i] - 128, cr = red[i] - 128;
        out[3 * i] = clamp(y + ((R_CR * cr + HALF) >> 16));
        out[3 * i + 1] = clamp(y + ((-G_CB * cb - G_CR * cr + HALF) >> 16));
        out[3 * i + 2] = clamp(y + ((B_CB * cb + HALF) >> 16));
    }
}

static void convert(const pc__plane *planes, int channels, int n, uint8_t *out)
{
    if (channels == 1)
        memcpy(out, planes[0].picked, (size_t)n);
    else
        to_rgb(planes[0].picked, planes[1].picked, planes[2].picked, n, out);
}

/* Rows of the output whose samples, and those of the row below that the filter looks at, have arrived. */
static void pick_ready(pc__jpeg *jpeg, int arrived, int *target)
{
    const pc_image *image = &jpeg->picture->image;
    const int width = image->width, channels = image->channels;
    for (; *target < image->height; ++*target) {
        const int y = jpeg->lines[*target];
        if (arrived < jpeg->source_height && y + jpeg->c.max_v_samp_factor >= arrived)
            return;
        for (int i = 0; i < jpeg->c.num_components; i++)
            pick_row(&jpeg->planes[i], y, jpeg->columns, width);
        convert(jpeg->planes, channels, width, image->pixels + (size_t)*target * (size_t)width * (size_t)channels);
    }
}

static void decode_nearest(pc__jpeg *jpeg)
{
    struct jpeg_decompress_struct *c = &jpeg->c;
    const pc_image *image = &jpeg->picture->image;
    const pc__turn turn = pc__turn_of(jpeg->picture->orientation);
    jpeg_start_decompress(c);
    open_planes(jpeg);
    jpeg->columns = need(jpeg, (size_t)image->width * sizeof *jpeg->columns);
    jpeg->lines = need(jpeg, (size_t)image->height * sizeof *jpeg->lines);
    pc__nearest_map(jpeg->source_width, image->width, turn.mirror_x, jpeg->columns);
    pc__nearest_map(jpeg->source_height, image->height, turn.mirror_y, jpeg->lines);
    for (int i = 0; i < c->num_components; i++) {
        pc__plane *plane = &jpeg->planes[i];
        plane->picked = need(jpeg, (size_t)image->width);
        plane->at = need(jpeg, (size_t)image->width * sizeof *plane->at);
        plane->beside = need(jpeg, (size_t)image->width * sizeof *plane->beside);
        find_samples(plane, jpeg->columns, image->width);
    }
    const int step = c->max_v_samp_factor * PC__MIN_DCT_SIZE(c);
    for (int mcu_row = 0, target = 0; c->output_scanline < c->output_height; mcu_row++) {
        read_planes(jpeg, mcu_row);
        pick_ready(jpeg, (mcu_row + 1) * step, &target);
    }
}

/* Every component has two samples for each output pixel, in both directions: with fewer, averages take from their neighbours. */
static bool has_enough(const pc__jpeg *jpeg)
{
    const pc_image *image = &jpeg->picture->image;
    for (int i = 0; i < jpeg->c.num_components; i++) {
        const jpeg_component_info *component = &jpeg->c.comp_info[i];
        if ((int64_t)component->downsampled_width < 2 * (int64_t)image->width ||
            (int64_t)component->downsampled_height < 2 * (int64_t)image->height)
            return false;
    }
    return true;
}

/* Decode at the most reduced size that has enough: of the sizes for which libjpeg-turbo has SIMD code. How much of Cb and Cr
 * is there depends on their sampling, and on what libjpeg can spare itself of their upsampling. */
static void reduce(pc__jpeg *jpeg)
{
    jpeg->c.scale_denom = 8;
    for (jpeg->c.scale_num = 1; jpeg->c.scale_num < 8; jpeg->c.scale_num *= 2) {
        jpeg_calc_output_dimensions(&jpeg->c);
        if (has_enough(jpeg))
            return;
    }
}

static void open_areas(pc__jpeg *jpeg)
{
    const struct jpeg_decompress_struct *c = &jpeg->c;
    const pc_image *image = &jpeg->picture->image;
    for (int i = 0; i < c->num_components; i++) {
        const jpeg_component_info *component = &c->comp_info[i];
        const int dct = PC__DCT_SIZE(component);
        pc__plane *plane = &jpeg->planes[i];
        plane->picked = need(jpeg, (size_t)image->width * (size_t)image->height);
        pc_status status = pc__area_open(&plane->area,
                                         pc__area_axis_of(jpeg->source_width, 8 * c->max_h_samp_factor,
                                                          dct * component->h_samp_factor, image->width),
                                         pc__area_axis_of(jpeg->source_height, 8 * c->max_v_samp_factor,
                                                          dct * component->v_samp_factor, image->height),
                                         1, plane->picked);
        if (status != PC_OK)
            pc__jpeg_leave(jpeg, status);
    }
}

static void decode_area(pc__jpeg *jpeg)
{
    struct jpeg_decompress_struct *c = &jpeg->c;
    const pc_image *image = &jpeg->picture->image;
    reduce(jpeg);
    jpeg_start_decompress(c);
    open_planes(jpeg);
    open_areas(jpeg);
    for (int mcu_row = 0; c->output_scanline < c->output_height; mcu_row++) {
        read_planes(jpeg, mcu_row);
        for (int i = 0; i < c->num_components; i++) {
            pc__plane *plane = &jpeg->planes[i];
            for (int y = mcu_row * plane->group; y < (mcu_row + 1) * plane->group && y < plane->height; y++)
                pc__area_row(&plane->area, row_of(plane, y));
        }
    }
    convert(jpeg->planes, image->channels, image->width * image->height, image->pixels);
}

void pc__jpeg_planes_decode(pc__jpeg *jpeg)
{
    jpeg->c.raw_data_out = TRUE;
    if (jpeg->picture->options->resize == PC_RESIZE_AREA)
        decode_area(jpeg);
    else
        decode_nearest(jpeg);
}

#endif

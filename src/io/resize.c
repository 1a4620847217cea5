/* resize.c: which pixels a resized picture takes, row by row. Area averaging itself is in area.c. */
#include "io/resize.h"

#include "io/codec.h"

void pc__nearest_map(int source, int target, bool mirror, int *map)
{
    /* PIL adds up the positions in double; a product would pick another pixel now and then */
    const double step = (double)source / target;
    double at = step * 0.5;
    for (int i = 0; i < target; i++, at += step) {
        const int pixel = PC__MIN((int)at, source - 1);
        if (mirror)
            map[target - 1 - i] = source - 1 - pixel;
        else
            map[i] = pixel;
    }
}

static pc_status open_nearest(pc__rows *rows, int width, int height, bool mirror_x, bool mirror_y)
{
    rows->columns = pc__alloc((size_t)rows->out->width * sizeof *rows->columns);
    rows->lines = pc__alloc((size_t)rows->out->height * sizeof *rows->lines);
    if (!rows->columns || !rows->lines)
        return PC_ERR_MEMORY;
    pc__nearest_map(width, rows->out->width, mirror_x, rows->columns);
    pc__nearest_map(height, rows->out->height, mirror_y, rows->lines);
    return PC_OK;
}

pc_status pc__rows_open(pc__rows *rows, int width, int height, pc_resize mode, bool mirror_x, bool mirror_y,
                        pc_image *out)
{
    *rows = (pc__rows){.out = out, .mode = mode, .direct = width == out->width && height == out->height};
    if (rows->direct)
        return PC_OK;
    rows->scratch = pc__alloc((size_t)width * (size_t)out->channels);
    if (!rows->scratch)
        return PC_ERR_MEMORY;
    if (mode == PC_RESIZE_NEAREST)
        return open_nearest(rows, width, height, mirror_x, mirror_y);
    return pc__area_open(&rows->area, pc__area_axis_of(width, 1, 1, out->width),
                         pc__area_axis_of(height, 1, 1, out->height), out->channels, out->pixels);
}

void pc__rows_close(pc__rows *rows)
{
    pc__free(rows->columns);
    pc__free(rows->lines);
    pc__free(rows->scratch);
    pc__area_close(&rows->area);
    *rows = (pc__rows){0};
}

static uint8_t *out_row(const pc__rows *rows, int y)
{
    return rows->out->pixels + (size_t)y * (size_t)rows->out->width * (size_t)rows->out->channels;
}

uint8_t *pc__rows_next(pc__rows *rows)
{
    return rows->direct ? out_row(rows, rows->row) : rows->scratch;
}

static void pick_pixels(const pc__rows *rows, const uint8_t *row, uint8_t *out)
{
    const int n = rows->out->width, channels = rows->out->channels;
    for (int x = 0; x < n; x++)
        for (int c = 0; c < channels; c++)
            *out++ = row[rows->columns[x] * channels + c];
}

static void take_nearest(pc__rows *rows, const uint8_t *row)
{
    const int height = rows->out->height;
    const size_t bytes = (size_t)rows->out->width * (size_t)rows->out->channels;
    const int first = rows->target;
    for (; rows->target < height && rows->lines[rows->target] == rows->row; rows->target++)
        if (rows->target == first)
            pick_pixels(rows, row, out_row(rows, first));
        else
            memcpy(out_row(rows, rows->target), out_row(rows, first), bytes);
}

void pc__rows_take(pc__rows *rows, const uint8_t *row)
{
    if (rows->direct)
        memcpy(out_row(rows, rows->row), row, (size_t)rows->out->width * (size_t)rows->out->channels);
    else if (rows->mode == PC_RESIZE_NEAREST)
        take_nearest(rows, row);
    else
        pc__area_row(&rows->area, row);
    rows->row++;
}

void pc__rows_done(pc__rows *rows)
{
    if (rows->direct)
        rows->row++;
    else
        pc__rows_take(rows, rows->scratch);
}

static pc_status resize_into(const pc_image *image, pc_resize mode, pc_image *resized)
{
    pc__rows rows;
    pc_status status = pc__rows_open(&rows, image->width, image->height, mode, false, false, resized);
    const size_t stride = (size_t)image->width * (size_t)image->channels;
    for (int y = 0; status == PC_OK && y < image->height; y++)
        pc__rows_take(&rows, image->pixels + (size_t)y * stride);
    pc__rows_close(&rows);
    return status;
}

pc_status pc_image_resize(const pc_image *image, int width, int height, pc_resize mode, pc_image *resized)
{
    PC__NEED(resized);
    pc_image made = {0};
    *resized = made;
    PC__NEED(image);
    if (mode != PC_RESIZE_NEAREST && mode != PC_RESIZE_AREA)
        return pc__fail(PC_ERR_ARGUMENT, "resize: %d is no resize mode; use PC_RESIZE_NEAREST or PC_RESIZE_AREA", mode);
    PC__TRY(pc__image_check(image, "resizing"));
    PC__TRY(pc_image_new(width, height, image->channels, &made));
    pc_status status = resize_into(image, mode, &made);
    if (status == PC_OK)
        *resized = made;
    else
        pc_image_free(&made);
    return status;
}

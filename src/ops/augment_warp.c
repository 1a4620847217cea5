/* augment_warp.c: affine transformation of a byte picture into floats, bilinear, with the edges of scipy.ndimage.
 *
 * What lies inside the picture, and with PC__EDGE_NEAREST everything, takes the fast way: blocks of pixels in three
 * loops over small arrays (where from, fetch, blend), the first and the last of which the compiler turns into SIMD. */
#include "ops/augment.h"

#include "base/simd.h"

#include <math.h>

enum { BLOCK = 64 };

/* Top left, top right, bottom left and bottom right neighbour of each pixel, and how far it is from the first. */
typedef struct block {
    int at[BLOCK]; /* of the top left neighbour, in bytes */
    float right[BLOCK], down[BLOCK];
    uint32_t tl[BLOCK], tr[BLOCK], bl[BLOCK], br[BLOCK]; /* three channels in the low bytes */
} block;

typedef uint32_t unaligned_u32 __attribute__((aligned(1), may_alias));

/* One row of output coordinates: (y + dy * i, x + dx * i). */
typedef struct line {
    double y, x, dy, dx;
} line;

static line line_of(const pc__warp *warp, int row)
{
    return (line){warp->rows[0] * row + warp->rows[2], warp->columns[0] * row + warp->columns[2], warp->rows[1],
                  warp->columns[1]};
}

/* Coordinates outside are clamped: that is PC__EDGE_NEAREST. The last row and column are reached from the ones before
 * them with a distance of 1, so that all four neighbours always exist. */
static inline void locate(block *b, const pc__warp *warp, line l, int first, int n)
{
    const double y_end = warp->height - 1, x_end = warp->width - 1;
    const int y_last = warp->height - 2, x_last = warp->width - 2;
    const int row_bytes = warp->width * warp->channels;
    for (int i = 0; i < n; i++) {
        double y = l.y + l.dy * (first + i), x = l.x + l.dx * (first + i);
        y = y < 0 ? 0 : y;
        y = y > y_end ? y_end : y;
        x = x < 0 ? 0 : x;
        x = x > x_end ? x_end : x;
        int top = (int)y, left = (int)x;
        top = top > y_last ? y_last : top;
        left = left > x_last ? x_last : left;
        b->down[i] = (float)(y - top);
        b->right[i] = (float)(x - left);
        b->at[i] = top * row_bytes + left * warp->channels;
    }
}

static inline float blend(float tl, float tr, float bl, float br, float right, float down)
{
    const float top = tl + right * (tr - tl), bottom = bl + right * (br - bl);
    return top + down * (bottom - top);
}

/* Four bytes at a time: at 0 for the left neighbour, at 2 for the right one, which never leaves the picture. */
static inline void fetch_rgb(block *b, const pc__warp *warp, int n)
{
    const size_t row_bytes = (size_t)warp->width * 3;
    for (int i = 0; i < n; i++) {
        const uint8_t *top = warp->pixels + b->at[i], *bottom = top + row_bytes;
        b->tl[i] = *(const unaligned_u32 *)top;
        b->tr[i] = *(const unaligned_u32 *)(top + 2);
        b->bl[i] = *(const unaligned_u32 *)bottom;
        b->br[i] = *(const unaligned_u32 *)(bottom + 2);
    }
}

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BYTE(word, i) ((float)(int)((word) >> 8 * (i)&255))
#else
#define BYTE(word, i) ((float)(int)((word) >> (24 - 8 * (i)) & 255))
#endif

static inline void blend_rgb(const block *b, float scale, int n, float *restrict out)
{
    for (int i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            out[3 * i + c] = scale * blend(BYTE(b->tl[i], c), BYTE(b->tr[i], c + 1), BYTE(b->bl[i], c),
                                           BYTE(b->br[i], c + 1), b->right[i], b->down[i]);
}

static inline void blend_any(const block *b, const pc__warp *warp, int n, float *restrict out)
{
    const int channels = warp->channels;
    const size_t row_bytes = (size_t)warp->width * (size_t)channels;
    for (int i = 0; i < n; i++)
        for (int c = 0; c < channels; c++) {
            const uint8_t *top = warp->pixels + b->at[i] + c, *bottom = top + row_bytes;
            *out++ = warp->scale * blend(top[0], top[channels], bottom[0], bottom[channels], b->right[i], b->down[i]);
        }
}

PC__SIMD static void run_fast(const pc__warp *warp, line l, int first, int end, float *out)
{
    block b;
    for (int at = first; at < end; at += BLOCK) {
        const int n = PC__MIN(BLOCK, end - at);
        float *to = out + (size_t)at * (size_t)warp->channels;
        locate(&b, warp, l, at, n);
        if (warp->channels == 3) {
            fetch_rgb(&b, warp, n);
            blend_rgb(&b, warp->scale, n, to);
        } else {
            blend_any(&b, warp, n, to);
        }
    }
}

/* Bring a coordinate into the picture, or within one pixel of it. */
static double map_coordinate(double at, int length, pc__edge edge)
{
    const double period = edge == PC__EDGE_REFLECT ? 2.0 * length : length - 1;
    if (length == 1)
        return 0;
    if (edge == PC__EDGE_REFLECT) {
        at -= period * floor(at / period);
        return at >= length ? period - 1 - at : at;
    }
    if (edge == PC__EDGE_WRAP && at < 0)
        return at + period * (trunc(-at / period) + 1);
    if (edge == PC__EDGE_WRAP && at > period)
        return at - period * trunc(at / period);
    return at < 0 ? 0 : at > length - 1 ? length - 1 : at;
}

/* Within the margin the picture goes on with its last pixels. */
static double settle(double at, int length, double margin)
{
    const double end = length - 1;
    return at < 0 && at >= -margin ? 0 : at > end && at <= end + margin ? end : at;
}

static void run_one(const pc__warp *warp, double y, double x, float *out)
{
    const int height = warp->height, width = warp->width, channels = warp->channels;
    y = settle(y, height, warp->margin);
    x = settle(x, width, warp->margin);
    if (warp->edge == PC__EDGE_CONSTANT && (y < 0 || y > height - 1 || x < 0 || x > width - 1)) {
        for (int c = 0; c < channels; c++)
            out[c] = warp->cval * warp->scale;
        return;
    }
    y = map_coordinate(y, height, warp->edge);
    x = map_coordinate(x, width, warp->edge);
    const int top = (int)floor(y), left = (int)floor(x);
    const int y0 = PC__MAX(top, 0), y1 = PC__MIN(top + 1, height - 1);
    const int x0 = PC__MAX(left, 0), x1 = PC__MIN(left + 1, width - 1);
    const uint8_t *upper = warp->pixels + (size_t)y0 * (size_t)width * (size_t)channels;
    const uint8_t *lower = warp->pixels + (size_t)y1 * (size_t)width * (size_t)channels;
    for (int c = 0; c < channels; c++)
        out[c] = warp->scale * blend(upper[x0 * channels + c], upper[x1 * channels + c], lower[x0 * channels + c],
                                     lower[x1 * channels + c], (float)(x - left), (float)(y - top));
}

static void run_slow(const pc__warp *warp, line l, int first, int end, float *out)
{
    for (int i = first; i < end; i++)
        run_one(warp, l.y + l.dy * i, l.x + l.dx * i, out + (size_t)i * (size_t)warp->channels);
}

/* The i of 0..n for which start + step * i lies on `length` pixels or within the margin beside them is [first, end): both
 * found by halving, with the very sums that `locate` forms. */
static void inside(double start, double step, int length, double margin, int n, int *first, int *end)
{
    const double low_end = -margin, limit = length - 1 + margin;
    int edges[2];
    for (int e = 0; e < 2; e++) {
        int low = 0, high = n;
        while (low < high) {
            const int i = low + (high - low) / 2;
            const double at = start + step * i;
            const bool before =
                e == 0 ? (step >= 0 ? at < low_end : at > limit) : (step >= 0 ? at <= limit : at >= low_end);
            if (before)
                low = i + 1;
            else
                high = i;
        }
        edges[e] = low;
    }
    *first = edges[0];
    *end = PC__MAX(edges[0], edges[1]);
}

void pc__warp_run(const pc__warp *warp, float *out)
{
    const int width = warp->width;
    const bool tiny = warp->height < 2 || width < 2;
    for (int row = 0; row < warp->height; row++, out += (size_t)width * (size_t)warp->channels) {
        const line l = line_of(warp, row);
        int first = 0, end = tiny ? 0 : width;
        if (!tiny && warp->edge != PC__EDGE_NEAREST) {
            int y_first, y_end;
            inside(l.x, l.dx, width, warp->margin, width, &first, &end);
            inside(l.y, l.dy, warp->height, warp->margin, width, &y_first, &y_end);
            first = PC__MAX(first, y_first);
            end = PC__MAX(first, PC__MIN(end, y_end));
        }
        run_slow(warp, l, 0, PC__MIN(first, width), out);
        run_fast(warp, l, first, end, out);
        run_slow(warp, l, end, width, out);
    }
}

PC__SIMD static void to_floats(const uint8_t *restrict from, size_t n, float scale, float *restrict out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = scale * (float)from[i];
}

PC__SIMD static void mirror_rgb(const uint8_t *restrict from, int n, float scale, float *restrict out)
{
    for (int i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            out[3 * i + c] = scale * (float)from[3 * (n - 1 - i) + c];
}

static void mirror_any(const uint8_t *from, int n, int channels, float scale, float *out)
{
    for (int i = n - 1; i >= 0; i--)
        for (int c = 0; c < channels; c++)
            *out++ = scale * (float)from[i * channels + c];
}

void pc__warp_copy(const pc__warp *warp, bool flip_horizontal, bool flip_vertical, float *out)
{
    const size_t stride = (size_t)warp->width * (size_t)warp->channels;
    for (int row = 0; row < warp->height; row++, out += stride) {
        const uint8_t *from = warp->pixels + (size_t)(flip_vertical ? warp->height - 1 - row : row) * stride;
        if (!flip_horizontal)
            to_floats(from, stride, warp->scale, out);
        else if (warp->channels == 3)
            mirror_rgb(from, warp->width, warp->scale, out);
        else
            mirror_any(from, warp->width, warp->channels, warp->scale, out);
    }
}

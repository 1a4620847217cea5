/* area.c: area averaging in whole numbers: exact but for the last rounding. Rows are summed first (that is the loop
 * over all source samples, and it is the one that SIMD does well), columns once per output row. */
#include "io/resize.h"
#include "base/simd.h"

pc__area_axis pc__area_axis_of(int pixels, int cover, int parts, int targets)
{
    return (pc__area_axis){
        .sample = (int64_t)cover * targets,
        .output = (int64_t)pixels * parts,
        .total = (int64_t)pixels * parts * targets,
        .samples = (int)(((int64_t)pixels * parts + cover - 1) / cover),
        .targets = targets,
    };
}

static void find_cuts(pc__area *area)
{
    for (int64_t j = 0; j <= area->x.targets; j++) {
        const int64_t at = j * area->x.output;
        area->cuts[j] = (pc__area_cut){(int)(at / area->x.sample), (uint32_t)(at % area->x.sample)};
    }
}

pc_status pc__area_open(pc__area *area, pc__area_axis x, pc__area_axis y, int channels, uint8_t *out)
{
    *area = (pc__area){.x = x, .y = y, .channels = channels, .out = out};
    const size_t samples = ((size_t)x.samples + 1) * (size_t)channels; /* the last cut looks one past the end */
    area->sums = pc__calloc(samples, sizeof *area->sums);
    area->below = pc__alloc(samples * sizeof *area->below);
    area->cuts = pc__alloc(((size_t)x.targets + 1) * sizeof *area->cuts);
    if (!area->sums || !area->below || !area->cuts)
        return PC_ERR_MEMORY;
    find_cuts(area);
    return PC_OK;
}

void pc__area_close(pc__area *area)
{
    pc__free(area->sums);
    pc__free(area->below);
    pc__free(area->cuts);
    *area = (pc__area){0};
}

PC__SIMD static void add_row(uint32_t *restrict sums, const uint8_t *restrict row, int n, uint32_t length)
{
    for (int i = 0; i < n; i++)
        sums[i] += length * row[i];
}

/* The sums of one output row become its bytes: differences of running sums at the cuts, so that nothing branches on
 * the ratio. `sums` and `below` are those of one channel, `step` apart. */
static void emit_channel(const pc__area *area, const uint32_t *restrict sums, uint64_t *restrict below,
                         uint8_t *restrict out)
{
    const pc__area_cut *restrict cuts = area->cuts;
    const size_t step = (size_t)area->channels, samples = (size_t)area->x.samples, targets = (size_t)area->x.targets;
    const uint64_t sample = (uint64_t)area->x.sample;
    const double scale = 1.0 / ((double)area->x.output * (double)area->y.output);
    uint64_t total = 0, left = 0;
    for (size_t i = 0; i <= samples; i++) {
        below[i * step] = total;
        total += sums[i * step];
    }
    for (size_t j = 0; j < targets; j++) {
        const size_t at = (size_t)cuts[j + 1].whole * step;
        const uint64_t right = below[at] * sample + (uint64_t)cuts[j + 1].rest * sums[at];
        out[j * step] = (uint8_t)((double)(int64_t)(right - left) * scale + 0.5);
        left = right;
    }
}

static void emit_row(pc__area *area)
{
    for (int c = 0; c < area->channels; c++)
        emit_channel(area, area->sums + c, area->below + c, area->out + c);
    area->out += area->x.targets * area->channels;
}

void pc__area_row(pc__area *area, const uint8_t *row)
{
    const pc__area_axis y = area->y;
    const int n = area->x.samples * area->channels;
    int64_t at = area->row++ * y.sample;
    const int64_t end = PC__MIN(at + y.sample, y.total);
    while (at < end) {
        const int64_t output_end = (area->target + 1) * y.output;
        const int64_t next = PC__MIN(end, output_end);
        add_row(area->sums, row, n, (uint32_t)(next - at));
        at = next;
        if (at == output_end) {
            emit_row(area);
            memset(area->sums, 0, (size_t)n * sizeof *area->sums);
            area->target++;
        }
    }
}

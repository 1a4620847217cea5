/* tiff_samples.c: the usual kinds of TIFF from their samples, tile by tile. */
#include "io/tiff.h"

#if PC__TIFF
#include "io/resize.h"

/* --- how it is stored --- */

static bool find_tiles(TIFF *file, pc__tiff_form *form)
{
    form->tiled = pc__tiff.TIFFIsTiled(file);
    form->tile_width = form->width;
    if (!form->tiled) {
        (void)pc__tiff.TIFFGetFieldDefaulted(file, TIFFTAG_ROWSPERSTRIP, &form->tile_height);
        form->tile_height = PC__MIN(form->tile_height, form->height);
    } else if (!pc__tiff.TIFFGetField(file, TIFFTAG_TILEWIDTH, &form->tile_width) ||
               !pc__tiff.TIFFGetField(file, TIFFTAG_TILELENGTH, &form->tile_height))
        return false;
    form->row_bytes = form->tiled ? pc__tiff.TIFFTileRowSize64(file) : pc__tiff.TIFFScanlineSize64(file);
    const uint64_t samples = (uint64_t)form->tile_width * (form->separate ? 1 : form->samples);
    return form->tile_width && form->tile_height && form->row_bytes >= (samples * form->bits + 7) / 8;
}

/* Entries have 16 bits, but old programs wrote 8. */
static bool find_palette(TIFF *file, pc__tiff_form *form)
{
    enum { BITS_MOST = 8 };
    uint16_t *entries[3] = {NULL};
    if (form->bits > BITS_MOST || !pc__tiff.TIFFGetField(file, TIFFTAG_COLORMAP, &entries[0], &entries[1], &entries[2]))
        return false;
    form->palette_shift = 0;
    for (int c = 0; c < 3; c++) {
        form->palette[c] = entries[c];
        for (int i = 0; i < 1 << form->bits; i++)
            form->palette_shift = entries[c][i] >> 8 ? 8 : form->palette_shift;
    }
    return true;
}

/* 0: colours that are not read here. */
static int colours_of(uint16_t photometric)
{
    switch (photometric) {
    case PHOTOMETRIC_MINISWHITE:
    case PHOTOMETRIC_MINISBLACK:
    case PHOTOMETRIC_PALETTE:
        return 1;
    case PHOTOMETRIC_RGB:
        return 3;
    case PHOTOMETRIC_SEPARATED:
        return 4;
    default:
        return 0;
    }
}

bool pc__tiff_is_usual(TIFF *file, pc__tiff_form *form)
{
    enum { BITS_MOST = 16, SAMPLES_MOST = 16 };
    uint16_t planar = PLANARCONFIG_CONTIG, inks = INKSET_CMYK, extras = 0, *extra = NULL;
    (void)pc__tiff.TIFFGetFieldDefaulted(file, TIFFTAG_SAMPLESPERPIXEL, &form->samples);
    (void)pc__tiff.TIFFGetFieldDefaulted(file, TIFFTAG_PLANARCONFIG, &planar);
    (void)pc__tiff.TIFFGetFieldDefaulted(file, TIFFTAG_EXTRASAMPLES, &extras, &extra);
    (void)pc__tiff.TIFFGetFieldDefaulted(file, TIFFTAG_INKSET, &inks);
    form->colours = colours_of(form->photometric);
    form->separate = planar == PLANARCONFIG_SEPARATE && form->samples > 1;
    form->premultiplied = extras > 0 && extra[0] == EXTRASAMPLE_ASSOCALPHA && form->samples > form->colours &&
                          (form->photometric == PHOTOMETRIC_MINISBLACK || form->photometric == PHOTOMETRIC_RGB);
    if (!form->colours || form->samples < form->colours || form->samples > SAMPLES_MOST || form->bits < 1 ||
        form->bits > BITS_MOST)
        return false;
    if (form->photometric == PHOTOMETRIC_SEPARATED && inks != INKSET_CMYK)
        return false;
    return find_tiles(file, form) && (form->photometric != PHOTOMETRIC_PALETTE || find_palette(file, form));
}

/* --- from samples to pixels --- */

typedef struct reader {
    pc__tiff_file *d;
    TIFF *file;
    const pc__tiff_form *form;
    uint8_t *tile; /* as libtiff decodes it */
    uint8_t *band; /* a row of tiles: samples of 8 bits, pixel by pixel */
    uint8_t *row;  /* of CMYK, inverted */
} reader;

/* Samples of fewer or more than 8 bits are packed, most significant bit first, but for 16, which libtiff brings into
 * the machine's order. */
static unsigned sample_at(const uint8_t *row, size_t i, int bits)
{
    if (bits == 8)
        return row[i];
    if (bits == 16) {
        uint16_t value;
        memcpy(&value, row + 2 * i, sizeof value);
        return value;
    }
    unsigned value = 0;
    for (size_t bit = i * (size_t)bits, end = bit + (size_t)bits; bit < end; bit++)
        value = value << 1 | (row[bit / 8] >> (7 - bit % 8) & 1u);
    return value;
}

/* n samples of a row to every `step`-th byte. An index of a palette stays what it is. */
static void spread(const pc__tiff_form *form, const uint8_t *row, size_t n, uint8_t *out, size_t step)
{
    const int bits = form->bits;
    const bool index = form->photometric == PHOTOMETRIC_PALETTE;
    const unsigned most = (1u << bits) - 1;
    for (size_t i = 0; i < n; i++, out += step) {
        const unsigned value = sample_at(row, i, bits);
        *out = (uint8_t)(bits > 8 ? value >> (bits - 8) : index || bits == 8 ? value : (value * 255 + most / 2) / most);
    }
}

/* One tile, of one plane where these are separate, into the band. */
static pc_status read_tile(reader *r, uint32_t x, uint32_t y, uint16_t plane)
{
    const pc__tiff_form *f = r->form;
    const uint32_t width = PC__MIN(f->tile_width, f->width - x), height = PC__MIN(f->tile_height, f->height - y);
    /* the last strip is as long as the picture, a tile always whole */
    const uint64_t bytes = f->row_bytes * (f->tiled ? f->tile_height : height);
    const tmsize_t got = f->tiled
                             ? pc__tiff.TIFFReadEncodedTile(r->file, pc__tiff.TIFFComputeTile(r->file, x, y, 0, plane),
                                                            r->tile, (tmsize_t)bytes)
                             : pc__tiff.TIFFReadEncodedStrip(r->file, pc__tiff.TIFFComputeStrip(r->file, y, plane),
                                                             r->tile, (tmsize_t)bytes);
    if (got < 0 || (uint64_t)got < bytes || r->d->error[0])
        return pc__tiff_broken(r->d);
    const size_t samples = f->samples;
    for (uint32_t i = 0; i < height; i++)
        spread(f, r->tile + i * f->row_bytes, f->separate ? width : width * samples,
               r->band + ((size_t)i * f->width + x) * samples + plane, f->separate ? samples : 1);
    return PC_OK;
}

static pc_status read_band(reader *r, uint32_t y)
{
    const int planes = r->form->separate ? r->form->colours + r->form->premultiplied : 1;
    for (uint32_t x = 0; x < r->form->width; x += r->form->tile_width)
        for (int plane = 0; plane < planes; plane++)
            PC__TRY(read_tile(r, x, y, (uint16_t)plane));
    return PC_OK;
}

/* PIL's way back from colours that were multiplied by alpha. */
static uint8_t divided(uint8_t colour, uint8_t alpha)
{
    return alpha ? (uint8_t)PC__MIN(colour * 255 / alpha, 255) : 0;
}

static void pixels_of(const reader *r, const uint8_t *in, uint8_t *out)
{
    const pc__tiff_form *f = r->form;
    for (uint32_t x = 0; x < f->width; x++, in += f->samples)
        switch (f->photometric) {
        case PHOTOMETRIC_MINISWHITE:
            *out++ = 255 - in[0];
            break;
        case PHOTOMETRIC_PALETTE:
            for (int c = 0; c < 3; c++)
                *out++ = (uint8_t)(f->palette[c][in[0]] >> f->palette_shift);
            break;
        case PHOTOMETRIC_SEPARATED:
            for (int c = 0; c < 4; c++)
                r->row[4 * x + (uint32_t)c] = 255 - in[c];
            break;
        default:
            for (int c = 0; c < f->colours; c++)
                *out++ = f->premultiplied ? divided(in[c], in[f->colours]) : in[c];
        }
}

static pc_status read_rows(reader *r, pc__rows *rows)
{
    const pc__tiff_form *f = r->form;
    for (uint32_t y = 0; y < f->height; y += f->tile_height) {
        PC__TRY(read_band(r, y));
        for (uint32_t i = 0; i < PC__MIN(f->tile_height, f->height - y); i++) {
            uint8_t *out = pc__rows_next(rows);
            pixels_of(r, r->band + (size_t)i * f->width * f->samples, out);
            if (f->photometric == PHOTOMETRIC_SEPARATED)
                pc__cmyk_to_rgb(r->row, out, (int)f->width);
            pc__rows_done(rows);
        }
    }
    return PC_OK;
}

/* The decoded tile and the band. A tile may be larger than the picture: that is a file to be refused. */
static pc_status make_room(reader *r)
{
    const pc__tiff_form *f = r->form;
    const uint64_t pixel = (f->samples * f->bits + 7u) / 8 + f->samples;
    PC__TRY(pc__library_room(r->d->picture, PC__TIFF_WHAT " with a strip, or row of tiles,",
                             PC__MAX(f->tile_width, f->width), f->tile_height, (int)pixel));
    r->tile = pc__alloc(f->row_bytes * f->tile_height);
    r->band = pc__calloc((size_t)f->width * f->tile_height, f->samples);
    r->row = pc__alloc((size_t)f->width * 4);
    return r->tile && r->band && r->row ? PC_OK : PC_ERR_MEMORY;
}

pc_status pc__tiff_samples(pc__tiff_file *d, TIFF *file, const pc__tiff_form *form)
{
    reader r = {.d = d, .file = file, .form = form};
    const pc__turn turn = pc__turn_of(d->picture->orientation);
    pc__rows rows;
    pc_status status = make_room(&r);
    if (status == PC_OK) {
        status = pc__rows_open(&rows, (int)form->width, (int)form->height, d->picture->options->resize, turn.mirror_x,
                               turn.mirror_y, &d->picture->image);
        if (status == PC_OK)
            status = read_rows(&r, &rows);
        pc__rows_close(&rows);
    }
    pc__free(r.tile);
    pc__free(r.band);
    pc__free(r.row);
    return status;
}

#endif

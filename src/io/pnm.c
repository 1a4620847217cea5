/* pnm.c: portable bitmaps, greymaps and pixmaps (PBM, PGM, PPM) in both forms, P1 to P6: a header of words, then numbers as
 * text or as bytes. */
#include "io/resize.h"

#include "io/codec.h"

enum { VALUE_MOST = 65535, MAP_MOST = 255 };

typedef struct pnm {
    pc__picture *picture;
    size_t at; /* of the next byte */
    int width, height, channels, most;
    bool text, bits;
    uint8_t map[MAP_MOST + 1]; /* of values that are one byte */
} pnm;

static pc_status broken(const pnm *p, const char *how)
{
    return pc__fail_cause(PC_ERR_FORMAT, how, "%s is a PNM that cannot be decoded", p->picture->name);
}

static pc_status truncated(const pnm *p)
{
    return pc__fail(PC_ERR_FORMAT, "%s is truncated: the file ends inside the picture", p->picture->name);
}

static bool is_space(uint8_t byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static bool has_digit(const pnm *p)
{
    return p->at < p->picture->n && p->picture->bytes[p->at] >= '0' && p->picture->bytes[p->at] <= '9';
}

/* Comments go to the end of their line. */
static void skip_space(pnm *p)
{
    bool comment = false;
    for (; p->at < p->picture->n; p->at++) {
        const uint8_t byte = p->picture->bytes[p->at];
        comment = comment ? byte != '\n' && byte != '\r' : byte == '#';
        if (!comment && !is_space(byte))
            return;
    }
}

/* A number, of a bitmap one digit, and what stands in front of it. */
static pc_status take(pnm *p, bool digit, int least, int most, const char *beyond, int *number)
{
    int64_t value = 0;
    skip_space(p);
    if (p->at == p->picture->n)
        return truncated(p);
    if (!has_digit(p))
        return broken(p, "there is no number where one should be");
    do {
        value = value * 10 + (p->picture->bytes[p->at++] - '0');
        value = PC__MIN(value, INT32_MAX);
    } while (!digit && has_digit(p));
    *number = (int)value;
    return value >= least && value <= most ? PC_OK : broken(p, beyond);
}

/* 0 to 255 of 0 to `most`, rounded to the nearest, of two to the even one. */
static uint8_t scaled(const pnm *p, int value)
{
    const int times = PC__MIN(value, p->most) * 255, below = times / p->most, rest = times % p->most * 2;
    return (uint8_t)(below + (rest > p->most || (rest == p->most && below % 2)));
}

static pc_status read_header(pnm *p)
{
    const int kind = p->picture->bytes[1] - '0';
    static const char side[] = "its width or height is 0 or beyond 65535";
    p->at = 2;
    p->text = kind <= 3;
    p->bits = kind == 1 || kind == 4;
    p->channels = kind == 3 || kind == 6 ? 3 : 1;
    p->most = 1;
    PC__TRY(take(p, false, 1, PC__SIDE_MAX, side, &p->width));
    PC__TRY(take(p, false, 1, PC__SIDE_MAX, side, &p->height));
    if (!p->bits)
        PC__TRY(take(p, false, 1, VALUE_MOST, "its greatest value is 0 or beyond 65535", &p->most));
    for (int i = 0; i <= MAP_MOST; i++)
        p->map[i] = p->bits ? (i ? 0 : 255) : scaled(p, i);
    if (p->text)
        return PC_OK;
    if (p->at == p->picture->n)
        return truncated(p);
    return is_space(p->picture->bytes[p->at++]) ? PC_OK : broken(p, "there is no space behind its header");
}

/* Bytes of a stored row, of text the fewest that it can have. */
static size_t row_bytes(const pnm *p)
{
    const size_t values = (size_t)p->width * (size_t)p->channels;
    return p->text ? values : p->bits ? (values + 7) / 8 : values * (p->most > MAP_MOST ? 2 : 1);
}

static pc_status text_row(pnm *p, uint8_t *out)
{
    int value;
    for (int i = 0; i < p->width * p->channels; i++) {
        PC__TRY(take(p, p->bits, 0, p->most, "a value is greater than the greatest", &value));
        out[i] = p->bits ? p->map[value] : scaled(p, value);
    }
    return PC_OK;
}

static void binary_row(pnm *p, uint8_t *out)
{
    const uint8_t *row = p->picture->bytes + p->at;
    const bool wide = p->most > MAP_MOST;
    for (int i = 0; i < p->width * p->channels; i++)
        out[i] = p->bits ? p->map[row[i / 8] >> (7 - i % 8) & 1]
                 : wide  ? scaled(p, row[2 * i] << 8 | row[2 * i + 1])
                         : p->map[row[i]];
    p->at += row_bytes(p);
}

static pc_status take_rows(pnm *p, pc__rows *rows)
{
    for (int y = 0; y < p->height; y++) {
        uint8_t *out = pc__rows_next(rows);
        if (p->text)
            PC__TRY(text_row(p, out));
        else
            binary_row(p, out);
        pc__rows_done(rows);
    }
    return PC_OK;
}

pc_status pc__pnm_decode(pc__picture *picture)
{
    pnm p = {.picture = picture};
    PC__TRY(read_header(&p));
    if (row_bytes(&p) > (picture->n - p.at) / (size_t)p.height)
        return truncated(&p);
    PC__TRY(pc__picture_begin(picture, p.width, p.height, p.channels));
    pc__rows rows;
    pc_status status = pc__rows_open(&rows, p.width, p.height, picture->options->resize, false, false, &picture->image);
    if (status == PC_OK)
        status = take_rows(&p, &rows);
    pc__rows_close(&rows);
    return status;
}

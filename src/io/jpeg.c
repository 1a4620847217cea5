/* jpeg.c: decoding JPEG by libjpeg: its errors, damage, and the plain way row by row. */
#include "io/codec.h"

#if PC_HAVE_JPEG
#include "io/jpeg.h"

enum { SCANS_MAX = 100 };

#define COEFFICIENTS_MAX ((int64_t)1 << 30) /* bytes */

static pc__jpeg *jpeg_of(j_common_ptr c)
{
    return c->client_data;
}

_Noreturn void pc__jpeg_leave(pc__jpeg *jpeg, pc_status status)
{
    jpeg->status = status;
    longjmp(jpeg->jump, 1);
}

_Noreturn static void leave_truncated(pc__jpeg *jpeg, const char *cause)
{
    pc__jpeg_leave(jpeg, pc__fail_cause(PC_ERR_FORMAT, cause, "%s is truncated: the file ends inside the picture",
                                        jpeg->picture->name));
}

/* Where: a row of the whole picture, also while it is decoded at a reduced size. A picture of several scans has no row
 * while they are read. */
_Noreturn static void leave_damaged(pc__jpeg *jpeg, const char *cause)
{
    const struct jpeg_decompress_struct *c = &jpeg->c;
    char where[64] = "";
    if (c->output_height && !jpeg->behind && !jpeg_has_multiple_scans(&jpeg->c))
        snprintf(where, sizeof where, ", at row %lld of %d",
                 (long long)c->output_scanline * jpeg->source_height / c->output_height, jpeg->source_height);
    pc__jpeg_leave(
        jpeg, pc__fail_cause(PC_ERR_FORMAT, cause, "%s is damaged inside the picture%s", jpeg->picture->name, where));
}

/* Warnings behind which libjpeg makes up the pixels that it cannot read: grey, or a smear of what came before. */
static bool loses_pixels(int code)
{
    return code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE || code == JWRN_ARITH_BAD_CODE ||
           code == JWRN_MUST_RESYNC;
}

_Noreturn static void on_error(j_common_ptr c)
{
    pc__jpeg *jpeg = jpeg_of(c);
    char words[JMSG_LENGTH_MAX];
    c->err->format_message(c, words);
    if (c->err->msg_code == JERR_OUT_OF_MEMORY)
        pc__jpeg_leave(jpeg,
                       pc__fail_cause(PC_ERR_MEMORY, words, "out of memory while decoding %s", jpeg->picture->name));
    if (jpeg->ended)
        leave_truncated(jpeg, words);
    if (jpeg->behind)
        leave_damaged(jpeg, words);
    pc__jpeg_leave(jpeg,
                   pc__fail_cause(PC_ERR_FORMAT, words, "%s is a JPEG that cannot be decoded", jpeg->picture->name));
}

static void on_message(j_common_ptr c, int level)
{
    if (level >= 0)
        return;
    pc__jpeg *jpeg = jpeg_of(c);
    char words[JMSG_LENGTH_MAX];
    const bool lost = loses_pixels(c->err->msg_code);
    if (c->err->num_warnings++ == 0 || lost)
        c->err->format_message(c, words);
    if (c->err->num_warnings == 1)
        memcpy(jpeg->warning, words, sizeof words);
    if (lost && jpeg->ended)
        leave_truncated(jpeg, words);
    if (lost)
        leave_damaged(jpeg, words);
}

static void ignore_message(j_common_ptr c)
{
    (void)c;
}

/* A progressive file of a few kilobytes can ask for thousands of passes over a huge picture. */
static void on_progress(j_common_ptr c)
{
    pc__jpeg *jpeg = jpeg_of(c);
    if (jpeg->c.input_scan_number > SCANS_MAX)
        pc__jpeg_leave(jpeg, pc__fail(PC_ERR_FORMAT, "%s has more than %d scans: not a picture made in good faith",
                                      jpeg->picture->name, SCANS_MAX));
}

static void ignore_source(j_decompress_ptr c)
{
    (void)c;
}

/* libjpeg's own source does the same: behind the last byte comes an end-of-image marker, again and again. */
static boolean fill_source(j_decompress_ptr c)
{
    static const JOCTET end[2] = {0xff, JPEG_EOI};
    jpeg_of((j_common_ptr)c)->ended = true;
    WARNMS(c, JWRN_JPEG_EOF);
    c->src->next_input_byte = end;
    c->src->bytes_in_buffer = sizeof end;
    return TRUE;
}

static void skip_source(j_decompress_ptr c, long n)
{
    if (n <= 0)
        return;
    const size_t step = PC__MIN((size_t)n, c->src->bytes_in_buffer);
    c->src->next_input_byte += step;
    c->src->bytes_in_buffer -= step;
}

static int orientation_of(const struct jpeg_decompress_struct *c)
{
    static const char xmp[] = "http://ns.adobe.com/xap/1.0/"; /* and a zero */
    enum { PREFIX = 6 };
    int orientation = 0, other = 1;
    for (jpeg_saved_marker_ptr m = c->marker_list; m && !orientation; m = m->next)
        if (m->data_length > PREFIX && memcmp(m->data, "Exif\0\0", PREFIX) == 0)
            orientation = pc__exif_orientation(m->data + PREFIX, m->data_length - PREFIX);
        else if (m->data_length > sizeof xmp && memcmp(m->data, xmp, sizeof xmp) == 0)
            other = pc__xmp_orientation(m->data + sizeof xmp, m->data_length - sizeof xmp);
    return orientation ? orientation : other;
}

/* Every 8x8 block takes one bit at least (arithmetic coding aside): so a short file cannot make a huge picture, and
 * one that claims to is cut off or lies. */
static void check_plausible(pc__jpeg *jpeg)
{
    const struct jpeg_decompress_struct *c = &jpeg->c;
    uint64_t blocks = 0;
    for (int i = 0; i < c->num_components; i++)
        blocks += (uint64_t)c->comp_info[i].width_in_blocks * c->comp_info[i].height_in_blocks;
    if (!c->arith_code && blocks > 8 * (uint64_t)jpeg->picture->n)
        leave_truncated(jpeg, "too few bytes for its size");
}

/* libjpeg keeps the coefficients of all scans of a progressive picture until the last one is read, 2 bytes for each
 * sample. A gigabyte of them is a picture of 170 megapixels, or of twice that with colours at half the resolution. */
static void check_memory(pc__jpeg *jpeg)
{
    const struct jpeg_decompress_struct *c = &jpeg->c;
    int64_t bytes = 0;
    for (int i = 0; i < c->num_components; i++)
        bytes += (int64_t)c->comp_info[i].width_in_blocks * c->comp_info[i].height_in_blocks * (DCTSIZE2 * 2);
    if (jpeg_has_multiple_scans(&jpeg->c) && bytes > COEFFICIENTS_MAX)
        pc__jpeg_leave(jpeg,
                       pc__fail(PC_ERR_FORMAT,
                                "%s is a progressive JPEG of %d x %d pixels in %d colours, which takes %.1f GB of "
                                "memory; %.1f GB are the most: make it smaller, or sequential (jpegtran)",
                                jpeg->picture->name, jpeg->source_width, jpeg->source_height, c->num_components,
                                (double)bytes / 1e9, (double)COEFFICIENTS_MAX / 1e9));
}

static void begin(pc__jpeg *jpeg, int channels)
{
    struct jpeg_decompress_struct *c = &jpeg->c;
    jpeg->source_width = (int)c->image_width;
    jpeg->source_height = (int)c->image_height;
    check_memory(jpeg);
    pc_status status = pc__picture_begin(jpeg->picture, jpeg->source_width, jpeg->source_height, channels);
    if (status != PC_OK)
        pc__jpeg_leave(jpeg, status);
    check_plausible(jpeg);
}

static void decode_rows(pc__jpeg *jpeg)
{
    struct jpeg_decompress_struct *c = &jpeg->c;
    const pc__turn turn = pc__turn_of(jpeg->picture->orientation);
    pc_status status =
        pc__rows_open(&jpeg->rows, jpeg->source_width, jpeg->source_height, jpeg->picture->options->resize,
                      turn.mirror_x, turn.mirror_y, &jpeg->picture->image);
    const bool cmyk = c->out_color_space == JCS_CMYK;
    if (status == PC_OK && cmyk && !(jpeg->row = pc__alloc((size_t)jpeg->source_width * 4)))
        status = PC_ERR_MEMORY;
    if (status != PC_OK)
        pc__jpeg_leave(jpeg, status);
    jpeg_start_decompress(c);
    while (c->output_scanline < c->output_height) {
        uint8_t *target = pc__rows_next(&jpeg->rows);
        JSAMPROW row = cmyk ? jpeg->row : target;
        jpeg_read_scanlines(c, &row, 1);
        if (cmyk)
            pc__cmyk_to_rgb(jpeg->row, target, jpeg->source_width);
        pc__rows_done(&jpeg->rows);
    }
}

/* What is wrong though all rows are there. Reading up to the end mark finds codes that went astray inside the picture
 * without the decoder noticing: what is left of the data is no marker then. */
static void check_damage(pc__jpeg *jpeg)
{
    struct jpeg_decompress_struct *c = &jpeg->c;
    const bool whole = c->arith_code || jpeg_has_multiple_scans(c);
    jpeg->behind = true;
    jpeg_finish_decompress(c);
    if (jpeg->ended && (whole || jpeg->picture->options->strict))
        leave_truncated(jpeg, jpeg->warning);
    const pc_status status = jpeg->error.num_warnings ? pc__picture_damaged(jpeg->picture, jpeg->warning) : PC_OK;
    if (status != PC_OK)
        pc__jpeg_leave(jpeg, status);
}

static void decode(pc__jpeg *jpeg)
{
    struct jpeg_decompress_struct *c = &jpeg->c;
    jpeg_create_decompress(c);
    c->src = &jpeg->source;
    c->progress = &jpeg->progress;
    jpeg_save_markers(c, JPEG_APP0 + 1, 0xffff);
    jpeg_read_header(c, TRUE);
    jpeg->picture->orientation = jpeg->picture->options->no_exif ? 1 : orientation_of(c);
    const bool grey = c->jpeg_color_space == JCS_GRAYSCALE;
    if (!grey && c->num_components != 3 && c->num_components != 4)
        pc__jpeg_leave(jpeg, pc__fail(PC_ERR_FORMAT, "%s is a JPEG of %d components: neither grey, RGB nor CMYK",
                                      jpeg->picture->name, c->num_components));
    begin(jpeg, grey ? 1 : 3);
    if (pc__jpeg_planes_fit(jpeg))
        pc__jpeg_planes_decode(jpeg);
    else
        decode_rows(jpeg);
    check_damage(jpeg);
}

/* In a function of its own: no local variable is alive across the jump. */
static pc_status guard(pc__jpeg *jpeg)
{
    if (setjmp(jpeg->jump))
        return jpeg->status;
    decode(jpeg);
    return PC_OK;
}

pc_status pc__jpeg_decode(pc__picture *picture)
{
    pc__jpeg jpeg;
    memset(&jpeg, 0, sizeof jpeg);
    jpeg.picture = picture;
    jpeg.c.err = jpeg_std_error(&jpeg.error);
    jpeg.c.client_data = &jpeg;
    jpeg.error.error_exit = on_error;
    jpeg.error.emit_message = on_message;
    jpeg.error.output_message = ignore_message;
    jpeg.progress.progress_monitor = on_progress;
    jpeg.source = (struct jpeg_source_mgr){
        .next_input_byte = picture->bytes,
        .bytes_in_buffer = picture->n,
        .init_source = ignore_source,
        .fill_input_buffer = fill_source,
        .skip_input_data = skip_source,
        .resync_to_restart = jpeg_resync_to_restart,
        .term_source = ignore_source,
    };
    pc_status status = guard(&jpeg);
    jpeg_destroy_decompress(&jpeg.c);
    pc__rows_close(&jpeg.rows);
    pc__jpeg_planes_close(&jpeg);
    pc__free(jpeg.row);
    return status;
}

#else

pc_status pc__jpeg_decode(pc__picture *picture)
{
    return pc__fail(PC_ERR_UNSUPPORTED,
                    "%s is a JPEG, and this build is without libjpeg: install it (Debian: "
                    "libjpeg-dev) and build again",
                    picture->name);
}

#endif

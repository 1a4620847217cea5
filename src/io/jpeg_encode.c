/* jpeg_encode.c: JPEG by libjpeg into a growing block of memory. */
#include "io/codec.h"

#if PC_HAVE_JPEG
#include <setjmp.h>

#include <jpeglib.h>
#include <jerror.h>

typedef struct encoder {
    struct jpeg_compress_struct c; /* client_data points back here */
    struct jpeg_error_mgr error;
    struct jpeg_destination_mgr destination;
    jmp_buf jump;
    pc_status status; /* why the jump happened */
    const pc_image *image;
    int quality;
    pc__text *out;
    JOCTET buffer[4096];
} encoder;

_Noreturn static void on_error(j_common_ptr c)
{
    encoder *e = c->client_data;
    char words[JMSG_LENGTH_MAX];
    c->err->format_message(c, words);
    if (e->out->failed)
        e->status = PC_ERR_MEMORY;
    else
        e->status =
            pc__fail_cause(c->err->msg_code == JERR_OUT_OF_MEMORY ? PC_ERR_MEMORY : PC_ERR_ARGUMENT, words,
                           "a picture of %d x %d pixels cannot become a JPEG", e->image->width, e->image->height);
    longjmp(e->jump, 1);
}

static void ignore_message(j_common_ptr c)
{
    (void)c;
}

static void refill(j_compress_ptr c)
{
    encoder *e = c->client_data;
    c->dest->next_output_byte = e->buffer;
    c->dest->free_in_buffer = sizeof e->buffer;
}

static void pass_on(j_compress_ptr c, size_t n)
{
    encoder *e = c->client_data;
    pc__text_append(e->out, (const char *)e->buffer, n);
    if (e->out->failed)
        ERREXIT(c, JERR_FILE_WRITE);
}

static boolean pass_on_full(j_compress_ptr c)
{
    encoder *e = c->client_data;
    pass_on(c, sizeof e->buffer);
    refill(c);
    return TRUE;
}

static void pass_on_rest(j_compress_ptr c)
{
    encoder *e = c->client_data;
    pass_on(c, sizeof e->buffer - c->dest->free_in_buffer);
}

static void compress(encoder *e)
{
    struct jpeg_compress_struct *c = &e->c;
    const pc_image *image = e->image;
    jpeg_create_compress(c);
    c->dest = &e->destination;
    c->image_width = (JDIMENSION)image->width;
    c->image_height = (JDIMENSION)image->height;
    c->input_components = image->channels;
    c->in_color_space = image->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(c); /* 4:2:0 */
    jpeg_set_quality(c, e->quality, TRUE);
    jpeg_start_compress(c, TRUE);
    const size_t stride = (size_t)image->width * (size_t)image->channels;
    while (c->next_scanline < c->image_height) {
        JSAMPROW row = image->pixels + c->next_scanline * stride;
        jpeg_write_scanlines(c, &row, 1);
    }
    jpeg_finish_compress(c);
}

/* In a function of its own: no local variable is alive across the jump. */
static pc_status guard(encoder *e)
{
    if (setjmp(e->jump))
        return e->status;
    compress(e);
    return PC_OK;
}

pc_status pc__jpeg_encode(const pc_image *image, int quality, pc__text *out)
{
    encoder e;
    memset(&e, 0, sizeof e);
    e.image = image;
    e.quality = quality;
    e.out = out;
    e.c.err = jpeg_std_error(&e.error);
    e.c.client_data = &e;
    e.error.error_exit = on_error;
    e.error.output_message = ignore_message;
    e.destination = (struct jpeg_destination_mgr){
        .init_destination = refill,
        .empty_output_buffer = pass_on_full,
        .term_destination = pass_on_rest,
    };
    pc_status status = guard(&e);
    jpeg_destroy_compress(&e.c);
    return status;
}

#else

pc_status pc__jpeg_encode(const pc_image *image, int quality, pc__text *out)
{
    (void)image, (void)quality, (void)out;
    return pc__fail(PC_ERR_UNSUPPORTED, "cannot write a JPEG: this build is without libjpeg: install it (Debian: "
                                        "libjpeg-dev) and build again");
}

#endif

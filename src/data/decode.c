/* decode.c: decoding a folder's pictures on all cores, and what was wrong with which. */
#include "data/pictures.h"

#include "base/parallel.h"

#include <errno.h>
#include <paracord/trace.h>
#include <pthread.h>

typedef struct decoding {
    const pc__folder *folder;
    const pc__decode_options *options;
    uint8_t *pixels;
    int64_t slots;
    pc__decoded *decoded;
    char **why; /* of each broken or damaged picture, without its path; NULL for the others */
    pc_error first;
    int first_file; /* strict: the first picture that is not whole, and its error */
    int end;        /* files from here on need no decoding any more; atomic */
    pthread_mutex_t lock;
    pc_error failure; /* out of memory, or the system's; set by whoever brings `end` below zero */
} decoding;

typedef struct reason {
    char s[2 * PC_MESSAGE_MAX + 4];
} reason;

/* Messages are one line: control characters in a name have become blanks. */
static bool begins_with(const char *message, const char *path)
{
    for (; *path; message++, path++)
        if (*message != *path && !(*message == ' ' && ((unsigned char)*path < ' ' || *path == 127)))
            return false;
    return *message == ' ';
}

/* The error without the path, which who reads it knows. */
static reason reason_of(const pc_error *error, const char *path)
{
    const char *message = error->message;
    if (begins_with(message, path))
        message += strlen(path) + 1;
    reason r;
    snprintf(r.s, sizeof r.s, "%s%s%s", message, error->cause[0] ? ": " : "", error->cause);
    return r;
}

static void lower_end(decoding *d, int end)
{
    int now = __atomic_load_n(&d->end, __ATOMIC_RELAXED);
    while (end < now && !__atomic_compare_exchange_n(&d->end, &now, end, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static pc_status decode_path(const char *path, const pc__decode_options *options, uint8_t *pixels,
                             pc_image_damage *damage)
{
    const pc__frame frame = options->frame;
    pc_image image;
    PC__TRY(pc_image_read(path,
                          PC_OPTIONS(pc_image_options, .channels = frame.channels, .width = frame.width,
                                     .height = frame.height, .shorter = options->shorter, .resize = options->resize,
                                     .no_exif = options->no_exif, .strict = options->strict, .damage = damage),
                          &image));
    if (pixels)
        memcpy(pixels, image.pixels, pc__frame_bytes(frame));
    pc_image_free(&image);
    return PC_OK;
}

pc_status pc__picture_decode(const pc__folder *folder, int i, const pc__decode_options *options, uint8_t *pixels,
                             pc_image_damage *damage)
{
    char *path = pc__folder_path(folder, i);
    if (!path)
        return PC_ERR_MEMORY;
    const pc_status status = decode_path(path, options, pixels, damage);
    pc__free(path);
    return status;
}

/* A strict run ends with the error of the first file: those before may still be broken too. */
static void note_first(decoding *d, int i, const pc_error *error)
{
    pthread_mutex_lock(&d->lock);
    if (i < d->first_file) {
        d->first_file = i;
        d->first = *error;
    }
    pthread_mutex_unlock(&d->lock);
    lower_end(d, i + 1);
}

/* What the system says of this one name or file is as good as broken; that it has no descriptor left, or cannot read its
 * disk, is no fault of the picture's, and is over for all of them. */
static bool is_the_systems(int number)
{
    static const int files[] = {0,     ENOENT,       ENOTDIR, EISDIR, EACCES,   EPERM,
                                ELOOP, ENAMETOOLONG, EINVAL,  ENXIO,  EOVERFLOW};
    for (int i = 0; i < PC__COUNT(files); i++)
        if (number == files[i])
            return false;
    return true;
}

static pc_status note_broken(decoding *d, int i, const char *path)
{
    const pc_error error = pc__error_take();
    d->decoded[i] = PC__DECODED_BROKEN;
    if (d->options->strict)
        note_first(d, i, &error);
    d->why[i] = pc__strdup(reason_of(&error, path).s);
    return d->why[i] ? PC_OK : PC_ERR_MEMORY;
}

static pc_status decode_file(decoding *d, int i, const char *path)
{
    const int64_t slot = d->slots ? pc__slot_of(i, d->folder->count, d->slots) : -1;
    uint8_t *pixels = slot < 0 ? NULL : d->pixels + (size_t)slot * pc__frame_bytes(d->options->frame);
    pc_image_damage damage = {""};
    const pc_status status = decode_path(path, d->options, pixels, &damage);
    if (status != PC_OK)
        return status == PC_ERR_MEMORY || is_the_systems(pc__error_number()) ? status : note_broken(d, i, path);
    if (!damage.words[0])
        return PC_OK;
    d->decoded[i] = PC__DECODED_DAMAGED;
    d->why[i] = pc__strdup(damage.words);
    return d->why[i] ? PC_OK : PC_ERR_MEMORY;
}

/* Runs in any thread of the team and leaves no error in its record. */
static void decode_one(void *context, int64_t number)
{
    decoding *d = context;
    const int i = (int)number;
    if (i >= __atomic_load_n(&d->end, __ATOMIC_RELAXED))
        return;
    pc_error_clear(); /* a helper thread may bring one along that nobody will read */
    char *path = pc__folder_path(d->folder, i);
    const pc_status status = path ? decode_file(d, i, path) : PC_ERR_MEMORY;
    pc__free(path);
    if (status == PC_OK)
        return;
    const pc_error error = pc__error_take();
    pthread_mutex_lock(&d->lock);
    if (d->failure.status == PC_OK)
        d->failure = error;
    pthread_mutex_unlock(&d->lock);
    lower_end(d, 0);
}

static pc_status decode_all(decoding *d)
{
    const pc_error before = pc__error_take(); /* the calling thread's, which joins the team */
    pthread_mutex_init(&d->lock, NULL);
    PC_TRACE_RANGE("decode pictures") {
        pc__parallel(pc_threads_get(), d->folder->count, decode_one, d);
    }
    pthread_mutex_destroy(&d->lock);
    (void)pc__error_put(&before);
    return pc__error_put(&d->failure);
}

static pc_status report(const decoding *d)
{
    const pc__decode_options *options = d->options;
    if (d->first_file < d->folder->count)
        return pc__error_put(&d->first);
    for (int i = 0; i < d->folder->count; i++) {
        void (*tell)(void *context, const char *path, const char *why) =
            d->decoded[i] == PC__DECODED_BROKEN ? options->broken : options->damaged;
        if (!d->why[i] || !tell)
            continue;
        char *path = pc__folder_path(d->folder, i);
        if (!path)
            return PC_ERR_MEMORY;
        tell(options->context, path, d->why[i]);
        pc__free(path);
    }
    return PC_OK;
}

pc_status pc__pictures_decode(const pc__folder *folder, const pc__decode_options *options, uint8_t *pixels,
                              int64_t slots, pc__decoded *decoded)
{
    decoding d = {.folder = folder,
                  .options = options,
                  .pixels = pixels,
                  .slots = slots,
                  .decoded = decoded,
                  .first_file = folder->count,
                  .end = folder->count};
    memset(decoded, 0, (size_t)folder->count * sizeof *decoded);
    d.why = pc__calloc((size_t)folder->count, sizeof *d.why);
    if (!d.why)
        return PC_ERR_MEMORY;
    pc_status status = decode_all(&d);
    if (status == PC_OK)
        status = report(&d);
    for (int i = 0; i < folder->count; i++)
        pc__free(d.why[i]);
    pc__free(d.why);
    return status;
}

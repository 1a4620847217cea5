/* pictures.c: decoding a folder's pictures on all cores. */
#include "data/pictures.h"

#include "base/parallel.h"

#include <pthread.h>

typedef struct decoding {
    const pc__folder *folder;
    const pc__decode_options *options;
    uint8_t *pixels;
    pc_error **why; /* of each broken picture; NULL for the others */
    int end;        /* files from here on need no decoding any more; atomic */
    pthread_mutex_t lock;
    pc_error failure; /* out of memory; set by whoever brings `end` below zero */
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

static pc_status note_broken(decoding *d, int i)
{
    const pc_error error = pc__error_take();
    pc_error *kept = pc__alloc(sizeof *kept);
    if (!kept)
        return PC_ERR_MEMORY;
    *kept = error;
    d->why[i] = kept;
    if (d->options->strict)
        lower_end(d, i + 1); /* those before may still be broken too */
    return PC_OK;
}

static pc_status decode_file(decoding *d, int i)
{
    char *path = pc__folder_path(d->folder, i);
    if (!path)
        return PC_ERR_MEMORY;
    const int size = d->options->size;
    pc_image image;
    pc_status status = pc_image_read(
        path, PC_OPTIONS(pc_image_options, .channels = 3, .width = size, .height = size, .resize = d->options->resize),
        &image);
    if (status == PC_OK && d->pixels)
        memcpy(d->pixels + (size_t)i * pc__picture_bytes(size), image.pixels, pc__picture_bytes(size));
    pc_image_free(&image);
    pc__free(path);
    return status == PC_OK || status == PC_ERR_MEMORY ? status : note_broken(d, i);
}

/* Runs in any thread of the team and leaves no error in its record. */
static void decode_one(void *context, int64_t number)
{
    decoding *d = context;
    const int i = (int)number;
    if (i >= __atomic_load_n(&d->end, __ATOMIC_RELAXED))
        return;
    pc_error_clear(); /* a helper thread may bring one along that nobody will read */
    if (decode_file(d, i) == PC_OK)
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
    pc__parallel(pc_get_threads(), d->folder->count, decode_one, d);
    pthread_mutex_destroy(&d->lock);
    (void)pc__error_put(&before);
    return pc__error_put(&d->failure);
}

static pc_status report(const decoding *d, bool *is_broken)
{
    const pc__decode_options *options = d->options;
    for (int i = 0; i < d->folder->count; i++) {
        is_broken[i] = d->why[i] != NULL;
        if (!is_broken[i])
            continue;
        if (options->strict)
            return pc__error_put(d->why[i]);
        if (!options->broken)
            continue;
        char *path = pc__folder_path(d->folder, i);
        if (!path)
            return PC_ERR_MEMORY;
        options->broken(options->context, path, reason_of(d->why[i], path).s);
        pc__free(path);
    }
    return PC_OK;
}

pc_status pc__pictures_decode(const pc__folder *folder, const pc__decode_options *options, uint8_t *pixels,
                              bool *is_broken)
{
    decoding d = {.folder = folder, .options = options, .pixels = pixels, .end = folder->count};
    d.why = pc__calloc((size_t)folder->count, sizeof(pc_error *));
    if (!d.why)
        return PC_ERR_MEMORY;
    pc_status status = decode_all(&d);
    if (status == PC_OK)
        status = report(&d, is_broken);
    for (int i = 0; i < folder->count; i++)
        pc__free(d.why[i]);
    pc__free(d.why);
    return status;
}

static pc_status find(const char *root, const pc_loader_options *options, pc__folder *folder)
{
    PC__TRY(pc__folder_scan(root, folder));
    if (options->class_names)
        PC__TRY(pc__folder_relabel(folder, options->class_names, options->class_count));
    PC__TRY(pc__folder_check(folder));
    return pc__folder_split(folder, options->split, options->validation_share);
}

/* Take the broken ones out. A class must have some left. */
static pc_status keep_whole(pc__pictures *p, const bool *is_broken)
{
    pc__folder *folder = &p->folder;
    const size_t bytes = pc__picture_bytes(p->size);
    int kept = 0, label = 0, kept_of_label = 0;
    const int count = folder->count;
    for (int i = 0; i < count; i++) {
        pc__picture_file *file = &folder->files[i];
        kept_of_label = file->label == label ? kept_of_label : 0;
        label = file->label;
        char *path = file->path;
        file->path = NULL;
        if (is_broken[i]) {
            pc__free(path);
        } else {
            folder->files[kept] = (pc__picture_file){path, label};
            if (kept != i)
                memcpy(p->pixels + (size_t)kept * bytes, p->pixels + (size_t)i * bytes, bytes);
            kept++, kept_of_label++;
        }
        if ((i + 1 == count || folder->files[i + 1].label != label) && !kept_of_label)
            return pc__fail(PC_ERR_NOT_FOUND, "class %s has no picture that can be decoded: all in %s/%s are broken",
                            folder->classes[label], folder->root, folder->classes[label]);
    }
    folder->count = kept;
    p->skipped = count - kept;
    return PC_OK;
}

static pc_status decode(pc__pictures *p, const pc_loader_options *o)
{
    const pc__decode_options options = {p->size, o->resize, o->strict, o->skipped, o->context};
    const size_t count = (size_t)p->folder.count;
    size_t bytes;
    if (__builtin_mul_overflow(count, pc__picture_bytes(p->size), &bytes))
        return pc__fail(PC_ERR_MEMORY, "out of memory: %zu pictures of %d x %d pixels", count, p->size, p->size);
    p->pixels = pc__alloc(bytes);
    bool *is_broken = p->pixels ? pc__alloc(count) : NULL;
    pc_status status = PC_ERR_MEMORY;
    if (is_broken)
        status = pc__pictures_decode(&p->folder, &options, p->pixels, is_broken);
    if (status == PC_OK)
        status = keep_whole(p, is_broken);
    pc__free(is_broken);
    return status;
}

pc_status pc__pictures_load(const char *root, const pc_loader_options *options, pc__pictures *pictures)
{
    *pictures = (pc__pictures){.size = options->size};
    pc_status status = find(root, options, &pictures->folder);
    if (status == PC_OK)
        status = decode(pictures, options);
    if (status != PC_OK)
        pc__pictures_free(pictures);
    return status;
}

void pc__pictures_free(pc__pictures *pictures)
{
    pc__folder_free(&pictures->folder);
    pc__free(pictures->pixels);
    *pictures = (pc__pictures){0};
}

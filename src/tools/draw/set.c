/* set.c: a folder of drawn pictures, train/{cat,dog} and test/{cat,dog}. */
#include "base/base.h"
#include "base/parallel.h"
#include "io/file.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <paracord-tools/draw.h>
#include <pthread.h>

#define COUNT_MAX 1000000

enum { NAME_ROOM = 32 };

/* Test pictures take their indexes from here on, so that they never repeat one of training. */
#define TEST_INDEX ((uint64_t)1 << 32)

typedef struct set {
    const char *folder;
    pc_draw_options options;
    const pc_error *caller; /* the error record of the thread that asked for the set */
    pthread_mutex_t lock;   /* over what follows */
    int total, done;        /* pictures */
    pc_status status;       /* of the first picture that failed */
    pc_error error;         /* its error, when another thread than the caller's met it */
} set;

static pc_status defaults(set *s)
{
    pc_draw_options *o = &s->options;
    o->train = o->train == 0 ? 400 : o->train == -1 ? 0 : o->train;
    o->test = o->test == 0 ? 100 : o->test == -1 ? 0 : o->test;
    o->size = o->size ? o->size : 150;
    o->quality = o->quality ? o->quality : 90;
    if (o->train < 0 || o->test < 0 || o->train > COUNT_MAX || o->test > COUNT_MAX)
        return pc__fail(PC_ERR_ARGUMENT,
                        "cannot draw %d and %d pictures per class: counts go from 1 to %d, -1 for none", o->train,
                        o->test, COUNT_MAX);
    if (o->size < 16 || o->size > 2048)
        return pc__fail(PC_ERR_ARGUMENT, "cannot draw pictures of size %d: it goes from 16 to 2048 pixels", o->size);
    if (o->quality < 1 || o->quality > 100)
        return pc__fail(PC_ERR_ARGUMENT, "cannot write JPEG files of quality %d: it goes from 1 to 100", o->quality);
    s->total = (o->train + o->test) * PC_DRAW_KIND_COUNT;
    return PC_OK;
}

static void name_of(pc_draw_kind kind, int number, char name[NAME_ROOM])
{
    snprintf(name, NAME_ROOM, "%s.%03d.jpg", pc_draw_kind_name(kind), number);
}

/* Whether a file of that name is one of the first `count` that are drawn, or what a kill has left of one. */
static bool is_drawn(const char *file, pc_draw_kind kind, int count)
{
    const char *point = strchr(file, '.');
    char name[NAME_ROOM];
    int number = -1;
    if (!point || sscanf(point, ".%9d.", &number) != 1 || number < 0 || number >= count)
        return false;
    name_of(kind, number, name);
    const size_t n = strlen(name);
    return strncmp(name, file, n) == 0 && (!file[n] || pc__file_is_temporary(file, n));
}

/* Pictures that are there already would be in the set, or lost. */
static pc_status check_folder(const char *path, pc_draw_kind kind, int count)
{
    DIR *dir = opendir(path);
    pc_status status = dir ? PC_OK : pc__fail_file(errno, "cannot read the folder %s", path);
    for (const struct dirent *entry; dir && status == PC_OK && (entry = readdir(dir));)
        if (entry->d_name[0] != '.' && !is_drawn(entry->d_name, kind, count))
            status = pc__fail(PC_ERR_STATE,
                              "%s has %.80s in it, which would be one of the set and is not drawn: draw into another "
                              "folder, or empty this one",
                              path, entry->d_name);
    if (dir)
        closedir(dir);
    return status;
}

static pc_status make_folders(const set *s)
{
    char path[PATH_MAX];
    for (int test = 0; test < 2; test++)
        for (int kind = 0; kind < PC_DRAW_KIND_COUNT; kind++) {
            if ((test ? s->options.test : s->options.train) == 0)
                continue;
            int n = snprintf(path, sizeof path, "%s/%s/%s", s->folder, test ? "test" : "train",
                             pc_draw_kind_name((pc_draw_kind)kind));
            if (n >= (int)sizeof path - 32)
                return pc__fail(PC_ERR_FILE, "cannot make the folder %.64s...: the name is too long", s->folder);
            PC__TRY(pc__folder_make(path));
            PC__TRY(check_folder(path, (pc_draw_kind)kind, test ? s->options.test : s->options.train));
        }
    return PC_OK;
}

static int edge(const set *s, uint64_t stream, uint64_t counter)
{
    int n = (int)(s->options.size * (0.8 + 0.5 * pc_uniform(s->options.seed, stream, counter)));
    return PC__MAX(n, 16);
}

/* Draw, encode and write picture number `job`: training pictures first, the kinds in turn. */
static pc_status make_picture(const set *s, int job)
{
    pc_draw_kind kind = (pc_draw_kind)(job % PC_DRAW_KIND_COUNT);
    int number = job / PC_DRAW_KIND_COUNT;
    bool test = number >= s->options.train;
    number -= test ? s->options.train : 0;
    uint64_t index = (uint64_t)number + (test ? TEST_INDEX : 0), stream = index * PC_DRAW_KIND_COUNT + (uint64_t)kind;
    char path[PATH_MAX], name[NAME_ROOM];
    name_of(kind, number, name);
    snprintf(path, sizeof path, "%s/%s/%s/%s", s->folder, test ? "test" : "train", pc_draw_kind_name(kind), name);
    /* counters from the far end: the picture itself takes them from 0 */
    int width = edge(s, stream, UINT64_MAX), height = edge(s, stream, UINT64_MAX - 1);
    pc_image image;
    PC__TRY(pc_draw_face(kind, s->options.seed, index, width, height, &image));
    uint8_t *bytes = NULL;
    size_t n = 0;
    pc_status status = pc_image_encode_jpeg(&image, s->options.quality, &bytes, &n);
    pc_image_free(&image);
    if (status == PC_OK)
        status = pc__file_write(path, bytes, n);
    pc_image_bytes_free(bytes);
    return status;
}

/* Note the end of one picture; the first failure is kept for the caller. */
static void finish_picture(set *s, pc_status status)
{
    if (s->status != PC_OK)
        return;
    s->done++;
    if (status == PC_OK && s->options.progress && !s->options.progress(s->options.context, s->done, s->total))
        status = pc__fail(PC_ERR_INTERRUPTED, "stopped on request after %d of %d pictures", s->done, s->total);
    if (status == PC_OK)
        return;
    if (pc_error_last() != s->caller) { /* else it is recorded where it belongs already */
        s->error = *pc_error_last();
        pc_error_clear();
    }
    __atomic_store_n(&s->status, status, __ATOMIC_RELEASE);
}

static void draw_one(void *context, int64_t job)
{
    set *s = context;
    if (__atomic_load_n(&s->status, __ATOMIC_ACQUIRE) != PC_OK)
        return;
    if (pc_error_last() != s->caller)
        pc_error_clear(); /* a helper thread: nobody else reads its record */
    pc_status status = make_picture(s, (int)job);
    pthread_mutex_lock(&s->lock);
    finish_picture(s, status);
    pthread_mutex_unlock(&s->lock);
}

pc_status pc_draw_picture_set(const char *folder, pc_draw_options options)
{
    PC__NEED(folder);
    if (!*folder)
        return pc__fail(PC_ERR_ARGUMENT, "cannot draw pictures: no folder is given");
    set s = {.folder = folder, .options = options, .caller = pc_error_last()};
    PC__TRY(defaults(&s));
    PC__TRY(make_folders(&s));
    pthread_mutex_init(&s.lock, NULL);
    pc__parallel(pc_threads_get(), s.total, draw_one, &s);
    pthread_mutex_destroy(&s.lock);
    if (s.error.status != PC_OK)
        pc__fail_cause(s.error.status, s.error.cause, "%s", s.error.message);
    return s.status;
}

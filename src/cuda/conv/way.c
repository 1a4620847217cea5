/* way.c: who does a product of a convolution, and the table of what was chosen. What cuDNN plans is never thrown
 * away: recordings may hold its kernels. */
#include "cuda/conv/by_cudnn.h"
#include "cuda/conv/rows.h"
#include "cuda/runtime/hash.h"

#include <paracord/ops.h>
#include <stdio.h>

static bool on_16_bytes(const void *pointer)
{
    return (uintptr_t)pointer % 16 == 0;
}

/* False: what is left to our kernels. cuDNN's ways read and write whole channels-last pictures; of activations they know
 * ReLU, but what follows a pooling is not theirs. */
static bool shape_of(const pc_stream *stream, const pc__conv_piece *p, pc__conv_shape *shape)
{
    const pc__cuda_conv *s = &p->s;
    const pc__cuda_stream *face = stream->implementation;
    const bool ours = s->activation != PC_ACTIVATION_NONE && s->activation != PC_ACTIVATION_RELU && s->pool == 1;
    if (ours || s->planes || s->dtype == PC_F64 || s->n > INT32_MAX || !p->result || face->scratch_level != 0)
        return false;
    if (!on_16_bytes(p->x) || !on_16_bytes(p->weight) || !on_16_bytes(p->bias) || !on_16_bytes(p->dy) ||
        !on_16_bytes(p->result))
        return false;
    *shape = pc__conv_shape_of(p);
    return true;
}

bool pc__conv_same_format(const pc__conv_way *a, const pc__conv_way *b)
{
#if PC__HAVE_CUDNN
    return a->made.format == b->made.format && a->made.o == b->made.o;
#else
    return a == b;
#endif
}

#if PC__HAVE_CUDNN

enum { PLACES = 1024, MOST = PLACES / 4 * 3 }; /* of the table; a power of two; shapes after these are ours */

static pthread_mutex_t choosing = PTHREAD_MUTEX_INITIALIZER; /* over all of this */
static pc__conv_way table[PLACES];
static bool used[PLACES];
static int count;
static cudnnHandle_t handles[PC__DEVICES_MAX];

/* The place of a shape, *found saying whether it is taken already; NULL where the table is full. */
static pc__conv_way *place_of(const pc__conv_shape *shape, int device, bool measured, bool *found)
{
    unsigned at = pc__cuda_hash(shape, sizeof *shape) % PLACES;
    for (; used[at]; at = (at + 1) % PLACES) {
        pc__conv_way *w = &table[at];
        *found = w->device == device && w->measured == measured && memcmp(&w->shape, shape, sizeof *shape) == 0;
        if (*found)
            return w;
    }
    *found = false;
    if (count == MOST)
        return NULL;
    count++;
    used[at] = true;
    table[at].device = device;
    table[at].measured = measured;
    table[at].shape = *shape;
    atomic_store(&table[at].refused, true);
    return &table[at];
}

cudnnHandle_t pc__conv_handle(int device)
{
    return handles[device];
}

static bool has_handle(int device)
{
    if (!handles[device] && pc__cudnn.Create(&handles[device]) != CUDNN_STATUS_SUCCESS)
        handles[device] = NULL;
    return handles[device] != NULL;
}

static void name_of(char text[PC__CHOICE_TEXT], const pc_stream *stream, const pc__conv_shape *shape)
{
    struct cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, stream->device.index) != cudaSuccess)
        (void)cudaGetLastError(), device.name[0] = 0;
    pc__conv_text(text, device.name, pc__cuda_multiprocessors(stream), pc__cudnn.GetVersion(), shape);
}

/* A plan and what it is for. */
typedef struct candidate {
    int number; /* of the way */
    pc__conv_shape made;
    pc__cudnn_plan plan;
} candidate;

/* The candidate of that number becomes the place's, the others go. */
static void take(pc__conv_way *w, candidate *list, int there, int wanted)
{
    for (int i = 0; i < there; i++)
        if (list[i].number == wanted) {
            w->made = list[i].made;
            w->plan = list[i].plan;
            atomic_store(&w->refused, false);
        } else
            pc__cudnn_plan_free(&list[i].plan);
}

/* At most `most` plans in the shape's format, behind the `there` that there are; how many there are then. */
static int add_candidates(cudnnHandle_t handle, const pc__conv_shape *shape, candidate *list, int there, int most)
{
    const pc__cudnn_target target = {.handle = handle};
    const pc__conv_shape made = pc__conv_in_format(shape);
    pc__cudnn_plan plans[PC__CONV_PLANS];
    const int more = pc__cudnn_plans(&target, &made, plans, most);
    for (int i = 0; i < more; i++)
        list[there + i] = (candidate){shape->format * PC__CONV_PLANS + i + 1, made, plans[i]};
    return there + more;
}

/* Padding changes nothing where channels are whole, and planes are for float32, whose kernels for channels last are few.
 */
static bool differs(const pc__conv_shape *shape, int format)
{
    return format == PC__CONV_AS_IS ||
           (format == PC__CONV_PADDED ? pc__conv_usual_format(shape) == PC__CONV_PADDED : shape->dtype == PC_F32);
}

static void tell_times(const char *text, const pc__conv_list *list, const candidate *plans, const double *times)
{
    static const char *const formats[PC__CONV_FORMATS] = {"", "padded ", "planes "};
    char words[32 * (PC__CONV_ROWS + PC__CONV_WAYS)] = "";
    size_t n = 0;
    for (int i = 0; i < list->rows && n < sizeof words; i++)
        n += (size_t)snprintf(words + n, sizeof words - n, "%s%s %.1f", i ? ", " : "", list->row[i]->name, times[i]);
    for (int i = 0; i < list->ways && n < sizeof words; i++)
        n += (size_t)snprintf(words + n, sizeof words - n, ", cuDNN's %s%d %.1f", formats[plans[i].made.format],
                              (plans[i].number - 1) % PC__CONV_PLANS + 1, times[list->rows + i]);
    pc__log(PC_LOG_DEBUG, "conv2d: %s, microseconds: %s", text, words);
}

/* The row of ours that the number is for, or NULL: the rule's, or none of ours. */
static const pc__row *row_of(const pc__rows *rows, int number)
{
    const int i = number - PC__CONV_WAYS - 1;
    return i >= 0 && i < rows->count ? &rows->row[i] : NULL;
}

/* The rows of ours that can do it; whole calls by way of float32 can not be timed so. */
static int own_rows(const pc_stream *stream, const pc__conv_piece *p, const pc__row **row)
{
    pc__conv_piece ours = *p;
    int there = 0;
    ours.way = NULL;
    const int found = pc__rows_all(&pc__conv_rows[p->direction], stream, &ours, row, PC__CONV_ROWS);
    for (int i = 0; i < found; i++)
        if (!pc__conv_is_detour(row[i]))
            row[there++] = row[i];
    return there;
}

/* The list of what there is to measure: cuDNN's plans in each format that differs, or in one where `format` is one. */
static int add_formats(pc_stream *stream, const pc__conv_piece *p, int format, candidate *plans)
{
    pc__conv_shape shape;
    int there = 0;
    (void)shape_of(stream, p, &shape);
    for (int f = 0; f < PC__CONV_FORMATS; f++) {
        shape.format = f;
        if (differs(&shape, f) && (format < 0 || f == format))
            there = add_candidates(handles[stream->device.index], &shape, plans, there, PC__CONV_PLANS);
    }
    return there;
}

static pc_status measure(pc_stream *stream, const pc_call *call, const pc__conv_piece *p, const char *text,
                         const candidate *plans, int there, int *number)
{
    double times[PC__CONV_ROWS + PC__CONV_WAYS];
    int best = -1;
    *number = 0;
    pc__conv_list *list = pc__calloc(1, sizeof *list);
    if (!list)
        return PC_ERR_MEMORY;
    list->rows = own_rows(stream, p, list->row);
    list->ways = there;
    for (int i = 0; i < there; i++) {
        list->way[i] = (pc__conv_way){.device = stream->device.index, .made = plans[i].made, .plan = plans[i].plan};
        (void)shape_of(stream, p, &list->way[i].shape);
    }
    const pc_status status = list->rows + there > 1 ? pc__conv_measure(stream, call, p, list, &best, times) : PC_OK;
    if (status == PC_OK && best >= 0)
        tell_times(text, list, plans, times);
    if (best >= list->rows)
        *number = plans[best - list->rows].number;
    else if (best > 0)
        *number = PC__CONV_WAYS + 1 + (int)(list->row[best] - pc__conv_rows[p->direction].row);
    pc__free(list);
    return status == PC_OK && best < 0 ? PC_ERR_STATE : status;
}

/* As the file says, or by measuring, which the file learns. Returns the number, as it is kept. */
static pc_status measured_way(pc_stream *stream, const pc_call *call, const pc__conv_piece *p, const char *text,
                              candidate *plans, int *there, int *number)
{
    char path[PATH_MAX];
    const bool file = pc__choices_file(path);
    *number = file ? pc__choices_recall(path, text) : -1;
    if (*number == 0 || row_of(&pc__conv_rows[p->direction], *number))
        return PC_OK;
    *there = add_formats(stream, p, *number < 0 ? -1 : (*number - 1) / PC__CONV_PLANS, plans);
    for (int i = 0; i < *there; i++)
        if (plans[i].number == *number)
            return PC_OK;
    const pc_status status = measure(stream, call, p, text, plans, *there, number);
    if (status == PC_OK && file)
        pc__choices_note(path, text, *number);
    return status == PC_ERR_STATE ? PC_OK : status; /* nothing could be measured: another process may */
}

/* Nothing is made or measured while a stream is captured: a shape that nobody announced (pc__cuda_prepare) is ours
 * then, and stays it. */
static pc_status decide(pc_stream *stream, const pc_call *call, const pc__conv_piece *p, pc__conv_way *w)
{
    static bool said;
    candidate list[PC__CONV_WAYS];
    char text[PC__CHOICE_TEXT], words[160] = "";
    int there = 0, way = 0;
    pc_status status = PC_OK;
    name_of(text, stream, &w->shape);
    if (((const pc__cuda_stream *)stream->implementation)->branch) {
        pc__log(PC_LOG_DEBUG, "conv2d: %s: our kernels, a captured stream met it first", text);
        return PC_OK;
    }
    if (!has_handle(stream->device.index)) {
        pc__cudnn_words(words, sizeof words);
        pc__log(said ? PC_LOG_DEBUG : PC_LOG_WARNING, "conv2d: our kernels alone: cuDNN does not start: %s", words);
        said = true;
        return PC_OK;
    }
    if (w->measured)
        status = measured_way(stream, call, p, text, list, &there, &way);
    else if ((there = add_candidates(handles[stream->device.index], &w->shape, list, 0, 1)))
        way = list[0].number;
    if (!there && way >= 0)
        pc__cudnn_words(words, sizeof words);
    take(w, list, there, status == PC_OK ? way : 0);
    w->own = status == PC_OK ? row_of(&pc__conv_rows[p->direction], way) : NULL;
    if (w->own)
        pc__log(PC_LOG_DEBUG, "conv2d: %s: our kernels %s", text, w->own->note);
    else if (way > 0)
        pc__log(PC_LOG_DEBUG, "conv2d: %s: cuDNN's way %d", text, way);
    else
        pc__log(PC_LOG_DEBUG, "conv2d: %s: our kernels%s%s", text, words[0] ? ", cuDNN says " : "", words);
    return status;
}

/* cuDNN's way for a shape that it may have. */
static pc_status look_up(pc_stream *stream, const pc_call *call, pc__conv_piece *p, const pc__conv_shape *shape,
                         bool measured)
{
    bool found = false;
    pthread_mutex_lock(&choosing);
    pc__conv_way *w = place_of(shape, stream->device.index, measured, &found);
    const pc_status status = w && !found ? decide(stream, call, p, w) : PC_OK;
    if (w && !atomic_load(&w->refused))
        p->way = w;
    p->own = w ? w->own : NULL;
    pthread_mutex_unlock(&choosing);
    return status;
}

#endif

static void tell_missing(void)
{
    pc__log(PC_LOG_WARNING, "conv2d: our kernels alone: %s", pc__cudnn_missing());
}

pc_choice pc__conv_choice_for(const pc_stream *stream, const pc__conv_piece *p)
{
    const pc__row *only = pc__conv_rows[p->direction].only;
    if (pc__conv_is_cudnn(only))
        return PC_CHOICE_CUDNN;
    return only && only->supports(stream, p) ? PC_CHOICE_OWN : pc_choice_get();
}

/* Whether there are kernels of ours is only asked where it matters: it takes longer than the rule. */
static int by_rule(const pc_stream *stream, const pc__conv_piece *p, const pc__conv_shape *shape)
{
    pc__conv_piece alone = *p;
    alone.s.pool = 1;
    const int format = pc__conv_is_split(stream, &alone) ? -1 : pc__conv_rule(shape, true);
    return format >= 0 || !pc__is_half((pc_dtype)shape->dtype) || pc__conv_own_row(stream, p)
               ? format
               : pc__conv_rule(shape, false);
}

/* A measurement is one product's: what is pooled is called apart then (geometry.c). */
static bool pools_apart(const pc_stream *stream, const pc__conv_piece *p, pc_choice choice)
{
    return choice != PC_CHOICE_MEASURED && pc__conv_is_worth_apart(stream, p, choice);
}

pc_status pc__conv_choose(pc_stream *stream, const pc_call *call, pc__conv_piece *p)
{
    static pthread_once_t told = PTHREAD_ONCE_INIT;
    const pc_choice choice = pc__conv_choice_for(stream, p);
    pc__conv_shape shape;
    p->way = NULL, p->own = NULL;
    if (choice == PC_CHOICE_OWN || !shape_of(stream, p, &shape))
        return PC_OK;
    const int format = choice == PC_CHOICE_RULE    ? by_rule(stream, p, &shape)
                       : choice == PC_CHOICE_CUDNN ? (int)pc__conv_usual_format(&shape)
                                                   : 0;
    if (format < 0 || (p->s.pool > 1 && !pools_apart(stream, p, choice)))
        return PC_OK;
    shape.format = format;
    if (pc__cudnn_missing()) {
        pthread_once(&told, tell_missing);
        return PC_OK;
    }
#if PC__HAVE_CUDNN
    return look_up(stream, call, p, &shape, choice == PC_CHOICE_MEASURED);
#else
    (void)call;
    return PC_OK;
#endif
}

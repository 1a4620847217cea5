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

/* False: what is left to our kernels. cuDNN's ways read and write whole channels-last pictures, or forward both in C order, in
 * float32; of activations they know ReLU, but what follows a pooling is not theirs. A call inside another, for which that one
 * has turned weights, does what was measured for it. */
static bool shape_of(const pc_stream *stream, const pc__conv_piece *p, pc_choice choice, pc__conv_shape *shape)
{
    const pc__cuda_conv *s = &p->s;
    const pc__cuda_stream *face = stream->implementation;
    const bool ours = s->activation != PC_ACTIVATION_NONE && s->activation != PC_ACTIVATION_RELU && s->pool == 1;
    *shape = pc__conv_shape_of(p);
    const bool transformed =
        choice == PC_CHOICE_MEASURED && !shape->bias && !shape->relu && pc__conv_is_for_transforms(shape);
    const bool kept = s->pool == 1 && (transformed || pc__conv_keeps_planes(shape));
    if (ours || (!kept && (s->planes || s->x_planes)) || s->dtype == PC_F64 || s->n > INT32_MAX || !p->result ||
        (face->scratch_level != 0 && choice != PC_CHOICE_MEASURED))
        return false;
    return on_16_bytes(p->x) && on_16_bytes(p->weight) && on_16_bytes(p->bias) && on_16_bytes(p->dy) &&
           on_16_bytes(p->result);
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

/* The place of a shape, *found saying whether it is taken already; NULL where the table is full, or it is not to be `made`. */
static pc__conv_way *place_of(const pc__conv_shape *shape, int device, bool measured, bool made, bool *found)
{
    unsigned at = pc__cuda_hash(shape, sizeof *shape) % PLACES;
    for (; used[at]; at = (at + 1) % PLACES) {
        pc__conv_way *w = &table[at];
        *found = w->device == device && w->measured == measured && memcmp(&w->shape, shape, sizeof *shape) == 0;
        if (*found)
            return w;
    }
    *found = false;
    if (!made || count == MOST)
        return NULL;
    count++;
    used[at] = true;
    table[at].device = device;
    table[at].measured = measured;
    table[at].shape = *shape;
    atomic_store(&table[at].refused, true);
    return &table[at];
}

static void name_of(char text[PC__CHOICE_TEXT], const pc_stream *stream, const pc__conv_shape *shape)
{
    struct cudaDeviceProp device;
    if (cudaGetDeviceProperties(&device, stream->device.index) != cudaSuccess)
        (void)cudaGetLastError(), device.name[0] = 0;
    pc__conv_text(text, device.name, pc__cuda_multiprocessors(stream), pc__cudnn.GetVersion(), shape);
}

/* The candidate of that number becomes the place's, the others go. */
static void take(pc__conv_way *w, pc__conv_candidate *list, int there, int wanted)
{
    for (int i = 0; i < there; i++)
        if (list[i].number == wanted) {
            w->made = list[i].made;
            w->plan = list[i].plan;
            atomic_store(&w->refused, false);
        } else
            pc__cudnn_plan_free(&list[i].plan);
}

/* Nothing is made or measured while a stream is captured: a shape that nobody announced (pc__cuda_prepare) is ours
 * then, and stays it. */
static pc_status decide(pc_stream *stream, const pc_call *call, const pc__conv_piece *p, pc__conv_way *w)
{
    static bool said;
    pc__conv_candidate list[PC__CONV_WAYS];
    char text[PC__CHOICE_TEXT], words[160] = "";
    int there = 0, way = 0;
    pc_status status = PC_OK;
    name_of(text, stream, &w->shape);
    if (((const pc__cuda_stream *)stream->implementation)->branch) {
        pc__log(PC_LOG_DEBUG, "conv2d: %s: our kernels, a captured stream met it first", text);
        return PC_OK;
    }
    const cudnnHandle_t handle = pc__cudnn_handle(stream->device.index);
    if (!handle) {
        pc__cudnn_words(words, sizeof words);
        pc__log(said ? PC_LOG_DEBUG : PC_LOG_WARNING, "conv2d: our kernels alone: cuDNN does not start: %s", words);
        said = true;
        return PC_OK;
    }
    if (w->measured)
        status = pc__conv_measured(stream, call, p, &w->shape, text, list, &there, &way);
    else if ((there = pc__conv_candidates(handle, &w->shape, list, 0, 1)))
        way = list[0].number;
    if (!there && way >= 0)
        pc__cudnn_words(words, sizeof words);
    take(w, list, there, status == PC_OK ? way : 0);
    w->own = status == PC_OK ? pc__conv_row_of(p->direction, way) : NULL;
    if (w->own)
        pc__log(PC_LOG_DEBUG, "conv2d: %s: our kernels %s", text, w->own->note);
    else if (way > 0)
        pc__log(PC_LOG_DEBUG, "conv2d: %s: cuDNN's way %d", text, way);
    else
        pc__log(PC_LOG_DEBUG, "conv2d: %s: our kernels%s%s", text, words[0] ? ", cuDNN says " : "", words);
    return status;
}

/* cuDNN's way for a shape that it may have. Inside another call what is known counts: nobody announces such to a recording. */
static pc_status look_up(pc_stream *stream, const pc_call *call, pc__conv_piece *p, const pc__conv_shape *shape,
                         bool measured)
{
    bool found = false;
    pthread_mutex_lock(&choosing);
    const bool inside = ((const pc__cuda_stream *)stream->implementation)->scratch_level != 0;
    pc__conv_way *w = place_of(shape, stream->device.index, measured, !inside, &found);
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
    const int format = pc__conv_is_small(stream, &alone) ? -1 : pc__conv_rule(shape, true);
    return format >= 0 || !pc__is_half((pc_dtype)shape->dtype) || pc__conv_own_row(stream, p)
               ? format
               : pc__conv_rule(shape, false);
}

/* A measurement is one product's: what is pooled is called apart then (geometry.c). */
static bool pools_apart(const pc_stream *stream, const pc__conv_piece *p, pc_choice choice)
{
    return choice != PC_CHOICE_MEASURED && pc__conv_is_worth_apart(stream, p, choice);
}

/* In float32 cuDNN's kernels for taps apart are slower than those of ours that have them. */
static int by_rule_of_groups(const pc__conv_piece *p, const pc__conv_shape *shape)
{
    const bool ours = pc__conv_is_for_tiles(shape) && pc__conv_gaps_row(p);
    return ours ? -1 : (int)pc__conv_grouped_format(shape);
}

pc_status pc__conv_choose(pc_stream *stream, const pc_call *call, pc__conv_piece *p)
{
    static pthread_once_t told = PTHREAD_ONCE_INIT;
    const pc_choice choice = pc__conv_choice_for(stream, p);
    pc__conv_shape shape;
    p->way = NULL, p->own = NULL;
    if (choice == PC_CHOICE_OWN || !shape_of(stream, p, choice, &shape))
        return PC_OK;
    const int format = choice == PC_CHOICE_MEASURED ? 0
                       : shape.planes               ? (int)PC__CONV_PLANES
                       : choice == PC_CHOICE_RULE
                           ? pc__conv_is_grouped(p) ? by_rule_of_groups(p, &shape) : by_rule(stream, p, &shape)
                       : pc__conv_is_grouped(p) ? (int)pc__conv_grouped_format(&shape)
                                                : (int)pc__conv_usual_format(&shape);
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

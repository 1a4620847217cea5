/* windows.c: convolutions with taps apart or channels in groups, by products of gathered windows: some pictures at a time,
 * whose windows fit into scratch memory. */
#include "cuda/conv/windows.h"

#include "cuda/conv/convolve.h"
#include "cuda/matmul/lt.h"

enum {
    FEW = 8,          /* channels of a group */
    ROOM = 256 << 20, /* bytes of the windows of some pictures, and of their matrices */
    MOST = 512 << 20, /* of one */
};

static const double LEAST = 2e7; /* multiplications, below which launches cost more */

/* What lies where in the scratch memory, in bytes. */
typedef struct rooms {
    size_t rows, weight, matrices, sums;
} rooms;

typedef struct plan {
    pc__cuda_windows w;
    int64_t pictures, area; /* at a time; places of one */
    int parts, bytes;       /* bytes: of a number */
    double windows;         /* bytes of those of all pictures */
    bool direct;            /* matrices are pictures as they are */
    rooms room;
} plan;

static int padded(int n, int pack)
{
    return (n + pack - 1) / pack * pack;
}

static bool make_plan(const pc__cuda_groups *s, int direction, plan *p)
{
    const int in = s->c / s->groups, out = s->o / s->groups;
    const bool back = direction == PC__CONV_INPUT, weights = direction == PC__CONV_WEIGHTS;
    const int bytes = (int)pc_dtype_size((pc_dtype)s->dtype), pack = 16 / bytes;
    *p = (plan){.w = {.s = *s, .back = back, .deep = back ? out : in, .wide = back ? in : out}, .bytes = bytes};
    p->w.depth = padded(p->w.deep, pack), p->w.width = padded(p->w.wide, pack);
    p->area = back ? (int64_t)s->h * s->w : (int64_t)s->oh * s->ow;
    const double taps = (double)s->kh * s->kw, places = (double)s->n * (double)p->area;
    const double each = (double)p->area * s->groups * taps * p->w.depth * bytes; /* bytes of a picture's windows */
    p->windows = each * (double)s->n;
    p->direct = s->groups == 1 && p->w.width == p->w.wide;
    const size_t number = weights ? (size_t)bytes : sizeof(float); /* results, which are rounded with their bias */
    const double matrix = p->direct ? 0 : (double)p->area * s->groups * p->w.width * (double)number; /* of a picture */
    const double turned = (double)s->groups * p->w.width * taps * p->w.depth;
    const double work = places * s->groups * taps * p->w.deep * p->w.wide;
    if (s->dtype == PC_F64 || work < LEAST || p->w.deep < FEW || p->w.wide < FEW || each + matrix > MOST ||
        turned > MOST || places * s->groups > INT32_MAX)
        return false;
    p->pictures = PC__MAX(1, PC__MIN((int64_t)(ROOM / (each + matrix)), s->n));
    p->parts = (int)((s->n + p->pictures - 1) / p->pictures);
    const size_t matrices = (size_t)(p->pictures * p->area) * (size_t)(s->groups * p->w.width) * number;
    p->room = (rooms){.rows = pc__cuda_whole((size_t)each * (size_t)p->pictures),
                      .weight = weights ? 0 : pc__cuda_whole((size_t)turned * (size_t)bytes),
                      .matrices = p->direct ? 0 : pc__cuda_whole(matrices),
                      .sums = weights ? pc__cuda_whole((size_t)turned * sizeof(float) * (size_t)p->parts) : 0};
    return true;
}

/* cuDNN's kernels for groups of float32 are few, and some take as long as if they multiplied zeros. Bounds are from drawn
 * layers on an H200 (docs/kernels-diary.md). */
bool pc__convolution_is_for_windows(const pc_stream *stream, const pc__convolution *v, const pc__cuda_groups *s)
{
    static const double little[PC__CONV_DIRECTIONS] = {
        [PC__CONV_FORWARD] = 48e6, [PC__CONV_INPUT] = 10e6, [PC__CONV_WEIGHTS] = 24e6}; /* bytes of windows */
    plan p;
    return s->dtype == PC_F32 && s->groups > 1 && make_plan(s, v->direction, &p) &&
           pc__convolution_choice(stream, v) != PC_CHOICE_CUDNN && p.windows <= little[v->direction];
}

/* Scratch memory of this level holds the operands. Our kernel does without a workspace where there is no memory for one. */
static pc_status multiply(pc_stream *stream, const pc__cuda_gemm *g)
{
    bool done = false;
    pc_error before = pc__error_take();
    pc__cuda_deeper(stream, 1);
    pc_status status = pc__cuda_lt_missing() ? PC_OK : pc__cuda_lt_gemm(stream, g, &done);
    pc__cuda_deeper(stream, -1);
    if (status == PC_ERR_MEMORY) {
        (void)pc__error_take();
        status = PC_OK;
    }
    if (status == PC_OK)
        (void)pc__error_put(&before);
    if (status == PC_OK && !done)
        pc__cuda_gemm_plain(pc__cuda_queue(stream), g);
    return status;
}

static const char *picture_at(const plan *p, const void *pictures, int64_t first, int64_t numbers)
{
    return (const char *)pictures + first * numbers * p->bytes;
}

/* rows of windows times the weight */
static pc_status forth(pc_stream *stream, const plan *p, const pc__convolution *v, int64_t first, char *room)
{
    const pc__cuda_windows *w = &p->w;
    const int64_t k = (int64_t)w->s.kh * w->s.kw * w->depth;
    char *weight = room + p->room.rows;
    float *matrices = (float *)(void *)(weight + p->room.weight);
    char *to = (char *)v->result + first * p->area * w->s.groups * w->wide * p->bytes;
    const pc__cuda_gemm g = {.dtype = w->s.dtype,
                             .wide = !p->direct && p->bytes == 2,
                             .m = w->places,
                             .n = w->width,
                             .k = k,
                             .batch = w->s.groups,
                             .a = room,
                             .b = weight,
                             .bias = p->direct ? v->bias : NULL,
                             .c = p->direct ? (void *)to : matrices,
                             .a_rs = k,
                             .a_cs = 1,
                             .a_batch = w->places * k,
                             .b_rs = 1,
                             .b_cs = k,
                             .b_batch = w->width * k};
    PC__TRY(multiply(stream, &g));
    if (!p->direct)
        pc__cuda_windows_merge(w, matrices, v->bias, to);
    return PC_OK;
}

/* y, turned, times rows of windows */
static pc_status between(pc_stream *stream, const plan *p, const pc__convolution *v, int64_t first, char *room)
{
    const pc__cuda_windows *w = &p->w;
    const int64_t k = (int64_t)w->s.kh * w->s.kw * w->depth, part = first / p->pictures;
    char *matrices = room + p->room.rows + p->room.weight;
    float *sums = (float *)(void *)(matrices + p->room.matrices);
    const char *y = picture_at(p, v->y, first, p->area * w->s.o);
    if (!p->direct)
        pc__cuda_windows_split(w, y, matrices);
    const pc__cuda_gemm g = {.dtype = w->s.dtype,
                             .wide = p->bytes == 2,
                             .m = w->width,
                             .n = k,
                             .k = w->places,
                             .batch = w->s.groups,
                             .a = p->direct ? y : matrices,
                             .b = room,
                             .c = sums + part * w->s.groups * w->width * k,
                             .a_rs = 1,
                             .a_cs = w->width,
                             .a_batch = w->places * w->width,
                             .b_rs = k,
                             .b_cs = 1,
                             .b_batch = w->places * k};
    return multiply(stream, &g);
}

pc_status pc__convolution_by_windows(pc_stream *stream, const pc_call *call, const pc__convolution *v,
                                     const pc__cuda_groups *s, bool *done)
{
    const bool weights = v->direction == PC__CONV_WEIGHTS;
    plan p;
    *done = false;
    if (((const pc__cuda_stream *)stream->implementation)->scratch_level != 0 || !make_plan(s, v->direction, &p))
        return PC_OK;
    p.w.s.queue = pc__cuda_queue(stream);
    char *room = pc__cuda_try_scratch(stream, p.room.rows + p.room.weight + p.room.matrices + p.room.sums);
    if (!room)
        return PC_OK;
    const void *from = p.w.back ? v->y : v->x;
    const int64_t numbers = p.w.back ? (int64_t)s->oh * s->ow * s->o : (int64_t)s->h * s->w * s->c;
    if (!weights)
        pc__cuda_windows_weight(&p.w, v->weight, room + p.room.rows);
    for (int64_t first = 0; first < s->n; first += p.pictures) {
        p.w.places = PC__MIN(p.pictures, s->n - first) * p.area;
        pc__cuda_windows_gather(&p.w, picture_at(&p, from, first, numbers), room);
        PC__TRY((weights ? between : forth)(stream, &p, v, first, room));
        p.w.s.early = pc__cuda_early(stream);
    }
    if (weights)
        pc__cuda_windows_finish(&p.w, (float *)(void *)(room + p.room.rows + p.room.weight + p.room.matrices), p.parts,
                                v->result);
    pc__rows_say(stream, "by windows");
    *done = true;
    return pc__cuda_launched(call);
}

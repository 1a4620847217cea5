/* conv_play.h: a GPU played by loops over host memory, as far as the host side of convolutions calls one: our kernels,
 * cuDNN, measuring. What was called is counted, and answers can be set. float32 only. */
#ifndef PC_TEST_CONV_PLAY_H
#define PC_TEST_CONV_PLAY_H

#include "support.h"

#include "conv_gpu.h"
#include "conv_halves.h"
#include "cuda/conv/pooled.h"
#include "cuda/conv/stage.h"
#include "cuda/conv/unrelu.h"
#include "cuda/conv/by_cudnn.h"
#include "cuda/conv/direct.h"
#include "cuda/conv/few.h"
#include "conv_little.h"
#include "cuda/pointwise/each.h"
#include "cuda/pointwise/elementwise.h"
#include "cuda/matmul/gemm.h"
#include "ops/conv2d.h"
#include "ops/reduce.h"

#include <math.h>
#include <stdlib.h>

enum { LITTLE_MEMORY = -100 };

static struct play {
    int own[PC__CONV_DIRECTIONS], cudnn[PC__CONV_DIRECTIONS]; /* products made */
    int opened, planned, freed, measured, told;
    int pooled, unpooled;         /* results, and gradients on the way back, by kernels of their own */
    int turned;                   /* operands into cuDNN's format or back, by kernels of their own */
    const char *missing;          /* why there is no cuDNN */
    int ways;                     /* of cuDNN's, for every shape */
    bool bare;                    /* forward they leave bias and ReLU to be done */
    int64_t workspace;            /* bytes of each */
    int format[PC__CONV_FORMATS]; /* products made in each */
    cudnnStatus_t status;         /* of running one */
    int best;               /* what measuring finds: 0 the rule's row, k the k-th of cuDNN's plans, -k the k-th other
                                     row, LITTLE_MEMORY nothing */
    pc_status failure;      /* of measuring */
    size_t memory;          /* most scratch memory that there is */
    bool colours, directly; /* there are kernels for three channels too, or for few, */
    int few, direct;        /* and how often they ran */
} play;

static void play_again(void)
{
    play = (struct play){.ways = PC__CONV_WAYS, .workspace = 1000, .memory = SIZE_MAX};
}

/* --- products --- */

typedef struct order {
    int64_t o, c, h, w; /* distances of the weights */
} order;

/* All three are this loop, and differ in what is added to. */
static void product(int direction, const pc__cuda_conv *s, const float *x, const float *w, const float *y, float *to,
                    order at)
{
    for (int64_t n = 0; n < s->n; n++)
        for (int i = 0; i < s->oh; i++)
            for (int j = 0; j < s->ow; j++)
                for (int o = 0; o < s->o; o++)
                    for (int r = 0; r < s->kh; r++)
                        for (int q = 0; q < s->kw; q++)
                            for (int c = 0; c < s->c; c++) {
                                const int row = i * s->sh - s->ph + r, column = j * s->sw - s->pw + q;
                                if (row < 0 || row >= s->h || column < 0 || column >= s->w)
                                    continue;
                                const int64_t in = ((n * s->h + row) * s->w + column) * s->c + c;
                                const int64_t out = ((n * s->oh + i) * s->ow + j) * s->o + o;
                                const int64_t tap = o * at.o + c * at.c + r * at.h + q * at.w;
                                if (direction == PC__CONV_FORWARD)
                                    to[out] += x[in] * w[tap];
                                else if (direction == PC__CONV_INPUT)
                                    to[in] += y[out] * w[tap];
                                else
                                    to[tap] += x[in] * y[out];
                            }
}

static int64_t results(const pc__cuda_conv *s)
{
    return s->n * s->oh * s->ow * s->o;
}

static void finish(float *y, int64_t count, int o, const float *bias, int activation)
{
    for (int64_t i = 0; i < count; i++) {
        y[i] += bias ? bias[i % o] : 0;
        y[i] = activation == PC_ACTIVATION_RELU && y[i] < 0 ? 0 : y[i];
    }
}

static void *zeros_of(void *to, int64_t count)
{
    return memset(to, 0, (size_t)count * sizeof(float));
}

/* Channels last from planes, or back; to be freed. */
static float *turned_over(const float *from, int64_t n, int64_t area, int64_t c, bool back)
{
    float *to = malloc((size_t)(n * area * c) * sizeof *to);
    assert_non_null(to);
    for (int64_t picture = 0; picture < n; picture++)
        for (int64_t at = 0; at < area; at++)
            for (int64_t k = 0; k < c; k++) {
                const int64_t last = (picture * area + at) * c + k, plane = (picture * c + k) * area + at;
                to[back ? plane : last] = from[back ? last : plane];
            }
    return to;
}

static void to_planes(void *y, const pc__cuda_conv *s)
{
    float *planes = turned_over(y, s->n, (int64_t)s->oh * s->ow, s->o, true);
    memcpy(y, planes, (size_t)results(s) * sizeof *planes);
    free(planes);
}

/* --- our kernels --- */

static order ours_of(const pc__cuda_conv *s)
{
    return (order){(int64_t)s->c * s->kh * s->kw, s->kh * s->kw, s->kw, 1};
}

/* dy in front of the activation; to be freed. */
static float *through(const pc__cuda_conv *s, const void *y, const void *dy)
{
    float *g = malloc((size_t)results(s) * sizeof *g);
    assert_non_null(g);
    for (int64_t i = 0; i < results(s); i++)
        g[i] = s->activation == PC_ACTIVATION_RELU && ((const float *)y)[i] <= 0 ? 0 : ((const float *)dy)[i];
    return g;
}

void pc__cuda_conv_forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight,
                           const void *bias, void *y, uint8_t *argmax, void *scratch, unsigned *counters)
{
    (void)queue, (void)argmax, (void)scratch, (void)counters;
    play.own[PC__CONV_FORWARD]++;
    product(PC__CONV_FORWARD, s, x, weight, NULL, zeros_of(y, results(s)), ours_of(s));
    finish(y, results(s), s->o, bias, s->activation);
    if (s->planes)
        to_planes(y, s);
}

void pc__cuda_conv_input(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, const void *y,
                         const uint8_t *argmax, const void *dy, void *dx, void *scratch, unsigned *counters)
{
    (void)queue, (void)argmax, (void)scratch, (void)counters;
    play.own[PC__CONV_INPUT]++;
    float *g = through(s, y, dy);
    product(PC__CONV_INPUT, s, NULL, weight, g, zeros_of(dx, s->n * s->h * s->w * s->c), ours_of(s));
    free(g);
}

void pc__cuda_conv_weights(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *y,
                           const uint8_t *argmax, const void *dy, void *dweight, void *dbias, void *scratch)
{
    (void)queue, (void)argmax, (void)scratch;
    play.own[PC__CONV_WEIGHTS]++;
    float *g = through(s, y, dy);
    if (dweight)
        product(PC__CONV_WEIGHTS, s, x, NULL, g, zeros_of(dweight, s->o * ours_of(s).o), ours_of(s));
    if (dbias)
        zeros_of(dbias, s->o);
    for (int64_t i = 0; dbias && i < results(s); i++)
        ((float *)dbias)[i % s->o] += g[i];
    free(g);
}

size_t pc__cuda_conv_scratch(const pc__cuda_conv *s)
{
    return s->pool > 0 ? 100 : 0;
}

size_t pc__cuda_conv_input_scratch(const pc__cuda_conv *s)
{
    return pc__cuda_conv_scratch(s);
}

size_t pc__cuda_conv_weights_scratch(const pc__cuda_conv *s)
{
    return pc__cuda_conv_scratch(s);
}

/* There are kernels for anything, and no 16-bit numbers. */
bool pc__cuda_conv_few_fits(const pc__cuda_conv *s, const void *x)
{
    (void)x;
    return play.colours && s->c == 3 && s->kh == 3;
}

void pc__cuda_conv_few_forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight,
                               const void *bias, void *y, uint8_t *argmax)
{
    play.few++;
    pc__cuda_conv_forward(queue, s, x, weight, bias, y, argmax, NULL, NULL);
}

void pc__cuda_conv_few_weights(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *y,
                               const uint8_t *argmax, const void *dy, void *dweight, void *dbias, float *sums)
{
    assert_non_null(sums);
    play.few++;
    pc__cuda_conv_weights(queue, s, x, y, argmax, dy, dweight, dbias, sums);
}

size_t pc__cuda_conv_few_scratch(const pc__cuda_conv *s)
{
    return (size_t)s->o * sizeof(float);
}

bool pc__cuda_conv_direct_forward_fits(const pc__cuda_conv *s)
{
    return play.directly && s->pool <= 2;
}

bool pc__cuda_conv_direct_input_fits(const pc__cuda_conv *s)
{
    return play.directly && s->n > 0;
}

bool pc__cuda_conv_direct_weights_fits(const pc__cuda_conv *s)
{
    return pc__cuda_conv_direct_input_fits(s);
}

void pc__cuda_conv_direct_forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight,
                                  const void *bias, void *y, uint8_t *argmax)
{
    play.direct++;
    pc__cuda_conv_forward(queue, s, x, weight, bias, y, argmax, NULL, NULL);
}

void pc__cuda_conv_direct_input(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, const void *y,
                                const uint8_t *argmax, const void *dy, void *dx)
{
    play.direct++;
    pc__cuda_conv_input(queue, s, weight, y, argmax, dy, dx, NULL, NULL);
}

void pc__cuda_conv_direct_weights(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *y,
                                  const uint8_t *argmax, const void *dy, void *dweight, void *dbias, float *sums)
{
    assert_non_null(sums);
    play.direct++;
    pc__cuda_conv_weights(queue, s, x, y, argmax, dy, dweight, dbias, sums);
}

size_t pc__cuda_conv_direct_scratch(const pc__cuda_conv *s)
{
    return (size_t)s->o * sizeof(float);
}

bool pc__cuda_ready(const pc_stream *stream, const pc_tensor *t)
{
    (void)stream, (void)t; /* nobody is started early */
    return false;
}

cudaStream_t pc__cuda_queue(const pc_stream *stream)
{
    return ((const pc__cuda_stream *)stream->implementation)->stream;
}

pc_status pc__cuda_in_floats(pc_stream *stream, const pc_call *call, pc__kernel kernel)
{
    (void)stream, (void)call, (void)kernel;
    fail_msg("there are no 16-bit numbers here");
    return PC_ERR_DTYPE;
}

/* --- what stands around a product --- */

void pc__cuda_conv_rows(cudaStream_t queue, const void *in, int from, void *out, int to, int64_t rows, size_t size,
                        int early)
{
    (void)queue;
    assert_int_equal(size, sizeof(float));
    assert_int_equal(early, 0);
    play.turned++;
    for (int64_t row = 0; row < rows; row++)
        for (int i = 0; i < to; i++)
            ((float *)out)[row * to + i] = i < from ? ((const float *)in)[row * from + i] : 0;
}

/* Where cuDNN's format has a weight of ours. */
static int filter_place(const pc__cuda_conv_filter *f, int o, int c, int tap)
{
    const int row = tap / f->kw, column = tap % f->kw, place = row % f->sh * f->sw + column % f->sw;
    return ((o * f->to_kh + row / f->sh) * f->to_kw + column / f->sw) * f->to_c + place * f->c + c;
}

void pc__cuda_conv_filter_pad(cudaStream_t queue, const pc__cuda_conv_filter *f, const void *ours, void *theirs)
{
    (void)queue;
    play.turned++;
    zeros_of(theirs, (int64_t)f->to_o * f->to_kh * f->to_kw * f->to_c);
    for (int o = 0; o < f->o; o++)
        for (int c = 0; c < f->c; c++)
            for (int tap = 0; tap < f->kh * f->kw; tap++)
                ((float *)theirs)[filter_place(f, o, c, tap)] =
                    ((const float *)ours)[o * f->c * f->kh * f->kw + pc__cuda_conv_filter_at(f, c, tap)];
}

void pc__cuda_conv_fold(cudaStream_t queue, const pc__cuda_conv_folding *f, const void *in, void *out)
{
    (void)queue;
    play.turned++;
    zeros_of(out, f->n * f->to_h * f->to_w * f->to_c);
    for (int64_t i = 0; i < f->n * f->h * f->w * f->c; i++) {
        const int c = (int)(i % f->c), column = (int)(i / f->c % f->w) + f->pw,
                  row = (int)(i / f->c / f->w % f->h) + f->ph;
        const int64_t n = i / f->c / f->w / f->h;
        const int place = row % f->sh * f->sw + column % f->sw;
        if (row / f->sh < f->to_h && column / f->sw < f->to_w)
            ((float *)out)[((n * f->to_h + row / f->sh) * f->to_w + column / f->sw) * f->to_c + place * f->c + c] =
                ((const float *)in)[i];
    }
}

void pc__cuda_conv_filter_cut(cudaStream_t queue, const pc__cuda_conv_filter *f, const void *theirs, void *ours)
{
    (void)queue;
    play.turned++;
    for (int o = 0; o < f->o; o++)
        for (int c = 0; c < f->c; c++)
            for (int tap = 0; tap < f->kh * f->kw; tap++)
                ((float *)ours)[o * f->c * f->kh * f->kw + pc__cuda_conv_filter_at(f, c, tap)] =
                    ((const float *)theirs)[filter_place(f, o, c, tap)];
}

void pc__cuda_gemm_finish(cudaStream_t queue, const pc__cuda_gemm *g)
{
    (void)queue;
    finish(g->c, g->m * g->n, (int)g->n, g->bias, g->activation);
}

#include "conv_pooled.h"

void pc__cuda_pointwise(const pc__cuda_launch *launch, int op, int dtype, double number)
{
    float *to = (float *)launch->walk.data[0];
    const float *dy = (const float *)launch->walk.data[1], *y = (const float *)launch->walk.data[2];
    assert_int_equal(op, PC__POINTWISE_relu_backward);
    assert_int_equal(dtype, PC_F32);
    assert_true(number == 0);
    for (uint32_t i = 0; i < launch->walk.count; i++)
        to[i] = y[i] <= 0 ? 0 : dy[i];
}

bool pc__cuda_has_unrelu(int64_t columns, int dtype)
{
    assert_int_equal(dtype, PC_F32);
    return columns % 4 == 0;
}

size_t pc__cuda_unrelu_scratch(int64_t rows, int64_t columns)
{
    return (size_t)(rows + columns) * sizeof(float);
}

void pc__cuda_unrelu_and_sum(const pc__cuda_unrelu *u, void *scratch)
{
    const float *dy = u->dy, *y = u->y;
    float *dz = u->dz, *sums = zeros_of(u->dbias, u->columns);
    memset(scratch, 0xff, pc__cuda_unrelu_scratch(u->rows, u->columns)); /* it is the kernel's own */
    for (int64_t i = 0; i < u->rows * u->columns; i++) {
        dz[i] = y[i] <= 0 ? 0 : dy[i];
        sums[i % u->columns] += dz[i];
    }
}

pc_status pc__cuda_each(pc_stream *stream, const pc_call *call, int count, pc_tensor *const *operands,
                        pc__cuda_launcher launcher, const void *context)
{
    (void)stream, (void)call;
    pc__cuda_launch launch = {.walk = {.count = (uint32_t)pc__count(operands[0]->ndim, operands[0]->shape)}};
    for (int i = 0; i < count; i++)
        launch.walk.data[i] = pc__data(operands[i]);
    launcher(&launch, context);
    return PC_OK;
}

pc_status pc__cuda_copy_tensor(pc_stream *stream, const pc_call *call, pc_tensor *to, pc_tensor *from)
{
    (void)stream, (void)call;
    int64_t at[4] = {0};
    for (int64_t i = 0; i < pc__count(to->ndim, to->shape); i++) {
        int64_t rest = i, there = 0, here = 0;
        for (int d = to->ndim - 1; d >= 0; d--) {
            at[d] = rest % to->shape[d], rest /= to->shape[d];
            there += at[d] * to->strides[d], here += at[d] * from->strides[d];
        }
        ((float *)pc__data(to))[there] = ((const float *)pc__data(from))[here];
    }
    return PC_OK;
}

/* Its scratch memory must not be the product's. */
pc_status pc__cuda_op_sum(pc_stream *stream, const pc_call *call)
{
    const pc__reduce_attributes *a = call->attributes;
    const float *from = pc__data(call->in[0]);
    float *to = zeros_of(pc__data(call->out[0]), a->inner);
    assert_int_equal(((pc__cuda_stream *)stream->implementation)->scratch_level, 1);
    for (int64_t i = 0; i < a->reduced * a->inner; i++)
        to[i % a->inner] += from[i];
    return PC_OK;
}

void *pc__cuda_scratch(pc_stream *stream, size_t bytes)
{
    static void *memory[PC__WORKSPACES];
    const int level = ((pc__cuda_stream *)stream->implementation)->scratch_level;
    if (bytes > play.memory)
        return pc__null(PC_ERR_MEMORY, "the GPU has too little memory left");
    free(memory[level]);
    memory[level] = aligned_alloc(256, (bytes + 255) / 256 * 256);
    memset(memory[level], 0xff, bytes); /* NaN */
    return memory[level];
}

bool pc__cuda_early(const pc_stream *stream)
{
    (void)stream;
    return false;
}

pc_status pc__cuda_enter(int index)
{
    return index == 0 ? PC_OK : PC_ERR_DEVICE;
}

pc_status pc__cuda_launched(const pc_call *call)
{
    return call->n_in ? PC_OK : PC_ERR_BACKEND;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    (void)attribute, (void)device;
    *value = 9;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *device, int index)
{
    (void)index;
    memset(device, 0, sizeof *device);
    memcpy(device->name, "Played", sizeof "Played");
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

/* --- cuDNN --- */

static size_t play_version(void)
{
    return 91900;
}

pc__cudnn_functions pc__cudnn = {.GetVersion = play_version};

cudnnHandle_t pc__cudnn_handle(int device)
{
    (void)device;
    play.opened = 1;
    return (cudnnHandle_t)(void *)&play;
}

const char *pc__cudnn_missing(void)
{
    return play.missing;
}

void pc__cudnn_words(char *words, size_t n)
{
    snprintf(words, n, "cuDNN's words");
}

int pc__cudnn_plans(const pc__cudnn_target *target, const pc__conv_shape *shape, pc__cudnn_plan *plans, int most)
{
    assert_non_null(target->handle);
    const int count = most < play.ways ? most : play.ways;
    play.planned++;
    for (int i = 0; i < count; i++)
        plans[i] = (pc__cudnn_plan){.plan = (void *)(uintptr_t)(shape->format * PC__CONV_PLANS + i + 1),
                                    .workspace = play.workspace,
                                    .bare = play.bare && shape->direction == PC__CONV_FORWARD};
    return count;
}

void pc__cudnn_plan_free(pc__cudnn_plan *plan)
{
    assert_non_null(plan->plan);
    play.freed++;
    *plan = (pc__cudnn_plan){0};
}

/* The way that was run last. */
static int last_way;

/* epilogue: NULL for none. */
static cudnnStatus_t product_of_planes(const pc__cuda_conv *g, int direction, const pc__cudnn_operands *o,
                                       const pc__conv_shape *epilogue)
{
    const int64_t in = (int64_t)g->h * g->w, out = (int64_t)g->oh * g->ow;
    float *x = direction == PC__CONV_INPUT ? NULL : turned_over(o->x, g->n, in, g->c, false);
    float *dy = direction == PC__CONV_FORWARD ? NULL : turned_over(o->dy, g->n, out, g->o, false);
    if (direction == PC__CONV_WEIGHTS) {
        product(direction, g, x, NULL, dy, zeros_of(o->result, g->o * ours_of(g).o), ours_of(g));
    } else {
        const bool forward = direction == PC__CONV_FORWARD;
        const int64_t count = forward ? results(g) : g->n * in * g->c;
        float *made = calloc((size_t)count, sizeof *made);
        assert_non_null(made);
        product(direction, g, x, o->weight, dy, made, ours_of(g));
        if (forward && epilogue)
            finish(made, count, g->o, epilogue->bias ? o->bias : NULL,
                   epilogue->relu ? PC_ACTIVATION_RELU : PC_ACTIVATION_NONE);
        float *planes = turned_over(made, g->n, forward ? out : in, forward ? g->o : g->c, true);
        memcpy(o->result, planes, (size_t)count * sizeof *planes);
        free(planes);
        free(made);
    }
    free(x);
    free(dy);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t pc__conv_cudnn_run(int device, cudaStream_t queue, const pc__cudnn_plan *plan, const pc__conv_shape *s,
                                 const pc__cudnn_operands *o, char *words, size_t n)
{
    pc__cuda_conv g = {.n = s->n,
                       .h = s->h,
                       .w = s->w,
                       .c = s->c,
                       .o = s->o,
                       .kh = s->kh,
                       .kw = s->kw,
                       .sh = s->sh,
                       .sw = s->sw,
                       .ph = s->ph,
                       .pw = s->pw,
                       .oh = s->oh,
                       .ow = s->ow};
    const order theirs = {(int64_t)s->kh * s->kw * s->c, 1, s->kw * s->c, s->c};
    const int64_t made = s->direction == PC__CONV_FORWARD   ? results(&g)
                         : s->direction == PC__CONV_WEIGHTS ? s->o * theirs.o
                                                            : s->n * s->h * s->w * s->c;
    (void)device, (void)queue;
    if (play.status != CUDNN_STATUS_SUCCESS) {
        pc__cudnn_words(words, n);
        return play.status;
    }
    play.cudnn[s->direction]++;
    last_way = (int)(uintptr_t)plan->plan;
    assert_true((plan->workspace > 0) == (o->workspace != NULL));
    if (o->workspace)
        memset(o->workspace, 0xff, (size_t)plan->workspace); /* over nothing that is wanted */
    play.format[s->format]++;
    if (s->format == PC__CONV_PLANES)
        return product_of_planes(&g, s->direction, o, plan->bare ? NULL : s);
    product(s->direction, &g, o->x, o->weight, o->dy, zeros_of(o->result, made), theirs);
    if (s->direction == PC__CONV_FORWARD && !plan->bare)
        finish(o->result, made, s->o, s->bias ? o->bias : NULL, s->relu ? PC_ACTIVATION_RELU : PC_ACTIVATION_NONE);
    return CUDNN_STATUS_SUCCESS;
}

pc_status pc__conv_measure(pc_stream *stream, const pc_call *call, const pc__conv_piece *piece, pc__conv_list *list,
                           int *best, double *told)
{
    (void)stream, (void)call, (void)piece;
    play.measured++;
    *best = play.best == LITTLE_MEMORY ? -1 : play.best <= 0 ? -play.best : list->rows + play.best - 1;
    assert_true(*best < list->rows + list->ways);
    for (int i = 0; i < list->rows + list->ways; i++)
        told[i] = i == *best ? 1 : 2;
    return play.failure ? pc__fail(play.failure, "measuring failed") : PC_OK;
}

#endif

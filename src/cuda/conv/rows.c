/* rows.c: the tables of who does a product of a convolution, in the order in which they are asked. */
#include "cuda/conv/rows.h"

#include "cuda/conv/direct.h"
#include "cuda/conv/few.h"
#include "cuda/conv/few_half.h"
#include "cuda/conv/half.h"
#include "cuda/conv/patch.h"
#include "cuda/conv/plain.h"
#include "cuda/conv/shallow.h"
#include "cuda/conv/single.h"
#include "cuda/conv/split.h"

static bool is_half(const pc__conv_piece *p)
{
    return pc__is_half((pc_dtype)p->s.dtype);
}

/* The row that runs so, unless PARACORD_ONLY leaves it out. */
static const pc__row *row_by(const pc__rows *rows, pc_status (*run)(pc_stream *stream, const pc_call *call,
                                                                    const void *problem, void *workspace, bool *done))
{
    for (int i = 0; i < rows->count; i++)
        if (rows->row[i].run == run)
            return pc__row_is_left_out(rows, &rows->row[i]) ? NULL : &rows->row[i];
    return NULL;
}

bool pc__conv_has_matrix_units(const pc_stream *stream)
{
    int major = 0;
    return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, stream->device.index) == cudaSuccess &&
           major >= 8;
}

/* --- cudnn: its way is looked for before the rows are asked (way.c) --- */

static bool cudnn_supports(const pc_stream *stream, const void *problem)
{
    (void)stream;
    return ((const pc__conv_piece *)problem)->way != NULL;
}

static pc_status cudnn_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done)
{
    const pc__conv_piece *p = problem;
    (void)workspace;
    return pc__conv_by_cudnn(stream, call, p, 1, done);
}

/* --- colours: three channels, the first layer of most networks --- */

static bool colours_forward_supports(const pc_stream *stream, const void *problem)
{
    const pc__conv_piece *p = problem;
    return pc__cuda_conv_few_fits(&p->s, p->x) &&
           (!is_half(p) || (pc__cuda_conv_few_half_fits(&p->s) && pc__conv_has_matrix_units(stream)));
}

static pc_status colours_forward(pc_stream *stream, const pc_call *call, const void *problem, void *workspace,
                                 bool *done)
{
    const pc__conv_piece *p = problem;
    (void)call, (void)workspace, (void)done;
    pc__cuda_conv_few_forward(pc__cuda_queue(stream), &p->s, p->x, p->weight, p->bias, p->result, p->places);
    return PC_OK;
}

/* The gradient of a float32 bias alone is the tiles', and 16-bit numbers are read sixteen bytes at a time. */
static bool colours_weights_supports(const pc_stream *stream, const void *problem)
{
    const pc__conv_piece *p = problem;
    const bool aligned = (uintptr_t)p->dy % 16 == 0 && (uintptr_t)p->argmax % 8 == 0;
    return (is_half(p) ? aligned : p->result != NULL) && colours_forward_supports(stream, problem);
}

static size_t colours_weights_workspace(const void *problem)
{
    return pc__cuda_conv_few_scratch(&((const pc__conv_piece *)problem)->s);
}

static pc_status colours_weights(pc_stream *stream, const pc_call *call, const void *problem, void *workspace,
                                 bool *done)
{
    const pc__conv_piece *p = problem;
    (void)call, (void)done;
    pc__cuda_conv_few_weights(pc__cuda_queue(stream), &p->s, p->x, p->y, p->argmax, p->dy, p->result, p->dbias,
                              workspace);
    return PC_OK;
}

/* --- direct: few channels to few, where the rule says that they are; any that fit where PARACORD_ONLY says so --- */

/* Results of so few places would leave most of a tile of them empty, whose sums the gradient of the weights adds up. */
static bool fills_tiles(const pc__conv_piece *p)
{
    enum { PLACES = 128 };
    return p->direction != PC__CONV_WEIGHTS || p->s.oh * p->s.ow >= PLACES;
}

static bool direct_supports(const pc_stream *stream, const void *problem)
{
    const pc__conv_piece *p = problem;
    const pc__conv_shape shape = pc__conv_shape_of(p);
    if (!(pc__conv_is_few(&shape) && fills_tiles(p)) &&
        !pc__rows_takes_all(&pc__conv_rows[p->direction], stream, direct_supports))
        return false;
    return p->direction == PC__CONV_FORWARD ? pc__cuda_conv_direct_forward_fits(&p->s)
           : p->direction == PC__CONV_INPUT ? pc__cuda_conv_direct_input_fits(&p->s)
                                            : pc__cuda_conv_direct_weights_fits(&p->s);
}

static size_t direct_workspace(const void *problem)
{
    const pc__conv_piece *p = problem;
    return p->direction == PC__CONV_WEIGHTS ? pc__cuda_conv_direct_scratch(&p->s) : 0;
}

static pc_status direct_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done)
{
    const pc__conv_piece *p = problem;
    const cudaStream_t queue = pc__cuda_queue(stream);
    (void)call, (void)done;
    if (p->direction == PC__CONV_FORWARD)
        pc__cuda_conv_direct_forward(queue, &p->s, p->x, p->weight, p->bias, p->result, p->places);
    else if (p->direction == PC__CONV_INPUT)
        pc__cuda_conv_direct_input(queue, &p->s, p->weight, p->y, p->argmax, p->dy, p->result);
    else
        pc__cuda_conv_direct_weights(queue, &p->s, p->x, p->y, p->argmax, p->dy, p->result, p->dbias, workspace);
    return PC_OK;
}

/* --- single: the gradient of one channel, where the rule says so; any that fits where PARACORD_ONLY does --- */

static bool single_supports(const pc_stream *stream, const void *problem)
{
    const pc__conv_piece *p = problem;
    const pc__conv_shape shape = pc__conv_shape_of(p);
    return (pc__conv_is_single(&shape) || pc__rows_takes_all(&pc__conv_rows[p->direction], stream, single_supports)) &&
           pc__cuda_conv_single_fits(&p->s);
}

static pc_status single_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done)
{
    const pc__conv_piece *p = problem;
    (void)call, (void)workspace, (void)done;
    pc__cuda_conv_single_input(pc__cuda_queue(stream), &p->s, p->weight, p->y, p->dy, p->result);
    return PC_OK;
}

/* --- plain: next to no work; 16 times as much where PARACORD_ONLY says so, and to be measured --- */

static bool plain_supports(const pc_stream *stream, const void *problem)
{
    const pc__conv_piece *p = problem;
    const pc__conv_shape shape = pc__conv_shape_of(p);
    const bool asked = pc__rows_takes_all(&pc__conv_rows[p->direction], stream, plain_supports);
    return pc__conv_is_least(&shape, asked) && pc__cuda_conv_plain_fits(&p->s);
}

static pc_status plain_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done)
{
    const pc__conv_piece *p = problem;
    const cudaStream_t queue = pc__cuda_queue(stream);
    (void)call, (void)workspace, (void)done;
    if (p->direction == PC__CONV_FORWARD)
        pc__cuda_conv_plain_forward(queue, &p->s, p->x, p->weight, p->bias, p->result);
    else if (p->direction == PC__CONV_INPUT)
        pc__cuda_conv_plain_input(queue, &p->s, p->weight, p->y, p->dy, p->result);
    else
        pc__cuda_conv_plain_weights(queue, &p->s, p->x, p->y, p->dy, p->result, p->dbias);
    return PC_OK;
}

/* --- shallow: 16-bit numbers, up to eight channels --- */

static bool shallow_supports(const pc_stream *stream, const void *problem)
{
    const pc__conv_piece *p = problem;
    if (!is_half(p) || !pc__conv_has_matrix_units(stream))
        return false;
    return p->direction == PC__CONV_FORWARD ? pc__cuda_conv_shallow_fits(&p->s)
           : p->direction == PC__CONV_INPUT ? pc__cuda_conv_shallow_input_fits(&p->s)
                                            : pc__cuda_conv_shallow_weights_fits(&p->s);
}

static size_t shallow_workspace(const void *problem)
{
    const pc__conv_piece *p = problem;
    return p->direction == PC__CONV_WEIGHTS ? pc__cuda_conv_shallow_scratch(&p->s) : 0;
}

static pc_status shallow_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done)
{
    const pc__conv_piece *p = problem;
    const cudaStream_t queue = pc__cuda_queue(stream);
    (void)call, (void)done;
    if (p->direction == PC__CONV_FORWARD)
        pc__cuda_conv_shallow_forward(queue, &p->s, p->x, p->weight, p->bias, p->result, p->places);
    else if (p->direction == PC__CONV_INPUT)
        pc__cuda_conv_shallow_input(queue, &p->s, p->weight, p->y, p->argmax, p->dy, p->result);
    else
        pc__cuda_conv_shallow_weights(queue, &p->s, p->x, p->y, p->argmax, p->dy, p->result, p->dbias, workspace);
    return PC_OK;
}

/* --- split: little work, sums cut into parts; any where PARACORD_ONLY says so --- */

static bool split_supports(const pc_stream *stream, const void *problem)
{
    const pc__conv_piece *p = problem;
    const pc__conv_shape shape = pc__conv_shape_of(p);
    if (pc__rows_takes_all(&pc__conv_rows[p->direction], stream, split_supports))
        return pc__cuda_conv_split_fits(&p->s);
    const bool shallow = pc__conv_is_shallow(&shape) && row_by(&pc__conv_rows[p->direction], shallow_run);
    return pc__conv_is_little(&shape) && !(shallow && shallow_supports(stream, p)) && pc__cuda_conv_split_fits(&p->s);
}

static size_t split_workspace(const void *problem)
{
    const pc__conv_piece *p = problem;
    return pc__cuda_conv_split_scratch(&p->s, p->direction == PC__CONV_INPUT);
}

static pc_status split_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done)
{
    const pc__conv_piece *p = problem;
    const cudaStream_t queue = pc__cuda_queue(stream);
    unsigned *counters = pc__cuda_counters(stream);
    (void)call, (void)done;
    if (p->direction == PC__CONV_FORWARD)
        pc__cuda_conv_split_forward(queue, &p->s, p->x, p->weight, p->bias, p->result, workspace, counters);
    else
        pc__cuda_conv_split_input(queue, &p->s, p->weight, p->y, p->dy, p->result, workspace, counters);
    return PC_OK;
}

_Static_assert(PC__CUDA_CONV_COUNTERS <= PC__CUDA_COUNTERS, "a counter for each tile");

/* --- half: 16-bit numbers by matrix units, channels in eights; patches: the same, 32 or 64 channels and stride 1 --- */

static bool half_forward_supports(const pc_stream *stream, const void *problem)
{
    const pc__conv_piece *p = problem;
    return is_half(p) && pc__cuda_conv_half_fits(&p->s, p->x) && pc__conv_has_matrix_units(stream);
}

static bool half_input_supports(const pc_stream *stream, const void *problem)
{
    const pc__conv_piece *p = problem;
    return is_half(p) && pc__cuda_conv_half_input_fits(&p->s, p->dy) && pc__conv_has_matrix_units(stream);
}

static bool half_weights_supports(const pc_stream *stream, const void *problem)
{
    const pc__conv_piece *p = problem;
    return half_input_supports(stream, problem) && pc__cuda_conv_half_fits(&p->s, p->x);
}

static bool patches_forward_supports(const pc_stream *stream, const void *problem)
{
    return half_forward_supports(stream, problem) && pc__cuda_conv_patch_fits(&((const pc__conv_piece *)problem)->s);
}

static bool patches_input_supports(const pc_stream *stream, const void *problem)
{
    return half_input_supports(stream, problem) &&
           pc__cuda_conv_patch_input_fits(&((const pc__conv_piece *)problem)->s);
}

static bool patches_weights_supports(const pc_stream *stream, const void *problem)
{
    return half_weights_supports(stream, problem) &&
           pc__cuda_conv_patch_weights_fits(&((const pc__conv_piece *)problem)->s);
}

static size_t half_forward_workspace(const void *problem)
{
    return pc__cuda_conv_half_scratch(&((const pc__conv_piece *)problem)->s, false);
}

static size_t patches_forward_workspace(const void *problem)
{
    return pc__cuda_conv_half_scratch(&((const pc__conv_piece *)problem)->s, true);
}

static size_t half_input_workspace(const void *problem)
{
    return pc__cuda_conv_half_input_scratch(&((const pc__conv_piece *)problem)->s, false);
}

static size_t patches_input_workspace(const void *problem)
{
    return pc__cuda_conv_half_input_scratch(&((const pc__conv_piece *)problem)->s, true);
}

static size_t half_weights_workspace(const void *problem)
{
    return pc__cuda_conv_half_weights_scratch(&((const pc__conv_piece *)problem)->s, false);
}

static size_t patches_weights_workspace(const void *problem)
{
    return pc__cuda_conv_half_weights_scratch(&((const pc__conv_piece *)problem)->s, true);
}

static pc_status by_half(pc_stream *stream, const pc__conv_piece *p, void *workspace, bool patches)
{
    const cudaStream_t queue = pc__cuda_queue(stream);
    unsigned *counters = pc__cuda_counters(stream);
    if (p->direction == PC__CONV_FORWARD)
        pc__cuda_conv_half_forward(queue, &p->s, p->x, p->weight, p->bias, p->result, p->places, patches, workspace,
                                   counters);
    else if (p->direction == PC__CONV_INPUT)
        pc__cuda_conv_half_input(queue, &p->s, p->weight, p->packed, p->y, p->argmax, p->dy, p->result, patches,
                                 workspace, counters);
    else
        pc__cuda_conv_half_weights(queue, &p->s, p->x, p->y, p->argmax, p->dy, p->result, p->dbias, patches, workspace);
    return PC_OK;
}

static pc_status half_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done)
{
    (void)call, (void)done;
    return by_half(stream, problem, workspace, false);
}

static pc_status patches_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done)
{
    (void)call, (void)done;
    return by_half(stream, problem, workspace, true);
}

/* --- tile: any convolution of floats or doubles; taps apart and groups, too (pc__conv_gaps_row) --- */

static bool tile_supports(const pc_stream *stream, const void *problem)
{
    (void)stream;
    return !is_half(problem);
}

static size_t tile_workspace(const void *problem)
{
    const pc__conv_piece *p = problem;
    return p->direction == PC__CONV_FORWARD ? pc__cuda_conv_scratch(&p->s)
           : p->direction == PC__CONV_INPUT ? pc__cuda_conv_input_scratch(&p->s)
                                            : pc__cuda_conv_weights_scratch(&p->s);
}

static pc_status tile_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done)
{
    const pc__conv_piece *p = problem;
    const cudaStream_t queue = pc__cuda_queue(stream);
    unsigned *counters = pc__cuda_counters(stream);
    (void)call, (void)done;
    if (p->direction == PC__CONV_FORWARD)
        pc__cuda_conv_forward(queue, &p->s, p->x, p->weight, p->bias, p->result, p->places, workspace, counters);
    else if (p->direction == PC__CONV_INPUT)
        pc__cuda_conv_input(queue, &p->s, p->weight, p->y, p->argmax, p->dy, p->result, workspace, counters);
    else
        pc__cuda_conv_weights(queue, &p->s, p->x, p->y, p->argmax, p->dy, p->result, p->dbias, workspace);
    return PC_OK;
}

/* --- float32: what no kernel takes as it is, converted and back; the whole call --- */

static bool float32_supports(const pc_stream *stream, const void *problem)
{
    (void)stream;
    return is_half(problem);
}

static pc_status float32_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done)
{
    const bool forward = ((const pc__conv_piece *)problem)->direction == PC__CONV_FORWARD;
    (void)workspace, (void)done;
    return pc__cuda_in_floats(stream, call, forward ? pc__cuda_op_conv2d : pc__cuda_op_conv2d_backward);
}

#define CUDNN                                                                                                          \
    {                                                                                                                  \
        "cudnn", "by cuDNN", cudnn_supports, NULL, cudnn_run                                                           \
    }
#define PLAIN                                                                                                          \
    {                                                                                                                  \
        "plain", "by plain", plain_supports, NULL, plain_run                                                           \
    }
#define DIRECT                                                                                                         \
    {                                                                                                                  \
        "direct", "by direct", direct_supports, direct_workspace, direct_run                                           \
    }
#define SPLIT                                                                                                          \
    {                                                                                                                  \
        "split", "by split", split_supports, split_workspace, split_run                                                \
    }
#define SHALLOW                                                                                                        \
    {                                                                                                                  \
        "shallow", "by shallow", shallow_supports, shallow_workspace, shallow_run                                      \
    }
#define TILE                                                                                                           \
    {                                                                                                                  \
        "tile", "by tile", tile_supports, tile_workspace, tile_run                                                     \
    }
#define FLOAT32                                                                                                        \
    {                                                                                                                  \
        "float32", "by float32", float32_supports, NULL, float32_run                                                   \
    }

static const pc__row forward[] = {
    CUDNN,
    PLAIN,
    {"colours", "by colours", colours_forward_supports, NULL, colours_forward},
    DIRECT,
    SPLIT,
    {"patches", "by patches", patches_forward_supports, patches_forward_workspace, patches_run},
    {"half", "by half", half_forward_supports, half_forward_workspace, half_run},
    SHALLOW,
    TILE,
    FLOAT32,
};

static const pc__row input[] = {
    CUDNN,
    PLAIN,
    DIRECT,
    {"single", "by single", single_supports, NULL, single_run},
    SPLIT,
    {"patches", "by patches", patches_input_supports, patches_input_workspace, patches_run},
    {"half", "by half", half_input_supports, half_input_workspace, half_run},
    SHALLOW,
    TILE,
    FLOAT32,
};

static const pc__row weights[] = {
    CUDNN,
    PLAIN,
    {"colours", "by colours", colours_weights_supports, colours_weights_workspace, colours_weights},
    DIRECT,
    {"patches", "by patches", patches_weights_supports, patches_weights_workspace, patches_run},
    {"half", "by half", half_weights_supports, half_weights_workspace, half_run},
    SHALLOW,
    TILE,
    FLOAT32,
};

pc__rows pc__conv_rows[PC__CONV_DIRECTIONS] = {
    [PC__CONV_FORWARD] = {"conv2d", forward, PC__COUNT(forward), NULL, 0},
    [PC__CONV_INPUT] = {"conv2d_input", input, PC__COUNT(input), NULL, 0},
    [PC__CONV_WEIGHTS] = {"conv2d_weights", weights, PC__COUNT(weights), NULL, 0},
};

bool pc__conv_is_cudnn(const pc__row *row)
{
    return row && row->run == cudnn_run;
}

bool pc__conv_is_detour(const pc__row *row)
{
    return row && row->run == float32_run;
}

bool pc__conv_is_small(const pc_stream *stream, const pc__conv_piece *p)
{
    const pc__rows *rows = &pc__conv_rows[p->direction];
    const pc__row *plain = row_by(rows, plain_run), *split = row_by(rows, split_run);
    return (plain && plain->supports(stream, p)) || (split && split->supports(stream, p));
}

const pc__row *pc__conv_detour(int direction)
{
    return &pc__conv_rows[direction].row[pc__conv_rows[direction].count - 1];
}

const pc__row *pc__conv_own_row(const pc_stream *stream, const pc__conv_piece *piece)
{
    pc__conv_piece ours = *piece;
    ours.way = NULL;
    const pc__row *row = pc__rows_pick(&pc__conv_rows[piece->direction], stream, &ours);
    return pc__conv_is_detour(row) ? NULL : row;
}

bool pc__conv_reads_planes(const pc__row *row, const pc__conv_piece *p)
{
    if (!is_half(p)) /* tiles can, but spread them number by number first */
        return row->run != tile_run || p->direction != PC__CONV_INPUT || p->s.pool > 1;
    return row->run == plain_run || row->run == direct_run || row->run == single_run || row->run == split_run;
}

const pc__row *pc__conv_planes_row(const pc_stream *stream, const pc__conv_piece *p)
{
    const pc__rows *rows = &pc__conv_rows[p->direction];
    if (rows->only && rows->only->run != direct_run && rows->only->supports(stream, p))
        return NULL;
    const pc__row *direct = row_by(rows, direct_run);
    return direct && direct_supports(stream, p) ? direct : NULL;
}

const pc__row *pc__conv_gaps_row(const pc__conv_piece *p)
{
    const pc__rows *rows = &pc__conv_rows[p->direction];
    const double most = 1 << 27, /* tiles know a place that is none by its distance */
        down = (p->s.kh - 1.0) * p->s.dh, right = (p->s.kw - 1.0) * p->s.dw;
    const int groups = PC__MAX(p->groups, 1);
    const double across = ((double)PC__MAX(p->s.c, p->s.o) / groups / 16 + 1) * groups; /* blocks, at most */
    const double sums = ((double)p->s.c * p->s.kh * p->s.kw + 1) * p->s.o, classes = (double)p->s.sh * p->s.sw;
    enum { GRID = 65535, PARTS = 16 };
    if (is_half(p) || down > most || right > most || across > GRID || sums > INT32_MAX || classes > GRID / PARTS ||
        (rows->only && rows->only->run != tile_run))
        return NULL;
    return row_by(rows, tile_run);
}

bool pc__conv_is_forced_to_tiles(const pc__conv_piece *p)
{
    const pc__row *only = pc__conv_rows[p->direction].only;
    return only && only->run == tile_run;
}

bool pc__conv_is_plain_grouped(const pc__conv_piece *p)
{
    const pc__rows *rows = &pc__conv_rows[p->direction];
    const pc__conv_shape shape = pc__conv_shape_of(p);
    return row_by(rows, plain_run) && (!rows->only || rows->only->run == plain_run) &&
           pc__conv_is_least_of_groups(&shape);
}

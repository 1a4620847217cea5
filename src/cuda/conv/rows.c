/* rows.c: the tables of who does a product of a convolution, in the order in which they are asked. */
#include "cuda/conv/rows_of.h"

const pc__row *pc__conv_row_by(const pc__rows *rows, pc_status (*run)(pc_stream *stream, const pc_call *call,
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

/* --- tile: any convolution of floats or doubles; taps apart and groups, too (pc__conv_gaps_row) --- */

static bool tile_supports(const pc_stream *stream, const void *problem)
{
    (void)stream;
    return !pc__conv_is_half(problem);
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
    return pc__conv_is_half(problem);
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
        "plain", "by plain", pc__conv_plain_supports, NULL, pc__conv_plain_run                                         \
    }
#define DIRECT                                                                                                         \
    {                                                                                                                  \
        "direct", "by direct", pc__conv_direct_supports, pc__conv_direct_workspace, pc__conv_direct_run                \
    }
#define SPLIT                                                                                                          \
    {                                                                                                                  \
        "split", "by split", pc__conv_split_supports, pc__conv_split_workspace, pc__conv_split_run                     \
    }
#define SHALLOW                                                                                                        \
    {                                                                                                                  \
        "shallow", "by shallow", pc__conv_shallow_supports, pc__conv_shallow_workspace, pc__conv_shallow_run           \
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
    {"colours", "by colours", pc__conv_colours_forward_supports, NULL, pc__conv_colours_forward},
    DIRECT,
    SPLIT,
    {"patches", "by patches", pc__conv_patches_forward_supports, pc__conv_patches_forward_workspace,
     pc__conv_patches_run},
    {"half", "by half", pc__conv_half_forward_supports, pc__conv_half_forward_workspace, pc__conv_half_run},
    SHALLOW,
    TILE,
    FLOAT32,
};

static const pc__row input[] = {
    CUDNN,
    PLAIN,
    DIRECT,
    {"single", "by single", pc__conv_single_supports, NULL, pc__conv_single_run},
    SPLIT,
    {"patches", "by patches", pc__conv_patches_input_supports, pc__conv_patches_input_workspace, pc__conv_patches_run},
    {"half", "by half", pc__conv_half_input_supports, pc__conv_half_input_workspace, pc__conv_half_run},
    SHALLOW,
    TILE,
    FLOAT32,
};

static const pc__row weights[] = {
    CUDNN,
    PLAIN,
    {"colours", "by colours", pc__conv_colours_weights_supports, pc__conv_colours_weights_workspace,
     pc__conv_colours_weights},
    DIRECT,
    {"patches", "by patches", pc__conv_patches_weights_supports, pc__conv_patches_weights_workspace,
     pc__conv_patches_run},
    {"half", "by half", pc__conv_half_weights_supports, pc__conv_half_weights_workspace, pc__conv_half_run},
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
    const pc__row *plain = pc__conv_row_by(rows, pc__conv_plain_run),
                  *split = pc__conv_row_by(rows, pc__conv_split_run);
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
    if (!pc__conv_is_half(p)) /* tiles can, but spread them number by number first */
        return row->run != tile_run || p->direction != PC__CONV_INPUT || p->s.pool > 1;
    return row->run == pc__conv_plain_run || row->run == pc__conv_direct_run || row->run == pc__conv_single_run ||
           row->run == pc__conv_split_run;
}

const pc__row *pc__conv_planes_row(const pc_stream *stream, const pc__conv_piece *p)
{
    const pc__rows *rows = &pc__conv_rows[p->direction];
    if (rows->only && rows->only->run != pc__conv_direct_run && rows->only->supports(stream, p))
        return NULL;
    const pc__row *direct = pc__conv_row_by(rows, pc__conv_direct_run);
    return direct && pc__conv_direct_supports(stream, p) ? direct : NULL;
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
    if (pc__conv_is_half(p) || down > most || right > most || across > GRID || sums > INT32_MAX ||
        classes > GRID / PARTS || (rows->only && rows->only->run != tile_run))
        return NULL;
    return pc__conv_row_by(rows, tile_run);
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
    return pc__conv_row_by(rows, pc__conv_plain_run) && (!rows->only || rows->only->run == pc__conv_plain_run) &&
           pc__conv_is_least_of_groups(&shape);
}

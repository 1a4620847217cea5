/* rows_little.c: rows of kernels for few channels and for little work. */
#include "cuda/conv/rows_of.h"

#include "cuda/conv/direct.h"
#include "cuda/conv/few.h"
#include "cuda/conv/few_half.h"
#include "cuda/conv/plain.h"
#include "cuda/conv/shallow.h"
#include "cuda/conv/single.h"
#include "cuda/conv/split.h"

/* --- colours: three channels, the first layer of most networks --- */

bool pc__conv_colours_forward_supports(const pc_stream *stream, const void *problem)
{
    const pc__conv_piece *p = problem;
    return pc__cuda_conv_few_fits(&p->s, p->x) &&
           (!pc__conv_is_half(p) || (pc__cuda_conv_few_half_fits(&p->s) && pc__conv_has_matrix_units(stream)));
}

pc_status pc__conv_colours_forward(pc_stream *stream, const pc_call *call, const void *problem, void *workspace,
                                   bool *done)
{
    const pc__conv_piece *p = problem;
    (void)call, (void)workspace, (void)done;
    pc__cuda_conv_few_forward(pc__cuda_queue(stream), &p->s, p->x, p->weight, p->bias, p->result, p->places);
    return PC_OK;
}

/* The gradient of a float32 bias alone is the tiles', and 16-bit numbers are read sixteen bytes at a time. */
bool pc__conv_colours_weights_supports(const pc_stream *stream, const void *problem)
{
    const pc__conv_piece *p = problem;
    const bool aligned = (uintptr_t)p->dy % 16 == 0 && (uintptr_t)p->argmax % 8 == 0;
    return (pc__conv_is_half(p) ? aligned : p->result != NULL) && pc__conv_colours_forward_supports(stream, problem);
}

size_t pc__conv_colours_weights_workspace(const void *problem)
{
    return pc__cuda_conv_few_scratch(&((const pc__conv_piece *)problem)->s);
}

pc_status pc__conv_colours_weights(pc_stream *stream, const pc_call *call, const void *problem, void *workspace,
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

bool pc__conv_direct_supports(const pc_stream *stream, const void *problem)
{
    const pc__conv_piece *p = problem;
    const pc__conv_shape shape = pc__conv_shape_of(p);
    if (!(pc__conv_is_few(&shape) && fills_tiles(p)) &&
        !pc__rows_takes_all(&pc__conv_rows[p->direction], stream, pc__conv_direct_supports))
        return false;
    return p->direction == PC__CONV_FORWARD ? pc__cuda_conv_direct_forward_fits(&p->s)
           : p->direction == PC__CONV_INPUT ? pc__cuda_conv_direct_input_fits(&p->s)
                                            : pc__cuda_conv_direct_weights_fits(&p->s);
}

size_t pc__conv_direct_workspace(const void *problem)
{
    const pc__conv_piece *p = problem;
    return p->direction == PC__CONV_WEIGHTS ? pc__cuda_conv_direct_scratch(&p->s) : 0;
}

pc_status pc__conv_direct_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done)
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

bool pc__conv_single_supports(const pc_stream *stream, const void *problem)
{
    const pc__conv_piece *p = problem;
    const pc__conv_shape shape = pc__conv_shape_of(p);
    return (pc__conv_is_single(&shape) ||
            pc__rows_takes_all(&pc__conv_rows[p->direction], stream, pc__conv_single_supports)) &&
           pc__cuda_conv_single_fits(&p->s);
}

pc_status pc__conv_single_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done)
{
    const pc__conv_piece *p = problem;
    (void)call, (void)workspace, (void)done;
    pc__cuda_conv_single_input(pc__cuda_queue(stream), &p->s, p->weight, p->y, p->dy, p->result);
    return PC_OK;
}

/* --- plain: next to no work; 16 times as much where PARACORD_ONLY says so, and to be measured --- */

bool pc__conv_plain_supports(const pc_stream *stream, const void *problem)
{
    const pc__conv_piece *p = problem;
    const pc__conv_shape shape = pc__conv_shape_of(p);
    const bool asked = pc__rows_takes_all(&pc__conv_rows[p->direction], stream, pc__conv_plain_supports);
    return pc__conv_is_least(&shape, asked) && pc__cuda_conv_plain_fits(&p->s);
}

pc_status pc__conv_plain_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done)
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

bool pc__conv_shallow_supports(const pc_stream *stream, const void *problem)
{
    const pc__conv_piece *p = problem;
    if (!pc__conv_is_half(p) || !pc__conv_has_matrix_units(stream))
        return false;
    return p->direction == PC__CONV_FORWARD ? pc__cuda_conv_shallow_fits(&p->s)
           : p->direction == PC__CONV_INPUT ? pc__cuda_conv_shallow_input_fits(&p->s)
                                            : pc__cuda_conv_shallow_weights_fits(&p->s);
}

size_t pc__conv_shallow_workspace(const void *problem)
{
    const pc__conv_piece *p = problem;
    return p->direction == PC__CONV_WEIGHTS ? pc__cuda_conv_shallow_scratch(&p->s) : 0;
}

pc_status pc__conv_shallow_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done)
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

bool pc__conv_split_supports(const pc_stream *stream, const void *problem)
{
    const pc__conv_piece *p = problem;
    const pc__conv_shape shape = pc__conv_shape_of(p);
    if (pc__rows_takes_all(&pc__conv_rows[p->direction], stream, pc__conv_split_supports))
        return pc__cuda_conv_split_fits(&p->s);
    const bool shallow =
        pc__conv_is_shallow(&shape) && pc__conv_row_by(&pc__conv_rows[p->direction], pc__conv_shallow_run);
    return pc__conv_is_little(&shape) && !(shallow && pc__conv_shallow_supports(stream, p)) &&
           pc__cuda_conv_split_fits(&p->s);
}

size_t pc__conv_split_workspace(const void *problem)
{
    const pc__conv_piece *p = problem;
    return pc__cuda_conv_split_scratch(&p->s, p->direction == PC__CONV_INPUT);
}

pc_status pc__conv_split_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done)
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

/* measured.c: what may do a product of a convolution, and the choice among it by measuring, or as the file says. */
#include "cuda/conv/by_cudnn.h"

#if PC__HAVE_CUDNN

#include <stdio.h>

int pc__conv_candidates(cudnnHandle_t handle, const pc__conv_shape *shape, pc__conv_candidate *list, int there,
                        int most)
{
    const pc__cudnn_target target = {.handle = handle};
    const pc__conv_shape made = pc__conv_in_format(shape);
    pc__cudnn_plan plans[PC__CONV_PLANS];
    const int more = pc__cudnn_plans(&target, &made, plans, most);
    for (int i = 0; i < more; i++)
        list[there + i] = (pc__conv_candidate){shape->format * PC__CONV_PLANS + i + 1, made, plans[i]};
    return there + more;
}

/* Padding changes nothing where channels are whole, and would move those of groups; planes are for float32 and for groups, of which
 * cuDNN's kernels for channels last are few, and folding is for few channels. */
static bool differs(const pc__conv_shape *shape, int format)
{
    if (shape->planes)
        return format == PC__CONV_PLANES;
    if (format == PC__CONV_FOLDED)
        return pc__conv_can_fold(shape);
    if (format == PC__CONV_PADDED)
        return shape->groups <= 1 && pc__conv_usual_format(shape) == PC__CONV_PADDED;
    return format == PC__CONV_AS_IS || shape->dtype == PC_F32 || shape->groups > 1;
}

static void tell_times(const char *text, const pc__conv_list *list, const pc__conv_candidate *plans,
                       const double *times)
{
    static const char *const formats[PC__CONV_FORMATS] = {"", "padded ", "planes ", "folded "};
    char words[32 * (PC__CONV_ROWS + PC__CONV_WAYS)] = "";
    size_t n = 0;
    for (int i = 0; i < list->rows && n < sizeof words; i++)
        n += (size_t)snprintf(words + n, sizeof words - n, "%s%s %.1f", i ? ", " : "", list->row[i]->name, times[i]);
    for (int i = 0; i < list->ways && n < sizeof words; i++)
        n += (size_t)snprintf(words + n, sizeof words - n, ", cuDNN's %s%d %.1f", formats[plans[i].made.format],
                              (plans[i].number - 1) % PC__CONV_PLANS + 1, times[list->rows + i]);
    pc__log(PC_LOG_DEBUG, "conv2d: %s, microseconds: %s", text, words);
}

const pc__row *pc__conv_row_of(int direction, int number)
{
    const pc__rows *rows = &pc__conv_rows[direction];
    const int i = number - PC__CONV_WAYS - 1;
    return i >= 0 && i < rows->count ? &rows->row[i] : NULL;
}

/* The rows of ours that can do it; whole calls by way of float32 can not be timed so. */
static int own_rows(const pc_stream *stream, const pc__conv_piece *p, const pc__row **row)
{
    pc__conv_piece ours = *p;
    int there = 0;
    if (pc__conv_is_grouped(p) || p->s.x_planes) {
        row[0] = p->s.x_planes ? pc__conv_planes_row(stream, p) : pc__conv_gaps_row(p);
        return row[0] != NULL;
    }
    ours.way = NULL;
    const int found = pc__rows_all(&pc__conv_rows[p->direction], stream, &ours, row, PC__CONV_ROWS);
    for (int i = 0; i < found; i++)
        if (!pc__conv_is_detour(row[i]))
            row[there++] = row[i];
    return there;
}

/* A file may name a row that another version had there. */
static bool is_own_row(const pc_stream *stream, const pc__conv_piece *p, const pc__row *row)
{
    const pc__row *rows[PC__CONV_ROWS];
    const int count = row ? own_rows(stream, p, rows) : 0;
    for (int i = 0; i < count; i++)
        if (rows[i] == row)
            return true;
    return false;
}

/* The list of what there is to measure: cuDNN's plans in each format that differs, or in one where `format` is one. */
static int add_formats(const pc_stream *stream, const pc__conv_shape *of, int format, pc__conv_candidate *plans)
{
    pc__conv_shape shape = *of;
    int there = 0;
    for (int f = 0; f < PC__CONV_FORMATS; f++) {
        shape.format = f;
        if (differs(&shape, f) && (format < 0 || f == format))
            there = pc__conv_candidates(pc__cudnn_handle(stream->device.index), &shape, plans, there, PC__CONV_PLANS);
    }
    return there;
}

static pc_status measure(pc_stream *stream, const pc_call *call, const pc__conv_piece *p, const pc__conv_shape *shape,
                         const char *text, const pc__conv_candidate *plans, int there, int *number)
{
    double times[PC__CONV_ROWS + PC__CONV_WAYS];
    int best = -1;
    *number = 0;
    pc__conv_list *list = pc__calloc(1, sizeof *list);
    if (!list)
        return PC_ERR_MEMORY;
    list->rows = own_rows(stream, p, list->row);
    list->ways = there;
    for (int i = 0; i < there; i++)
        list->way[i] = (pc__conv_way){
            .device = stream->device.index, .shape = *shape, .made = plans[i].made, .plan = plans[i].plan};
    const bool several = list->rows + there > 1;
    const pc_status status = several ? pc__conv_measure(stream, call, p, list, &best, times) : PC_OK;
    if (status == PC_OK && best >= 0)
        tell_times(text, list, plans, times);
    else if (!several && there)
        best = 0; /* of groups, which no row of ours takes */
    if (best >= list->rows)
        *number = plans[best - list->rows].number;
    else if (best > 0)
        *number = PC__CONV_WAYS + 1 + (int)(list->row[best] - pc__conv_rows[p->direction].row);
    pc__free(list);
    return status == PC_OK && best < 0 ? PC_ERR_STATE : status;
}

pc_status pc__conv_measured(pc_stream *stream, const pc_call *call, const pc__conv_piece *p,
                            const pc__conv_shape *shape, const char *text, pc__conv_candidate *plans, int *there,
                            int *number)
{
    char path[PATH_MAX];
    const bool file = pc__choices_file(path);
    *number = file ? pc__choices_recall(path, text) : -1;
    if (*number == 0 || is_own_row(stream, p, pc__conv_row_of(p->direction, *number)))
        return PC_OK;
    *number = *number > PC__CONV_WAYS ? -1 : *number;
    *there = add_formats(stream, shape, *number < 0 ? -1 : (*number - 1) / PC__CONV_PLANS, plans);
    for (int i = 0; i < *there; i++)
        if (plans[i].number == *number)
            return PC_OK;
    const pc_status status = measure(stream, call, p, shape, text, plans, *there, number);
    if (status == PC_OK && file)
        pc__choices_note(path, text, *number);
    return status == PC_ERR_STATE ? PC_OK : status; /* nothing could be measured: another process may */
}

#endif

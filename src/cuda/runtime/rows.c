/* rows.c: which row of a table does a call. */
#include "cuda/runtime/rows.h"

const pc__row *pc__rows_at(const pc__rows *rows, int i)
{
    if (!rows->only)
        return i < rows->count ? &rows->row[i] : NULL;
    if (i == 0)
        return rows->only;
    const int before = (int)(rows->only - rows->row); /* rows in front of it come one later */
    const int at = i <= before ? i - 1 : i;
    return at < rows->count ? &rows->row[at] : NULL;
}

const pc__row *pc__rows_pick(const pc__rows *rows, const pc_stream *stream, const void *problem)
{
    const pc__row *row;
    for (int i = 0; (row = pc__rows_at(rows, i)); i++)
        if (!pc__row_is_left_out(rows, row) && row->supports(stream, problem))
            return row;
    return NULL;
}

static pc_status run(const pc__row *row, pc_stream *stream, const pc_call *call, const void *problem, bool *done)
{
    const size_t bytes = row->workspace ? row->workspace(problem) : 0;
    void *workspace = bytes ? pc__cuda_scratch(stream, bytes) : NULL;
    if (bytes && !workspace)
        return PC_ERR_MEMORY;
    return row->run(stream, call, problem, workspace, done);
}

int pc__rows_all(const pc__rows *rows, const pc_stream *stream, const void *problem, const pc__row **found, int most)
{
    pc__cuda_stream *face = stream->implementation;
    const pc__row *picked = pc__rows_pick(rows, stream, problem);
    int count = 0;
    if (picked && most > 0)
        found[count++] = picked;
    face->takes_all = true;
    for (int i = 0; i < rows->count && count < most; i++)
        if (&rows->row[i] != picked && !pc__row_is_left_out(rows, &rows->row[i]) &&
            rows->row[i].supports(stream, problem))
            found[count++] = &rows->row[i];
    face->takes_all = false;
    return count;
}

static pc_status done_by(const pc__row *row, pc_stream *stream, const pc_call *call)
{
    if (row->note)
        pc__rows_say(stream, row->note);
    return pc__cuda_launched(call);
}

pc_status pc__rows_run_by(const pc__rows *rows, const pc__row *first, pc_stream *stream, const pc_call *call,
                          const void *problem)
{
    const pc__row *row = first;
    for (int i = 0; row || i == 0; row = pc__rows_at(rows, i++)) {
        bool done = true;
        if (!row || (row != first && (pc__row_is_left_out(rows, row) || !row->supports(stream, problem))))
            continue;
        PC__TRY(run(row, stream, call, problem, &done));
        if (done)
            return done_by(row, stream, call);
    }
    return pc__fail(PC_ERR_UNSUPPORTED, "%s: no kernel for cuda takes this shape; run it on the CPU", rows->op);
}

pc_status pc__rows_run(const pc__rows *rows, pc_stream *stream, const pc_call *call, const void *problem)
{
    return pc__rows_run_by(rows, NULL, stream, call, problem);
}

/* tally.c: sums over batches on the device, and their way to the host. */
#include "train/tally.h"

#include "device/backend.h"
#include "device/trace.h"
#include "ops/score.h"
#include "ops/table.h"
#include "tensor/read.h"

#include <paracord/no_grad.h>

static pc_status open_all(pc__tally *t, pc_device device)
{
    const pc__backend *backend = pc__backend_of(device.type);
    if (!backend)
        return pc__fail(PC_ERR_DEVICE, "adding up batches: there is no such device");
    t->immediate = backend->immediate;
    pc__meta meta;
    const int64_t numbers = pc__tally_together(t) ? PC__TALLY_SHARED : PC__TALLY_SUMS;
    pc__meta_contiguous(&meta, PC_F64, 1, (int64_t[]){PC__TALLY_SUMS});
    t->sums = t->sums ? t->sums : pc__tensor_unscoped(&meta, device);
    pc__meta_contiguous(&meta, PC_F64, 1, &numbers);
    if (pc__tally_together(t) && !t->shared && !(t->shared = pc__tensor_unscoped(&meta, device)))
        return PC_ERR_MEMORY;
    for (int i = 0; i < PC__MARKS && t->sums && !t->immediate; i++) {
        pc__mark *mark = &t->marks[i];
        if (!mark->sums) {
            mark->sums = pc_empty_pinned(PC_SHAPE(numbers), PC_F64, device);
            if (mark->sums)
                pc__scope_forget(mark->sums);
        }
        mark->arrived = mark->arrived || !mark->sums ? mark->arrived : pc_event_new(device);
        if (!mark->arrived)
            return pc_error_last()->status;
    }
    return t->sums ? PC_OK : PC_ERR_MEMORY;
}

pc_status pc__tally_begin(pc__tally *t, pc_device device)
{
    PC__TRY(open_all(t, device));
    const bool counts = !t->group || pc_group_rank(t->group) == 0; /* what there is already, once */
    const double sums[PC__TALLY_SUMS] = {counts ? t->score->loss : 0, counts ? (double)t->score->correct : 0,
                                         counts ? (double)t->score->ignored : 0};
    t->seen = t->score->seen;
    t->unmarked = t->count = 0;
    t->every = PC__MAX(t->every, PC__MARK_FEWEST);
    t->taken = 0;
    if (sums[0] == 0 && sums[1] == 0 && sums[2] == 0) /* a copy would wait */
        return pc_fill(t->sums, 0);
    return pc__tensor_write(t->sums, sums, "adding up batches");
}

pc_status pc__tally_add(pc__tally *t, pc_tensor *logits, pc_tensor *y, pc_tensor *loss)
{
    pc_status status = PC_OK;
    PC_NO_GRAD {
        PC_SCOPE {
            status = pc__score_step(t->sums, logits->dtype == PC_F64 ? pc_cast(logits, PC_F32) : logits, y,
                                    pc__as_dtype(loss, PC_F32));
        }
    }
    return status;
}

static void take(pc__tally *t, const double *sums, int64_t seen)
{
    *t->score = (pc__score){.loss = sums[0], .correct = (int64_t)sums[1], .seen = seen, .ignored = (int64_t)sums[2]};
    if (pc__tally_together(t))
        pc__tally_hear(t, sums);
}

/* More batches to the next marks where the last came soon, fewer where it came late. */
static void pace(pc__tally *t)
{
    enum { SOON = 2000000, LATE = 8000000 }; /* nanoseconds */
    const int64_t now = pc__now(), took = now - t->taken;
    int *every = pc__tally_together(t) ? &t->wanted : &t->every; /* ranks change it together */
    *every = t->every;
    if (t->taken && took < SOON)
        *every = PC__MIN(2 * t->every, PC__MARK_MOST);
    else if (t->taken && took > LATE)
        *every = PC__MAX(t->every / 2, PC__MARK_FEWEST);
    t->taken = now;
}

static pc_status take_oldest(pc__tally *t, bool wait)
{
    const pc__mark *mark = &t->marks[t->first];
    double sums[PC__TALLY_SHARED];
    PC__TRY(wait ? pc_event_synchronize(mark->arrived) : PC_OK);
    PC__TRY(pc_read(mark->sums, sums, (size_t)pc_tensor_count(mark->sums) * sizeof *sums));
    take(t, sums, mark->seen);
    pace(t);
    t->first = (t->first + 1) % PC__MARKS;
    t->count--;
    return PC_OK;
}

static pc_status take_arrived(pc__tally *t)
{
    for (bool done = true; t->count;) {
        PC__TRY(pc_event_query(t->marks[t->first].arrived, &done));
        if (!done)
            break;
        PC__TRY(take_oldest(t, false));
    }
    return PC_OK;
}

static pc_status mark(pc__tally *t)
{
    PC__TRY(t->count == PC__MARKS ? take_oldest(t, true) : PC_OK);
    pc__mark *next = &t->marks[(t->first + t->count) % PC__MARKS];
    PC__TRY(pc__tally_together(t) ? pc__tally_share(t) : PC_OK);
    PC__TRY(pc_copy(next->sums, pc__tally_together(t) ? t->shared : t->sums));
    PC__TRY(pc_event_record(next->arrived, NULL));
    next->seen = t->seen;
    t->unmarked = 0;
    t->count++;
    return PC_OK;
}

/* Not as they arrive, which differs from rank to rank: those of the mark before, which are there mostly. */
static pc_status pass_in_ranks(pc__tally *t)
{
    if (t->immediate) {
        PC__TRY(pc__tally_share(t));
        take(t, pc__data(t->shared), t->seen);
        return PC_OK;
    }
    if (++t->unmarked < t->every)
        return PC_OK;
    PC__TRY(t->count ? take_oldest(t, true) : PC_OK);
    return mark(t);
}

pc_status pc__tally_passed(pc__tally *t, int64_t n)
{
    t->seen += n;
    if (pc__tally_together(t))
        return pass_in_ranks(t);
    if (t->immediate) {
        take(t, pc__data(t->sums), t->seen);
        return PC_OK;
    }
    PC__TRY(++t->unmarked >= t->every ? mark(t) : PC_OK);
    return take_arrived(t);
}

pc_status pc__tally_settle(pc__tally *t)
{
    PC__TRY(t->unmarked ? mark(t) : PC_OK);
    while (t->count)
        PC__TRY(take_oldest(t, true));
    return PC_OK;
}

void pc__tally_close(pc__tally *t)
{
    for (int i = 0; i < PC__MARKS; i++) {
        pc_tensor_free(t->marks[i].sums);
        pc_event_free(t->marks[i].arrived);
    }
    pc_tensor_free(t->sums);
    pc_tensor_free(t->shared);
    *t = (pc__tally){0};
}

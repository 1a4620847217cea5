/* watch.c: what a walk tells those who watch leaves. */
#include "autograd/leaf_watch.h"

/* A longjmp out of the scope may leave it behind: then the thread is in fewer PC_NO_GRAD. */
static _Thread_local pc__leaf_notes notes;

pc__leaf_notes pc__leaf_note_begin(void)
{
    const pc__leaf_notes before = notes;
    notes = (pc__leaf_notes){.no_grad = pc__mode.no_grad};
    return before;
}

pc__leaf_notes pc__leaf_note_end(pc__leaf_notes before)
{
    const pc__leaf_notes noted = notes;
    notes = before;
    return noted;
}

pc_status pc__leaf_note(pc_tensor *t)
{
    if (!notes.no_grad || pc__mode.no_grad < notes.no_grad || !t->watch || t->node || !t->requires_grad)
        return PC_OK;
    for (int i = 0; i < notes.count; i++)
        if (notes.leaf[i] == t)
            return PC_OK;
    PC__TRY(pc__grow((void **)&notes.leaf, &notes.room, notes.count, sizeof *notes.leaf));
    notes.leaf[notes.count++] = t;
    return PC_OK;
}

pc_status pc__leaf_awaits(pc__leaf_sets *sets, pc_tensor *leaf, uint64_t visit)
{
    pc__leaf_watch *watch = leaf->watch;
    if (!watch)
        return PC_OK;
    if (watch->set->visit != visit) {
        PC__TRY(pc__grow((void **)&sets->set, &sets->room, sets->count, sizeof *sets->set));
        watch->set->visit = visit;
        PC__TRY(watch->set->begin(watch->set));
        sets->set[sets->count++] = watch->set;
    }
    watch->awaited++;
    return PC_OK;
}

pc_status pc__leaf_came(pc_tensor *leaf)
{
    pc__leaf_watch *watch = leaf->watch;
    return watch && --watch->awaited == 0 ? watch->set->ready(watch->set, watch) : PC_OK;
}

pc_status pc__leaf_sets_end(pc__leaf_sets *sets, pc_status status)
{
    for (int i = 0; i < sets->count && status == PC_OK; i++)
        status = sets->set[i]->end(sets->set[i]);
    pc__free(sets->set);
    return status;
}

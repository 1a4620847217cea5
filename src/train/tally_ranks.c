/* tally_ranks.c: sums over batches, of all ranks. */
#include "train/tally.h"

#include <paracord/no_grad.h>
#include <paracord/ops.h>

/* Numbers of `shared`, behind the sums. */
enum { WISHES = PC__TALLY_SUMS, EVERY = WISHES + PC__WISHES };
_Static_assert(EVERY + 1 == PC__TALLY_SHARED, "there is room for all");

bool pc__tally_grants(pc__tally *t, pc__wish wish, bool mine)
{
    if (!t->group)
        return mine;
    const bool granted = t->granted[wish];
    t->wishes[wish] = !granted && (mine || t->wishes[wish]);
    t->granted[wish] = false;
    return granted;
}

static pc_status put(pc__tally *t, int at, double number)
{
    return pc_fill(pc_slice(t->shared, 0, at, at + 1, 1), number);
}

static pc_status fill(pc__tally *t)
{
    PC__TRY(pc_copy(pc_slice(t->shared, 0, 0, PC__TALLY_SUMS, 1), t->sums));
    for (int i = 0; i < PC__WISHES; i++)
        PC__TRY(put(t, WISHES + i, t->wishes[i]));
    return put(t, EVERY, pc_group_rank(t->group) == 0 ? PC__MAX(t->wanted, PC__MARK_FEWEST) : 0);
}

pc_status pc__tally_share(pc__tally *t)
{
    pc_status status = PC_OK;
    PC_NO_GRAD {
        PC_SCOPE {
            status = fill(t);
        }
    }
    return status == PC_OK ? pc_group_all_reduce(t->group, t->shared, PC_GROUP_SUM) : status;
}

void pc__tally_hear(pc__tally *t, const double *numbers)
{
    for (int i = 0; i < PC__WISHES; i++)
        t->granted[i] |= numbers[WISHES + i] > 0;
    t->every = (int)numbers[EVERY];
}

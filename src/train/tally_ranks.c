/* tally_ranks.c: sums over batches, of all ranks. */
#include "train/tally.h"

#include <paracord/no_grad.h>
#include <paracord/ops.h>

/* Numbers of `shared`, behind the sums. */
enum { WISHES = PC__TALLY_SUMS, EVERY = WISHES + PC__WISHES };
_Static_assert(EVERY + 1 == PC__TALLY_SHARED, "there is room for all");

bool pc__tally_grants(pc__tally *t, pc__wish wish, bool mine)
{
    if (!pc__tally_together(t))
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

static bool is_first(const pc__tally *t)
{
    return (!t->group || pc_group_rank(t->group) == 0) && (!t->network || pc_group_rank(t->network) == 0);
}

static pc_status fill(pc__tally *t)
{
    PC__TRY(pc_copy(pc_slice(t->shared, 0, 0, PC__TALLY_SUMS, 1), t->sums));
    for (int i = 0; i < PC__WISHES; i++)
        PC__TRY(put(t, WISHES + i, t->wishes[i]));
    return put(t, EVERY, is_first(t) ? PC__MAX(t->wanted, PC__MARK_FEWEST) : 0);
}

pc_status pc__tally_share(pc__tally *t)
{
    pc_status status = PC_OK;
    PC_NO_GRAD {
        PC_SCOPE {
            status = fill(t);
            if (status == PC_OK && t->group)
                status = pc_group_all_reduce(t->group, t->shared, PC_GROUP_SUM);
            if (status == PC_OK && t->network)
                status =
                    pc_group_all_reduce(t->network, pc_slice(t->shared, 0, WISHES, PC__TALLY_SHARED, 1), PC_GROUP_SUM);
        }
    }
    return status;
}

void pc__tally_hear(pc__tally *t, const double *numbers)
{
    for (int i = 0; i < PC__WISHES; i++)
        t->granted[i] |= numbers[WISHES + i] > 0;
    t->every = (int)numbers[EVERY];
}

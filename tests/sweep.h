/* sweep.h: every single allocation of some work fails once: an error, no crash, nothing left behind. */
#ifndef PC_TEST_SWEEP_H
#define PC_TEST_SWEEP_H

#include "failing.h"
#include "support.h"

#include <paracord/random.h>
#include <paracord/scope.h>

/* Fail allocation 1, 2, 3, ... of `work`, as many as there are: `later` says whether all that follow fail too; `scope`,
 * whether it runs in one. */
static inline void sweep(bool (*work)(void), bool scope, bool later)
{
    assert_ok(pc_memory_trim(PC_DEVICE_CPU));
    assert_int_equal(pc_allocator_live(), 0);
    assert_ok(pc_allocator_set(&failing));
    int n = 0;
    for (bool done = false; !done; n++) {
        assert_true(n < 3000);
        pc_error_clear();
        pc_seed(1);
        pc_scope around = {0};
        if (scope)
            around = pc_scope_enter();
        countdown = n;
        and_later = later;
        bool fine = work();
        done = countdown > 0;
        countdown = -1;
        pc_scope_leave(&around);
        if (fine ? pc_failed() : pc_error_last()->status != PC_ERR_MEMORY) /* a retry may have made up for it */
            fail_msg("allocation %d failing: %s, but %s: %s", n, fine ? "it worked" : "it failed",
                     pc_status_name(pc_error_last()->status), pc_error_last()->message);
        assert_true(!done || (fine && !pc_failed()));
        assert_ok(pc_memory_trim(PC_DEVICE_CPU));
        if (pc_allocator_live())
            fail_msg("allocation %d failing leaks %d blocks: %s", n, (int)pc_allocator_live(),
                     pc_error_last()->message);
    }
    assert_true(n > 20);
    assert_ok(pc_allocator_set(NULL));
    print_message("%d allocations\n", n - 1);
}

#endif

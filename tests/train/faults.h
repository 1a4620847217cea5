/* faults.h: an allocator whose n-th allocation fails, for tests that let every one fail once. */
#ifndef PC_TEST_FAULTS_H
#define PC_TEST_FAULTS_H

#include "support.h"

#include <paracord/memory.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

static atomic_long allocations; /* since the last reset; any thread */
static long failing_one;        /* the number of the one that fails, from 0 */
static bool failing_later;      /* those after it fail too */

static inline bool fails_now(void)
{
    long number = atomic_fetch_add(&allocations, 1);
    return failing_later ? number >= failing_one : number == failing_one;
}

static inline void *faulty_alloc(void *context, size_t bytes, size_t alignment)
{
    (void)context;
    void *block = NULL;
    return !fails_now() && posix_memalign(&block, alignment, bytes) == 0 ? block : NULL;
}

static inline void *faulty_resize(void *context, void *block, size_t bytes)
{
    (void)context;
    return fails_now() ? NULL : realloc(block, bytes);
}

static inline void faulty_free(void *context, void *block)
{
    (void)context;
    free(block);
}

static inline void assert_nothing_alive(long failed)
{
    assert_ok(pc_memory_trim(PC_DEVICE_CPU));
    if (pc_allocator_live())
        fail_msg("allocation %ld failing leaks %d blocks", failed, (int)pc_allocator_live());
}

/* Run `work` with allocation 0, `step`, 2 `step`, ... failing, as long as there are that many. True from `work` says that all went
 * well, which must then be so without an error, whether an allocation failed (and was made up for) or not; otherwise
 * the error must be PC_ERR_MEMORY. Afterwards nothing may be alive. */
static inline void fail_some(const char *name, bool (*work)(void *context), void *context, bool later, long step)
{
    const pc_allocator faulty = {faulty_alloc, faulty_resize, faulty_free, NULL};
    long errors = 0, n = 0;
    assert_nothing_alive(-1);
    assert_ok(pc_allocator_set(&faulty));
    for (bool done = false; !done; n += step) {
        pc_error_clear();
        failing_one = n;
        failing_later = later;
        atomic_store(&allocations, 0);
        bool fine = work(context);
        done = atomic_load(&allocations) <= n;
        failing_one = 1L << 60;
        pc_error error = *pc_error_last();
        if (fine ? error.status != PC_OK : error.status != PC_ERR_MEMORY)
            fail_msg("%s, allocation %ld failing: %s, but %s: %s: %s", name, n, fine ? "it worked" : "it failed",
                     pc_status_name(error.status), error.message, error.cause);
        assert_true(!done || fine);
        errors += !fine;
        assert_nothing_alive(n);
    }
    assert_ok(pc_allocator_set(NULL));
    print_message("%s: %ld allocations, %ld errors\n", name, n - step, errors);
    assert_true(errors > 0);
}

static inline void fail_each(const char *name, bool (*work)(void *context), void *context, bool later)
{
    fail_some(name, work, context, later, 1);
}

#endif

/* failing.h: an allocator that fails when it is told to. */
#ifndef PC_TEST_FAILING_H
#define PC_TEST_FAILING_H

#include <paracord/memory.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

static atomic_int countdown = -1; /* allocations, of all threads together, until one fails; < 0: none */
static bool and_later;            /* those after it fail too */

static atomic_uint one_in, asked; /* or each such one fails, of all threads together; 0: none */

static bool fails(void)
{
    const unsigned n = atomic_load(&one_in);
    if (n && (atomic_fetch_add(&asked, 1) + 1) % n == 0)
        return true;
    int left = atomic_load(&countdown);
    while (left >= 0 && !atomic_compare_exchange_weak(&countdown, &left, left == 0 && and_later ? 0 : left - 1)) {
    }
    return left == 0;
}

static void *failing_alloc(void *context, size_t bytes, size_t alignment)
{
    (void)context;
    void *block = NULL;
    return !fails() && posix_memalign(&block, alignment, bytes) == 0 ? block : NULL;
}

static void *failing_resize(void *context, void *block, size_t bytes)
{
    (void)context;
    return fails() ? NULL : realloc(block, bytes);
}

static void failing_free(void *context, void *block)
{
    (void)context;
    free(block);
}

static const pc_allocator failing = {failing_alloc, failing_resize, failing_free, NULL};

#endif

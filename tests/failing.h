/* failing.h: an allocator that fails when it is told to. */
#ifndef PC_TEST_FAILING_H
#define PC_TEST_FAILING_H

#include <paracord/memory.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

static int countdown = -1; /* allocations until one fails; < 0: none */
static bool and_later;     /* those after it fail too */

static atomic_uint one_in, asked; /* or each such one fails, of all threads together; 0: none */

static bool fails(void)
{
    const unsigned n = atomic_load(&one_in);
    if (n && (atomic_fetch_add(&asked, 1) + 1) % n == 0)
        return true;
    if (countdown < 0)
        return false;
    if (countdown > 0) {
        countdown--;
        return false;
    }
    countdown = and_later ? 0 : -1;
    return true;
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

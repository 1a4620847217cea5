/* scope.c: the calling thread's stack of scopes, one array of owned objects with marks in it. */
#include "base.h"

typedef struct owned {
    void *object;
    pc_drop_fn drop;
} owned;

typedef struct scopes {
    owned *items;
    int count, capacity;
    int *starts; /* where each open scope begins in items */
    int depth, depth_capacity;
    int lost; /* scopes opened without memory to note them: they own nothing */
} scopes;

static _Thread_local scopes here;

static void release_arrays(void)
{
    pc__free(here.items);
    pc__free(here.starts);
    here = (scopes){0};
}

pc_scope pc_scope_open(void)
{
    if (pc__grow((void **)&here.starts, &here.depth_capacity, here.depth, sizeof *here.starts) != PC_OK) {
        here.lost++; /* the error is recorded; objects go to the scope outside, if any */
        return (pc_scope){-1};
    }
    here.starts[here.depth++] = here.count;
    return (pc_scope){here.depth};
}

void pc_scope_close(pc_scope *scope)
{
    int depth = scope->depth;
    scope->depth = 0;
    if (depth == -1)
        here.lost--;
    if (depth <= 0 || depth > here.depth)
        return;
    while (here.count > here.starts[depth - 1]) {
        owned last = here.items[--here.count];
        last.drop(last.object);
    }
    here.depth = depth - 1;
    if (here.depth == 0 && here.lost == 0)
        release_arrays();
}

bool pc_scope_active(void)
{
    return here.depth > 0;
}

pc_status pc_scope_own(void *object, pc_drop_fn drop)
{
    if (here.depth == 0)
        return PC_OK;
    if (pc__grow((void **)&here.items, &here.capacity, here.count, sizeof *here.items) != PC_OK) {
        drop(object);
        return PC_ERR_MEMORY;
    }
    here.items[here.count++] = (owned){object, drop};
    return PC_OK;
}

pc_status pc_scope_release(void *object)
{
    if (here.depth == 0 || !object)
        return PC_OK;
    int start = here.starts[here.depth - 1];
    for (int i = here.count - 1; i >= start; i--)
        if (here.items[i].object == object) {
            owned moved = here.items[i];
            if (here.depth > 1) {
                /* Swap to the innermost scope's front and let that scope begin one later. */
                here.items[i] = here.items[start];
                here.items[start] = moved;
                here.starts[here.depth - 1]++;
            } else {
                memmove(&here.items[i], &here.items[i + 1], (size_t)(here.count - i - 1) * sizeof moved);
                here.count--;
            }
            return PC_OK;
        }
    return PC_OK;
}

bool pc__scope_forget(void *object)
{
    if (here.depth == 0)
        return true;
    for (int i = here.count - 1; i >= here.starts[here.depth - 1]; i--)
        if (here.items[i].object == object) {
            memmove(&here.items[i], &here.items[i + 1], (size_t)(here.count - i - 1) * sizeof *here.items);
            here.count--;
            return true;
        }
    return false;
}

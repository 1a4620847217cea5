/* scope.c: the calling thread's stack of scopes, one array of owned objects with marks in it. */
#include "base.h"

typedef struct owned {
    void *object;
    pc_drop_fn drop;
} owned;

/* Scopes up to this depth need no memory: whatever else fails, the outermost scope is there to own things. */
#define FEW 16

typedef struct scopes {
    owned *items;
    int count, capacity;
    int first[FEW], *more; /* where each open scope begins in items; more: from depth FEW on */
    int depth, more_capacity;
    int lost; /* scopes opened without memory to note them: they own nothing */
} scopes;

static _Thread_local scopes here;

static int *start_of(int i)
{
    return i < FEW ? &here.first[i] : &here.more[i - FEW];
}

static void release_arrays(void)
{
    pc__free(here.items);
    pc__free(here.more);
    here = (scopes){0};
}

pc_scope pc_scope_open(void)
{
    if (here.depth >= FEW &&
        pc__grow((void **)&here.more, &here.more_capacity, here.depth - FEW, sizeof *here.more) != PC_OK) {
        here.lost++; /* the error is recorded; objects go to the scope outside */
        return (pc_scope){-1};
    }
    *start_of(here.depth) = here.count;
    here.depth++;
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
    while (here.count > *start_of(depth - 1)) {
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
    int start = *start_of(here.depth - 1);
    for (int i = here.count - 1; i >= start; i--)
        if (here.items[i].object == object) {
            owned moved = here.items[i];
            if (here.depth > 1) {
                /* Swap to the innermost scope's front and let that scope begin one later. */
                here.items[i] = here.items[start];
                here.items[start] = moved;
                (*start_of(here.depth - 1))++;
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
    for (int i = here.count - 1; i >= *start_of(here.depth - 1); i--)
        if (here.items[i].object == object) {
            memmove(&here.items[i], &here.items[i + 1], (size_t)(here.count - i - 1) * sizeof *here.items);
            here.count--;
            return true;
        }
    return false;
}

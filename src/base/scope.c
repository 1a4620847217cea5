/* scope.c: the calling thread's stack of scopes, one array of owned objects with marks in it. */
#include "base.h"

#include <pthread.h>

typedef struct owned {
    void *object;
    pc_drop_fn drop;
} owned;

/* Scopes up to this depth need no memory: whatever else fails, the outermost scope is there to own things. */
#define FEW 16

/* Where an open scope begins in the items, and what the thread was in then. */
typedef struct mark {
    int first;
    pc__modes modes;
} mark;

typedef struct scopes {
    owned *items;
    int count, capacity;
    mark marks[FEW], *more; /* more: from depth FEW on */
    int depth, more_capacity;
    int lost; /* scopes opened without memory to note them: they own nothing */
} scopes;

static _Thread_local scopes here;
_Thread_local pc__modes pc__mode;

static mark *mark_of(int i)
{
    return i < FEW ? &here.marks[i] : &here.more[i - FEW];
}

static int *start_of(int i)
{
    return &mark_of(i)->first;
}

static void release_arrays(void)
{
    pc__free(here.items);
    pc__free(here.more);
    here = (scopes){0};
}

static _Thread_local bool watched; /* end_thread is called when this thread ends */

/* A thread may end, by pthread_exit or cancelled, inside scopes. */
static void end_thread(void *unused)
{
    (void)unused;
    watched = false;
    if (here.depth == 0)
        return;
    pc__log(PC_LOG_WARNING, "a thread ended inside %d open scopes, whose objects are dropped", here.depth);
    pc_scope_leave(&(pc_scope){1});
}

static pthread_key_t ending;

static void make_key(void)
{
    (void)pthread_key_create(&ending, end_thread);
}

static void watch_thread(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_key);
    watched = pthread_setspecific(ending, &here) == 0;
}

pc_scope pc_scope_enter(void)
{
    if (here.depth >= FEW &&
        pc__grow((void **)&here.more, &here.more_capacity, here.depth - FEW, sizeof *here.more) != PC_OK) {
        here.lost++; /* the error is recorded; objects go to the scope outside */
        return (pc_scope){-1};
    }
    if (!watched)
        watch_thread();
    *mark_of(here.depth) = (mark){here.count, pc__mode};
    here.depth++;
    return (pc_scope){here.depth};
}

/* What was begun inside and is not ended: longjmp went over its end. */
static void restore_modes(const pc__modes *before)
{
    if (pc__mode.no_grad <= before->no_grad && pc__mode.manual_order <= before->manual_order)
        return;
    pc__log(PC_LOG_WARNING, "PC_NO_GRAD or PC_MANUAL_ORDER was left by longjmp; it ends with the scope around it");
    pc__mode.no_grad = PC__MIN(pc__mode.no_grad, before->no_grad);
    pc__mode.manual_order = PC__MIN(pc__mode.manual_order, before->manual_order);
}

void pc_scope_leave(pc_scope *scope)
{
    int depth = scope ? scope->depth : 0;
    if (scope)
        scope->depth = 0;
    if (depth == -1)
        here.lost--;
    if (depth <= 0 || depth > here.depth)
        return;
    while (here.count > *start_of(depth - 1)) {
        owned last = here.items[--here.count];
        last.drop(last.object);
    }
    restore_modes(&mark_of(depth - 1)->modes);
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
    PC__NEED(object);
    PC__NEED(drop);
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

/* scope.h: ownership of intermediates.
 *
 *     PC_SCOPE {
 *         pc_tensor *y = pc_mul(a, pc_add(b, c));   // b + c and y live until the closing brace
 *         result = pc_keep(y);                      // y goes to the scope outside, or to you when there is none
 *     }
 *
 * What is made with no scope open belongs to the caller (pc_tensor_free). Scopes belong to the thread that opened
 * them and nest; leaving by return, break or goto closes them. `break` and `continue` inside PC_SCOPE leave the scope,
 * not a loop around it. longjmp over the end of one leaves it open, and a PC_NO_GRAD too: both end when a scope
 * around them is closed, such as one opened by hand before setjmp, or with the thread, where that ends.
 */
#ifndef PARACORD_SCOPE_H
#define PARACORD_SCOPE_H

#include <paracord/error.h>

PC_BEGIN

typedef struct pc_scope {
    int depth; /* which scope of the thread this is, from 1; 0 when it is closed */
} pc_scope;

typedef void (*pc_drop_fn)(void *object);

/* Open a scope in the calling thread (enter), and close it (leave), which drops what it owns, newest first. Closing
 * also closes scopes that were opened inside and left open. Leaving twice is allowed. */
PC_API pc_scope pc_scope_enter(void);
PC_API void pc_scope_leave(pc_scope *scope);

/* True when the calling thread has an open scope. */
PC_API bool pc_scope_active(void);

/* Hand `object` to the innermost open scope, which will call drop(object). With no scope open nothing happens and the
 * caller stays the owner. PC_ERR_MEMORY when the scope cannot grow: the object has then been dropped. */
PC_API PC_MUST_USE pc_status pc_scope_own(void *object, pc_drop_fn drop);

/* Move `object` from the innermost scope to the one outside it, or to the caller where there is none. Objects that the
 * innermost scope does not own, and NULL, pass through unchanged. On failure to grow the outer scope: PC_ERR_MEMORY,
 * and the object stays with the inner scope. */
PC_API PC_MUST_USE pc_status pc_scope_release(void *object);

#define PC_SCOPE PC_BLOCK_(pc_scope, pc_scope_leave, pc_scope_enter())

PC_END
#endif

/* no_grad.h: pieces of a program that are not to be differentiated.
 *
 *     PC_NO_GRAD { accuracy = measure(net, test); }       // nothing is recorded, less memory is held
 *
 * Leaving by return, break or goto ends it; `break` and `continue` inside leave PC_NO_GRAD, not a loop around it.
 * After a longjmp over its end it ends with the scope around it (scope.h).
 */
#ifndef PARACORD_NO_GRAD_H
#define PARACORD_NO_GRAD_H

#include <paracord/api.h>

PC_BEGIN

/* Between enter and leave the calling thread records nothing for gradients. They nest. leave sets *open to 0 and does
 * nothing when it is 0 already. */
PC_API void pc_no_grad_enter(void);
PC_API void pc_no_grad_leave(int *open);

/* True when the calling thread records. */
PC_API bool pc_grad_enabled(void);

#define PC_NO_GRAD PC_BLOCK_(int, pc_no_grad_leave, (pc_no_grad_enter(), 1))

PC_END
#endif

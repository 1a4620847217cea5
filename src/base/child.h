/* child.h: forks of the program that have nothing of it but its memory. */
#ifndef PC__CHILD_H
#define PC__CHILD_H

#include "base/base.h"

#include <sys/types.h>

/* False where a child may wait for ever for a lock of the allocator that another thread held at the fork: the C
 * library's allocator, and most that take its place, put their locks in order for a fork, those of the address and
 * thread sanitizers before GCC 14 and clang 17 do not. Under a sanitizer only programs of one thread are taken to be
 * safe. */
bool pc__child_may_allocate(void);

/* Fork. In the child (0), which has one thread, the program's signal handlers are gone (Ctrl-C reaches it too, and is
 * the program's to answer), it ends when the thread that made it does, and memory comes from malloc, whose locks the C
 * library keeps whole across a fork, whatever allocator the library has. In the parent the child's number, or -1 with
 * errno. */
PC__SHARED pid_t pc__child_fork(void);

/* In the child: close all files but these, which become 3, 4, ...; standard input and output are nowhere. A program's
 * files and sockets may have others that wait to see them closed, and what a library below prints would come between
 * its own output. */
PC__SHARED void pc__child_forget_files(int *files, int count);

/* Wait until it has ended: its number and *status (may be NULL); 0 when it still runs then, -1 when others have waited
 * for it. `handle`: its pidfd, -1 for none. */
pid_t pc__child_wait(pid_t child, int handle, int patience_ms, int *status);

/* End it, and wait so long for that: a busy machine takes its time, and one that hangs in the kernel is left behind. */
PC__SHARED void pc__child_end(pid_t child, int handle, int patience_ms);

#endif

/* child.h: forks of the program that have nothing of it but its memory. */
#ifndef PC__CHILD_H
#define PC__CHILD_H

#include "base/base.h"

#include <sys/types.h>

/* Fork. In the child (0), which has one thread, the program's signal handlers are gone (Ctrl-C reaches it too, and is
 * the program's to answer), it ends when the thread that made it does, and memory comes from malloc, whose locks the C
 * library keeps whole across a fork, whatever allocator the library has. In the parent the child's number, or -1 with
 * errno. */
pid_t pc__child_fork(void);

/* In the child: close all files but these, which become 3, 4, ...; standard input and output are nowhere. A program's
 * files and sockets may have others that wait to see them closed, and what a library below prints would come between
 * its own output. */
void pc__child_forget_files(int *files, int count);

/* End it, and wait a moment for that: one that hangs in the kernel is left behind. `handle`: its pidfd, -1 for none. */
void pc__child_end(pid_t child, int handle);

#endif

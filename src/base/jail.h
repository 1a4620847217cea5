/* jail.h: a child process that may do nothing but compute, for code that is not to be trusted with a file: what it
 * reads is open before, what it finds comes back through memory that both share, and a crash, a loop or a memory
 * without end ends it alone.
 *
 *     pc__jail jail;
 *     pc__jail_plan plan = {.serve = serve, .context = &task, .file = fd, .room = 1 << 30, .memory = 1 << 28,
 *                           .seconds = 10};
 *     if (pc__jail_start(&jail, &plan)) {
 *         if (pc__jail_ask(&jail, &question, sizeof question, &answer, sizeof answer, words)) // words: what ended it
 *             pc__jail_take(&jail, bytes, answer.bytes);
 *         pc__jail_end(&jail);
 *     }
 *
 * The child is a fork: what the program had in memory is there, its files, signal handlers and threads are not, and
 * memory comes from malloc, whatever allocator the library has. It loses its rights one by one: limits of computing
 * time, memory and files; a system call filter (seccomp) that leaves reading, answering and memory; Landlock, which
 * leaves no file and no network. What the system does not have is left out. A program that forks when the library does
 * not know (its own handlers of SIGCHLD) finds the child like any other that is not its own; only its number is waited
 * for.
 */
#ifndef PC__JAIL_H
#define PC__JAIL_H

#include "base/base.h"

#include <sys/types.h>

/* What a child has lost. */
enum { PC__JAIL_LIMITS = 1, PC__JAIL_MEMORY = 2, PC__JAIL_SECCOMP = 4, PC__JAIL_LANDLOCK = 8 };

/* In the child. */
typedef struct pc__jail_cell {
    int socket, file; /* file: the plan's, under another number; -1 without */
    void *room;
    size_t room_bytes;
} pc__jail_cell;

/* What it does: answers until pc__cell_listen is false. Nothing that it allocates has to be freed. */
typedef void (*pc__jail_serve)(const pc__jail_cell *cell, void *context);

typedef struct pc__jail_plan {
    pc__jail_serve serve;
    void *context;
    int file;       /* stays open; -1: none */
    size_t room;    /* bytes of shared memory, which are taken from the system when they are written */
    int64_t memory; /* bytes that it may take beside those and what the program has */
    int seconds;    /* of computing; ten times that in all */
} pc__jail_plan;

typedef struct pc__jail {
    pid_t child;
    int handle, socket; /* handle: the process's, -1 where the system has none */
    void *room;
    size_t room_bytes;
    int64_t deadline; /* milliseconds of the monotonic clock */
    int64_t memory;
    int seconds;
    unsigned lost; /* PC__JAIL_... */
} pc__jail;

/* False when no child can be made here; errno says why. No error is recorded. */
bool pc__jail_start(pc__jail *jail, const pc__jail_plan *plan);

/* Send a question, wait for the answer. False when none of that size came: *why says what happened to the child. */
#define PC__JAIL_WORDS 160
bool pc__jail_ask(pc__jail *jail, const void *question, size_t n, void *answer, size_t answer_n,
                  char why[PC__JAIL_WORDS]);

/* Copy from the room's beginning. False when it has not so many bytes. */
bool pc__jail_take(const pc__jail *jail, void *bytes, size_t n);

/* End the child, if it has not ended. */
void pc__jail_end(pc__jail *jail);

/* The child's side: the next question, false when there is none any more; an answer. */
bool pc__cell_listen(const pc__jail_cell *cell, void *question, size_t n);
void pc__cell_answer(const pc__jail_cell *cell, const void *answer, size_t n);

/* jail_rights.c: in the child: give up what can be given up; what that was. */
unsigned pc__jail_give_up(int64_t memory, int seconds);

/* jail_filter.c: let through the system calls of a process that reads, answers and takes memory. */
bool pc__jail_filter(void);

#endif

/* check_uses.h: what the stream checker knows of each storage, and the races it found. All under the checker's lock. */
#ifndef PC__CHECK_USES_H
#define PC__CHECK_USES_H

#include "device/check.h"
#include "device/check_clock.h"

#include <paracord/check.h>
#include <pthread.h>

extern pthread_mutex_t pc__check_lock;

/* A use of bytes, or what later uses have left of it. */
typedef struct pc__access {
    size_t begin, end;             /* left */
    size_t whole_begin, whole_end; /* used */
    uint64_t number;               /* one for all that is left of a use */
    uint64_t ticket;
    const char *op;  /* from pc__check_name */
    uint32_t stream; /* 0: the host */
    pc__site site;
    pc_device device;
    bool write;
} pc__access;

/* Report what of the storage's uses `access` races with, knowing `clock`. */
void pc__uses_look(const void *memory, const pc__access *access, const pc__clock *clock);

/* Add it to the storage's uses. False when there was no room: later races with it are missed. */
bool pc__uses_note(const void *memory, const pc__access *access, const pc__clock *clock);

/* What is known of one storage goes, or of all; the number of uses that went. */
size_t pc__uses_forget(const void *memory);
size_t pc__uses_clear(void);

/* Old uses that were dropped to stay within bounds. */
extern uint64_t pc__uses_dropped;

/* check_report.c. The races found so far, and a name that lives until they are cleared. */
const char *pc__check_name(const char *op);
void pc__race_found(const pc__access *first, const pc__access *second, size_t begin, size_t end);
void pc__races_clear(void);
uint64_t pc__races_not_kept(void); /* since they were cleared */
uint64_t pc__races_ever(void);     /* found since the process began, repetitions too */

/* Called with the line of each new race when it is not NULL. */
extern void (*pc__check_print)(const char *line);

/* For check_env.c: one line about everything since the process began; how many races were found in that time. */
#define PC__CHECK_SUMMARY 320
uint64_t pc__check_summary(char text[PC__CHECK_SUMMARY]);

#endif

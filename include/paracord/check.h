/* check.h: the stream checker: finds pairs of uses of the same bytes, one of them a write, that nothing orders.
 *
 * Paracord orders streams by the data they share; where a program does that itself (manual order), the checker follows
 * what it queues, waits for and records, and names each pair that is left unordered, whether or not it went wrong this
 * time. Any program can be run under it:
 *
 *     PARACORD_CHECK=streams ./program      # each race on stderr as it is found, a summary at exit, exit code 66
 *
 * and a program, or a test, can ask for itself:
 *
 *     pc_check_streams(true);
 *     work();
 *     pc_check_streams(false);
 *     pc_race race;
 *     for (int i = 0; pc_check_race(i, &race); i++)
 *         puts(race.text);
 *
 * What is not known for certain to be a race is not reported: all threads of the host count as one, so that a race
 * that exists only between two of them is not seen. Every function may be called from any thread.
 */
#ifndef PARACORD_CHECK_H
#define PARACORD_CHECK_H

#include <paracord/api.h>

PC_BEGIN

typedef enum pc_race_kind {
    PC_RACE_READ_AFTER_WRITE,
    PC_RACE_WRITE_AFTER_READ,
    PC_RACE_WRITE_AFTER_WRITE
} pc_race_kind;

/* One of the two uses. Offsets are bytes in the storage that both views share. */
typedef struct pc_race_use {
    char op[48];
    char site[192];  /* the line of the program that queued it: "train.c:41 (step)" */
    char device[16]; /* "cuda:0"; "host" for a use by the host itself */
    uint32_t stream; /* number of the stream; 0 for the host */
    uint64_t ticket; /* position of the work in its stream */
    size_t begin, end;
    bool write;
} pc_race_use;

typedef struct pc_race {
    pc_race_kind kind;
    pc_race_use first, second; /* in the order in which they were queued */
    size_t begin, end;         /* bytes that both use: the first of them, and one past the last */
    uint64_t times;            /* how often this kind was found between these two lines so far */
    char text[1024];           /* all of it in one line, with a way out */
} pc_race;

/* Switch the checker on, forgetting earlier reports, or off, keeping them. Work queued before does not count. */
PC_API void pc_check_streams(bool on);

/* Races found since it was last switched on: the pairs of lines, each counted once. At most 1024 are kept. */
PC_API int pc_check_count(void);

/* Race number `index`, counted from 0 in the order found. False when there is none. Looks up call sites, which takes
 * milliseconds. */
PC_API bool pc_check_race(int index, pc_race *report);

/* Uses, waits and reports that could not be followed since it was last switched on, for want of memory or because
 * there were too many at once. Races may have been missed where this is not 0; none was invented. */
PC_API uint64_t pc_check_unchecked(void);

PC_END
#endif

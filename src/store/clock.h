/* clock.h: this process's clock (pc__now) beside that of the store's server, which is the one of the whole job. */
#ifndef PC__STORE_CLOCK_H
#define PC__STORE_CLOCK_H

#include "base/base.h"

#define PC__CLOCK_NAME_MAX 160

typedef struct pc__clock {
    bool known;
    uint64_t job;              /* a number of the job's own; without a store of this process's */
    int64_t at, offset, error; /* at pc__now() == at the server's clock shows at + offset, within error; nanoseconds */
} pc__clock;

/* Ask the server: once where both have the same clock, else the best of some round trips. No error: `known` is false then. */
void pc__clock_measure(void);
pc__clock pc__clock_get(void);
void pc__clock_forget(void);

/* What clock this is: equal names have equal times. "" where the system does not tell. */
void pc__clock_name(char name[PC__CLOCK_NAME_MAX]);

#endif

/* failure.h: what became of queued work that failed, for as long as somebody may ask for its results.
 *
 * A failure is a range of tickets of a stream: from the work that failed to what was queued when somebody was told,
 * which was not done. A storage whose last write is in such a range has no result: that is found when it is asked for,
 * so work pays nothing for it but one look at a number, which is 0 in programs where nothing ever failed. What was
 * found stays with the storage until all of it is written again. */
#ifndef PC__FAILURE_H
#define PC__FAILURE_H

#include "device/storage.h"

extern atomic_uint pc__failures; /* so many ever */

static inline bool pc__ever_failed(void)
{
    return atomic_load_explicit(&pc__failures, memory_order_acquire) != 0;
}

/* Work `ticket` of the stream failed with `error`, and so does what is queued behind it; until the program was told,
 * when so much was queued. Any lock may be held. */
void pc__failure_begin(uint32_t stream, uint64_t ticket, const pc_error *error);
void pc__failure_told(uint32_t stream, uint64_t queued);

/* A failure of no queued work, that somebody was told of: its number. */
unsigned pc__failure_told_at_once(const pc_error *error);

/* The number of the failure that work `ticket` of the stream is part of; 0: of none. */
unsigned pc__failure_of(uint32_t stream, uint64_t ticket);

bool pc__failure_is_told(unsigned number);

/* What it failed with; PC_OK's where that was too long ago. */
pc_error pc__failure_error(unsigned number);

/* order.c: the failure that the storage's contents are part of, which it keeps then; 0: none. */
unsigned pc__storage_failure(pc__storage *storage);

/* The failure of that number, as `who` gets it. */
pc_status pc__failure_tell(unsigned number, const char *who);

/* After somebody was told of a failure, and no lock of a pool is held: make room for others. */
void pc__failures_tidy(void);

/* The failure that left the storage without contents and that somebody was told of; 0: none. */
static inline unsigned pc__storage_failed(pc__storage *storage)
{
    const unsigned number = pc__ever_failed() ? pc__storage_failure(storage) : 0;
    return number && pc__failure_is_told(number) ? number : 0;
}

/* PC_OK where the storage has contents that `who` may read; else what the work failed with that was to make them. As
 * long as nobody was told of that failure, what is queued waits for the work that failed, and hears of it so. */
static inline pc_status pc__storage_sound(pc__storage *storage, const char *who)
{
    const unsigned number = pc__storage_failed(storage);
    return number ? pc__failure_tell(number, who) : PC_OK;
}

/* All of the storage is written by work that is queued: what failed before does not matter any more. */
static inline void pc__storage_heals(pc__storage *storage)
{
    if (pc__ever_failed())
        atomic_store_explicit(&storage->failure, 0, memory_order_relaxed);
}

#endif

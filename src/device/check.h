/* check.h: the stream checker (PARACORD_CHECK=streams): vector clocks that find pairs of uses of the same bytes, one of
 * them a write, which nothing orders. Fed by the one way in, by events and by waits; nothing is done unless it is on.
 *
 * It believes what it is told, in the order of the calls. Per stream, pc__check_work comes in the order of tickets, and
 * before anybody can wait for that ticket: call it under the stream's lock, after the waits that the work needed. Every
 * wait counts, also one that is not issued because the other stream was seen to be that far already: without it the
 * order that exists would look like none. Calls from any thread; none fails, none leaves an error recorded. They
 * take one lock, a leaf: no other one of the library is taken under it, but for those of pc__site_text.
 */
#ifndef PC__CHECK_H
#define PC__CHECK_H

#include "base/site.h"
#include "device/backend.h"

extern atomic_bool pc__check_on;

/* PARACORD_CHECK=collectives: ranks compare each call before they make it. */
extern bool pc__check_collectives;

static inline bool pc__checking(void)
{
    return atomic_load_explicit(&pc__check_on, memory_order_relaxed);
}

typedef struct pc__check_use {
    const void *memory; /* identity of the storage */
    size_t begin, end;  /* bytes in it */
    bool write;
} pc__check_use;

/* Work `ticket`, about to be queued on `stream`, uses these bytes. Reports what it races with. Tickets may be left out:
 * work without memory. `op` lives until the call returns. */
void pc__check_work(const char *op, pc__site site, const pc_stream *stream, uint64_t ticket, const pc__check_use *uses,
                    int count);

/* The host itself uses bytes of a storage now (pc_data, pc_read, the program's memory). Work queued later comes after
 * it. */
void pc__check_host(const char *op, pc__site site, const pc__check_use *use);

/* Later work of `stream` comes after work of `other` up to `ticket`, because it will wait for it or because that was
 * seen to be done; the host has waited for it, or has seen it done. */
void pc__check_stream_waits(const pc_stream *stream, const pc_stream *other, uint64_t ticket);
void pc__check_host_waited(const pc_stream *other, uint64_t ticket);

/* Events: a mark is put behind what `stream` has been given; a stream waits for it; the host waited for it; it goes. */
void pc__check_event_recorded(const pc_event *event, const pc_stream *stream);
void pc__check_event_waits(const pc_event *event, const pc_stream *stream);
void pc__check_event_host_waited(const pc_event *event);
void pc__check_event_gone(const pc_event *event);

/* The storage's memory has a new life: what was known of its uses no longer counts. */
void pc__check_forget(const void *memory);

#endif

/* check.c: the stream checker's hooks, and its switch.
 *
 * Where memory fails and order is lost, the checker starts over: it forgets every use that the lost order could have
 * been about. So it can miss races, and never invents one.
 */
#include "device/check_uses.h"

pthread_mutex_t pc__check_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t uses, unchecked;           /* since it was switched on */
static uint64_t ever_uses, ever_unchecked; /* and before that */
static uint64_t last_number;

/* Take the lock when there is something to do; the checker can have been switched off meanwhile. */
static bool enter(void)
{
    if (!pc__checking())
        return false;
    pthread_mutex_lock(&pc__check_lock);
    if (pc__checking())
        return true;
    pthread_mutex_unlock(&pc__check_lock);
    return false;
}

static void start_over(void)
{
    unchecked += 1 + pc__uses_clear();
    pc__hb_clear();
}

static void leave(bool followed)
{
    if (!followed)
        start_over();
    pthread_mutex_unlock(&pc__check_lock);
}

static pc__access access_of(const pc__check_use *use, const char *op, pc__site site)
{
    return (pc__access){.begin = use->begin,
                        .end = use->end,
                        .whole_begin = use->begin,
                        .whole_end = use->end,
                        .number = ++last_number,
                        .op = op,
                        .site = site,
                        .write = use->write};
}

static void check_uses(const pc__access *work, const pc__check_use *list, int count, const pc__clock *clock)
{
    for (int write = 0; write < 2; write++) /* reads first: what the same work writes then replaces them */
        for (int i = 0; i < count; i++) {
            if (list[i].write != write || list[i].begin >= list[i].end)
                continue;
            pc__access access = access_of(&list[i], work->op, work->site);
            access.stream = work->stream;
            access.ticket = work->ticket;
            access.device = work->device;
            pc__uses_look(list[i].memory, &access, clock);
            if (!pc__uses_note(list[i].memory, &access, clock))
                unchecked++;
        }
}

void pc__check_work(const char *op, pc__site site, const pc_stream *stream, uint64_t ticket, const pc__check_use *list,
                    int count)
{
    if (!enter())
        return;
    const pc__clock *clock = NULL;
    uses += (uint64_t)count;
    bool followed = pc__hb_work(stream, ticket, &clock);
    if (!followed) {
        start_over();
        followed = pc__hb_work(stream, ticket, &clock);
    }
    pc__access work = {
        .op = pc__check_name(op), .site = site, .stream = stream->id, .ticket = ticket, .device = stream->device};
    if (followed)
        check_uses(&work, list, count, clock);
    leave(followed);
}

void pc__check_host(const char *op, pc__site site, const pc__check_use *use)
{
    if (!enter())
        return;
    uses++;
    pc__access access = access_of(use, pc__check_name(op), site);
    if (use->begin < use->end)
        pc__uses_look(use->memory, &access, pc__hb_host()); /* not noted: what is queued from now on comes after it */
    leave(true);
}

void pc__check_stream_waits(const pc_stream *stream, const pc_stream *other, uint64_t ticket)
{
    if (enter())
        leave(pc__hb_stream_waits(stream, other, ticket));
}

void pc__check_host_waited(const pc_stream *other, uint64_t ticket)
{
    if (enter())
        leave(pc__hb_host_waited(other, ticket));
}

void pc__check_event_recorded(const pc_event *event, const pc_stream *stream)
{
    if (enter())
        leave(pc__hb_event_recorded(event, stream));
}

void pc__check_event_waits(const pc_event *event, const pc_stream *stream)
{
    if (enter())
        leave(pc__hb_event_waits(event, stream));
}

void pc__check_event_host_waited(const pc_event *event)
{
    if (enter())
        leave(pc__hb_event_host_waited(event));
}

void pc__check_event_gone(const pc_event *event)
{
    if (!enter())
        return;
    pc__hb_event_gone(event);
    leave(true);
}

void pc__check_forget(const void *memory)
{
    if (!enter())
        return;
    (void)pc__uses_forget(memory);
    leave(true);
}

static uint64_t all_unchecked(void)
{
    return unchecked + pc__uses_dropped + pc__hb_blurred + pc__races_not_kept();
}

void pc_check_streams(bool on)
{
    pthread_mutex_lock(&pc__check_lock);
    if (on) {
        ever_uses += uses;
        ever_unchecked += all_unchecked();
        uses = unchecked = pc__uses_dropped = pc__hb_blurred = 0;
        pc__races_clear();
    }
    (void)pc__uses_clear();
    pc__hb_clear();
    atomic_store(&pc__check_on, on);
    pthread_mutex_unlock(&pc__check_lock);
}

uint64_t pc_check_unchecked(void)
{
    pthread_mutex_lock(&pc__check_lock);
    uint64_t count = all_unchecked();
    pthread_mutex_unlock(&pc__check_lock);
    return count;
}

uint64_t pc__check_summary(char text[PC__CHECK_SUMMARY])
{
    pthread_mutex_lock(&pc__check_lock);
    uint64_t found = pc__races_ever(), missed = ever_unchecked + all_unchecked();
    int n = snprintf(text, PC__CHECK_SUMMARY, "stream checker: %llu uses of memory followed, ",
                     (unsigned long long)(ever_uses + uses));
    if (found)
        n += snprintf(text + n, PC__CHECK_SUMMARY - (size_t)n,
                      "races found %llu times (each pair of lines is shown once)", (unsigned long long)found);
    else
        n += snprintf(text + n, PC__CHECK_SUMMARY - (size_t)n, "no race found");
    if (missed)
        snprintf(text + n, PC__CHECK_SUMMARY - (size_t)n,
                 "; %llu uses, waits or reports could not be followed (too little memory, or too many at once): races "
                 "may have been missed",
                 (unsigned long long)missed);
    pthread_mutex_unlock(&pc__check_lock);
    return found;
}

#include "device/check.h"
atomic_bool pc__check_on;
void pc__check_work(const char *o, pc__site s, const pc_stream *st, uint64_t t, const pc__check_use *u, int c)
{
    (void)o;
    (void)s;
    (void)st;
    (void)t;
    (void)u;
    (void)c;
}
void pc__check_host(const char *o, pc__site s, const pc__check_use *u)
{
    (void)o;
    (void)s;
    (void)u;
}
void pc__check_stream_waits(const pc_stream *s, const pc_stream *o, uint64_t t)
{
    (void)s;
    (void)o;
    (void)t;
}
void pc__check_host_waited(const pc_stream *o, uint64_t t)
{
    (void)o;
    (void)t;
}
void pc__check_event_recorded(const pc_event *e, const pc_stream *s)
{
    (void)e;
    (void)s;
}
void pc__check_event_waits(const pc_event *e, const pc_stream *s)
{
    (void)e;
    (void)s;
}
void pc__check_event_host_waited(const pc_event *e)
{
    (void)e;
}
void pc__check_event_gone(const pc_event *e)
{
    (void)e;
}
void pc__check_forget(const void *m)
{
    (void)m;
}

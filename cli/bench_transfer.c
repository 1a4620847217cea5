/* bench_transfer.c: copies between the host and the device, one way and both, and beside computing; between devices. */
#include "bench.h"

#include <math.h>

#include <paracord/ops.h>

#include "peers.h"

enum { SETS = 2, PEER_TIMES = 5 };
#define MIB ((int64_t)1 << 20)

static int64_t bytes_for(pc_device device)
{
    return device.type == PC_CUDA ? 256 * MIB : 16 * MIB;
}

/* Two arrays of each side: a copy never finds what the last one left in a cache. */
typedef struct transfer {
    pc_tensor *host[SETS], *device[SETS], *back, *from; /* back, from: for the other way at once */
    pc_stream *in, *out;
    bool to_host;
    int at;
    pc_tensor *x, *y; /* what is computed beside */
    int rounds;
} transfer;

static bool one_way(void *context)
{
    transfer *t = context;
    t->at = (t->at + 1) % SETS;
    pc_tensor *host = t->host[t->at], *device = t->device[t->at];
    return (t->to_host ? pc_copy(host, device) : pc_copy(device, host)) == PC_OK;
}

static bool in_stream(void *context)
{
    transfer *t = context;
    bool fine = false;
    PC_WITH_STREAM(t->in) {
        fine = one_way(t);
    }
    return fine;
}

static bool both_ways(void *context)
{
    transfer *t = context;
    bool fine = in_stream(t);
    PC_WITH_STREAM(t->out) {
        fine = fine && pc_copy(t->back, t->from) == PC_OK;
    }
    return fine;
}

static bool compute(void *context)
{
    transfer *t = context;
    bool fine = true;
    PC_WITH_STREAM(t->out) {
        for (int i = 0; i < t->rounds && fine; i++)
            fine = pc_saxpy(t->y, 1e-9, t->x) == PC_OK;
    }
    return fine;
}

static bool copy_and_compute(void *context)
{
    return compute(context) && in_stream(context);
}

static pc_tensor *host_array(pc_device device, int64_t n, bool pinned)
{
    pc_tensor *t = pinned ? pc_empty_pinned(PC_SHAPE(n), PC_U8, device) : pc_empty(PC_SHAPE(n), PC_U8, PC_DEVICE_CPU);
    if (t && pc_fill(t, 1) == PC_OK)
        return t;
    pc_tensor_free(t);
    return NULL;
}

static bool open(transfer *t, pc_device device, int64_t n, bool pinned, bool streams)
{
    *t = (transfer){0};
    for (int i = 0; i < SETS; i++) {
        t->host[i] = host_array(device, n, pinned);
        t->device[i] = pc_zeros(PC_SHAPE(n), PC_U8, device);
        if (!t->host[i] || !t->device[i])
            return false;
    }
    if (!streams)
        return true;
    t->in = pc_stream(device);
    t->out = pc_stream(device);
    return t->in && t->out;
}

static void close_all(transfer *t)
{
    for (int i = 0; i < SETS; i++) {
        pc_tensor_free(t->host[i]);
        pc_tensor_free(t->device[i]);
    }
    pc_tensor *const others[] = {t->back, t->from, t->x, t->y};
    for (int i = 0; i < 4; i++)
        pc_tensor_free(others[i]);
    pc_stream_free(t->in);
    pc_stream_free(t->out);
}

static bool local(const bench *b, bench_result *r)
{
    return b->p.local && bench_absent(r, "this device computes in the host's memory: nothing is copied");
}

static void note(bench_result *r, int64_t n, double amount)
{
    snprintf(r->size, sizeof r->size, "%lld MiB", (long long)(n / MIB));
    r->amount = amount;
}

bool bench_transfer(bench *b, const bench_row *row, bench_result *r)
{
    if (local(b, r))
        return true;
    const pc_device device = b->p.device;
    const int64_t n = bytes_for(device);
    const bool pinned = row->kind != BENCH_PAGEABLE, both = row->kind == BENCH_BOTH;
    const bench_result *fast = bench_found(b, row->which ? "copy.to-host" : "copy.to-device");
    transfer t;
    bool fine = open(&t, device, n, pinned, both);
    t.to_host = row->which == 1;
    note(r, n, (both ? 2.0 : 1.0) * (double)n);
    r->limit = b->limits.link;
    r->limit.rate *= both ? 2 : 1;
    r->beside = fast ? bench_rate(fast) : NAN;
    if (fine && both) {
        t.back = host_array(device, n, true);
        t.from = pc_zeros(PC_SHAPE(n), PC_U8, device);
        fine = t.back && t.from;
    }
    fine = fine && bench_time(device, both || !pinned, both ? both_ways : one_way, &t, r);
    close_all(&t);
    return fine;
}

bool bench_overlap(bench *b, const bench_row *row, bench_result *r)
{
    (void)row;
    if (local(b, r))
        return true;
    const pc_device device = b->p.device;
    const int64_t n = bytes_for(device);
    bench_result copy = {0}, work = {0};
    transfer t;
    bool fine = open(&t, device, n, true, true);
    t.x = fine ? pc_ones(PC_SHAPE(n / 4), PC_F32, device) : NULL;
    t.y = fine ? pc_ones(PC_SHAPE(n / 4), PC_F32, device) : NULL;
    t.rounds = 1;
    fine = t.x && t.y && bench_time(device, true, in_stream, &t, &copy) && bench_time(device, true, compute, &t, &work);
    if (fine) { /* as much computing as copying */
        t.rounds = (int)fmin(fmax(round(copy.median / work.median), 1), 1000);
        fine = bench_time(device, true, compute, &t, &work) && bench_time(device, true, copy_and_compute, &t, r);
    }
    note(r, n, (double)n);
    r->beside = copy.median + work.median;
    r->limit = (bench_limit){(double)n / fmax(copy.median, work.median), "measured: the longer of the two, alone"};
    close_all(&t);
    return fine;
}

/* --- between devices --- */

bool bench_peer(bench *b, const bench_row *row, bench_result *r)
{
    (void)row;
    const pc_device from = b->p.device;
    const int count = pc_device_count((pc_device_type)from.type, NULL, 0);
    if (from.type == PC_CPU || count < 2)
        return bench_absent(r, from.type == PC_CPU ? "the CPU has no peers" : "there is one device of its kind");
    const pc_device to = {from.type, (int16_t)((from.index + 1) % count)};
    const int64_t n = bytes_for(from);
    double times[PEER_TIMES];
    for (int i = 0; i < PEER_TIMES; i++) {
        cli_peer peer = {0};
        if (cli_peer_measure(from, to, n, &peer) != PC_OK)
            return false;
        if (!peer.intact) {
            r->broken = true;
            return bench_absent(r, "other bytes arrived than were sent: do not train on these devices together");
        }
        times[i] = (double)n / peer.bandwidth;
    }
    r->first = times[0];
    r->goes = 1;
    bench_settle(times, PEER_TIMES, r);
    note(r, n, (double)n);
    r->limit = b->limits.peer;
    return true;
}

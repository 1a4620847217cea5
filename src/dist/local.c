/* local.c: the engine between ranks that are threads of this process: host memory, and what sim devices have. */
#include "dist/place.h"

#include "dist/reduce.h"
#include "ops/table.h"

#include <stdatomic.h>

/* One rank's part in a call. */
typedef struct part {
    const pc_call *call;
    const pc__comm *comm;
} part;

typedef struct state {
    int64_t calls;                    /* of all ranks together */
    int64_t pair[PC__RANKS_HERE];     /* sent to each rank */
    int64_t received[PC__RANKS_HERE]; /* received from each */
} state;

static const pc__collective *attributes_of(const part *p)
{
    return p->call->attributes;
}

static int64_t count_of(const pc_tensor *t)
{
    return pc__count(t->ndim, t->shape);
}

static pc_tensor *out_of(void *const *brought, int rank)
{
    return ((const part *)brought[rank])->call->out[0];
}

static pc_tensor *in_of(void *const *brought, int rank)
{
    return ((const part *)brought[rank])->call->in[0];
}

static size_t bytes_of(const pc_tensor *t)
{
    return (size_t)count_of(t) * pc_dtype_size((pc_dtype)t->dtype);
}

/* What must be the same in all ranks: of calls in place the tensor, of others what each rank brings or gets. */
static const pc_tensor *measure(const part *p)
{
    switch (p->call->op->index) {
    case PC__OP_reduce_scatter:
    case PC__OP_scatter:
        return p->call->out[0];
    default:
        return p->call->n_in ? p->call->in[0] : p->call->out[0];
    }
}

static pc_status check_order(const part *a, const part *b)
{
    const uint64_t x = pc__memory_order(measure(a)), y = pc__memory_order(measure(b));
    char first[PC__ORDER_WORDS], second[PC__ORDER_WORDS];
    if (x == y)
        return PC_OK;
    return pc__fail(PC_ERR_STATE,
                    "%s of %s: rank %d has its elements in %s and rank %d in %s; they must be the same (pc_contiguous)",
                    b->call->op->name, b->comm->group, a->comm->rank, pc__order_words(x, first), b->comm->rank,
                    pc__order_words(y, second));
}

static pc_status check(void *const *brought, int size)
{
    const part *first = NULL;
    for (int r = 0; r < size; r++) {
        const part *p = brought[r];
        if (!p)
            continue;
        first = first ? first : p;
        const pc_tensor *a = measure(first), *b = measure(p);
        const pc__collective *x = attributes_of(first), *y = attributes_of(p);
        const bool pair = p->call->op->index == PC__OP_send || p->call->op->index == PC__OP_receive;
        if (!pair && first->call->op != p->call->op)
            return pc__fail(PC_ERR_STATE, "%s: rank %d calls %s and rank %d %s; every rank must make the same calls",
                            p->comm->group, first->comm->rank, first->call->op->name, r, p->call->op->name);
        if (a->dtype != b->dtype || count_of(a) != count_of(b))
            return pc__fail(PC_ERR_STATE, "%s of %s: rank %d has %lld %s and rank %d %lld %s; they must be the same",
                            p->call->op->name, p->comm->group, first->comm->rank, (long long)count_of(a),
                            pc_dtype_name((pc_dtype)a->dtype), r, (long long)count_of(b),
                            pc_dtype_name((pc_dtype)b->dtype));
        PC__TRY(check_order(first, p));
        if (!pair && (x->reduction != y->reduction || x->peer != y->peer))
            return pc__fail(PC_ERR_STATE, "%s of %s: rank %d and rank %d name another root or reduction",
                            p->call->op->name, p->comm->group, first->comm->rank, r);
    }
    return PC_OK;
}

static void all_reduce(void *const *brought, int size, const pc__collective *a, int only)
{
    void *to[PC__RANKS_HERE];
    const void *from[PC__RANKS_HERE];
    for (int r = 0; r < size; r++)
        from[r] = to[r] = pc__data(out_of(brought, r));
    const pc_tensor *t = out_of(brought, 0);
    pc__reduce_ranks((pc_dtype)t->dtype, (pc_group_op)a->reduction, only < 0 ? to : &to[only], only < 0 ? size : 1,
                     from, size, count_of(t));
}

static void reduce_scatter(void *const *brought, int size, const pc__collective *a)
{
    for (int r = 0; r < size; r++) {
        const pc_tensor *t = out_of(brought, r);
        const void *from[PC__RANKS_HERE];
        void *to = pc__data(t);
        for (int s = 0; s < size; s++)
            from[s] = (const char *)pc__data(in_of(brought, s)) + (size_t)r * bytes_of(t);
        pc__reduce_ranks((pc_dtype)t->dtype, (pc_group_op)a->reduction, &to, 1, from, size, count_of(t));
    }
}

/* Part `place` of rank r's memory. */
static void copy_part(pc_tensor *to, int to_place, const pc_tensor *from, int from_place, size_t bytes)
{
    memmove((char *)pc__data(to) + (size_t)to_place * bytes, (const char *)pc__data(from) + (size_t)from_place * bytes,
            bytes);
}

static void gather(void *const *brought, int size, int to)
{
    for (int r = 0; r < size; r++)
        copy_part(out_of(brought, to), r, in_of(brought, r), 0, bytes_of(in_of(brought, r)));
}

static void exchange(void *const *brought, int size)
{
    for (int to = 0; to < size; to++)
        for (int from = 0; from < size; from++)
            copy_part(out_of(brought, to), from, in_of(brought, from), to,
                      bytes_of(in_of(brought, from)) / (size_t)size);
}

static pc_status work(void *const *brought, int size)
{
    PC__TRY(check(brought, size));
    int some = 0;
    while (!brought[some])
        some++;
    const part *p = brought[some];
    const pc__collective *a = attributes_of(p);
    switch (p->call->op->index) {
    case PC__OP_all_reduce:
        all_reduce(brought, size, a, -1);
        break;
    case PC__OP_reduce:
        all_reduce(brought, size, a, a->peer);
        break;
    case PC__OP_broadcast:
        for (int r = 0; r < size; r++)
            copy_part(out_of(brought, r), 0, out_of(brought, a->peer), 0, bytes_of(out_of(brought, r)));
        break;
    case PC__OP_all_gather:
        for (int r = 0; r < size; r++)
            gather(brought, size, r);
        break;
    case PC__OP_gather_to:
        gather(brought, size, a->peer);
        break;
    case PC__OP_reduce_scatter:
        reduce_scatter(brought, size, a);
        break;
    case PC__OP_scatter:
        for (int r = 0; r < size; r++)
            copy_part(out_of(brought, r), 0, in_of(brought, a->peer), r, bytes_of(out_of(brought, r)));
        break;
    case PC__OP_all_to_all:
        exchange(brought, size);
        break;
    default: { /* send and receive: the second of them is there too */
        const bool sends = p->call->op->index == PC__OP_send;
        const int other = a->peer;
        copy_part(sends ? out_of(brought, other) : p->call->out[0], 0, sends ? p->call->out[0] : out_of(brought, other),
                  0, bytes_of(p->call->out[0]));
    }
    }
    return PC_OK;
}

static pc_status open(pc__comm *comm, const unsigned char id[PC__ENGINE_ID])
{
    (void)id;
    comm->implementation = pc__calloc(1, sizeof(state));
    return comm->implementation ? PC_OK : PC_ERR_MEMORY;
}

static pc_status run(pc__comm *comm, pc_stream *stream, const pc_call *call)
{
    (void)stream;
    state *s = comm->implementation;
    const int peer = ((const pc__collective *)call->attributes)->peer, op = call->op->index;
    part p = {call, comm};
    pc__arrival a = {
        .kind = comm->device.type, .rank = comm->rank, .first = -1, .second = -1, .name = call->op->name, .brings = &p};
    if (op == PC__OP_send)
        a.first = comm->rank, a.second = peer, a.number = s->pair[peer]++;
    else if (op == PC__OP_receive)
        a.first = peer, a.second = comm->rank, a.number = s->received[peer]++;
    else
        a.number = ++s->calls;
    return pc__place_meet(comm->place, &a, comm->seconds, work);
}

static void abort_all(pc__comm *comm, const char *why)
{
    pc__place_abort(comm->place, why);
}

static void close(pc__comm *comm)
{
    pc__free(comm->implementation);
    comm->implementation = NULL;
}

const pc__engine pc__engine_local = {
    .name = "threads", .on_host = true, .open = open, .run = run, .abort = abort_all, .close = close};

/* compare.c: the checked mode (PARACORD_CHECK=collectives): ranks tell each other what they are about to do, and do it where
 * that fits together. */
#include "mpi/engine.h"

#include "ops/table.h"

/* What one rank says; the same bytes everywhere where all is well. */
typedef struct said {
    int32_t op, dtype, reduction, peer;
    uint64_t order; /* of its elements in memory */
    int64_t count;  /* of calls in place the elements, of others those that each rank brings or gets */
} said;

static const char *name_of(int op)
{
    static const char *const names[PC__OP_COUNT] = {
#define NAME(op, in_place, peer) [PC__OP_##op] = #op,
        PC__COLLECTIVES(NAME)
#undef NAME
    };
    return op >= 0 && op < PC__OP_COUNT && names[op] ? names[op] : "nothing known";
}

static bool reduces(int op)
{
    return op == PC__OP_all_reduce || op == PC__OP_reduce || op == PC__OP_reduce_scatter;
}

static bool has_peer(int op)
{
    static const bool has[PC__OP_COUNT] = {
#define NAME(op, in_place, peer) [PC__OP_##op] = peer,
        PC__COLLECTIVES(NAME)
#undef NAME
    };
    return has[op];
}

static said own_words(const pc__mpi_call *c)
{
    const int op = c->call->op->index;
    const pc_tensor *to = c->call->out[0];
    const bool by_what_it_gets = !c->call->n_in || op == PC__OP_reduce_scatter || op == PC__OP_scatter;
    const pc_tensor *t = by_what_it_gets ? to : c->call->in[0];
    return (said){.op = op,
                  .dtype = to->dtype,
                  .reduction = reduces(op) ? c->attributes->reduction : 0,
                  .peer = has_peer(op) ? c->attributes->peer : -1,
                  .order = pc__memory_order(t),
                  .count = pc__count(t->ndim, t->shape)};
}

/* "all_reduce of 10 float32 (sum)", or with `order` "all_reduce of 10 float32 in C order (sum)" */
static void describe(const said *s, bool order, char *text, size_t n)
{
    static const char *const reductions[] = {"sum", "mean", "min", "max"};
    const char *dtype = s->dtype >= 0 && s->dtype < PC_DTYPE_COUNT ? pc_dtype_name((pc_dtype)s->dtype) : "?";
    const bool known = s->op >= 0 && s->op < PC__OP_COUNT;
    char words[PC__ORDER_WORDS];
    const int at = snprintf(text, n, "%s of %lld %s%s%s", name_of(s->op), (long long)s->count, dtype,
                            order ? " in " : "", order ? pc__order_words(s->order, words) : "");
    if (known && reduces(s->op) && s->reduction >= 0 && s->reduction < PC__COUNT(reductions))
        snprintf(text + at, n - (size_t)at, has_peer(s->op) ? " (%s, root %d)" : " (%s)", reductions[s->reduction],
                 s->peer);
    else if (known && has_peer(s->op))
        snprintf(text + at, n - (size_t)at, " (%s %d)",
                 s->op == PC__OP_send || s->op == PC__OP_receive ? "with" : "root", s->peer);
}

static pc_status differ(const pc__mpi_call *c, int a, const said *x, int b, const said *y)
{
    char first[128], second[128];
    describe(x, x->order != y->order, first, sizeof first);
    describe(y, x->order != y->order, second, sizeof second);
    return pc__fail(PC_ERR_STATE,
                    "%s, number %llu: rank %d calls %s, and rank %d %s; every rank must make the same calls",
                    c->comm->group, (unsigned long long)c->number, a, first, b, second);
}

static pc_status among_all(const pc__mpi_call *c, const said *mine, said *all)
{
    MPI_Request request;
    const int n = sizeof *mine;
    const int started = MPI_Iallgather(mine, n, MPI_BYTE, all, n, MPI_BYTE, c->group->comm, &request);
    PC__TRY(pc__mpi_wait(c, started, &request, NULL));
    for (int r = 1; r < c->comm->size; r++)
        if (memcmp(&all[0], &all[r], sizeof *all) != 0)
            return differ(c, 0, &all[0], r, &all[r]);
    return PC_OK;
}

static pc_status between_two(const pc__mpi_call *c, const said *mine, said *theirs)
{
    MPI_Request in, out;
    const int n = sizeof *mine, peer = mine->peer, me = c->comm->rank;
    const MPI_Comm comm = c->group->comm;
    int started = MPI_Irecv(theirs, n, MPI_BYTE, peer, PC__MPI_TAG_CALLS, comm, &in);
    PC__TRY(pc__mpi_check(started, c->call->op->name));
    started = MPI_Isend(mine, n, MPI_BYTE, peer, PC__MPI_TAG_CALLS, comm, &out);
    PC__TRY(pc__mpi_wait(c, started, &out, NULL));
    PC__TRY(pc__mpi_wait(c, MPI_SUCCESS, &in, NULL));
    const bool fits = theirs->op != mine->op && theirs->dtype == mine->dtype && theirs->order == mine->order &&
                      theirs->count == mine->count;
    if (fits)
        return PC_OK;
    return me < peer ? differ(c, me, mine, peer, theirs) : differ(c, peer, theirs, me, mine);
}

/* What is said lies in memory that outlives the call, should the wait for it be given up. */
pc_status pc__mpi_compare(const pc__mpi_call *c)
{
    const int op = c->call->op->index;
    said *words = pc__alloc((size_t)(c->comm->size + 1) * sizeof *words);
    if (!words)
        return PC_ERR_MEMORY;
    words[0] = own_words(c);
    const bool pair = op == PC__OP_send || op == PC__OP_receive;
    const pc_status status = pair ? between_two(c, words, words + 1) : among_all(c, words, words + 1);
    if (pc__mpi_is_sound())
        pc__free(words);
    return status;
}

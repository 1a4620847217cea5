/* Random programs whose order between streams is made by hand, with events exactly where it is needed, under the stream
 * checker: it finds nothing, the results are right, and when one of the waits is left out it finds that. What is
 * ordered and what is not is worked out from the plan of the program alone. */
#include "device/backend.h"
#include "support.h"

#include <paracord.h>
#include <stdio.h>

enum { DEVICES = 2, STREAMS = 6, TENSORS = 6, OPS = 60, WAITS = OPS * 8, ELEMENTS = 64, PROGRAMS = 300 };

/* A whole tensor, or its first or second half. */
typedef struct use {
    int tensor, part;
    bool write;
} use;

typedef struct op {
    int stream, count;
    use use[2]; /* the first is written; the second read */
    const char *name;
    uint64_t ticket; /* in its last run */
} op;

typedef struct order {
    int before, after; /* ops: the one waits for the other */
} order;

typedef struct plan {
    op op[OPS];
    order wait[WAITS];
    int waits;
    bool known[OPS][OPS]; /* [a][b]: a is done when b starts */
} plan;

static pc_stream *stream[STREAMS];
static pc_tensor *part[TENSORS][3];
static uint64_t seed, thrown;

static int dice(int sides)
{
    uint32_t word[4];
    pc_philox(seed, 0, thrown++, word);
    return (int)(word[0] % (uint32_t)sides);
}

static pc_device sim(int i)
{
    return (pc_device){PC_SIM, (int16_t)i};
}

static bool conflict(const op *a, const op *b)
{
    for (int i = 0; i < a->count; i++)
        for (int k = 0; k < b->count; k++) {
            const use *x = &a->use[i], *y = &b->use[k];
            bool touch = x->part == 0 || y->part == 0 || x->part == y->part;
            if (x->tensor == y->tensor && touch && (x->write || y->write))
                return true;
        }
    return false;
}

/* What is done for certain when op `b` starts. */
static void look_back(plan *p, int b, int without)
{
    memset(p->known[b], 0, sizeof p->known[b]);
    bool *known = p->known[b];
    for (int a = b - 1; a >= 0; a--) {
        bool direct = p->op[a].stream == p->op[b].stream;
        for (int w = 0; w < p->waits && !direct; w++)
            direct = w != without && p->wait[w].before == a && p->wait[w].after == b;
        known[a] |= direct;
        for (int c = 0; known[a] && c < a; c++)
            known[c] |= p->known[a][c];
    }
}

/* The first op that something unordered conflicts with, or -1. */
static int first_race(plan *p, int without)
{
    int first = -1;
    for (int b = 0; b < OPS; b++) {
        look_back(p, b, without);
        for (int a = 0; a < b && first < 0; a++)
            if (!p->known[b][a] && conflict(&p->op[a], &p->op[b]))
                first = b;
    }
    return first;
}

static use any_use(int device, bool write)
{
    return (use){dice(TENSORS / DEVICES) * DEVICES + device, dice(3), write};
}

static void make_op(op *o)
{
    *o = (op){.stream = dice(STREAMS), .count = 2};
    int device = o->stream % DEVICES, kind = dice(4);
    o->use[0] = any_use(device, true);
    o->use[1] = any_use(kind == 0 ? 1 - device : device, false);
    bool halves = (o->use[0].part != 0) == (o->use[1].part != 0) && o->use[0].tensor != o->use[1].tensor;
    if (kind == 0 && halves)
        o->name = "copy between devices";
    else if (kind < 3 && kind > 0 && halves)
        o->name = "saxpy";
    else
        o->name = "fill", o->count = 1;
}

static void make_plan(plan *p)
{
    p->waits = 0;
    for (int b = 0; b < OPS; b++) {
        make_op(&p->op[b]);
        look_back(p, b, -1);
        for (int a = b - 1; a >= 0; a--) /* later ones first: they know of earlier ones */
            if (!p->known[b][a] && conflict(&p->op[a], &p->op[b])) {
                assert_true(p->waits < WAITS);
                p->wait[p->waits++] = (order){a, b};
                look_back(p, b, -1);
            }
    }
    assert_int_equal(first_race(p, -1), -1);
}

static void do_op(op *o, int i)
{
    pc_stream *s = stream[o->stream];
    pc_tensor *to = part[o->use[0].tensor][o->use[0].part], *from = part[o->use[1].tensor][o->use[1].part];
    PC_WITH_STREAM(s) {
        assert_ok(o->count == 1 ? pc_fill(to, i) : o->name[0] == 's' ? pc_saxpy(to, 0.5, from) : pc_copy(to, from));
    }
    o->ticket = atomic_load(&s->ticket);
}

/* A few events, each recorded again when nobody is left who will wait for it. */
static struct {
    pc_event *event[DEVICES][OPS];
    int free_from[DEVICES][OPS]; /* op */
} marks;

static int last_wait(const plan *p, int before, int without)
{
    int last = -1;
    for (int w = 0; w < p->waits; w++)
        if (w != without && p->wait[w].before == before)
            last = PC__MAX(last, p->wait[w].after);
    return last;
}

static void run_by_hand(plan *p, int without)
{
    pc_event *mark[OPS] = {NULL};
    memset(marks.free_from, 0, sizeof marks.free_from);
    PC_MANUAL_ORDER {
        for (int i = 0; i < OPS; i++) {
            int device = p->op[i].stream % DEVICES, last = last_wait(p, i, without), k = 0;
            for (int w = 0; w < p->waits; w++)
                if (w != without && p->wait[w].after == i)
                    assert_ok(pc_event_wait(mark[p->wait[w].before], stream[p->op[i].stream]));
            do_op(&p->op[i], i);
            if (last < 0)
                continue;
            while (marks.free_from[device][k] > i)
                k++;
            marks.free_from[device][k] = last + 1;
            mark[i] = marks.event[device][k];
            assert_ok(pc_event_record(mark[i], stream[p->op[i].stream]));
        }
    }
}

static void run_by_itself(plan *p)
{
    for (int i = 0; i < OPS; i++)
        do_op(&p->op[i], i);
}

static void begin(void)
{
    for (int t = 0; t < TENSORS; t++)
        assert_ok(pc_fill(part[t][0], t));
    for (int d = 0; d < DEVICES; d++)
        assert_ok(pc_device_synchronize(sim(d)));
    pc_check_streams(true);
}

static void end(float result[TENSORS][ELEMENTS])
{
    pc_check_streams(false);
    for (int d = 0; d < DEVICES; d++)
        assert_ok(pc_device_synchronize(sim(d)));
    for (int t = 0; t < TENSORS; t++)
        assert_ok(pc_read(part[t][0], result[t], sizeof result[t]));
}

static int op_of(const plan *p, const pc_race_use *u)
{
    for (int i = 0; i < OPS; i++)
        if (stream[p->op[i].stream]->id == u->stream && p->op[i].ticket == u->ticket)
            return i;
    fail_msg("a report about stream %u, ticket %llu", u->stream, (unsigned long long)u->ticket);
    return -1;
}

/* Nothing is reported that is ordered, and what comes first is. */
static void assert_found(const plan *p, int first)
{
    pc_race race;
    bool found = false;
    assert_true(pc_check_count() > 0);
    for (int i = 0; pc_check_race(i, &race); i++) {
        int a = op_of(p, &race.first), b = op_of(p, &race.second);
        if (p->known[b][a] || !conflict(&p->op[a], &p->op[b]))
            fail_msg("program %llu: ops %d and %d are ordered: %s", (unsigned long long)seed, a, b, race.text);
        assert_string_equal(race.first.op, p->op[a].name);
        assert_string_equal(race.second.op, p->op[b].name);
        assert_non_null(strstr(race.second.site, "do_op"));
        found |= b == first;
    }
    if (!found)
        fail_msg("program %llu: the race of op %d is not among %d reports", (unsigned long long)seed, first,
                 pc_check_count());
}

static void assert_ordered(const char *how)
{
    pc_race race;
    if (pc_check_race(0, &race))
        fail_msg("program %llu, %s (tickets %llu and %llu): %s", (unsigned long long)seed, how,
                 (unsigned long long)race.first.ticket, (unsigned long long)race.second.ticket, race.text);
    assert_int_equal(pc_check_unchecked(), 0);
}

static void check_program(plan *p, int *planted)
{
    static float want[TENSORS][ELEMENTS], got[TENSORS][ELEMENTS];
    thrown = 0;
    make_plan(p);
    begin();
    run_by_itself(p);
    assert_ordered("ordered by data");
    end(want);
    begin();
    run_by_hand(p, -1);
    assert_ordered("ordered by hand");
    end(got);
    assert_memory_equal(got, want, sizeof got);
#if defined(__SANITIZE_THREAD__)
    return; /* it would find what is planted below, too */
#endif
    for (int left_out = dice(3); left_out < p->waits; left_out += 1 + dice(p->waits)) {
        int first = first_race(p, left_out);
        if (first < 0)
            continue; /* the rest of the waits does */
        begin();
        run_by_hand(p, left_out);
        assert_found(p, first);
        end(got);
        ++*planted;
    }
}

static int start(void **state)
{
    (void)state;
    if (pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = DEVICES, .memory = 1 << 20)) != PC_OK)
        return -1;
    for (int i = 0; i < STREAMS; i++)
        stream[i] = pc_stream(sim(i % DEVICES), .priority = i % 3);
    for (int t = 0; t < TENSORS; t++) {
        part[t][0] = pc_empty(PC_SHAPE(ELEMENTS), PC_F32, sim(t % DEVICES));
        part[t][1] = pc_slice(part[t][0], 0, 0, ELEMENTS / 2, 1);
        part[t][2] = pc_slice(part[t][0], 0, ELEMENTS / 2, PC_END_OF_DIM, 1);
    }
    for (int i = 0; i < OPS; i++)
        for (int d = 0; d < DEVICES; d++)
            marks.event[d][i] = pc_event_new(sim(d));
    return pc_failed() ? -1 : 0;
}

static int stop(void **state)
{
    (void)state;
    for (int i = 0; i < STREAMS; i++)
        pc_stream_free(stream[i]);
    for (int t = 0; t < TENSORS; t++)
        for (int k = 0; k < 3; k++)
            pc_tensor_free(part[t][k]);
    for (int i = 0; i < OPS; i++)
        for (int d = 0; d < DEVICES; d++)
            pc_event_free(marks.event[d][i]);
    return 0;
}

static void finds_what_was_left_out(void **state)
{
    (void)state;
    static plan p;
    int planted = 0, programs = PROGRAMS;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    programs /= 5;
#endif
    for (seed = 1; seed <= (uint64_t)programs; seed++)
        check_program(&p, &planted);
    print_message("%d programs, %d races planted and found\n", programs, planted);
#if !defined(__SANITIZE_THREAD__)
    assert_true(planted > programs);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(finds_what_was_left_out, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

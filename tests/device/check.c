/* The stream checker against a model that knows nothing of clocks or intervals: a graph of what comes after what, and
 * for each byte the list of its uses. Streams are bare structs; the tests are what calls the hooks. */
#include "device/check.h"
#include "support.h"

#include <paracord/check.h>
#include <paracord/memory.h>
#include <stdlib.h>

enum { STREAMS = 5, STORAGES = 3, BYTES = 12, EVENTS = 3, NODES = 320, WORDS = (NODES + 63) / 64 };

typedef struct use {
    int node;
    bool write;
} use;

typedef struct byte_uses {
    use uses[NODES];
    int count;
} byte_uses;

static pc_stream streams[STREAMS];
static pc_event events[EVENTS];
static char memory[STORAGES];

static struct {
    uint64_t before[NODES][WORDS]; /* which nodes are certain to come before this one */
    int count;
    int stream_of[NODES]; /* of work; -1: the host */
    uint64_t ticket_of[NODES];
    int tail[STREAMS], host, mark[EVENTS];
    int work[STREAMS][NODES];
    byte_uses live[STORAGES][BYTES]; /* what a later use could be reported with */
    byte_uses all[STORAGES][BYTES];
    uint8_t expected[NODES][NODES];  /* [second][first]: bits of kinds */
    uint8_t unordered[NODES][NODES]; /* the same with uses that others replaced */
} model;

static uint64_t seed;

static int dice(int sides)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)sides);
}

static bool comes_before(int first, int second)
{
    return first == second || (model.before[second][first / 64] >> first % 64 & 1);
}

static int node_after(int a, int b)
{
    if (model.count >= NODES)
        abort();
    int n = model.count++;
    for (int i = 0; i < 2; i++) {
        int parent = i ? b : a;
        if (parent < 0)
            continue;
        for (int w = 0; w < WORDS; w++)
            model.before[n][w] |= model.before[parent][w];
        model.before[n][parent / 64] |= (uint64_t)1 << parent % 64;
    }
    model.stream_of[n] = -1;
    return n;
}

static void begin_program(void)
{
    memset(&model, 0, sizeof model);
    memset(model.tail, -1, sizeof model.tail);
    memset(model.mark, -1, sizeof model.mark);
    model.host = -1;
    for (int i = 0; i < STREAMS; i++) {
        memset(&streams[i], 0, sizeof streams[i]);
        streams[i].id = (uint32_t)(7 * i + 3);
        streams[i].device = (pc_device){PC_SIM, (int16_t)(i % 2)};
    }
    pc_check_streams(true);
}

static uint8_t kind_bit(bool first_writes, bool second_writes)
{
    pc_race_kind kind = !second_writes ? PC_RACE_READ_AFTER_WRITE
                        : first_writes ? PC_RACE_WRITE_AFTER_WRITE
                                       : PC_RACE_WRITE_AFTER_READ;
    return (uint8_t)(1u << kind);
}

static void model_use(const pc__check_use *x, int node, bool noted)
{
    int storage = (int)((const char *)x->memory - memory);
    for (size_t b = x->begin; b < x->end; b++) {
        byte_uses *live = &model.live[storage][b], *all = &model.all[storage][b];
        int kept = 0;
        for (int i = 0; i < live->count; i++) {
            use o = live->uses[i];
            bool ordered = comes_before(o.node, node);
            if ((o.write || x->write) && !ordered)
                model.expected[node][o.node] |= kind_bit(o.write, x->write);
            if (!noted || !(ordered && (x->write || !o.write)))
                live->uses[kept++] = o;
        }
        live->count = kept;
        for (int i = 0; i < all->count; i++)
            if ((all->uses[i].write || x->write) && !comes_before(all->uses[i].node, node))
                model.unordered[node][all->uses[i].node] |= kind_bit(all->uses[i].write, x->write);
        if (!noted)
            continue;
        assert_true(live->count < NODES && all->count < NODES);
        live->uses[live->count++] = all->uses[all->count++] = (use){node, x->write};
    }
}

static const char *name_of(int node, char name[16])
{
    snprintf(name, 16, "w%d", node);
    return name;
}

static void work(int s, const pc__check_use *uses, int count)
{
    int node = node_after(model.tail[s], model.host);
    uint64_t ticket = ++streams[s].ticket;
    model.tail[s] = model.work[s][ticket] = node;
    model.stream_of[node] = s;
    model.ticket_of[node] = ticket;
    for (int write = 0; write < 2; write++)
        for (int i = 0; i < count; i++)
            if (uses[i].write == write)
                model_use(&uses[i], node, true);
    char name[16];
    pc__check_work(name_of(node, name), 0, &streams[s], ticket, uses, count);
}

static void host_use(const pc__check_use *x)
{
    model.host = node_after(model.host, -1);
    model_use(x, model.host, false);
    char name[16];
    pc__check_host(name_of(model.host, name), 0, x);
}

static void stream_waits(int s, int other, uint64_t ticket)
{
    model.tail[s] = node_after(model.tail[s], model.work[other][ticket]);
    pc__check_stream_waits(&streams[s], &streams[other], ticket);
}

static void host_waits(int other, uint64_t ticket)
{
    model.host = node_after(model.host, model.work[other][ticket]);
    pc__check_host_waited(&streams[other], ticket);
}

static void record(int e, int s)
{
    model.mark[e] = node_after(model.tail[s], -1);
    pc__check_event_recorded(&events[e], &streams[s]);
}

static void event_waits(int e, int s)
{
    model.tail[s] = node_after(model.tail[s], model.mark[e]);
    pc__check_event_waits(&events[e], &streams[s]);
}

static void event_host_waits(int e)
{
    model.host = node_after(model.host, model.mark[e]);
    pc__check_event_host_waited(&events[e]);
}

static void forget(int storage)
{
    for (int b = 0; b < BYTES; b++)
        model.live[storage][b].count = model.all[storage][b].count = 0;
    pc__check_forget(&memory[storage]);
}

static pc__check_use any_use(void)
{
    size_t begin = (size_t)dice(BYTES), end = begin + 1 + (size_t)dice(BYTES - (int)begin);
    return (pc__check_use){&memory[dice(STORAGES)], begin, end, dice(2)};
}

static bool followed_by(int first, int tail)
{
    return tail >= 0 && comes_before(first, tail);
}

/* Make whatever `x` on stream s (-1: the host) must not overtake come before it, in one of the ways there are; but
 * for one time, if `forgetful` is 0 then. */
static void put_in_order(int s, const pc__check_use *x, int *forgetful)
{
    int storage = (int)((const char *)x->memory - memory);
    for (size_t b = x->begin; b < x->end; b++) {
        const byte_uses *all = &model.all[storage][b];
        for (int i = 0; i < all->count; i++) {
            use o = all->uses[i];
            int other = model.stream_of[o.node];
            if (!(o.write || x->write) || other == s || followed_by(o.node, model.host) ||
                (s >= 0 && followed_by(o.node, model.tail[s])))
                continue;
            if ((*forgetful)-- == 0)
                continue;
            int way = s < 0 ? dice(2) : dice(4);
            if (way == 0) {
                host_waits(other, model.ticket_of[o.node]);
            } else if (way == 1) {
                record(0, other);
                event_host_waits(0);
            } else if (way == 2) {
                record(1, other);
                event_waits(1, s);
            } else {
                stream_waits(s, other, model.ticket_of[o.node]);
            }
        }
    }
}

typedef enum program_kind { WILD, ORDERED, PLANTED } program_kind;

static void wild_action(void)
{
    int s = dice(STREAMS), other = dice(STREAMS), e = dice(EVENTS);
    uint64_t ticket = streams[other].ticket ? 1 + (uint64_t)dice((int)streams[other].ticket) : 0;
    int action = dice(20);
    if (action < 8 && ticket && s != other)
        stream_waits(s, other, dice(2) ? ticket : streams[other].ticket);
    else if (action < 9 && ticket)
        host_waits(other, ticket);
    else if (action < 12)
        record(e, s);
    else if (action < 16 && model.mark[e] >= 0)
        event_waits(e, s);
    else if (action < 17 && model.mark[e] >= 0 && dice(2))
        event_host_waits(e);
    else if (action < 18) {
        model.mark[e] = -1;
        pc__check_event_gone(&events[e]);
    } else if (dice(6) == 0)
        forget(dice(STORAGES));
}

static void run_program(uint64_t number, program_kind kind)
{
    seed = number * 0x9E3779B97F4A7C15u + 1;
    begin_program();
    int forgetful = kind == PLANTED ? dice(6) : -1;
    for (int i = 0, actions = 5 + dice(40); i < actions && model.count < NODES - 120; i++) {
        while (dice(3) && kind == WILD)
            wild_action();
        int s = dice(STREAMS), n = 1 + dice(3);
        pc__check_use uses[3];
        for (int k = 0; k < n; k++)
            uses[k] = any_use();
        bool host = dice(8) == 0;
        for (int k = 0; kind != WILD && k < n; k++)
            if (model.count < NODES - 80)
                put_in_order(host ? -1 : s, &uses[k], &forgetful);
        if (kind != WILD && model.count >= NODES - 80)
            break;
        if (host)
            host_use(&uses[0]);
        else
            work(s, uses, n);
    }
}

static int number_in(const char *op)
{
    assert_int_equal(op[0], 'w');
    return atoi(op + 1);
}

/* Every report is one of `right`; gives their number. */
static int reports_are_right(uint8_t right[NODES][NODES])
{
    int n = pc_check_count();
    pc_race race;
    for (int i = 0; i < n; i++) {
        assert_true(pc_check_race(i, &race));
        int first = number_in(race.first.op), second = number_in(race.second.op);
        if (!(right[second][first] >> race.kind & 1))
            fail_msg("invented: %s", race.text);
        assert_true(race.begin < race.end && race.begin >= race.first.begin && race.end <= race.second.end);
    }
    assert_false(pc_check_race(n, &race));
    return n;
}

static int expected_count(void)
{
    int n = 0;
    for (int second = 0; second < model.count; second++) {
        bool found = false, there = false;
        for (int first = 0; first < model.count; first++) {
            n += __builtin_popcount(model.expected[second][first]);
            found |= model.expected[second][first] != 0;
            there |= model.unordered[second][first] != 0;
        }
        assert_int_equal(found, there); /* what replaces a use stands for it */
    }
    return n;
}

static void finds_what_the_model_finds(void **state)
{
    (void)state;
    int races = 0, clean = 0;
    for (uint64_t p = 0; p < 6000; p++) {
        run_program(p, WILD);
        int found = reports_are_right(model.expected);
        assert_int_equal(found, expected_count());
        assert_int_equal(pc_check_unchecked(), 0);
        races += found;
        clean += !found;
    }
    assert_true(races > 100000 && clean > 20);
    pc_check_streams(false);
    assert_int_equal(pc_allocator_live(), 0);
}

static void ordered_programs_have_none(void **state)
{
    (void)state;
    for (uint64_t p = 0; p < 3000; p++) {
        run_program(p, ORDERED);
        assert_int_equal(expected_count(), 0);
        reports_are_right(model.expected);
        assert_int_equal(pc_check_count(), 0);
    }
    pc_check_streams(false);
}

static void finds_each_forgotten_wait(void **state)
{
    (void)state;
    int planted = 0;
    for (uint64_t p = 0; p < 3000; p++) {
        run_program(p, PLANTED);
        int found = reports_are_right(model.expected);
        assert_int_equal(found, expected_count());
        planted += found > 0;
    }
    assert_true(planted > 500);
    pc_check_streams(false);
}

static int allocations, failing_from, failing_to;

static void *failing_alloc(void *context, size_t bytes, size_t alignment)
{
    (void)context;
    (void)alignment;
    int n = allocations++;
    return n >= failing_from && n < failing_to ? NULL : malloc(bytes);
}

static void *failing_resize(void *context, void *block, size_t bytes)
{
    (void)context;
    return realloc(block, bytes);
}

static void failing_free(void *context, void *block)
{
    (void)context;
    free(block);
}

static void memory_that_fails_invents_nothing(void **state)
{
    (void)state;
    const pc_allocator allocator = {failing_alloc, failing_resize, failing_free, NULL};
    assert_ok(pc_allocator_set(&allocator));
    pc_error_clear();
    for (uint64_t p = 0; p < 40; p++)
        for (int n = 0;; n++) {
            failing_from = n / 2;
            failing_to = n % 2 ? n / 2 + 1 : n / 2 + 1 + dice(30);
            allocations = 0;
            run_program(p, p % 2 ? ORDERED : WILD);
            int found = reports_are_right(model.unordered);
            bool failed = allocations > failing_from;
            assert_true(failed == (pc_check_unchecked() > 0));
            assert_true(failed || found == expected_count());
            assert_false(pc_failed());
            pc_check_streams(false);
            if (pc_allocator_live())
                fail_msg("allocation %d failing leaks %d blocks", n / 2, (int)pc_allocator_live());
            if (!failed)
                break;
        }
    assert_ok(pc_allocator_set(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_the_model_finds),
        cmocka_unit_test(ordered_programs_have_none),
        cmocka_unit_test(finds_each_forgotten_wait),
        cmocka_unit_test(memory_that_fails_invents_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A random program on four sim devices with eight streams each, without one event: its results equal those of the same
 * program on one stream, bit for bit. And eight host threads with a program each, side by side.
 *
 * What a program does follows from its seed; on which streams it does it, from other dice that only the run with many
 * streams throws. The program never looks at what the devices do. PARACORD_STRESS sets the number of ops. */
#include "stress_slots.h"

#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 8 };

static pc_tensor *unary(program *p, pc_tensor *a)
{
    switch (dice(p, 5)) {
    case 0:
        return pc_tanh(a);
    case 1:
        return pc_sigmoid(a);
    case 2:
        return pc_mul_scalar(a, 0.5);
    case 3:
        return pc_neg(a);
    default:
        return pc_relu(a);
    }
}

/* Integers that stay small. */
static pc_tensor *mix(pc_tensor *a, pc_tensor *b)
{
    pc_tensor *sum = pc_mul_scalar(pc_cast(pc_sub(a, b), PC_F32), 0.01);
    return pc_cast(pc_mul_scalar(pc_tanh(sum), 1000), PC_I64);
}

static pc_tensor *binary(program *p, pc_tensor *a, pc_tensor *b)
{
    bool whole = pc_tensor_dtype(a) == PC_I64;
    int kind = dice(p, 6);
    if (kind == 0)
        return pc_where(pc_lt(a, b), a, b);
    if (kind == 1 && !whole)
        return pc_mul_scalar(pc_add(a, pc_sum_dims(b, PC_SHAPE(dice(p, 2)), true)), 0.01);
    if (kind == 2 && !whole && pc_tensor_size(a, 0) == pc_tensor_size(a, 1))
        return pc_tanh(pc_matmul(a, b));
    if (whole)
        return mix(a, b);
    return kind == 3 ? pc_mul(pc_tanh(a), b) : kind == 4 ? pc_add(a, b) : pc_sub(a, b);
}

static void compute(program *p)
{
    slot *a = any(p), *b = partner(p, a, false);
    int device = a->device;
    make_room(p, HOST, 0);
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *one = is_float(a) || b ? NULL : mix(a->tensor, a->tensor);
        result = pc_keep(b ? binary(p, a->tensor, b->tensor) : is_float(a) ? unary(p, a->tensor) : one);
    }
    (void)put(p, result, device, NULL);
}

static void view(program *p)
{
    slot a = *any(p);
    int64_t rows = pc_tensor_size(a.tensor, 0), columns = pc_tensor_size(a.tensor, 1);
    int kind = dice(p, 3);
    if (kind == 0 && rows > 1)
        (void)put(p, pc_slice(a.tensor, 0, dice(p, (int)rows / 2), PC_END_OF_DIM, 1 + dice(p, 2)), a.device, &a);
    else if (kind == 1 && pc_tensor_is_contiguous(a.tensor))
        (void)put(p, pc_reshape(a.tensor, PC_SHAPE(columns, rows)), a.device, &a);
    else
        (void)put(p, pc_transpose(a.tensor, 0, 1), a.device, &a);
}

/* y = tanh(y), in place. */
static pc_status squash(pc_tensor *y)
{
    pc_status status = PC_ERR_MEMORY;
    PC_SCOPE {
        status = pc_copy(y, pc_tensor_dtype(y) == PC_F32 ? pc_tanh(y) : mix(y, y));
    }
    return status;
}

static void in_place(program *p)
{
    slot *y = any(p), *x = partner(p, y, dice(p, 3) == 0);
    int kind = dice(p, 5);
    if (x && x->device == y->device && is_float(y) && kind < 3)
        must(p, pc_saxpy(y->tensor, 0.25, x->tensor) == PC_OK, "saxpy");
    else if (x)
        must(p, pc_copy(y->tensor, x->tensor) == PC_OK, "copy");
    else if (kind < 4)
        must(p, squash(y->tensor) == PC_OK, "squash");
    else
        must(p, pc_fill(y->tensor, dice(p, 50)) == PC_OK, "fill");
}

/* To another device. Where both are the same one there, it is a copy all the same. */
static void move(program *p)
{
    slot *a = any(p);
    int to = dice(p, 3) ? dice(p, DEVICES) : HOST;
    if (to == a->device)
        return;
    pc_tensor *held = pc_tensor_retain(a->tensor);
    make_room(p, to, bytes_of(held));
    pc_tensor *moved = NULL;
    pc_device device = device_of(p, to);
    bool waits = dice(p, 200) == 0, pinned = to == HOST && dice(p, 2);
    PC_SCOPE {
        if (pinned) {
            pc_tensor *whole = pc_empty_pinned(pc_tensor_shape(held), pc_tensor_dtype(held), device_of(p, 0));
            moved = whole && pc_copy(whole, held) == PC_OK ? pc_keep(whole) : NULL;
        } else if (pc_device_equal(pc_tensor_device(held), device)) {
            moved = pc_keep(pc_clone(pc_contiguous(held)));
        } else {
            moved = pc_keep(pc_to(held, device, pc_tensor_dtype(held), !waits));
        }
    }
    pc_tensor_free(held);
    (void)put(p, moved, to, NULL);
}

static void digest(program *p, const void *data, size_t bytes)
{
    const unsigned char *c = data;
    uint64_t h = p->digest;
    for (size_t i = 0; i + 4 <= bytes; i += 4) {
        uint32_t word;
        memcpy(&word, c + i, 4);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    p->digest = h;
}

static void look(program *p, slot *s)
{
    static _Thread_local char host[256 * 300 * 8];
    size_t bytes = bytes_of(s->tensor);
    bool mapped = s->device == HOST && pc_tensor_is_contiguous(s->tensor);
    int way = mapped ? dice(p, 8) : 1;
    void *data = host;
    if (way == 1)
        must(p, pc_read(s->tensor, host, bytes) == PC_OK, "read");
    else
        data = way == 0 ? pc_data(s->tensor) : pc_map(s->tensor, way < 5 ? PC_MAP_READ : PC_MAP_WRITE);
    if (!must(p, data != NULL, "map"))
        return;
    digest(p, data, bytes);
    if (way >= 5)
        memset(data, 0, bytes / 2);
    if (way > 1)
        must(p, pc_unmap(s->tensor) == PC_OK, "unmap");
}

static void learn(program *p)
{
    slot *a = any(p);
    if (!is_float(a))
        return;
    int device = a->device;
    pc_tensor *gradient = NULL;
    PC_SCOPE {
        pc_tensor *w = pc_clone(pc_contiguous(a->tensor));
        must(p, pc_require_grad(w, true) == PC_OK, "require_grad");
        pc_tensor *y = pc_mul(pc_tanh(w), pc_detach(a->tensor));
        place(p);
        pc_tensor *loss = pc_mean(pc_mul(y, pc_sigmoid(w)));
        place(p);
        must(p, pc_backward(loss) == PC_OK, "backward");
        gradient = pc_tensor_retain(pc_grad(w));
    }
    (void)put(p, gradient, device, NULL);
}

/* Record work on two tensors; it goes on on other streams of the device, which then join. */
static void record(program *p)
{
    graph *g = &p->graph[dice(p, GRAPHS)];
    slot *y = any(p), *x = partner(p, y, false);
    if (!x || p->borrowed || x->device == HOST || bytes_of(y->tensor) > 40000)
        return;
    free_graph(p, g);
    pc_device device = device_of(p, y->device);
    pc_stream *stream =
        p->many ? p->stream[y->device][0] : pc_stream_current(device); /* default ones are everybody's */
    must(p, pc_stream_set_current(device, stream) == PC_OK, "the stream to record");
    if (!must(p, pc_graph_begin(stream) == PC_OK, "pc_graph_begin"))
        return;
    must(p, squash(y->tensor) == PC_OK, "recorded squash");
    for (int i = dice(p, 4); i > 0; i--) {
        if (p->many)
            must(p,
                 pc_stream_set_current(device, p->stream[y->device][draw(p->seed, 2, &p->placed) % STREAMS]) == PC_OK,
                 "another stream");
        if (is_float(y) && dice(p, 2))
            must(p, pc_saxpy(y->tensor, 0.5, x->tensor) == PC_OK, "recorded saxpy");
        else
            must(p, pc_copy(x->tensor, y->tensor) == PC_OK, "recorded copy");
    }
    g->graph = pc_graph_end(stream);
    if (!must(p, g->graph != NULL, "pc_graph_end"))
        return;
    g->store[0] = y->store;
    g->store[1] = x->store;
    p->store[y->store].references++;
    p->store[x->store].references++;
}

static void step(program *p)
{
    int kind = dice(p, 1000);
    place(p);
    if (kind < 300)
        compute(p);
    else if (kind < 420)
        view(p);
    else if (kind < 700)
        in_place(p);
    else if (kind < 860)
        move(p);
    else if (kind < 940)
        empty_slot(p, &p->slot[dice(p, SLOTS)]);
    else if (kind < 950)
        learn(p);
    else if (kind < 960)
        record(p);
    else if (kind < 990 && p->graph[kind % GRAPHS].graph)
        must(p, pc_graph_launch(p->graph[kind % GRAPHS].graph, NULL) == PC_OK, "pc_graph_launch");
    else
        look(p, any(p));
}

static void *run(void *context)
{
    program *p = context;
    pc_seed(p->seed);
    for (int d = 0; p->many && !p->borrowed && d < DEVICES; d++)
        for (int s = 0; s < STREAMS; s++)
            must(p, (p->stream[d][s] = pc_stream(device_of(p, d), .priority = s % 3 - 1)) != NULL, "a stream");
    for (int64_t i = 0; i < p->ops && !p->wrong[0]; i++)
        step(p);
    for (int i = 0; i < SLOTS && !p->wrong[0]; i++)
        if (p->slot[i].tensor)
            look(p, &p->slot[i]);
    for (int i = 0; i < SLOTS; i++)
        empty_slot(p, &p->slot[i]);
    for (int i = 0; i < GRAPHS; i++)
        free_graph(p, &p->graph[i]);
    for (int d = 0; p->many && d < DEVICES; d++)
        for (int s = 0; !p->borrowed && s < STREAMS; s++)
            pc_stream_free(p->stream[d][s]);
    return NULL;
}

static pc_device sim(int i)
{
    return (pc_device){PC_SIM, (int16_t)i};
}

static int64_t number_of_ops(int64_t usual)
{
    const char *text = getenv("PARACORD_STRESS");
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    usual /= 10;
#endif
    return text ? atoll(text) : usual;
}

static program *new_program(uint64_t seed, int64_t ops, bool many, pc_device home)
{
    program *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->seed = seed;
    p->ops = ops;
    p->many = many;
    p->home = home;
    return p;
}

/* The digest of a program. */
static uint64_t result_of(program *p)
{
    if (p->wrong[0])
        fail_msg("%s", p->wrong);
    uint64_t digest = p->digest;
    free(p);
    return digest;
}

static uint64_t on_one_stream(uint64_t seed, int64_t ops, pc_device home)
{
    program *p = new_program(seed, ops, false, home);
    (void)run(p);
    return result_of(p);
}

static int start(void **state)
{
    (void)state;
    return pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = DEVICES, .memory = MEMORY)) == PC_OK ? 0 : -1;
}

static void one_thread(void **state)
{
    (void)state;
    int64_t ops = number_of_ops(40000), before = pc_sim_operations(sim(0));
    uint64_t want = on_one_stream(1, ops, PC_DEVICE_CPU);
    program *p = new_program(1, ops, true, PC_DEVICE_CPU);
    (void)run(p);
    assert_int_equal(result_of(p), want);
    assert_true(pc_sim_operations(sim(0)) - before > ops / 10);
    pc_memory_stats stats;
    assert_ok(pc_memory_query(sim(0), &stats));
    assert_true(stats.misses * 4 < stats.requests); /* freed memory is used again */
}

static void one_sim_stream_is_one_stream(void **state)
{
    (void)state;
    int64_t ops = number_of_ops(10000);
    assert_int_equal(on_one_stream(2, ops, sim(0)), on_one_stream(2, ops, PC_DEVICE_CPU));
}

static void many_short_programs(void **state)
{
    (void)state;
    for (uint64_t seed = 100; seed < 130; seed++) {
        program *p = new_program(seed, number_of_ops(1000), true, PC_DEVICE_CPU);
        uint64_t want = on_one_stream(seed, p->ops, PC_DEVICE_CPU);
        (void)run(p);
        if (result_of(p) != want)
            fail_msg("program %llu", (unsigned long long)seed);
    }
}

static void the_checker_finds_nothing(void **state)
{
    (void)state;
    pc_race race;
    program *p = new_program(3, number_of_ops(10000), true, PC_DEVICE_CPU);
    pc_check_streams(true);
    (void)run(p);
    pc_check_streams(false);
    if (pc_check_race(0, &race))
        fail_msg("%s", race.text);
    assert_int_equal(result_of(p), on_one_stream(3, number_of_ops(10000), PC_DEVICE_CPU));
}

/* Threads with programs of their own: on streams of their own, or all on the same ones. */
static void side_by_side(bool shared, int64_t ops)
{
    program *p[THREADS];
    pthread_t thread[THREADS];
    uint64_t want[THREADS];
    pc_stream *stream[DEVICES][STREAMS] = {{NULL}};
    for (int d = 0; shared && d < DEVICES; d++)
        for (int s = 0; s < STREAMS; s++)
            stream[d][s] = pc_stream(sim(d), .priority = s % 3);
    for (int i = 0; i < THREADS; i++) {
        p[i] = new_program(10 + (uint64_t)i, ops, false, PC_DEVICE_CPU);
        p[i]->borrowed = shared;
        (void)run(p[i]);
        want[i] = result_of(p[i]);
        p[i] = new_program(10 + (uint64_t)i, ops, true, PC_DEVICE_CPU);
        p[i]->borrowed = shared;
        memcpy(p[i]->stream, stream, sizeof stream);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, run, p[i]), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    for (int i = 0; i < THREADS; i++)
        if (result_of(p[i]) != want[i])
            fail_msg("the program of thread %d", i);
    for (int d = 0; d < DEVICES; d++)
        for (int s = 0; s < STREAMS; s++)
            pc_stream_free(stream[d][s]);
}

static int start_larger(void **state)
{
    (void)state;
    return pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = DEVICES, .memory = THREADS * MEMORY)) == PC_OK ? 0
                                                                                                                 : -1;
}

static void eight_threads(void **state)
{
    (void)state;
    side_by_side(false, number_of_ops(40000));
}

static void eight_threads_on_the_same_streams(void **state)
{
    (void)state;
    side_by_side(true, number_of_ops(10000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_thread, start),
        cmocka_unit_test_setup(one_sim_stream_is_one_stream, start_larger),
        cmocka_unit_test_setup(many_short_programs, start),
        cmocka_unit_test_setup(the_checker_finds_nothing, start),
        cmocka_unit_test_setup(eight_threads, start_larger),
        cmocka_unit_test_setup(eight_threads_on_the_same_streams, start_larger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

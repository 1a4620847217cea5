/* The order between streams: a model with vector clocks watches what storages make streams wait for. The streams are
 * real ones with a backend of their own, which runs nothing and notes the waits. */
#include "cpu/cpu.h"
#include "device/order.h"
#include "device/wait.h"
#include "support.h"
#include "tensor/tensor.h"

#include <paracord/autograd.h>
#include <paracord/memory.h>
#include <paracord/nn.h>
#include <paracord/random.h>

enum { STREAMS = 7, STORAGES = 4, WORK = 3000 };

/* What is done for certain when a piece of work starts: tickets by stream. */
typedef struct knowledge {
    uint64_t done[STREAMS];
} knowledge;

static struct {
    pc_stream *stream[STREAMS];
    knowledge now[STREAMS];             /* what later work of a stream may rely on */
    knowledge after[STREAMS][WORK + 2]; /* the same, once that ticket is done */
    int waits;
} model;

static int number_of(const pc_stream *stream)
{
    for (int i = 0; i < STREAMS; i++)
        if (model.stream[i] == stream)
            return i;
    fail_msg("a stream that is none of the test's");
    return -1;
}

static pc_status note_wait(pc_stream *stream, pc_stream *other, uint64_t ticket, const pc__work *queued)
{
    (void)queued;
    int s = number_of(stream), o = number_of(other);
    assert_int_not_equal(s, o);
    assert_true(ticket <= other->ticket); /* only for work that was enqueued */
    for (int i = 0; i < STREAMS; i++)
        model.now[s].done[i] = PC__MAX(model.now[s].done[i], model.after[o][ticket].done[i]);
    model.waits++;
    return PC_OK;
}

static int host_waits;
static bool all_done;

static pc_status host_wait(pc_stream *stream, uint64_t ticket)
{
    assert_true(ticket <= stream->ticket);
    host_waits++;
    return PC_OK;
}

static pc_status query(pc_stream *stream)
{
    atomic_store(&stream->done, all_done ? atomic_load(&stream->ticket) : 0);
    return PC_OK;
}

static pc_status swallow(pc_stream *stream, pc__kernel kernel, const struct pc_call *call, const pc__work *queued)
{
    (void)stream, (void)kernel, (void)call, (void)queued;
    return PC_OK;
}

static void no_close(pc_stream *stream)
{
    (void)stream;
}

static const pc__backend noting = {.stream_wait = note_wait,
                                   .ticket_synchronize = host_wait,
                                   .ticket_query = query,
                                   .submit = swallow,
                                   .stream_close = no_close};

static int start(void **state)
{
    (void)state;
    memset(&model, 0, sizeof model);
    for (int i = 0; i < STREAMS; i++) {
        model.stream[i] = pc_stream(PC_DEVICE_CPU);
        assert_non_null(model.stream[i]);
        model.stream[i]->backend = &noting;
    }
    return 0;
}

/* Storages made by hand live until their test ends. */
static pc__storage made[8];

static int stop(void **state)
{
    (void)state;
    for (int i = 0; i < (int)(sizeof made / sizeof *made); i++)
        pc__free(made[i].order.other);
    memset(made, 0, sizeof made);
    for (int i = 0; i < STREAMS; i++)
        pc_stream_free(model.stream[i]);
    return 0;
}

/* Enqueue work on stream s, as pc_dispatch does: note its uses, then count it. */
static void work(int s, pc__storage *const *reads, int n_reads, pc__storage *const *writes, int n_writes)
{
    pc_stream *stream = model.stream[s];
    pc__work now = {.name = "work"};
    assert_ok(pc__queue_open(stream, &now));
    for (int i = 0; i < n_reads; i++)
        assert_ok(pc__uses(reads[i], stream, &now, false));
    for (int i = 0; i < n_writes; i++)
        assert_ok(pc__uses(writes[i], stream, &now, true));
    pc__queue_close(stream, &now, PC_OK);
    model.now[s].done[s] = now.ticket;
    model.after[s][now.ticket] = model.now[s];
}

static void read_one(int s, pc__storage *storage)
{
    work(s, &storage, 1, NULL, 0);
}

static void write_one(int s, pc__storage *storage)
{
    work(s, NULL, 0, &storage, 1);
}

static void waits_where_data_is_shared(void **state)
{
    (void)state;
    pc__storage *a = &made[0], *b = &made[1];
    write_one(0, a);
    read_one(0, a);
    write_one(0, a);
    write_one(1, b);
    assert_int_equal(model.waits, 0); /* one stream each */
    read_one(1, a);
    assert_int_equal(model.waits, 1); /* for the writer */
    assert_int_equal(model.now[1].done[0], 3);
    read_one(2, a);
    assert_int_equal(model.waits, 2);
    assert_int_equal(model.now[2].done[1], 0); /* readers do not wait for each other */
    write_one(3, a);
    assert_int_equal(model.now[3].done[0], 3);
    assert_int_equal(model.now[3].done[1], 2);
    assert_int_equal(model.now[3].done[2], 1);
    int before = model.waits;
    write_one(3, a);
    read_one(3, a);
    assert_int_equal(model.waits, before);
}

/* Work waits for what the last writer had done, not for what its stream does later. */
static void waits_for_no_more_than_that(void **state)
{
    (void)state;
    pc__storage *a = &made[0], *other = &made[1];
    write_one(0, a);
    write_one(0, other);
    read_one(1, a);
    assert_int_equal(model.now[1].done[0], 1);
}

static void readers_do_not_wait_for_each_other(void **state)
{
    (void)state;
    pc__storage *a = &made[0];
    write_one(0, a);
    for (int s = 1; s < STREAMS; s++) {
        read_one(s, a);
        assert_int_equal(model.waits, s); /* for the writer, not for each other */
    }
    write_one(0, a);
    for (int s = 1; s < STREAMS; s++)
        assert_int_equal(model.now[0].done[s], 1);
}

static void closed_streams_are_done(void **state)
{
    (void)state;
    pc__storage *a = &made[0];
    pc_stream *closing = pc_stream(PC_DEVICE_CPU);
    assert_non_null(closing);
    closing->backend = &noting;
    pc__work last = {.name = "last"};
    assert_ok(pc__queue_open(closing, &last));
    assert_ok(pc__uses(a, closing, &last, true));
    pc__queue_close(closing, &last, PC_OK);
    pc_stream_free(closing);
    read_one(1, a);
    assert_int_equal(model.waits, 0);
}

/* A step is one op that writes every parameter and slot: other streams must wait for all of them. */
static void steps_write_all_parameters(void **state)
{
    (void)state;
    pc__backend running = noting;
    running.kernels = pc__cpu_kernels;
    pc_stream *stream = model.stream[0];
    pc_module *net = pc_linear(2, 2);
    pc_optimizer *adam = pc_adam(net);
    pc_tensor *bias = pc_module_parameter(net, "bias");
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(1, 2), PC_F32, PC_DEVICE_CPU);
        assert_ok(pc_backward(pc_sum(pc_forward(net, x))));
    }
    stream->backend = &running;
    assert_ok(pc_stream_set_current(PC_DEVICE_CPU, stream));
    assert_ok(pc_optimizer_step(adam));
    assert_ok(pc_stream_set_current(PC_DEVICE_CPU, NULL));
    stream->backend = &noting;
    assert_int_equal(bias->storage->order.owner, stream->id);
    assert_int_equal(bias->storage->order.wrote, stream->ticket);
    pc_optimizer_free(adam);
    pc_module_free(net);
}

/* Any mixture of reads and writes: two uses of a storage, one of them writing, are in the order they were enqueued. */
static void random_work_is_ordered(void **state)
{
    (void)state;
    static struct {
        int stream;
        uint64_t ticket;
        unsigned reads, writes;
        knowledge start;
    } done[WORK];
    for (int n = 0; n < WORK; n++) {
        uint32_t word[4];
        pc_philox(1, 2, (uint64_t)n, word);
        int s = (int)(word[0] % STREAMS);
        done[n].reads = word[1] & word[3] & ((1 << STORAGES) - 1);
        done[n].writes = (word[2] >> 8) % 3 == 0 ? 1u << word[2] % STORAGES : 0;
        pc__storage *reads[STORAGES], *writes[STORAGES];
        int n_reads = 0, n_writes = 0;
        for (int k = 0; k < STORAGES; k++) {
            if (done[n].reads >> k & 1)
                reads[n_reads++] = &made[k];
            if (done[n].writes >> k & 1)
                writes[n_writes++] = &made[k];
        }
        work(s, reads, n_reads, writes, n_writes);
        done[n].stream = s;
        done[n].ticket = model.stream[s]->ticket;
        done[n].start = model.now[s];
        for (int m = 0; m < n; m++)
            if ((done[m].writes & (done[n].reads | done[n].writes)) || (done[m].reads & done[n].writes))
                if (done[n].start.done[done[m].stream] < done[m].ticket)
                    fail_msg("work %d on stream %d does not wait for work %d on stream %d", n, s, m, done[m].stream);
    }
}

/* Memory that another device's stream still copies from is not given back to the system, nor to the program. */
static void blocks_in_flight_stay(void **state)
{
    (void)state;
    pc_memory_stats stats;
    assert_ok(pc_memory_trim(PC_DEVICE_CPU));
    pc_stream *host = pc_stream_current(PC_DEVICE_CPU);
    pc__storage *block = pc__storage_new(host, 1000, "test");
    assert_non_null(block);
    read_one(1, block);
    pc__storage_drop(block);
    all_done = false;
    assert_ok(pc_memory_trim(PC_DEVICE_CPU));
    assert_ok(pc_memory_query(PC_DEVICE_CPU, &stats));
    assert_true(stats.cached >= 1000);
    host_waits = 0;
    pc__storage *other = pc__storage_new(host, 1000, "test"); /* not that block: nobody need wait for it */
    assert_ptr_not_equal(other, block);
    read_one(2, other);
    assert_ok(pc__settle(other, false, "test", true));
    assert_int_equal(host_waits, 0);
    assert_ok(pc__settle(other, true, "test", true));
    assert_int_equal(host_waits, 1);
    pc__storage_drop(other);
    all_done = true;
    assert_ok(pc_memory_trim(PC_DEVICE_CPU));
    assert_ok(pc_memory_query(PC_DEVICE_CPU, &stats));
    assert_int_equal(stats.cached, 0);
}

static void the_programs_memory_is_waited_for(void **state)
{
    (void)state;
    float memory[4];
    pc__storage *block = pc__storage_wrap(PC_DEVICE_CPU, memory, sizeof memory, NULL, NULL);
    assert_non_null(block);
    read_one(1, block);
    read_one(2, block);
    host_waits = 0;
    pc__storage_drop(block);
    assert_int_equal(host_waits, 2);
}

#define WITH_STREAMS(test) cmocka_unit_test_setup_teardown(test, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_STREAMS(waits_where_data_is_shared),
        WITH_STREAMS(waits_for_no_more_than_that),
        WITH_STREAMS(readers_do_not_wait_for_each_other),
        WITH_STREAMS(closed_streams_are_done),
        WITH_STREAMS(steps_write_all_parameters),
        WITH_STREAMS(random_work_is_ordered),
        WITH_STREAMS(blocks_in_flight_stay),
        WITH_STREAMS(the_programs_memory_is_waited_for),
    };
    return cmocka_run_group_tests_name("device.order", tests, NULL, NULL);
}

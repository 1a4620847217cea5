/* Every operation of a training step goes wrong once: an error that names the op and its line, no hang, nothing left
 * behind, and a device that works, or says that it is lost. */
#include "small_net.h"

#include <stdlib.h>
#include <unistd.h>

enum { BATCH = 5 };

/* One stream; copies on a stream of their own; the step as a recording, beside copies. */
typedef enum variant { ONE_STREAM, TWO_STREAMS, LAUNCHED, MODES } variant;
static const char *const mode_names[] = {"one stream", "two streams", "a launch"};

typedef struct job {
    small_net net;
    pc_tensor *pictures, *labels, *x, *y, *loss; /* x, y and loss stay at their places */
    pc_stream *copies, *compute;
    pc_graph *graph;
} job;

static bool learn(const job *j)
{
    bool fine = false;
    PC_SCOPE {
        pc_tensor *loss = small_net_learn(&j->net, j->x, j->y);
        fine = loss && pc_copy(j->loss, pc_detach(loss)) == PC_OK;
    }
    return fine;
}

static bool record(job *j)
{
    if (pc_graph_begin(j->compute) != PC_OK)
        return false;
    bool fine = learn(j);
    j->graph = pc_graph_end(j->compute);
    return fine && j->graph;
}

static bool set_up(job *j, variant mode)
{
    *j = (job){0};
    if (!small_net_new(&j->net) || !small_batch(BATCH, &j->pictures, &j->labels))
        return false;
    if (mode == LAUNCHED) { /* a recording of the program's own cannot count Adam's steps */
        pc_optimizer_free(j->net.optimizer);
        j->net.optimizer = pc_sgd(j->net.net, .lr = 1e-2);
    }
    j->x = pc_empty(PC_SHAPE(BATCH, 3, SIDE, SIDE), PC_F32, sim(0));
    j->y = pc_empty(PC_SHAPE(BATCH), PC_I64, sim(0));
    j->loss = pc_zeros(PC_SHAPE_SCALAR, PC_F32, sim(0));
    j->copies = mode == ONE_STREAM ? usual(0) : pc_stream(sim(0));
    j->compute = mode == ONE_STREAM ? usual(0) : pc_stream(sim(0));
    bool fine = j->x && j->y && j->loss && j->copies && j->compute;
    if (fine && mode == LAUNCHED)
        PC_WITH_STREAM(j->compute) {
            fine = record(j);
        }
    return fine && pc_device_synchronize(sim(0)) == PC_OK;
}

/* Copies in, the step, the loss out; all of it done when it returns. */
static bool step(const job *j, double *value)
{
    bool fine = true;
    PC_WITH_STREAM(j->copies) {
        fine = pc_copy(j->x, j->pictures) == PC_OK && pc_copy(j->y, j->labels) == PC_OK;
    }
    PC_WITH_STREAM(j->compute) {
        fine = fine && (j->graph ? pc_graph_launch(j->graph, NULL) == PC_OK : learn(j));
        if (fine)
            *value = pc_item(j->loss);
        fine = pc_device_synchronize(sim(0)) == PC_OK && fine;
    }
    return fine && !pc_failed();
}

static void take_down(job *j)
{
    pc_graph_free(j->graph);
    pc_tensor *tensors[] = {j->pictures, j->labels, j->x, j->y, j->loss};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        pc_tensor_free(tensors[i]);
    small_net_free(&j->net);
    pc_stream_free(j->copies); /* the usual one stays */
    pc_stream_free(j->compute);
}

/* --- looking after it --- */

static int64_t alive_before;

static int64_t alive(void)
{
    (void)!pc_memory_trim(sim(0));
    (void)!pc_memory_trim(PC_DEVICE_CPU);
    return pc_allocator_live();
}

static void assert_nothing_is_left(variant mode, int64_t n)
{
    pc_memory_stats stats;
    assert_ok(pc_memory_query(sim(0), &stats));
    int64_t now = alive();
    if (stats.in_use || (alive_before >= 0 && now != alive_before))
        fail_msg("%s, operation %d: %d bytes of the device are held, %d blocks leak", mode_names[mode], (int)n,
                 (int)stats.in_use, (int)(now - alive_before));
}

/* All of it without a fault: the loss, and what the step did on the device. */
static double clean_run(variant mode, int64_t *operations, int64_t *requests)
{
    job j;
    double loss[2] = {0};
    pc_memory_stats before, after;
    if (!set_up(&j, mode))
        fail_msg("%s: %s", mode_names[mode], pc_error_last()->message);
    assert_ok(pc_memory_trim(sim(0)));
    int64_t first = pc_sim_operations(sim(0));
    assert_ok(pc_memory_query(sim(0), &before));
    if (!step(&j, &loss[0]))
        fail_msg("%s: %s", mode_names[mode], pc_error_last()->message);
    assert_ok(pc_memory_query(sim(0), &after));
    if (operations)
        *operations = pc_sim_operations(sim(0)) - first;
    if (requests)
        *requests = after.misses - before.misses;
    assert_true(step(&j, &loss[1]));
    assert_true(loss[0] > 0 && loss[1] < loss[0]);
    take_down(&j);
    return loss[1];
}

static const pc_status wanted[] = {[PC_SIM_FAIL_KERNEL] = PC_ERR_BACKEND,
                                   [PC_SIM_FAIL_COPY] = PC_ERR_BACKEND,
                                   [PC_SIM_FAIL_ANY] = PC_ERR_BACKEND,
                                   [PC_SIM_FAIL_MEMORY] = PC_ERR_MEMORY,
                                   [PC_SIM_LOSE] = PC_ERR_LOST};
static const char *const fault_names[] = {"", "kernel", "copy", "any", "memory", "lost"};

/* "conv2d, queued at faults.c:27 (learn), failed on sim:0: ..." */
static void assert_error_names_the_op(pc_sim_fault fault, variant mode, int64_t n)
{
    const pc_error *e = pc_error_last();
    const char *words = fault == PC_SIM_FAIL_MEMORY ? "out of memory on sim:0: "
                        : fault == PC_SIM_LOSE      ? "sim:0 is lost: it stopped at "
                                                    : ", failed on sim:0: ";
    const char *queued = fault == PC_SIM_LOSE ? " (" : ", queued at ";
    bool fine = e->status == wanted[fault] && strstr(e->message, words) && e->message[0] != ',';
#if PC_HAVE_DW
    if (fault != PC_SIM_FAIL_MEMORY)
        fine = fine && (strstr(e->message, "faults.c:") || strstr(e->message, "small_net.h:"));
#endif
    if (fault != PC_SIM_FAIL_MEMORY)
        fine = fine && strstr(e->message, queued) && strstr(e->cause, "injected fault");
    else
        fine = fine && strstr(e->message, " asked for ");
    if (!fine)
        fail_msg("%s fault, %s, operation %d: %s: %s (%s)", fault_names[fault], mode_names[mode], (int)n,
                 pc_status_name(e->status), e->message, e->cause);
}

static void assert_lost(pc_status status)
{
    assert_int_equal(status, PC_ERR_LOST);
    assert_int_equal(pc_error_last()->status, PC_ERR_LOST);
    assert_non_null(strstr(pc_error_last()->message, "sim:0 is lost"));
    pc_error_clear();
}

/* Whatever is asked of it. */
static void all_calls_say_lost(const job *j)
{
    bool done;
    double value;
    float host;
    pc_error_clear();
    assert_lost(pc_device_synchronize(sim(0)));
    assert_lost(pc_stream_synchronize(j->compute));
    assert_lost(pc_fill(j->loss, 1));
    assert_lost(pc_copy(j->x, j->pictures));
    assert_lost(pc_read(j->loss, &host, sizeof host));
    assert_false(step(j, &value));
    assert_lost(pc_error_last()->status);
    PC_SCOPE {
        assert_null(pc_add(j->loss, j->loss));
        assert_lost(pc_error_last()->status);
        assert_null(pc_zeros(PC_SHAPE(3), PC_F32, sim(0)));
        assert_lost(pc_error_last()->status);
        assert_null(pc_to(j->x, PC_DEVICE_CPU, PC_F32, true));
        assert_lost(pc_error_last()->status);
        assert_true(pc_item(j->loss) != pc_item(j->loss));
        assert_lost(pc_error_last()->status);
    }
    if (j->graph)
        assert_lost(pc_graph_launch(j->graph, NULL));
    pc_event *event = pc_event_new(sim(0));
    assert_non_null(event);
    assert_lost(pc_event_record(event, j->compute));
    pc_event_free(event);
    (void)!pc_stream_query(j->compute, &done);
    pc_error_clear();
    assert_true(done);
}

static const pc_sim_options options = {.devices = 1, .memory = 8 << 20};

/* The n-th operation fails. False when the step went well in spite of it. */
static bool fail_at(pc_sim_fault fault, variant mode, int64_t n, double want)
{
    job j;
    double loss = 0;
    assert_true(set_up(&j, mode));
    assert_ok(pc_memory_trim(sim(0)));
    assert_ok(pc_sim_inject(sim(0), fault, n));
    bool fine = step(&j, &loss);
    assert_int_equal(fine, !pc_failed());
    if (!fine)
        assert_error_names_the_op(fault, mode, n);
    if (!fine && fault == PC_SIM_LOSE)
        all_calls_say_lost(&j);
    assert_ok(pc_sim_inject(sim(0), PC_SIM_NO_FAULT, 0));
    take_down(&j);
    if (fault == PC_SIM_LOSE) {
        pc_error_clear();
        assert_ok(pc_sim_configure(options));
    }
    (void)!pc_device_synchronize(sim(0)); /* each stream that it reached tells it once */
    pc_error_clear();
    assert_nothing_is_left(mode, n);
    assert_close(clean_run(mode, NULL, NULL), want, 0);
    assert_nothing_is_left(mode, n);
    return fine;
}

static void fail_everywhere(pc_sim_fault fault, variant mode)
{
    int64_t operations, requests;
    assert_ok(pc_sim_configure(options));
    double want = clean_run(mode, &operations, &requests);
    if (fault == PC_SIM_FAIL_MEMORY) { /* a launch asks for none */
        operations = requests;
        assert_true(mode == LAUNCHED ? requests == 0 : requests > 10);
    }
    alive_before = -1;
    (void)fail_at(PC_SIM_FAIL_ANY, mode, 3, want); /* what is looked up for messages is kept */
    alive_before = alive();
    int errors = 0;
    for (int64_t n = 1; n <= operations; n++)
        errors += !fail_at(fault, mode, n, want);
    print_message("%s faults, %s: %d operations, %d errors\n", fault_names[fault], mode_names[mode], (int)operations,
                  errors);
    if (fault == PC_SIM_FAIL_ANY || fault == PC_SIM_LOSE)
        assert_int_equal(errors, operations);
    else if (mode != LAUNCHED || fault != PC_SIM_FAIL_MEMORY)
        assert_true(errors > 0);
}

static void every_kernel_fails(void **state)
{
    (void)state;
    for (variant m = 0; m < MODES; m++)
        fail_everywhere(PC_SIM_FAIL_KERNEL, m);
}

static void every_copy_fails(void **state)
{
    (void)state;
    for (variant m = 0; m < MODES; m++)
        fail_everywhere(PC_SIM_FAIL_COPY, m);
}

static void everything_fails(void **state)
{
    (void)state;
    for (variant m = 0; m < MODES; m++)
        fail_everywhere(PC_SIM_FAIL_ANY, m);
}

static void memory_is_refused(void **state)
{
    (void)state;
    for (variant m = 0; m < MODES; m++)
        fail_everywhere(PC_SIM_FAIL_MEMORY, m);
}

static void the_device_is_lost(void **state)
{
    (void)state;
    for (variant m = 0; m < MODES; m++)
        fail_everywhere(PC_SIM_LOSE, m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_fails), cmocka_unit_test(every_copy_fails),   cmocka_unit_test(everything_fails),
        cmocka_unit_test(memory_is_refused),  cmocka_unit_test(the_device_is_lost),
    };
    alarm(500); /* a hang is an end */
    return cmocka_run_group_tests_name("device.faults", tests, NULL, NULL);
}

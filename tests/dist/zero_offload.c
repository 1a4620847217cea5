/* pc_zero with .offload: the bits of a training without it; device memory falls by what pinned host memory has, which is counted
 * and freed; who may read and write it; and host memory that is not there. */
#include "dist/threads.h"
#include "dist/zero.h"
#include "failing.h"

enum { LAYERS = 5, WIDTH = 61, ROWS = 4, STEPS = 4, NUMBERS = LAYERS * (WIDTH * WIDTH + WIDTH) };

typedef struct trial {
    int stage;
    bool half, recorded, offload, gathers;
    int ahead;
    float *weights;       /* that rank 0 leaves */
    int64_t used, pinned; /* bytes behind the steps: of rank 0's device, of all */
} trial;

static pc_module *network(pc_device device)
{
    return square_layers(device, LAYERS, WIDTH);
}

typedef struct learner {
    const trial *trial;
    pc_module *net;
    pc_optimizer *optimizer;
    pc_zero *zero;
    pc_tensor *x;
} learner;

static pc_status learn(void *user)
{
    const learner *l = user;
    return learn_squares(l->net, l->x, l->trial->half, l->zero, l->optimizer);
}

static pc_status begin(learner *l, const rank_work *r)
{
    const trial *t = l->trial;
    l->net = l->net ? l->net : network(r->device);
    l->zero = l->net ? pc_zero(l->net, r->group, .stage = t->stage, .bucket_mb = 0.02, .ahead = t->ahead,
                               .offload = t->offload)
                     : NULL;
    l->optimizer = l->zero ? pc_adamw(pc_zero_part(l->zero), .lr = 0.01) : NULL;
    if (!l->optimizer || pc_optimizer_set_clip(l->optimizer, PC_CLIP_NORM, 0.5) != PC_OK)
        return pc_error_last()->status;
    PC_SCOPE {
        l->x = pc_tensor_retain(pc_full(PC_SHAPE(ROWS, WIDTH), 0.1 * (r->rank + 1), PC_F32, r->device));
    }
    return l->x ? PC_OK : pc_error_last()->status;
}

static void end(learner *l)
{
    pc_tensor_free(l->x);
    pc_optimizer_free(l->optimizer);
    pc_zero_free(l->zero);
    pc_module_free(l->net);
}

/* Once everybody is here, and nobody has anything freed yet. */
static pc_status look_at_memory(const rank_work *r, trial *t)
{
    pc_memory_stats stats;
    pc_status status = pc_device_synchronize(r->device);
    if (status == PC_OK)
        status = pc_group_barrier(r->group);
    if (status == PC_OK)
        status = pc_memory_query(r->device, &stats);
    if (status == PC_OK && r->rank == 0)
        t->used = stats.in_use, t->pinned = stats.pinned;
    return status == PC_OK ? pc_group_barrier(r->group) : status;
}

static void train(rank_work *r)
{
    trial *t = r->context;
    learner l = {.trial = t};
    RANK_OK(begin(&l, r));
    pc_step *step = t->recorded ? pc_step_new(learn, &l, l.optimizer) : NULL;
    for (int i = 0; i < STEPS; i++) {
        if (i == STEPS / 2 && t->gathers)
            RANK_OK(pc_zero_gather(l.zero));
        RANK_OK(step ? pc_step_run(step) : learn(&l));
        if (i == STEPS / 2 && t->gathers)
            RANK_OK(pc_zero_release(l.zero));
    }
    RANK_TRUE(!step || !pc_step_why(step));
    RANK_OK(look_at_memory(r, t));
    RANK_OK(pc_zero_gather(l.zero));
    pc_parameter list[2 * LAYERS];
    RANK_TRUE(pc_module_parameter_list(l.net, list, 2 * LAYERS) == 2 * LAYERS);
    for (int i = 0, at = 0; i < 2 * LAYERS && r->rank == 0; i++) {
        const int64_t n = pc_tensor_count(list[i].tensor);
        RANK_OK(pc_read(list[i].tensor, t->weights + at, (size_t)n * sizeof(float)));
        at += (int)n;
    }
    pc_step_free(step);
    end(&l);
}

/* --- the same bits, in less memory --- */

static void assert_moved(const trial *without, const trial *with, int n)
{
    const int64_t moments = (int64_t)NUMBERS * 8, weights = with->stage == 3 ? (int64_t)NUMBERS * 4 : 0;
    const int64_t moved = moments + weights; /* of all ranks */
    const double some = 0.85;                /* blocks come in sizes, and parts are equal with zeros behind them */
    if (without->pinned || (double)(without->used - with->used) < some * (double)(moved / n) || with->pinned < moved ||
        (double)with->pinned > 1.3 * (double)moved)
        fail_msg("%d ranks, stage %d, %s: the device has %lld bytes, and %lld with pinned %lld; %lld are to move", n,
                 with->stage, with->recorded ? "recorded" : "plain", (long long)without->used, (long long)with->used,
                 (long long)with->pinned, (long long)moved);
}

static void nothing_pinned(void)
{
    pc_memory_stats stats;
    assert_ok(pc_memory_query(test_device(), &stats));
    assert_int_equal(stats.pinned, 0);
    assert_ok(pc_memory_trim(test_device()));
    assert_ok(pc_memory_query(test_device(), &stats));
    assert_int_equal(stats.pinned_cached, 0);
}

static void both(int n, trial t)
{
    static float want[NUMBERS], got[NUMBERS];
    trial without = t, with = t;
    without.weights = want;
    with.weights = got;
    with.offload = true;
    ranks_work(n, train, &without);
    ranks_work(n, train, &with);
    for (int i = 0; i < NUMBERS; i++)
        if (memcmp(&want[i], &got[i], sizeof *want) != 0)
            fail_msg("%d ranks, stage %d, %s, %s: weight %d is %.9g, not %.9g", n, t.stage,
                     t.recorded ? "recorded" : "plain", t.half ? "bfloat16" : "float32", i, (double)got[i],
                     (double)want[i]);
    if (test_device().type != PC_CPU && !ranks_are_processes())
        assert_moved(&without, &with, n);
    nothing_pinned();
}

static void the_same_bits(void **state)
{
    (void)state;
    const int most = ranks_most() < 3 ? ranks_most() : 3;
    for (int n = 1; n <= most; n++)
        for (int stage = 1; stage <= 3; stage++)
            for (int k = 0; k < (stage == 3 ? 8 : 4); k += for_races() ? 3 : 1)
                both(n,
                     (trial){.stage = stage, .recorded = k % 2, .half = k / 2 % 2, .ahead = k / 4, .gathers = k < 6});
}

/* --- where it lies --- */

static void look(rank_work *r)
{
    const bool device = r->device.type != PC_CPU;
    for (int stage = 1; stage <= 3; stage++) {
        const trial t = {.stage = stage, .offload = true};
        learner l = {.trial = &t};
        RANK_OK(begin(&l, r));
        pc_parameter part[1], whole[1];
        RANK_TRUE(pc_module_parameter_list(pc_zero_part(l.zero), part, 1) >= 1);
        RANK_TRUE(pc_module_parameter_list(l.net, whole, 1) >= 1);
        pc_tensor *w = part[0].tensor;
        RANK_TRUE(pc_is_pinned(w) == (device && stage == 3) && pc_device_equal(pc_tensor_device(w), r->device));
        RANK_TRUE(!pc_is_pinned(whole[0].tensor));
        if (device) {
            RANK_TRUE(!pc_data(w) && pc_error_last()->status == PC_ERR_DEVICE);
            pc_error_clear();
        }
        const int64_t n = pc_tensor_count(w);
        float *numbers = malloc((size_t)n * sizeof *numbers);
        PC_SCOPE {
            PC_NO_GRAD {
                RANK_OK(pc_fill(w, 0.25));
                RANK_OK(pc_copy(pc_slice(w, 0, 0, 1, 1), pc_full(PC_SHAPE(1), 0.5, PC_F32, PC_DEVICE_CPU)));
                pc_tensor *there = pc_pin(w, r->device);
                RANK_TRUE(there && pc_tensor_device(there).type == PC_CPU && (there == w) == !device);
                pc_tensor *plain = pc_to(w, PC_DEVICE_CPU, PC_F32, false);
                RANK_TRUE(plain && pc_item(pc_max(pc_sub(plain, there))) == 0);
                RANK_OK(pc_read(w, numbers, (size_t)n * sizeof *numbers));
            }
        }
        RANK_TRUE(numbers[0] == 0.5f && (n == 1 || numbers[n - 1] == 0.25f));
        free(numbers);
        end(&l);
    }
}

static void who_may_use_it(void **state)
{
    (void)state;
    for (int n = 1; n <= ranks_most() && n <= 2; n++)
        ranks_work(n, look, NULL);
    nothing_pinned();
}

static void write_all(rank_work *r)
{
    const trial t = {.stage = 3, .offload = true};
    learner l = {.trial = &t};
    pc_parameter list[2 * LAYERS];
    float got[WIDTH * WIDTH];
    RANK_OK(begin(&l, r));
    RANK_TRUE(pc_module_parameter_list(l.net, list, 2 * LAYERS) == 2 * LAYERS);
    RANK_OK(pc_zero_gather(l.zero));
    PC_NO_GRAD {
        for (int i = 0; i < LAYERS; i++)
            RANK_OK(pc_fill(list[2 * i].tensor, i + 0.5));
    }
    RANK_OK(pc_zero_release(l.zero));
    RANK_TRUE(pc_read(list[0].tensor, got, sizeof got) == PC_ERR_STATE);
    pc_error_clear();
    RANK_OK(pc_zero_gather(l.zero));
    for (int i = 0; i < LAYERS; i++) {
        RANK_OK(pc_read(list[2 * i].tensor, got, sizeof got));
        for (int k = 0; k < WIDTH * WIDTH; k++)
            RANK_TRUE(got[k] == (float)i + 0.5f);
    }
    RANK_OK(pc_zero_release(l.zero));
    end(&l);
}

static void what_is_written_counts(void **state)
{
    (void)state;
    for (int n = 1; n <= ranks_most() && n <= 3; n++)
        ranks_work(n, write_all, NULL);
}

/* --- host memory that is not there --- */

enum { PAGE = 4096 }; /* what pinned memory of sim devices is aligned to */

static atomic_bool refuses;

static atomic_int granted; /* pinned blocks until this thread gets none */
static _Thread_local bool counts;

static bool has_no_more(size_t alignment)
{
    return counts && alignment == PAGE && atomic_fetch_sub(&granted, 1) <= 0;
}

static void *may_refuse(void *context, size_t bytes, size_t alignment)
{
    const bool refused = (atomic_load(&refuses) && alignment == PAGE) || has_no_more(alignment);
    return refused ? NULL : failing_alloc(context, bytes, alignment);
}

static const pc_allocator refusing = {may_refuse, failing_resize, failing_free, NULL};

static bool says(const char *words)
{
    const pc_error *e = pc_error_last();
    return e->status == PC_ERR_MEMORY && strstr(e->message, words) && !strchr(e->message, '\n');
}

/* All numbers of the network, in order. */
static pc_status read_all(pc_module *net, float *numbers)
{
    pc_parameter list[2 * LAYERS];
    const int count = pc_module_parameter_list(net, list, 2 * LAYERS);
    for (int i = 0; i < count; i++) {
        const int64_t n = pc_tensor_count(list[i].tensor);
        const pc_status status = pc_read(list[i].tensor, numbers, (size_t)n * sizeof *numbers);
        if (status != PC_OK)
            return status;
        numbers += n;
    }
    return PC_OK;
}

static void refused(rank_work *r)
{
    for (int stage = 1; stage <= 3; stage++) {
        pc_memory_stats before, after;
        pc_module *net = network(r->device);
        RANK_OK(pc_device_synchronize(r->device));
        RANK_OK(pc_memory_trim(r->device)); /* what is kept needs nobody's leave */
        RANK_OK(pc_memory_query(r->device, &before));
        RANK_TRUE(net && !before.pinned && !before.pinned_cached);
        atomic_store(&refuses, stage == 3);
        pc_zero *zero = pc_zero(net, r->group, .stage = stage, .offload = true);
        RANK_TRUE(!zero == (stage == 3));
        RANK_TRUE(zero || (says("out of pinned host memory for sim:0: a part of pc_zero's weights asked for ") &&
                           says(" KiB; ") && says("raise the limits of the process")));
        pc_error_clear();
        atomic_store(&refuses, true);
        RANK_TRUE(!zero || !pc_adam(pc_zero_part(zero)));
        RANK_TRUE(!zero || says("out of pinned host memory for sim:0: an optimiser's state asked for "));
        pc_error_clear();
        atomic_store(&refuses, false);
        pc_zero_free(zero);
        pc_module_free(net);
        RANK_OK(pc_memory_query(r->device, &after));
        RANK_TRUE(!after.pinned && after.in_use == 0);
    }
}

static void host_memory_is_short(void **state)
{
    (void)state;
    if (test_device().type != PC_SIM)
        skip();
    (void)ranks_most();
    ranks_work(1, refused, NULL);
    nothing_pinned();
}

/* It fails in all of them, and they have the network that they had. */
static void refused_in_one(rank_work *r)
{
    float *want = malloc(NUMBERS * sizeof *want), *got = malloc(NUMBERS * sizeof *got);
    for (int n = 0; n < 3; n++) { /* of three buckets */
        pc_module *net = network(r->device);
        RANK_TRUE(want && got && net);
        RANK_OK(read_all(net, want));
        RANK_OK(pc_device_synchronize(r->device));
        RANK_OK(pc_group_barrier(r->group));
        RANK_OK(pc_memory_trim(r->device));
        atomic_store(&granted, n);
        RANK_OK(pc_group_barrier(r->group));
        counts = r->rank == 1;
        RANK_TRUE(!pc_zero(net, r->group, .stage = 3, .bucket_mb = 0.02, .offload = true));
        counts = false;
        RANK_TRUE(says(r->rank == 1 ? "out of pinned host memory" : "rank 1: out of pinned host memory"));
        pc_error_clear();
        RANK_OK(read_all(net, got));
        RANK_TRUE(memcmp(want, got, NUMBERS * sizeof *got) == 0);
        PC_SCOPE {
            RANK_TRUE(pc_forward(net, pc_ones(PC_SHAPE(ROWS, WIDTH), PC_F32, r->device)));
        }
        pc_module_free(net);
    }
    free(want);
    free(got);
}

static void the_memory_of_one_rank_is_short(void **state)
{
    (void)state;
    if (test_device().type != PC_SIM || ranks_are_processes())
        skip();
    for (int n = 2; n <= ranks_most() && n <= 3; n++)
        ranks_work(n, refused_in_one, NULL);
    nothing_pinned();
}

/* Each allocation fails once. Where there is no zero then, the network is what it was. */
static void short_of_memory(rank_work *r)
{
    float *want = malloc(NUMBERS * sizeof *want), *got = malloc(NUMBERS * sizeof *got);
    int64_t live = 0; /* of blocks of host memory, behind the first turn */
    for (int stage = 1; stage <= 3; stage += 2)
        for (int n = 0, reached = true; reached; n++) {
            const trial t = {.stage = stage, .offload = true};
            learner l = {.trial = &t, .net = network(r->device)};
            RANK_TRUE(l.net && want && got);
            RANK_OK(read_all(l.net, want));
            countdown = n;
            pc_status status = begin(&l, r);
            for (int i = 0; i < 2 && status == PC_OK; i++)
                status = learn(&l);
            const pc_status done = pc_device_synchronize(r->device);
            reached = countdown < 0;
            countdown = -1;
            RANK_TRUE(status == PC_OK || status == PC_ERR_MEMORY);
            RANK_TRUE(done == PC_OK || done == PC_ERR_MEMORY);
            RANK_TRUE((status == PC_OK && done == PC_OK) == !pc_failed());
            pc_error_clear();
            RANK_TRUE(l.zero || read_all(l.net, got) == PC_OK);
            RANK_TRUE(l.zero || memcmp(want, got, NUMBERS * sizeof *got) == 0);
            end(&l);
            (void)!pc_device_synchronize(r->device);
            pc_error_clear();
            pc_memory_stats stats;
            RANK_OK(pc_memory_trim(PC_DEVICE_CPU));
            RANK_OK(pc_memory_query(r->device, &stats));
            RANK_TRUE(!stats.pinned && (!stats.in_use || r->device.type == PC_CPU));
            RANK_TRUE(pc_allocator_live() == live || !live || r->device.type != PC_CPU);
            live = pc_allocator_live();
            RANK_TRUE(n < 5000 && (reached || n > 100));
        }
    free(want);
    free(got);
}

static void an_allocation_that_fails(void **state)
{
    (void)state;
    if (test_device().type == PC_CUDA || ranks_are_processes())
        skip();
    (void)ranks_most();
    and_later = false;
    ranks_work(1, short_of_memory, NULL);
    nothing_pinned();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bits),
        cmocka_unit_test(who_may_use_it),
        cmocka_unit_test(what_is_written_counts),
        cmocka_unit_test(host_memory_is_short),
        cmocka_unit_test(the_memory_of_one_rank_is_short),
        cmocka_unit_test(an_allocation_that_fails),
    };
    if (pc_allocator_set(&refusing) != PC_OK)
        return 1;
    return cmocka_run_group_tests(tests, ranks_begin, ranks_end);
}

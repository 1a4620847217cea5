/* A device whose memory is at an end: what is cached goes back first; the error says who has the rest; and training
 * goes on with less. */
#include "small_net.h"

enum { MIB = 1 << 20 };

static int eight_mib(void **state)
{
    (void)state;
    return pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 1, .memory = 8 * MIB)) != PC_OK;
}

static pc_memory_stats stats(void)
{
    pc_memory_stats s;
    assert_ok(pc_memory_query(sim(0), &s));
    return s;
}

static pc_tensor *mib(int64_t n)
{
    return pc_full(PC_SHAPE(n * MIB), 1, PC_U8, sim(0));
}

static void assert_says(const char *words)
{
    const pc_error *e = pc_error_last();
    if (e->status != PC_ERR_MEMORY || !strstr(e->message, words))
        fail_msg("%s: %s: should say \"%s\"", pc_status_name(e->status), e->message, words);
}

static void the_error_says_who_has_it(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = mib(1), *b = mib(1), *c = mib(1), *d = pc_neg(c), *e = pc_neg(b);
        (void)a, (void)d, (void)e;
        PC_SCOPE {
            assert_not_null_ok(mib(2));
        }
        assert_int_equal(stats().cached, 2 * MIB);
        assert_null(mib(6));
        assert_says(
            "out of memory on sim:0: pc_full asked for 6.0 MiB; 3.0 MiB of 8.0 MiB are free, 3.0 MiB the largest "
            "piece; tensors hold 5.0 MiB (most by pc_full 3.0 MiB in 3, neg 2.0 MiB in 2), 0 bytes are cached; a "
            "smaller batch needs less");
        pc_error_clear();
        assert_int_equal(stats().in_use, 5 * MIB);
        assert_not_null_ok(mib(3));
    }
    assert_int_equal(stats().in_use, 0);
}

static void the_largest_piece_counts(void **state)
{
    (void)state;
    pc_tensor *block[8];
    for (int i = 0; i < 8; i++)
        assert_not_null_ok(block[i] = mib(1));
    for (int i = 0; i < 8; i += 2)
        pc_tensor_free(block[i]);
    pc_tensor *big = mib(2);
    assert_null(big);
    assert_says("pc_full asked for 2.0 MiB; 4.0 MiB of 8.0 MiB are free, 1.0 MiB the largest piece");
    pc_error_clear();
    assert_int_equal(stats().free, 4 * MIB);
    assert_int_equal(stats().largest_free, 1 * MIB);
    pc_tensor_free(block[1]);
    assert_not_null_ok(big = mib(2)); /* the pieces around it are one now */
    pc_tensor_free(big);
    for (int i = 3; i < 8; i += 2)
        pc_tensor_free(block[i]);
    assert_int_equal(stats().in_use, 0);
}

static void cached_blocks_go_back_first(void **state)
{
    (void)state;
    PC_SCOPE {
        assert_not_null_ok(mib(1));
        assert_not_null_ok(mib(2));
        assert_not_null_ok(mib(3));
    }
    assert_int_equal(stats().cached, 6 * MIB);
    PC_SCOPE {
        pc_tensor *big = mib(7);
        assert_not_null_ok(big);
        assert_int_equal(stats().cached, 0);
        assert_close(pc_item(pc_max(big)), 1, 0);
    }
}

/* Cached, but still used by queued work: the host waits for it, and then it goes. */
static void busy_cached_blocks_go_back_too(void **state)
{
    (void)state;
    pc_stream *side = pc_stream(sim(0));
    PC_SCOPE {
        pc_tensor *most = NULL;
        PC_SCOPE {
            pc_tensor *x = mib(5);
            assert_ok(pc_stream_synchronize(usual(0)));
            PC_WITH_STREAM(side) {
                hold_up(side, 100);
                most = pc_keep(pc_max(x));
            }
        }
        pc_tensor *big = mib(4);
        assert_not_null_ok(big); /* not a block of that size: what was freed of it */
        assert_true(is_done(side));
        assert_close(pc_item(most), 1, 0);
        assert_close(pc_item(pc_max(big)), 1, 0);
    }
    pc_stream_free(side);
    assert_int_equal(stats().in_use, 0);
}

/* A failure of queued work that comes to light while memory is looked for is not lost, nor taken for a lack of it. */
static void failures_meanwhile_are_kept(void **state)
{
    (void)state;
    pc_stream *side = pc_stream(sim(0));
    PC_SCOPE {
        pc_tensor *index = pc_full(PC_SHAPE(1), 9, PC_I64, sim(0)), *bad = NULL;
        PC_SCOPE {
            pc_tensor *x = mib(5);
            PC_WITH_STREAM(side) {
                hold_up(side, 100);
                bad = pc_keep(pc_index_select(pc_reshape(x, PC_SHAPE(5, MIB)), 0, index));
            }
        }
        pc_tensor *big = mib(4);
        assert_int_equal(pc_error_last()->status, PC_ERR_RANGE);
        assert_non_null(strstr(pc_error_last()->message, "index_select, queued at"));
        pc_error_clear();
        (void)big, (void)bad;
        (void)!pc_device_synchronize(sim(0));
        pc_error_clear();
    }
    pc_stream_free(side);
    pc_error_clear();
    assert_int_equal(stats().in_use, 0);
}

/* --- training --- */

static int half_a_mib(void **state)
{
    (void)state;
    return pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 1, .memory = MIB / 2)) != PC_OK;
}

typedef struct held {
    int64_t in_use, alive;
} held;

static held held_now(const small_net *s)
{
    pc_module_zero_grad(s->net);
    assert_ok(pc_device_synchronize(sim(0)));
    assert_ok(pc_memory_trim(sim(0)));
    assert_ok(pc_memory_trim(PC_DEVICE_CPU));
    return (held){stats().in_use, pc_allocator_live()};
}

enum { FITS = 6, STEPS = 5 };

static void train(double losses[STEPS], bool greedy)
{
    small_net s;
    double never;
    int refused = 0;
    assert_true(small_net_new(&s));
    assert_true(small_net_step(&s, FITS, &losses[0])); /* the optimiser's state is there from now on */
    held before = held_now(&s);
    for (int i = 1; i < STEPS; i++) {
        /* Too large by less and less, so that memory ends later and later in the step. */
        for (int64_t batch = 512; greedy && batch > 110; batch = batch * 14 / 15)
            if (!small_net_step(&s, batch, &never)) {
                assert_says("out of memory on sim:0");
                assert_says(" asked for ");
                assert_says(" the largest piece; tensors hold ");
                assert_says("a smaller batch needs less");
                pc_error_clear();
                refused++;
                held now = held_now(&s);
                assert_int_equal(now.in_use, before.in_use);
                assert_int_equal(now.alive, before.alive);
            } else {
                fail_msg("a batch of %d should not fit", (int)batch);
            }
        assert_true(small_net_step(&s, FITS, &losses[i]));
    }
    assert_true(!greedy || refused >= 15 * (STEPS - 1));
    small_net_free(&s);
    assert_int_equal(stats().in_use, 0);
}

static void training_goes_on_with_less(void **state)
{
    (void)state;
    double want[STEPS], got[STEPS];
    train(want, false);
    assert_ok(pc_memory_trim(sim(0)));
    int64_t before = pc_allocator_live();
    train(got, true);
    assert_memory_equal(got, want, sizeof got);
    assert_true(got[STEPS - 1] < got[0]);
    assert_ok(pc_memory_trim(sim(0)));
    assert_int_equal(pc_allocator_live(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_error_says_who_has_it, eight_mib),
        cmocka_unit_test_setup(the_largest_piece_counts, eight_mib),
        cmocka_unit_test_setup(cached_blocks_go_back_first, eight_mib),
        cmocka_unit_test_setup(busy_cached_blocks_go_back_too, eight_mib),
        cmocka_unit_test_setup(failures_meanwhile_are_kept, eight_mib),
        cmocka_unit_test_setup(training_goes_on_with_less, half_a_mib),
    };
    return cmocka_run_group_tests_name("device.out_of_memory", tests, NULL, NULL);
}

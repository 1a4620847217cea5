/* When small calls are launched that are held back, and who is told of a launch that fails. PARACORD_TEST_DEVICE picks
 * the device: the emulated GPU or nothing, since its memory is the host's and it does at once what is launched. */
#include "small.h"
#include "tensor/tensor.h"

static float now_in(pc_tensor *t)
{
    return *(volatile float *)pc__data(t);
}

static void they_travel_together(void **state)
{
    (void)state;
    if (!emulated())
        skip();
    PC_SCOPE {
        pc_tensor *x = full(16, 0), *one = full(16, 1);
        assert_ok(pc_device_synchronize(test_device()));
        for (int i = 1; i <= 3 * AT_ONCE; i++) {
            assert_ok(pc_saxpy(x, 1, one));
            assert_close(now_in(x), i / AT_ONCE * AT_ONCE, 0);
        }
        assert_ok(pc_saxpy(x, 1, one));
        assert_close(now_in(x), 3 * AT_ONCE, 0);
        pc_tensor *large = full(MOST + 1, 0); /* it is not held, and goes behind */
        assert_close(now_in(x), 3 * AT_ONCE + 1, 0);
        assert_ok(pc_saxpy(x, 1, one));
        assert_ok(pc_device_synchronize(test_device()));
        assert_close(now_in(x), 3 * AT_ONCE + 2, 0);
        assert_close(now_in(large), 0, 0);
    }
}

static pc_tensor *asked;

static void call_of_the_host(void *context)
{
    *(float *)context = now_in(asked);
}

/* All that takes a place in the queue is behind them. */
static void they_go_first(void **state)
{
    (void)state;
    if (!emulated())
        skip();
    pc_stream *stream = pc_stream(test_device()), *other = pc_stream(test_device());
    pc_event *event = pc_event_new(test_device());
    PC_SCOPE {
        pc_tensor *x = full(16, 0), *one = full(16, 1), *host = pc_empty_pinned(PC_SHAPE(16), PC_F32, test_device());
        float seen = -1;
        bool done;
        asked = x;
        assert_ok(pc_device_synchronize(test_device()));
        PC_WITH_STREAM(stream) {
            assert_ok(pc_saxpy(x, 1, one));
            assert_close(now_in(x), 0, 0);
            assert_ok(pc_event_record(event, stream));
            assert_close(now_in(x), 1, 0);
            assert_ok(pc_saxpy(x, 1, one));
            assert_ok(pc_stream_call(stream, call_of_the_host, &seen));
            assert_close(seen, 2, 0);
            assert_ok(pc_saxpy(x, 1, one));
            assert_ok(pc_stream_query(stream, &done));
            assert_close(now_in(x), 3, 0);
            assert_ok(pc_saxpy(x, 1, one));
            assert_ok(pc_copy(host, x));
            assert_close(now_in(host), 4, 0);
            assert_ok(pc_saxpy(x, 1, one));
            PC_WITH_STREAM(other) {
                assert_ok(pc_saxpy(one, 1, x)); /* it waits for x */
                assert_close(now_in(x), 5, 0);
                assert_close(now_in(one), 1, 0);
            }
        }
        assert_all(one, 6);
    }
    pc_event_free(event);
    pc_stream_free(stream);
    pc_stream_free(other);
}

static void refuse(bool now)
{
    if (now)
        setenv("PARACORD_EMULATOR_REFUSES", "1", 1);
    else
        unsetenv("PARACORD_EMULATOR_REFUSES");
}

/* What a refused launch was to write has no result, however often it is asked for. */
static void assert_lost(const pc_tensor *t)
{
    float got[16];
    for (int i = 0; i < 2; i++)
        assert_fails(pc_read(t, got, sizeof got), PC_ERR_BACKEND, "saxpy, queued at ");
}

/* A launch that the driver refuses is told to whoever waits, with the first call's place. */
static void a_refused_launch(void **state)
{
    (void)state;
    if (!emulated())
        skip();
    PC_SCOPE {
        pc_tensor *x = full(16, 0), *one = full(16, 1);
        assert_ok(pc_device_synchronize(test_device()));
        assert_ok(pc_saxpy(x, 1, one));
        pc_tensor_free(pc_keep(pc_add(x, one)));
        refuse(true);
        assert_fails(pc_device_synchronize(test_device()), PC_ERR_BACKEND, "saxpy, queued at ");
        refuse(false);
        assert_fails(pc_saxpy(x, 5, one), PC_ERR_BACKEND, "no result until all of it is written again");
        assert_ok(pc_fill(x, 0));
        assert_ok(pc_saxpy(x, 5, one));
        assert_all(x, 5);
        assert_ok(pc_saxpy(x, 1, one));
        refuse(true);
        for (int i = 1; i < AT_ONCE; i++)
            assert_ok(pc_saxpy(x, 1, one));
        refuse(false);
        assert_fails(pc_saxpy(x, 1, one), PC_ERR_BACKEND, "with 31 small calls after it");
        assert_lost(x);
    }
}

/* Whatever it is that launches what is held. */
static void told_once(void **state)
{
    (void)state;
    if (!emulated())
        skip();
    pc_stream *stream = pc_stream(test_device()), *other = pc_stream(test_device());
    PC_SCOPE {
        pc_tensor *x = full(16, 0), *one = full(16, 1);
        float got[16];
        bool done;
        assert_ok(pc_device_synchronize(test_device()));
        PC_WITH_STREAM(stream) {
            assert_ok(pc_saxpy(x, 1, one));
            refuse(true);
            assert_fails(pc_read(x, got, sizeof got), PC_ERR_BACKEND, "saxpy, queued at ");
            refuse(false);
            assert_lost(x);

            assert_ok(pc_fill(x, 0));
            assert_ok(pc_stream_synchronize(stream));
            assert_ok(pc_saxpy(x, 1, one));
            refuse(true);
            assert_fails(pc_stream_query(stream, &done), PC_ERR_BACKEND, "saxpy, queued at ");
            refuse(false);
            assert_ok(pc_stream_query(stream, &done));

            assert_ok(pc_fill(x, 0));
            assert_ok(pc_stream_synchronize(stream));
            assert_ok(pc_saxpy(x, 1, one));
            refuse(true);
            PC_WITH_STREAM(other) {
                assert_ok(pc_copy(one, x)); /* held in turn, behind x */
            }
            refuse(false);
            assert_fails(pc_saxpy(x, 1, one), PC_ERR_BACKEND, "saxpy, queued at ");
            assert_lost(one);
            assert_fails(pc_stream_synchronize(other), PC_ERR_BACKEND, "saxpy, queued at ");

            assert_ok(pc_fill(x, 0));
            assert_ok(pc_saxpy(x, 3, full(16, 1)));
            assert_all(x, 3);
        }
    }
    pc_stream_free(stream);
    pc_stream_free(other);
}

int main(void)
{
    unsetenv("PARACORD_CACHE"); /* with the cache off each free asks the stream, which lets go of what is held */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_travel_together),
        cmocka_unit_test(they_go_first),
        cmocka_unit_test(a_refused_launch),
        cmocka_unit_test(told_once),
    };
    return cmocka_run_group_tests_name("device.small_held", tests, NULL, NULL);
}

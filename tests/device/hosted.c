/* Storages of a device whose bytes are pinned host memory: kernels, copies every way, recordings, other streams, who gets the
 * memory next, and what is said when there is none. */
#include "device.h"
#include "tensor/tensor.h"

#include <paracord/no_grad.h>
#include <paracord/ops.h>
#include <paracord/sim.h>

enum { N = 1000 };

static pc_tensor *hosted(int64_t n, pc_device device)
{
    pc__meta meta;
    pc__meta_contiguous(&meta, PC_F32, 1, &n);
    return pc__tensor_hosted(&meta, device, "a test");
}

static int64_t pinned(void)
{
    return test_memory().pinned;
}

static void assert_counts(pc_tensor *t, double first)
{
    float got[N];
    assert_int_equal(pc_tensor_count(t), N);
    assert_ok(pc_read(t, got, sizeof got));
    for (int i = 0; i < N; i++)
        assert_true(got[i] == (float)(first + i));
}

static void kernels_use_it(void **state)
{
    (void)state;
    const pc_device device = test_device();
    const int64_t device_bytes = test_memory().in_use;
    pc_tensor *h = hosted(N, device);
    assert_not_null_ok(h);
    assert_true(pc_device_equal(pc_tensor_device(h), device));
    assert_int_equal(pc_is_pinned(h), device.type != PC_CPU);
    if (device.type != PC_CPU) {
        assert_int_equal(test_memory().in_use, device_bytes);
        assert_in_range(pinned(), N * 4, N * 5);
        assert_fails(pc_data(h), PC_ERR_DEVICE, "whose memory the host cannot use");
        assert_fails(pc_map(h, PC_MAP_READ), PC_ERR_DEVICE, "whose memory the host cannot use");
    }
    PC_SCOPE {
        assert_ok(pc_copy(h, pc_arange(0, N, 1, PC_F32, device)));
        assert_counts(h, 0);
        assert_counts(pc_add_scalar(h, 2), 2);
        assert_ok(pc_saxpy(h, 1, pc_ones(PC_SHAPE(N), PC_F32, device)));
        assert_counts(h, 1);
        assert_close(pc_item(pc_sum(pc_slice(h, 0, 10, 20, 1))), 155, 0);
    }
    pc_tensor_free(h);
}

static void copies_every_way(void **state)
{
    (void)state;
    const pc_device device = test_device();
    pc_tensor *a = hosted(N, device), *b = hosted(N, device);
    PC_SCOPE {
        pc_tensor *host = pc_arange(5, N + 5, 1, PC_F32, PC_DEVICE_CPU), *pin = pc_pin(host, device),
                  *back = pc_empty(PC_SHAPE(N), PC_F32, PC_DEVICE_CPU),
                  *to = pc_empty_pinned(PC_SHAPE(N), PC_F32, device), *there = pc_empty(PC_SHAPE(N), PC_F32, device);
        assert_ok(pc_copy(a, host));
        assert_counts(a, 5);
        assert_ok(pc_copy(b, pin));
        assert_counts(b, 5);
        assert_ok(pc_copy(back, a));
        assert_counts(back, 5);
        assert_ok(pc_copy(to, b));
        assert_counts(to, 5);
        assert_ok(pc_fill(b, 0));
        assert_ok(pc_copy(b, a));
        assert_ok(pc_copy(there, b));
        assert_counts(there, 5);
        assert_counts(pc_to(a, PC_DEVICE_CPU, PC_F32, false), 5);
        pc_tensor *copy = pc_pin(a, device);
        assert_true(copy && pc_tensor_device(copy).type == PC_CPU && (copy == a) == (device.type == PC_CPU));
        assert_counts(copy, 5);
        assert_counts(pc_cast(pc_cast(pc_slice(a, 0, 0, N, 1), PC_F64), PC_F32), 5);
    }
    pc_tensor_free(a);
    pc_tensor_free(b);
}

static void recordings_use_it(void **state)
{
    (void)state;
    const pc_device device = test_device();
    pc_stream *stream = pc_stream(device);
    pc_tensor *h = hosted(N, device);
    PC_SCOPE {
        pc_tensor *one = pc_ones(PC_SHAPE(N), PC_F32, device), *out = pc_zeros(PC_SHAPE(N), PC_F32, device),
                  *pin = pc_pin(pc_zeros(PC_SHAPE(N), PC_F32, PC_DEVICE_CPU), device);
        assert_ok(pc_copy(h, pc_arange(0, N, 1, PC_F32, device)));
        assert_ok(pc_graph_begin(stream));
        PC_WITH_STREAM(stream) {
            assert_ok(pc_copy(out, pc_mul_scalar(h, 1)));
            assert_ok(pc_saxpy(h, 1, one));
            assert_ok(pc_copy(pin, h));
        }
        pc_graph *graph = pc_graph_end(stream);
        assert_not_null_ok(graph);
        for (int i = 0; i < 3; i++) {
            assert_ok(pc_graph_launch(graph, NULL));
            assert_counts(out, i);
            assert_counts(h, i + 1);
            assert_counts(pin, i + 1);
        }
        pc_graph_free(graph);
    }
    pc_tensor_free(h);
    pc_stream_free(stream);
}

static void other_streams_wait(void **state)
{
    (void)state;
    const pc_device device = test_device();
    pc_stream *side = pc_stream(device);
    pc_tensor *h = hosted(N, device);
    PC_SCOPE {
        pc_tensor *one = pc_ones(PC_SHAPE(N), PC_F32, device);
        assert_ok(pc_copy(h, pc_arange(0, N, 1, PC_F32, device)));
        for (int i = 0; i < 20; i++)
            if (i % 2)
                PC_WITH_STREAM(side)
                    assert_ok(pc_saxpy(h, 1, one));
            else
                assert_ok(pc_saxpy(h, 1, one));
        assert_counts(h, 20);
    }
    pc_tensor_free(h);
    pc_stream_free(side);
}

/* Pinned memory is all devices' of a kind, and the host's. */
static void what_is_kept_goes_to_any(void **state)
{
    (void)state;
    const pc_device device = test_device(), other = {device.type, (int16_t)(device.type == PC_SIM ? 1 : device.index)};
    if (device.type == PC_CPU || getenv("PARACORD_CACHE"))
        skip();
    for (int i = 0; i < 4; i++) {
        pc_tensor *h = i == 2 ? pc_empty_pinned(PC_SHAPE(N), PC_F32, device) : hosted(N, i % 2 ? other : device);
        const pc_device where = i == 2 ? PC_DEVICE_CPU : i % 2 ? other : device;
        assert_true(pc_device_equal(pc_tensor_device(h), where));
        PC_SCOPE {
            assert_ok(pc_copy(h, pc_arange(i, N + i, 1, PC_F32, where)));
            assert_counts(h, i);
        }
        assert_true(pinned() >= N * 4);
        pc_tensor_free(h);
        assert_ok(pc_device_synchronize(where));
        assert_true(!pinned() && test_memory().pinned_cached >= N * 4);
    }
    assert_ok(pc_memory_trim(device));
    assert_int_equal(test_memory().pinned_cached, 0);
}

static void too_much(void **state)
{
    (void)state;
    const pc_device device = test_device();
    if (device.type == PC_CPU)
        skip();
    const int64_t much = (int64_t)1 << 50;
    char name[PC_DEVICE_NAME_MAX], words[64];
    snprintf(words, sizeof words, "out of pinned host memory for %s: a test asked for ", pc_device_name(device, name));
    assert_fails(hosted(much, device), PC_ERR_MEMORY, words);
    assert_fails(hosted(much, device), PC_ERR_MEMORY, "4.0 PiB");
    assert_fails(hosted(much, device), PC_ERR_MEMORY, "free host memory, raise the limits of the process");
    assert_int_equal(pinned(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(kernels_use_it, nothing_left),
        cmocka_unit_test_teardown(copies_every_way, nothing_left),
        cmocka_unit_test_teardown(recordings_use_it, nothing_left),
        cmocka_unit_test_teardown(other_streams_wait, nothing_left),
        cmocka_unit_test_teardown(what_is_kept_goes_to_any, nothing_left),
        cmocka_unit_test_teardown(too_much, nothing_left),
    };
    return cmocka_run_group_tests_name("device.hosted", tests, NULL, NULL);
}

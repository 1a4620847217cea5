/* The caching allocator's figures, and replacing the allocator under everything. */
#include "support.h"

#include <paracord/memory.h>
#include <paracord/ops.h>
#include <stdlib.h>

static pc_memory_stats stats(void)
{
    pc_memory_stats s;
    assert_ok(pc_memory_query(PC_DEVICE_CPU, &s));
    return s;
}

static void blocks_are_used_again(void **state)
{
    (void)state;
    assert_ok(pc_memory_trim(PC_DEVICE_CPU));
    pc_memory_stats before = stats();
    assert_int_equal(before.in_use, 0);
    assert_int_equal(before.cached, 0);
    pc_tensor *a = pc_empty(PC_SHAPE(1000), PC_F32, PC_DEVICE_CPU);
    void *place = pc_data(a);
    pc_memory_stats now = stats();
    assert_true(now.in_use >= 4000 && now.in_use <= 4500);
    assert_int_equal(now.requests, before.requests + 1);
    assert_int_equal(now.misses, before.misses + 1);
    pc_tensor_free(a);
    assert_int_equal(stats().in_use, 0);
    assert_int_equal(stats().cached, now.in_use);
    a = pc_empty(PC_SHAPE(990), PC_F32, PC_DEVICE_CPU); /* of the same size class */
    assert_ptr_equal(pc_data(a), place);
    assert_int_equal(stats().misses, before.misses + 1);
    assert_int_equal(stats().cached, 0);
    pc_tensor_free(a);
    assert_ok(pc_memory_trim(PC_DEVICE_CPU));
    assert_int_equal(stats().cached, 0);
    assert_true(stats().peak >= now.in_use);
    assert_int_equal(pc_allocator_live(), 0);
}

/* Rounding loses at most an eighth (above 512 bytes), blocks are aligned, and every size is given back as it was taken.
 */
static void sizes(void **state)
{
    (void)state;
    for (int64_t bytes = 0; bytes < 300000; bytes += bytes < 2000 ? 1 : 977) {
        pc_tensor *t = pc_empty(PC_SHAPE(bytes), PC_U8, PC_DEVICE_CPU);
        assert_true((uintptr_t)pc_data(t) % 64 == 0);
        int64_t taken = stats().in_use;
        assert_true(taken >= bytes && (taken <= 512 || taken <= bytes + bytes / 8 + 64));
        memset(pc_data(t), 1, (size_t)bytes);
        pc_tensor_free(t);
        assert_int_equal(stats().in_use, 0);
    }
    assert_ok(pc_memory_trim(PC_DEVICE_CPU));
    assert_int_equal(stats().cached, 0);
}

static void too_much(void **state)
{
    (void)state;
    assert_fails(pc_empty(PC_SHAPE((int64_t)1 << 50), PC_U8, PC_DEVICE_CPU), PC_ERR_MEMORY, "out of memory on cpu");
    assert_fails(pc_empty(PC_SHAPE((int64_t)1 << 40, (int64_t)1 << 40), PC_F32, PC_DEVICE_CPU), PC_ERR_MEMORY,
                 "more elements than any memory");
    assert_int_equal(stats().in_use, 0);
}

static int alive, calls;

static void *counting_alloc(void *context, size_t bytes, size_t alignment)
{
    void *block = NULL;
    assert_ptr_equal(context, &alive);
    assert_true(bytes > 0 && alignment >= 16 && (alignment & (alignment - 1)) == 0);
    alive++, calls++;
    return posix_memalign(&block, alignment, bytes) == 0 ? block : NULL;
}

static void *counting_resize(void *context, void *block, size_t bytes)
{
    assert_ptr_equal(context, &alive);
    assert_non_null(block);
    return realloc(block, bytes);
}

static void counting_free(void *context, void *block)
{
    assert_ptr_equal(context, &alive);
    assert_non_null(block);
    alive--;
    free(block);
}

static void one_allocator_under_everything(void **state)
{
    (void)state;
    const pc_allocator counting = {counting_alloc, counting_resize, counting_free, &alive};
    assert_ok(pc_memory_trim(PC_DEVICE_CPU));
    assert_ok(pc_allocator_set(&counting));
    PC_SCOPE {
        pc_tensor *t = pc_softmax(pc_rand(PC_SHAPE(30, 30), PC_F32, PC_DEVICE_CPU), 0);
        pc_text_free(pc_tensor_text(t));
        assert_int_equal(alive, pc_allocator_live());
        assert_fails(pc_allocator_set(NULL), PC_ERR_STATE, "still alive");
    }
    assert_true(calls > 5);
    assert_ok(pc_memory_trim(PC_DEVICE_CPU));
    assert_int_equal(alive, 0);
    assert_ok(pc_allocator_set(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_used_again),
        cmocka_unit_test(sizes),
        cmocka_unit_test(too_much),
        cmocka_unit_test(one_allocator_under_everything),
    };
    return cmocka_run_group_tests_name("device.cache", tests, NULL, NULL);
}

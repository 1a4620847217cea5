/* Tensors on different devices in one op: refused, with both named. The second device is made up: nothing runs there.
 */
#include "device/storage.h"
#include "support.h"
#include "tensor/tensor.h"

#include <paracord/ops.h>

static float memory[4];

/* A tensor that says it is on sim:5. */
static pc_tensor *elsewhere(void)
{
    pc__storage *storage = pc__storage_wrap((pc_device){PC_SIM, 5}, memory, sizeof memory, NULL, NULL);
    assert_non_null(storage);
    pc_tensor holder = {.storage = storage};
    pc__meta meta;
    pc__meta_contiguous(&meta, PC_F32, 1, (int64_t[]){4});
    meta.view_of = &holder;
    pc_tensor *t = pc__tensor_unscoped(&meta, storage->device);
    assert_non_null(t);
    return t;
}

static void drop(pc_tensor *t)
{
    t->storage->device = PC_DEVICE_CPU; /* so that nobody waits for sim:5 */
    pc__storage *storage = t->storage;
    pc_tensor_free(t);
    pc__storage_drop(storage);
}

static void both_devices_are_named(void **state)
{
    (void)state;
    pc_tensor *far = elsewhere();
    PC_SCOPE {
        pc_tensor *here = pc_ones(PC_SHAPE(4), PC_F32, PC_DEVICE_CPU);
        assert_fails(pc_add(here, far), PC_ERR_DEVICE, "add: the inputs are on cpu and sim:5; move one with pc_to");
        assert_fails(pc_mul(far, here), PC_ERR_DEVICE, "sim:5 and cpu");
        assert_fails(pc_bce_with_logits(here, far), PC_ERR_DEVICE, "bce_with_logits");
        assert_fails(pc_cat((pc_tensor *[]){here, far}, 2, 0), PC_ERR_DEVICE, "cat");
        assert_fails(pc_fn_linear(here, pc_ones(PC_SHAPE(4, 4), PC_F32, PC_DEVICE_CPU), far, PC_ACTIVATION_NONE),
                     PC_ERR_DEVICE, "linear");
        assert_fails(pc_saxpy(here, 1, far), PC_ERR_DEVICE,
                     "saxpy: the tensor to write is on cpu and the input on sim:5");
        assert_fails(pc_saxpy(far, 1, here), PC_ERR_DEVICE, "sim:5");
        assert_close(pc_item(pc_sum(here)), 4, 0);
        assert_int_equal(pc_tensor_device(far).index, 5);
    }
    drop(far);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(both_devices_are_named)};
    return cmocka_run_group_tests_name("device.mixed", tests, NULL, NULL);
}

/* Devices as text and back, the current one, and what is said about those that are not there. */
#include "support.h"

#include <paracord/device.h>
#include <paracord/ops.h>
#include <pthread.h>

static void round_trips(void **state)
{
    (void)state;
    char name[PC_DEVICE_NAME_MAX];
    pc_device device;
    assert_ok(pc_device_parse("cpu", &device));
    assert_true(pc_device_equal(device, PC_DEVICE_CPU));
    assert_string_equal(pc_device_name(device, name), "cpu");
    assert_ok(pc_device_parse("auto", &device));
    assert_string_equal(pc_device_name((pc_device){PC_CUDA, 1}, name), "cuda:1");
    assert_string_equal(pc_device_name((pc_device){PC_SIM, 0}, name), "sim:0");
    assert_string_equal(pc_device_name((pc_device){-1, 0}, name), "none");
    assert_string_equal(pc_device_name((pc_device){PC_CUDA, INT16_MAX}, name), "cuda:32767");
    assert_false(pc_device_equal((pc_device){PC_CUDA, 0}, (pc_device){PC_CUDA, 1}));
}

static void every_listed_device_is_there(void **state)
{
    (void)state;
    char list[512], *rest = NULL;
    assert_ptr_equal(pc_device_list(list, sizeof list), list);
    assert_true(strncmp(list, "cpu", 3) == 0);
    for (char *name = strtok_r(list, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest)) {
        char again[PC_DEVICE_NAME_MAX];
        pc_device device;
        assert_ok(pc_device_parse(name, &device));
        assert_string_equal(pc_device_name(device, again), name);
    }
    char shorter[4];
    assert_string_equal(pc_device_list(shorter, sizeof shorter), "cpu");
    char one[1];
    assert_string_equal(pc_device_list(one, sizeof one), "");
}

static void other_text_names_the_valid_ones(void **state)
{
    (void)state;
    const char *const bad[] = {"",         "gpu",     "CPU",   "cuda:", "cuda:x",
                               "cuda:-1",  "cuda:1x", "cpu:1", "cuda0", "auto:0",
                               "cuda: 0 ", " cpu",    "cpu ",  "tpu:0", "cuda:99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        pc_device device = PC_DEVICE_CPU;
        assert_fails(pc_device_parse(bad[i], &device), PC_ERR_ARGUMENT, "write auto, cpu, sim:N or cuda:N (here: cpu");
        assert_int_equal(device.type, -1);
    }
    pc_device device;
    assert_fails(pc_device_parse(NULL, &device), PC_ERR_ARGUMENT, "pc_device_parse: text is NULL");
    assert_int_equal(device.type, -1);
    char endless[2000];
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = 0;
    assert_fails(pc_device_parse(endless, &device), PC_ERR_ARGUMENT, "xxxx");
    assert_fails(pc_device_pick("gpu").type, PC_ERR_ARGUMENT, "\"gpu\" is no device");
}

static void missing_devices_name_those_there(void **state)
{
    (void)state;
    pc_device device;
    assert_fails(pc_device_parse("cuda:60", &device), PC_ERR_DEVICE, "there is no device cuda:60");
    assert_fails(pc_device_parse("cuda:60", &device), PC_ERR_DEVICE, "the devices are: cpu");
    assert_fails(pc_device_set_current((pc_device){PC_CUDA, 63}), PC_ERR_DEVICE, "the devices are: cpu");
    assert_fails(pc_device_set_current((pc_device){PC_CPU, 1}), PC_ERR_DEVICE, "no device");
    assert_fails(pc_device_set_current((pc_device){77, 0}), PC_ERR_DEVICE, "none");
}

static void counts_say_why(void **state)
{
    (void)state;
    char why[256] = "unset", reason[256] = "unset";
    assert_int_equal(pc_device_count(PC_CPU, why, sizeof why), 1);
    assert_int_equal(pc_device_count(PC_CPU, NULL, 0), 1);
    assert_true(pc_device_available(PC_CPU));
    for (int type = PC_SIM; type <= PC_CUDA; type++) {
        int count = pc_device_count((pc_device_type)type, why, sizeof why);
        assert_true(count > 0 || strlen(why) > 10);
        assert_int_equal(pc_device_available((pc_device_type)type), count > 0);
        assert_string_equal(pc_device_unavailable_reason((pc_device_type)type, reason, sizeof reason),
                            count ? "" : why);
    }
    assert_string_equal(pc_device_unavailable_reason(PC_CPU, reason, sizeof reason), "");
    assert_int_equal(pc_device_count((pc_device_type)99, why, sizeof why), 0);
    assert_non_null(strstr(why, "99"));
}

/* A device of type -1 goes through factories as NULL goes through ops: the first error stays. */
static void no_device_flows(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_error_clear();
        pc_device none = pc_device_pick("gpu");
        pc_tensor *y = pc_add(pc_zeros(PC_SHAPE(2), PC_F32, none), pc_arange(0, 2, 1, PC_F32, none));
        assert_null(y);
        assert_int_equal(pc_error_last()->status, PC_ERR_ARGUMENT);
        assert_non_null(strstr(pc_error_last()->message, "\"gpu\""));
        pc_error_clear();
        assert_int_equal(pc_tensor_device(NULL).type, -1);
        assert_int_equal(pc_tensor_device(pc_ones(PC_SHAPE(1), PC_F32, PC_DEVICE_CPU)).type, PC_CPU);
    }
}

static void *current_of_a_new_thread(void *argument)
{
    *(pc_device *)argument = pc_device_current();
    return NULL;
}

static void each_thread_has_its_own_current_device(void **state)
{
    (void)state;
    pc_device best, there;
    assert_ok(pc_device_parse("auto", &best));
    assert_true(pc_device_equal(pc_device_current(), best));
    assert_ok(pc_device_set_current(PC_DEVICE_CPU));
    assert_true(pc_device_equal(pc_device_current(), PC_DEVICE_CPU));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, current_of_a_new_thread, &there), 0);
    pthread_join(thread, NULL);
    assert_true(pc_device_equal(there, best));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trips),
        cmocka_unit_test(every_listed_device_is_there),
        cmocka_unit_test(other_text_names_the_valid_ones),
        cmocka_unit_test(missing_devices_name_those_there),
        cmocka_unit_test(counts_say_why),
        cmocka_unit_test(no_device_flows),
        cmocka_unit_test(each_thread_has_its_own_current_device),
    };
    return cmocka_run_group_tests_name("device.names", tests, NULL, NULL);
}

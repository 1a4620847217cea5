/* Asking the driver's library, played by plugins/nvml.c: facts, samples, a call that hangs, a library that crashes. */
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include <paracord/memory.h>
#include <paracord/probe.h>

#include "support.h"

static pc_machine *probe(const char *behaviour, int timeout_ms)
{
    setenv("FAKE_NVML", behaviour, 1);
    pc_machine *m = pc_machine_probe(
        &(pc_probe_options){.nvml = PC_TEST_PLUGINS "/libfake-nvml.so", .timeout_ms = timeout_ms, .recording = true});
    assert_not_null_ok(m);
    return m;
}

static const pc_probe_device *fake(const pc_machine *m)
{
    for (int i = 0; i < m->device_count; i++)
        if (!strcmp(m->devices[i].address.text, "00007777:01:00.0"))
            return &m->devices[i];
    fail_msg("the GPU of the library is not there; NVML: %s", m->nvml.known ? m->nvml.text : m->nvml.why);
    return NULL;
}

static void its_answers_are_facts(void **state)
{
    (void)state;
    pc_machine *m = probe("well", 20000);
    const pc_probe_device *d = fake(m);
    assert_string_equal(m->cuda_driver.text, "14.2");
    assert_string_equal(d->model.text, "Fake GPU");
    assert_true(d->memory_used.known && d->memory_used.number == 300);
    assert_true(d->power.known && d->power.number > 123.3 && d->power.number < 123.5);
    assert_false(d->fan.known);
    assert_string_equal(d->fan.why, "Not Supported");
    assert_false(d->clock_sm.known);
    assert_non_null(strstr(d->clock_sm.why, "nvmlDeviceGetClockInfo"));
    assert_int_equal(d->process_count, 2);
    assert_int_equal(d->processes[0].pid, 1);
    assert_true(d->processes[0].memory.known && d->processes[0].memory.number == 200);
    assert_null(d->processes[1].name);
    assert_false(d->processes[1].memory.known);
    pc_machine_free(m);
    assert_int_equal(pc_live_allocations(), 0);
}

static void samples_ask_again(void **state)
{
    (void)state;
    pc_machine *m = probe("well", 20000);
    assert_ok(pc_machine_sample(m));
    double before = fake(m)->temperature.number;
    assert_ok(pc_machine_sample(m));
    const pc_probe_device *d = fake(m);
    assert_true(d->temperature.known && d->temperature.number > before);
    assert_string_equal(d->model.text, "Fake GPU");
    assert_int_equal(d->process_count, 2);
    pc_machine_free(m);
}

static void a_call_that_hangs_is_cut_off_and_named(void **state)
{
    (void)state;
    pc_machine *m = probe("hang", 200);
    assert_non_null(m->hung);
    assert_non_null(strstr(m->hung, "nvmlDeviceGetPowerUsage for 00007777:01:00.0"));
    const pc_probe_device *d = fake(m);
    assert_string_equal(d->model.text, "Fake GPU");
    assert_false(d->power.known);
    assert_non_null(strstr(d->power.why, "nvmlDeviceGetPowerUsage"));
    setenv("FAKE_NVML", "well", 1); /* the next child finds it well again */
    assert_ok(pc_machine_sample(m));
    assert_null(m->hung);
    assert_true(fake(m)->power.known);
    pc_machine_free(m);
    assert_int_equal(pc_live_allocations(), 0);
}

static void a_crash_takes_nobody_with_it(void **state)
{
    (void)state;
    pc_machine *m = probe("crash", 20000);
    assert_non_null(m->hung);
    assert_non_null(strstr(m->hung, "ended the process"));
    assert_false(fake(m)->power.known);
    pc_machine_free(m);
}

static void a_library_that_does_not_start_says_why(void **state)
{
    (void)state;
    pc_machine *m = probe("mismatch", 20000);
    assert_false(m->nvml.known);
    assert_non_null(strstr(m->nvml.why, "version mismatch"));
    assert_null(m->hung);
    pc_machine_free(m);
}

static void one_that_is_missing_too(void **state)
{
    (void)state;
    pc_machine *m = pc_machine_probe(&(pc_probe_options){.nvml = "/nonexistent/libnvidia-ml.so.1"});
    assert_not_null_ok(m);
    assert_false(m->nvml.known);
    assert_non_null(strstr(m->nvml.why, "/nonexistent/"));
    pc_machine_free(m);
}

/* What was read of this machine tells the same when it is read again. */
static void a_recording_tells_the_same(void **state)
{
    (void)state;
    char path[] = "/tmp/paracord-recording-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    pc_machine *m = probe("well", 20000);
    assert_ok(pc_machine_record(m, path));
    pc_machine *again = pc_machine_probe(&(pc_probe_options){.root = path});
    assert_not_null_ok(again);
    assert_int_equal(again->device_count, m->device_count);
    assert_int_equal(again->toolkit_count, m->toolkit_count);
    assert_string_equal(fake(again)->model.text, "Fake GPU");
    for (int i = 0; pc_machine_fact(i); i++) {
        const pc_fact_row *row = pc_machine_fact(i);
        const pc_fact *was = pc_fact_of(row, m), *is = pc_fact_of(row, again);
        if (was->known != is->known || (was->text && strcmp(was->text, is->text)) ||
            (!row->changes && was->number != is->number))
            fail_msg("%s: %s, recorded %s", row->name, was->text ? was->text : was->why, is->text ? is->text : is->why);
    }
    for (int i = 0; i < m->library_count; i++) {
        const char *was = m->libraries[i].path, *is = again->libraries[i].path;
        if (!was != !is || (was && strcmp(was, is)))
            fail_msg("%s: %s, recorded %s", m->libraries[i].name, was ? was : "none", is ? is : "none");
    }
    pc_machine_free(again);
    pc_machine_free(m);
    unlink(path);
    close(file);
}

static void without_recording_there_is_nothing_to_write(void **state)
{
    (void)state;
    pc_machine *m = pc_machine_probe(&(pc_probe_options){.without_driver = true});
    assert_not_null_ok(m);
    assert_fails(pc_machine_record(m, "/tmp/paracord-none"), PC_ERR_STATE, ".recording");
    pc_machine_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_answers_are_facts),
        cmocka_unit_test(samples_ask_again),
        cmocka_unit_test(a_call_that_hangs_is_cut_off_and_named),
        cmocka_unit_test(a_crash_takes_nobody_with_it),
        cmocka_unit_test(a_library_that_does_not_start_says_why),
        cmocka_unit_test(one_that_is_missing_too),
        cmocka_unit_test(a_recording_tells_the_same),
        cmocka_unit_test(without_recording_there_is_nothing_to_write),
    };
    return cmocka_run_group_tests_name("probe.driver", tests, NULL, NULL);
}

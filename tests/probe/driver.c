/* Asking the driver's library, played by plugins/nvml.c: facts, samples, a call that hangs, a library that crashes. */
#include <stdbool.h>
#include <stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <paracord-tools/doctor.h>
#include <paracord/memory.h>
#include <paracord-tools/probe.h>

#include "probe/probe.h"
#include "support.h"

static pc_machine *probe(const char *behaviour, int timeout_ms)
{
    setenv("FAKE_NVML", behaviour, 1);
    pc_machine *m = pc_machine(.nvml = PC_TEST_PLUGINS "/libfake-nvml.so", .timeout_ms = timeout_ms, .recording = true);
    assert_not_null_ok(m);
    return m;
}

static const pc_probe_device *fake(const pc_machine *m)
{
    for (int i = 0; i < m->device_count; i++)
        if (!strcmp(m->devices[i].address.text, "7777:01:00.0"))
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
    assert_int_equal(pc_allocator_live(), 0);
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

/* A machine whose driver hangs in that call. A limit that is short for a busy machine would cut off another call
 * before: then it is asked again with a longer one. */
static pc_machine *probe_hung(const char *behaviour, const char *call)
{
    for (int limit_ms = 50;; limit_ms *= 2) {
        pc_machine *m = probe(behaviour, limit_ms);
        assert_non_null(m->hung);
        if (strstr(m->hung, call))
            return m;
        if (limit_ms > 10000)
            fail_msg("%s: want %s, got %s", behaviour, call, m->hung);
        pc_machine_free(m);
    }
}

static void a_call_that_hangs_is_cut_off_and_named(void **state)
{
    (void)state;
    static const char *const ways[] = {"hang", "hang-deaf"};
    for (int i = 0; i < 2; i++) {
        pc_machine *m = probe_hung(ways[i], "nvmlDeviceGetPowerUsage for 00007777:01:00.0");
        const pc_probe_device *d = fake(m);
        assert_string_equal(d->model.text, "Fake GPU");
        assert_false(d->power.known);
        assert_non_null(strstr(d->power.why, "nvmlDeviceGetPowerUsage"));
        setenv("FAKE_NVML", "well", 1); /* the next child finds it well again */
        for (int again = 0; again == 0 || (m->hung && again < 100); again++)
            assert_ok(pc_machine_sample(m));
        assert_null(m->hung);
        assert_true(fake(m)->power.known);
        pc_machine_free(m);
    }
    assert_int_equal(pc_allocator_live(), 0);
}

static void so_is_one_that_hangs_from_the_start(void **state)
{
    (void)state;
    pc_machine *m = probe_hung("hang-init", "nvmlInit_v2");
    assert_false(m->nvml.known);
    assert_non_null(strstr(m->nvml.why, "did not answer nvmlInit_v2 in time"));
    pc_machine_free(m);
}

static void a_crash_takes_nobody_with_it(void **state)
{
    (void)state;
    static const char *const ways[] = {"crash", "kill", "exit"};
    for (int i = 0; i < 3; i++) {
        pc_machine *m = probe(ways[i], 20000);
        assert_non_null(m->hung);
        assert_non_null(strstr(m->hung, "ended the process"));
        assert_non_null(strstr(m->hung, "nvmlDeviceGetPowerUsage"));
        assert_false(fake(m)->power.known);
        pc_machine_free(m);
    }
}

/* A GPU that another one's container has is not lost. */
static void a_gpu_that_is_forbidden_is_nobodys_fault(void **state)
{
    (void)state;
    pc_machine *m = probe("forbidden", 20000);
    assert_true(fake(m)->power.known);
    assert_null(m->lost);
    pc_machine_free(m);
    m = probe("lost", 20000);
    assert_string_equal(m->lost, "GPU 1: GPU is lost");
    pc_machine_free(m);
}

static void a_link_with_an_error_hides_no_other(void **state)
{
    (void)state;
    pc_machine *m = probe("links", 20000);
    const pc_probe_device *d = fake(m);
    assert_int_equal(d->link_count, 3);
    assert_true(d->nvlinks.known && d->nvlinks.number == 4);
    assert_true(d->nvlinks_active.known && d->nvlinks_active.number == 3);
    pc_machine_free(m);
    m = probe("well", 20000); /* it has none */
    assert_true(fake(m)->nvlinks.known && fake(m)->nvlinks.number == 0);
    pc_machine_free(m);
}

static void values_that_mean_unknown_are_none(void **state)
{
    (void)state;
    pc_machine *m = probe("unknown", 20000);
    const pc_probe_device *d = fake(m);
    assert_false(d->performance_state.known);
    assert_false(d->power.known);
    assert_false(d->fan.known);
    assert_non_null(strstr(d->fan.why, "does not know"));
    assert_false(d->utilization_encoder.known);
    assert_false(d->processes_known.known); /* the list of those that draw is empty, and not all there is */
    pc_machine_free(m);
    m = probe("well", 20000);
    assert_string_equal(fake(m)->performance_state.text, "P2");
    assert_true(fake(m)->processes_known.known);
    assert_true(fake(m)->utilization_encoder.known && fake(m)->utilization_encoder.number == 7);
    pc_machine_free(m);
}

/* What the library prints is not the program's output, and what the program has not written yet is written once. */
static void what_it_prints_goes_nowhere(void **state)
{
    (void)state;
    char text[256] = "";
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    printf("before ");
    pc_machine *m = probe("chatter", 20000);
    pc_machine *exits = probe("exit", 20000);
    printf("behind");
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    close(out);
    close(err);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    assert_string_equal(text, "before behind");
    assert_true(fake(m)->power.known);
    pc_machine_free(m);
    pc_machine_free(exits);
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
    pc_machine *m = pc_machine(.nvml = "/nonexistent/libnvidia-ml.so.1");
    assert_not_null_ok(m);
    assert_false(m->nvml.known);
    assert_non_null(strstr(m->nvml.why, "/nonexistent/"));
    pc_machine_free(m);
}

/* Whether the doctor says of a process that it holds memory and is not there. */
static bool is_missed(pc_machine *m, long process)
{
    char words[64];
    bool missed = false;
    snprintf(words, sizeof words, "Process %ld (", process);
    ((pc__machine *)m)->numbers_elsewhere = false; /* wherever the test runs: there nobody is missed */
    pc_diagnosis *d = pc_diagnosis(m);
    assert_not_null_ok(d);
    for (int i = 0; i < d->finding_count; i++)
        missed |= !strcmp(d->findings[i].check, "orphans") && strstr(d->findings[i].how, words);
    pc_diagnosis_free(d);
    return missed;
}

/* One that ended well since the driver was asked is none that holds memory; one that is still listed is. */
static void programs_may_end_while_the_doctor_looks(void **state)
{
    (void)state;
    char path[] = "/tmp/paracord-machine-XXXXXX", number[32];
    const int file = mkstemp(path);
    const pid_t program = fork();
    assert_true(file >= 0 && program >= 0);
    if (program == 0)
        for (;;)
            pause();
    snprintf(number, sizeof number, "%d", (int)program);
    setenv("FAKE_NVML_PROCESS", number, 1);
    pc_machine *m = probe("well", 20000);
    assert_int_equal(fake(m)->process_count, 3);
    kill(program, SIGKILL);
    assert_int_equal(waitpid(program, NULL, 0), program);
    assert_false(is_missed(m, program));
    assert_true(is_missed(m, 999999999));
    assert_ok(pc_machine_record(m, path));
    pc_machine_free(m);
    m = pc_machine(.root = path);
    assert_not_null_ok(m);
    assert_int_equal(fake(m)->process_count, 3);
    assert_false(is_missed(m, program));
    assert_true(is_missed(m, 999999999));
    pc_machine_free(m);
    unsetenv("FAKE_NVML_PROCESS");
    unlink(path);
    close(file);
}

enum { HELD_BY_NOBODY = -1 };

/* How the doctor says that memory is held without a process. */
static int held_on(pc_machine *m)
{
    int severity = HELD_BY_NOBODY;
    ((pc__machine *)m)->numbers_elsewhere = false;
    pc_diagnosis *d = pc_diagnosis(m);
    assert_not_null_ok(d);
    for (int i = 0; i < d->finding_count; i++)
        if (!strcmp(d->findings[i].check, "orphans"))
            severity = (int)d->findings[i].severity;
    pc_diagnosis_free(d);
    return severity;
}

/* Whether a GPU computes counts when the doctor has not yet used it; memory that is given back meanwhile is nobody's
 * fault. The recording says the same. */
static void memory_may_be_given_back_while_the_doctor_looks(void **state)
{
    (void)state;
    static const struct {
        const char *first, *then;
        int severity;
    } all[] = {{"held", "held", PC_SEVERITY_WRONG},
               {"held", "unused", HELD_BY_NOBODY},
               {"held", "held-and-busy", PC_SEVERITY_WRONG},
               {"held-and-busy", "held", PC_SEVERITY_ADVICE},
               {"held-and-busy", "unused", HELD_BY_NOBODY}};
    for (int i = 0; i < (int)(sizeof all / sizeof *all); i++) {
        char path[] = "/tmp/paracord-machine-XXXXXX";
        const int file = mkstemp(path);
        pc_machine *m = probe(all[i].first, 20000);
        assert_int_equal(fake(m)->process_count, 0);
        setenv("FAKE_NVML", all[i].then, 1);
        assert_int_equal(held_on(m), all[i].severity);
        assert_ok(pc_machine_record(m, path));
        pc_machine_free(m);
        m = pc_machine(.root = path);
        assert_not_null_ok(m);
        assert_int_equal(held_on(m), all[i].severity);
        pc_machine_free(m);
        unlink(path);
        close(file);
    }
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
    pc_machine *again = pc_machine(.root = path);
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
    pc_machine *m = pc_machine(.without_driver = true);
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
        cmocka_unit_test(so_is_one_that_hangs_from_the_start),
        cmocka_unit_test(a_crash_takes_nobody_with_it),
        cmocka_unit_test(a_gpu_that_is_forbidden_is_nobodys_fault),
        cmocka_unit_test(a_link_with_an_error_hides_no_other),
        cmocka_unit_test(values_that_mean_unknown_are_none),
        cmocka_unit_test(what_it_prints_goes_nowhere),
        cmocka_unit_test(a_library_that_does_not_start_says_why),
        cmocka_unit_test(one_that_is_missing_too),
        cmocka_unit_test(programs_may_end_while_the_doctor_looks),
        cmocka_unit_test(memory_may_be_given_back_while_the_doctor_looks),
        cmocka_unit_test(a_recording_tells_the_same),
        cmocka_unit_test(without_recording_there_is_nothing_to_write),
    };
    return cmocka_run_group_tests_name("probe.driver", tests, NULL, NULL);
}

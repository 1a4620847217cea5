/* What pc_peers_try says of sim devices that work, that spoil what goes between them, and that hang; and what the doctor
 * makes of it. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <paracord-tools.h>
#include <paracord.h>

#include "support.h"

static char lines[PC_PEERS_TEXT];

/* In a process whose sim devices nobody has touched: PARACORD_SIM is read once. */
static void try(const char *sim, int timeout_ms)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        static char text[PC_PEERS_TEXT];
        setenv("PARACORD_SIM", sim, 1);
        const pc_status status =
            pc_peers_try(PC_OPTIONS(pc_peers_options, .type = PC_SIM, .timeout_ms = timeout_ms), text);
        const ssize_t n = write(ends[1], text, strlen(text));
        _exit(status != PC_OK || n < 0);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t n; (n = read(ends[0], lines + length, sizeof lines - 1 - length)) > 0;)
        length += (size_t)n;
    lines[length] = 0;
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

#define assert_has(words)                                                                                              \
    do {                                                                                                               \
        if (!strstr(lines, words))                                                                                     \
            fail_msg("want \"%s\" in\n%s", words, lines);                                                              \
    } while (0)

static int line_count(void)
{
    int count = 0;
    for (const char *c = lines; *c; c++)
        count += *c == '\n';
    return count;
}

static void devices_that_work(void **state)
{
    (void)state;
    try("3", 20000);
    assert_has("devices sim 3");
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            char want[64];
            snprintf(want, sizeof want, "sim:%d sim:%d intact\n", i, j);
            if (i != j)
                assert_has(want);
        }
    assert_has("all-reduce 3 intact\n");
    assert_int_equal(line_count(), 1 + 6 + 1);
}

static void too_few_devices(void **state)
{
    (void)state;
    try("1", 20000);
    assert_string_equal(lines, "devices sim 1 \n");
    try("0", 20000);
    assert_string_equal(lines, "devices sim 0 PARACORD_SIM=0 asks for none\n");
}

/* Each device spoils the first thing that goes between it and another one. */
static void what_is_spoilt_is_found(void **state)
{
    (void)state;
    try("2,fail=corrupt:1", 20000);
    assert_has("sim:0 sim:1 corrupt 1 of 16777216 bytes, the first at 16777215\n");
    assert_has("all-reduce 2 corrupt 1 of 16777216 bytes, the first at 16777215\n");
    assert_has("all-reduce-without-p2p 2 corrupt ");
}

/* Only the third copy, and only the all-reduce. */
static void what_is_spoilt_now_and_then_is_found(void **state)
{
    (void)state;
    try("2,fail=corrupt:3@0", 20000);
    assert_has("corrupt 1 of");
    assert_has("intact");
}

static void what_hangs_is_left_behind(void **state)
{
    (void)state;
    try("2,fail=hang:1", 1000);
    assert_has("sim:0 sim:1 hangs 1.0 s\n");
    assert_has("sim:1 sim:0 hangs 1.0 s\n");
    assert_null(strstr(lines, "all-reduce 2")); /* it would hang, too */
    assert_has("all-reduce-without-p2p 2 hangs 6.0 s\n");
}

/* Three hung copies are enough. */
static void many_hangs_end_it(void **state)
{
    (void)state;
    try("4,fail=hang:1", 500);
    assert_int_equal(line_count(), 1 + 3 + 1);
}

static void devices_that_fail(void **state)
{
    (void)state;
    try("2,fail=lost:1", 20000);
    assert_has("sim:0 sim:1 failed sim:0 is lost");
    assert_has("all-reduce 2 failed ");
}

static void the_doctor_says_so(void **state)
{
    (void)state;
    pc_machine *m = pc_machine();
    assert_not_null_ok(m);
    static const struct {
        const char *lines, *check, *words;
    } cases[] = {
        {"devices sim 2\nsim:0 sim:1 hangs 1.0 s\n", "peer-copies", "NCCL_P2P_DISABLE=1"},
        {"devices sim 2\nsim:0 sim:1 corrupt 1 of 2 bytes\n", "peer-copies", "NCCL_P2P_DISABLE=1"},
        {"devices sim 2\nsim:0 sim:1 intact\nall-reduce 2 hangs 6.0 s\n", "all-reduce", "NCCL_P2P_DISABLE=1"},
        {"devices sim 2\nsim:0 sim:1 intact\nall-reduce 2 missing no NCCL\n", "all-reduce", "nccl"},
        {"devices sim 2\nsim:0 sim:1 intact\nall-reduce 2 intact\n", NULL, NULL},
        {"nonsense\n\n\n  \nsim:0\nsim:0 sim:1", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pc_diagnosis *d = pc_diagnosis(m, .job = PC_JOB_TRAIN, .peers = cases[i].lines);
        assert_not_null_ok(d);
        const pc_finding *found = NULL;
        for (int k = 0; k < d->finding_count; k++)
            if (!strcmp(d->findings[k].check, "peer-copies") || !strcmp(d->findings[k].check, "all-reduce"))
                found = &d->findings[k];
        assert_int_equal(found != NULL, cases[i].check != NULL);
        if (found)
            assert_string_equal(found->check, cases[i].check);
        if (found && !strstr(found->fix, cases[i].words))
            fail_msg("want \"%s\" in\n%s", cases[i].words, found->fix);
        pc_diagnosis_free(d);
    }
    pc_machine_free(m);
}

/* One GPU, or none, is no fault: it is named among what was not checked. */
static void too_few_are_no_finding(void **state)
{
    (void)state;
    pc_machine *m = pc_machine();
    assert_not_null_ok(m);
    static const struct {
        const char *lines, *why;
    } cases[] = {
        {"devices cuda 1\n", "it takes two GPUs, and there is one"},
        {"devices sim 0 PARACORD_SIM is not set\n", "it takes two GPUs, and there is none"},
        {"devices cuda 0 no plug-in\n", "it takes two GPUs, and Paracord can use none: no plug-in"},
        {"open cuda:1 hangs 30.0 s\n", "cuda:1 was not open after 30.0 s"},
        {"devices cuda 2\ncuda:0 cuda:1 failed out of memory\n",
         "the copy from cuda:0 to cuda:1 failed: out of memory"},
        {"devices cuda 2\nall-reduce 2 failed out of memory\n", "it failed: out of memory"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pc_diagnosis *d = pc_diagnosis(m, .job = PC_JOB_TRAIN, .peers = cases[i].lines);
        assert_not_null_ok(d);
        bool said = false;
        for (int k = 0; k < d->unseen_count; k++)
            said |= !strcmp(d->unseen[k].why, cases[i].why);
        if (!said)
            fail_msg("nobody says \"%s\"", cases[i].why);
        pc_diagnosis_free(d);
    }
    pc_machine_free(m);
}

static void other_types_are_refused(void **state)
{
    (void)state;
    assert_int_equal(pc_peers_try(PC_OPTIONS(pc_peers_options, .type = PC_CPU), lines), PC_ERR_ARGUMENT);
    pc_error_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_that_work),         cmocka_unit_test(too_few_devices),
        cmocka_unit_test(what_is_spoilt_is_found),   cmocka_unit_test(what_is_spoilt_now_and_then_is_found),
        cmocka_unit_test(what_hangs_is_left_behind), cmocka_unit_test(many_hangs_end_it),
        cmocka_unit_test(devices_that_fail),         cmocka_unit_test(the_doctor_says_so),
        cmocka_unit_test(too_few_are_no_finding),    cmocka_unit_test(other_types_are_refused),
    };
    return cmocka_run_group_tests_name("probe.peers", tests, NULL, NULL);
}

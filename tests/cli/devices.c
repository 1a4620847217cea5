/* paracord devices, topo and doctor from outside: exit statuses, formats, watching, refusals. */
#include "shell.h"

#define MACHINES PC_TEST_GOLDEN "/machines/"

static char output[OUTPUT_MAX];

static void assert_prints(const char *line, int status, const char *words)
{
    int got = shell(output, line);
    if (got != status || !strstr(output, words))
        fail_msg("%s: exit status %d, want %d; want \"%s\" in\n%s", line, got, status, words, output);
}

static void this_machine_answers(void **state)
{
    (void)state;
    NEED_BINARY();
    assert_prints("\"$P\" devices 2>&1", 0, "Compute on    cpu");
    assert_prints("\"$P\" device --json 2>&1", 0, "\"compute\": {\"current\": \"");
    assert_prints("\"$P\" topo 2>&1", 0, "evice");
    assert_int_not_equal(shell(output, "\"$P\" doctor 2>&1"), 2);
}

static void devices_for_people(void **state)
{
    (void)state;
    NEED_BINARY();
    assert_prints("\"$P\" devices --root ${M}healthy-h200.txt", 0, "0  NVIDIA H200  0000:01:00.0  cuda:0\n");
    assert_non_null(strstr(output, "   Memory     0 of 143771 MiB used\n"));
    assert_non_null(strstr(output, "held down by: idle"));
    assert_null(strstr(output, "Compute on")); /* that would be this machine's */
    assert_prints("\"$P\" devices --root ${M}no-driver-ubuntu.txt", 0, "no NVIDIA driver");
    assert_null(strstr(output, "0 MiB"));
    assert_prints("\"$P\" devices --all --root ${M}no-driver-ubuntu.txt", 0, "unknown: no kernel module has taken");
    assert_prints("\"$P\" devices --root ${M}driver-hangs.txt", 0, "did not answer nvmlDeviceGetMemoryInfo_v2");
}

static void unknown_memory_is_not_zero(void **state)
{
    (void)state;
    NEED_BINARY();
    assert_prints(
        "f=$(mktemp) && trap 'rm $f' EXIT && printf 'paracord machine 1\\n"
        "sys/bus/pci/devices/0000:01:00.0/class = 0x030200\\nsys/bus/pci/devices/0000:01:00.0/vendor = 0x10de\\n"
        "answers/nvml =\\n|gpu 0000:01:00.0\\n|mig MIG-1 ?\\n|mig MIG-2 1073741824\\n' >$f && "
        "\"$P\" devices --root $f",
        0, "MIG-1, memory unknown");
    assert_non_null(strstr(output, "MIG-2, 1024 MiB"));
}

/* No line of a description is longer than the terminal. */
static void forty_columns_are_enough(void **state)
{
    (void)state;
    NEED_BINARY();
    static const char *const machines[] = {"healthy-laptop", "healthy-8xh100", "healthy-mig", "healthy-jetson",
                                           "healthy-wsl2",   "orphan",         "healthy-amd", "driver-hangs"};
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        char line[256];
        snprintf(line, sizeof line, "COLUMNS=40 \"$P\" devices --root ${M}%s.txt | LC_ALL=C.UTF-8 grep -E '.{41,}'",
                 machines[i]);
        if (shell(output, line) != 1)
            fail_msg("%s: wider than 40 columns:\n%s", machines[i], output);
    }
}

static int count_of(const char *text, char letter)
{
    int count = 0;
    for (; *text; text++)
        count += *text == letter;
    return count;
}

static void csv_has_a_cell_for_each_fact(void **state)
{
    (void)state;
    NEED_BINARY();
    assert_int_equal(shell(output, "\"$P\" devices --csv --root ${M}healthy-2xa100.txt"), 0);
    assert_int_equal(count_of(output, '\n'), 3);
    char *second = strchr(output, '\n') + 1, *third = strchr(second, '\n') + 1;
    int cells = count_of(output, ',');
    second[-1] = third[-1] = 0;
    assert_int_equal(count_of(output, ','), count_of(second, ','));
    assert_int_equal(count_of(output, ','), count_of(third, ','));
    assert_int_equal(cells, 3 * count_of(output, ','));
    assert_non_null(strstr(output, "time,address,"));
    assert_non_null(strstr(second, ",0000:41:00.0,"));
}

static void watching_streams_samples(void **state)
{
    (void)state;
    NEED_BINARY();
    assert_int_equal(shell(output, "\"$P\" devices --csv --watch -n 3 -i 0.05 --root ${M}healthy-2xa100.txt"), 0);
    assert_int_equal(count_of(output, '\n'), 7);
    assert_int_equal(shell(output, "\"$P\" devices --json --watch -n 2 -i 0.05 --root ${M}healthy-2xa100.txt"), 0);
    assert_int_equal(count_of(output, '\n'), 2);
    assert_int_equal(strncmp(output, "{\"time\": \"20", 12), 0);
    assert_prints("\"$P\" devices --watch -n 2 -i 0.05 --root ${M}healthy-2xa100.txt", 0, "44 of 300 W");
    assert_null(strchr(output, '\033')); /* no terminal, no escapes */
    /* a reader that goes away ends it */
    assert_prints("\"$P\" devices --csv --watch -i 0.05 --root ${M}healthy-2xa100.txt 2>/dev/null | head -n 1", 0,
                  "time,");
}

static void topo_prints_the_matrix(void **state)
{
    (void)state;
    NEED_BINARY();
    assert_prints(
        "\"$P\" topo --root ${M}healthy-8xh100.txt", 0,
        "0      X      NV18   NV18   NV18   NV18   NV18   NV18   NV18   0-51,104-155    0      0000:1d:00.0 ");
    assert_prints("\"$P\" topo --root ${M}healthy-2xa100.txt --json", 0, "\"links\": [\"X\", \"SYS\"]");
    assert_prints("\"$P\" topo --root ${M}healthy-no-gpu.txt", 0, "no graphics or accelerator device to connect");
}

static void topo_says_how_collectives_go(void **state)
{
    (void)state;
    NEED_BINARY();
    assert_prints("COLUMNS=200 \"$P\" topo --root ${M}healthy-8xh100.txt", 0,
                  "  all 28 pairs   NVLink, at most 450.0 GB/s a direction: 18 links of NVLink through NVSwitches\n");
    assert_prints("COLUMNS=200 \"$P\" topo --root ${M}healthy-4xgeforce.txt", 0,
                  "  all 6 pairs    through host memory, ");
    assert_null(strstr(output, "What to change"));
    assert_prints("\"$P\" topo --root ${M}workstation-acs.txt", 0, "What to change\n  - ACS sends what GPUs send");
    assert_prints("\"$P\" topo --root ${M}workstation-acs.txt --json", 0,
                  "\"collectives\": {\"pairs\": [{\"devices\": [0, 1], \"way\": \"p2p\", "
                  "\"bytes_per_second_at_most\": 3.1507");
    assert_non_null(strstr(output, "\"advice\": [\"ACS sends"));
    assert_prints("\"$P\" topo --root ${M}healthy-h200.txt", 0, "0000:01:00.0");
    assert_null(strstr(output, "How collectives go"));
    assert_prints("\"$P\" topo --json --root ${M}healthy-h200.txt", 0,
                  "\"collectives\": {\"pairs\": [], \"all\": null}, \"advice\": [], \"measured\": []}");
    assert_prints("\"$P\" topo --json --root ${M}healthy-8xh100.txt", 0, "\"nvls\": \"available");
    assert_non_null(strstr(output, "device is there\"}}, \"advice\": [\"bind each rank"));
    assert_non_null(strstr(output, "--membind=N\"], \"measured\": []}\n"));
}

static void topo_measures_on_sim(void **state)
{
    (void)state;
    NEED_BINARY();
    assert_prints("PARACORD_SIM=2 \"$P\" topo --measure --json", 0,
                  "{\"from\": \"sim:0\", \"to\": \"sim:1\", \"bytes_per_second\": ");
    assert_non_null(strstr(output, "\"intact\": true"));
    assert_prints("PARACORD_SIM=2 \"$P\" topo --measure", 0, "Microseconds of a copy");
    assert_null(strstr(output, " \n"));
    assert_prints("PARACORD_SIM=1 \"$P\" topo --measure", 0, "it takes two GPUs, or two sim devices");
}

static void the_doctor_leaves_with_its_finding(void **state)
{
    (void)state;
    NEED_BINARY();
    assert_prints("\"$P\" doctor --root ${M}healthy-8xh100.txt", 0, "Nothing is wrong (44 checks, 8 NVIDIA GPUs)");
    assert_prints("\"$P\" doctor --root ${M}healthy-no-gpu.txt", 0, "No NVIDIA GPU is visible here");
    assert_prints("\"$P\" doctor --root ${M}nouveau-debian.txt", 1, "1 thing is wrong");
    assert_prints("\"$P\" doctor --root ${M}program-fault.txt", 0, "Nothing is wrong, 1 could be better");
    assert_prints("\"$P\" doctor --json --root ${M}version-mismatch.txt", 1, "{\"healthy\": false, \"wrong\": 1,");
    assert_prints("\"$P\" doctor --json --root ${M}healthy-h200.txt", 0, "{\"healthy\": true, \"wrong\": 0,");
    /* what does not matter for building is not looked at */
    assert_prints("\"$P\" doctor --for build --root ${M}narrow-link.txt", 0, "Nothing is wrong");
    assert_prints("\"$P\" doctor --list --for build", 0, "toolkit-path");
    assert_null(strstr(output, "pcie-link"));
    assert_prints("\"$P\" doctor --list --for build --json", 0, "{\"checks\": [{\"check\": \"");
    assert_non_null(strstr(output, "\"for\": [\"build\"]}"));
    assert_non_null(strstr(output, "]}]}\n"));
    assert_null(strstr(output, "pcie-link"));
}

/* Without a GPU the doctor tries sim devices, with faults in them too. */
static void the_doctor_tries_devices(void **state)
{
    (void)state;
    NEED_BINARY();
    assert_prints("\"$P\" doctor --for train", 0, "peer-copies: it takes two GPUs, and there is none");
    assert_prints("PARACORD_SIM=2 \"$P\" doctor --for train --peers-timeout 20000", 0, "Nothing is wrong");
    assert_prints("PARACORD_SIM=2,fail=corrupt:1 \"$P\" doctor --for train --peers-timeout 20000", 1,
                  "So it is with an all-reduce over all 2 (corrupt).");
    assert_prints("PARACORD_SIM=2,fail=hang:1 \"$P\" doctor --for train --peers-timeout 500 --json", 1,
                  "{\"check\": \"peer-copies\", \"severity\": \"wrong\"");
    assert_prints("PARACORD_SIM=2,fail=hang:1 \"$P\" doctor --for train --no-peers", 0, "Nothing is wrong");
}

static void recordings_come_back(void **state)
{
    (void)state;
    NEED_BINARY();
    assert_prints("f=$(mktemp) && \"$P\" devices --record $f && \"$P\" devices --root $f && head -1 $f; rm -f $f", 0,
                  "paracord machine 1\n");
}

static void refusals_name_what_is_valid(void **state)
{
    (void)state;
    NEED_BINARY();
    assert_prints("\"$P\" devices --json --csv 2>&1", 2, "--json and --csv exclude each other");
    assert_prints("\"$P\" devices --root /nonexistent/x 2>&1", 1,
                  "paracord devices: cannot read the machine in /nonexistent/x");
    assert_prints("\"$P\" devices --record /nonexistent/x 2>&1", 1, "cannot write the recording /nonexistent/x");
    assert_prints("\"$P\" doctor --for rent 2>&1", 2, "train, serve or build");
    assert_prints("\"$P\" devices --interval 0 2>&1", 2, "--interval 0: must be 0.05");
    assert_prints("\"$P\" devices --watch --interval soon 2>&1", 2, "--interval soon: must be a number, 0.05 to 86400");
    assert_prints("\"$P\" devices --watch --count -1 2>&1", 2, "--count -1: must be 0 to");
    assert_prints("\"$P\" devices --csv --count 3 2>&1", 2, "--interval and --count are of --watch");
    assert_prints("\"$P\" topo --measure --root ${M}healthy-2xa100.txt 2>&1", 2, "leave out --root");
    assert_prints("\"$P\" doctor --root \"$P\" 2>&1", 1, "is no recording of a machine");
    if (!access("/dev/full", W_OK)) {
        assert_prints("\"$P\" devices 2>&1 >/dev/full", 1, "cannot write the output");
        assert_prints("\"$P\" devices --json 2>&1 >/dev/full", 1, "cannot write the output");
        assert_prints("\"$P\" devices --csv --watch 2>&1 >/dev/full", 1, "cannot write the output");
        assert_prints("\"$P\" devices --json --watch 2>&1 >/dev/full", 1, "cannot write the output");
    }
}

int main(void)
{
    setenv("M", MACHINES, 1); /* $M in the lines of the shell */
    setenv("COLUMNS", "100", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(this_machine_answers),         cmocka_unit_test(devices_for_people),
        cmocka_unit_test(unknown_memory_is_not_zero),   cmocka_unit_test(forty_columns_are_enough),
        cmocka_unit_test(csv_has_a_cell_for_each_fact), cmocka_unit_test(watching_streams_samples),
        cmocka_unit_test(topo_prints_the_matrix),       cmocka_unit_test(topo_says_how_collectives_go),
        cmocka_unit_test(topo_measures_on_sim),         cmocka_unit_test(the_doctor_leaves_with_its_finding),
        cmocka_unit_test(the_doctor_tries_devices),     cmocka_unit_test(recordings_come_back),
        cmocka_unit_test(refusals_name_what_is_valid),
    };
    return cmocka_run_group_tests_name("cli.devices", tests, NULL, NULL);
}

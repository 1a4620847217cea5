/* launch_cpus.c: which cores ranks get, on machines that are folders. */
#include "shell.h"

#include "base/base.h"
#include "launch/parts.h"

#include <sched.h>

static char output[OUTPUT_MAX];

/* Two sockets of four cores with two threads each: 0-3 and 8-11, 4-7 and 12-15; GPUs on the second and on the first. */
static int prepare(void **state)
{
    static char folder[] = "/tmp/paracord-cpus-XXXXXX";
    *state = folder;
    if (!mkdtemp(folder) || chdir(folder) != 0)
        return -1;
    return shell(
        output,
        "for c in $(seq 0 15); do d=devices/system/cpu/cpu$c/topology; mkdir -p $d; "
        "echo $((c % 8)),$((c % 8 + 8)) >$d/thread_siblings_list; done; "
        "mkdir -p devices/system/node/node0 devices/system/node/node2; "
        "echo 0-3,8-11 >devices/system/node/node0/cpulist; echo 4-7,12-15 >devices/system/node/node2/cpulist; "
        "for d in 0000:01:00.0/2 0000:81:00.0/0; do p=bus/pci/devices/${d%/*}; mkdir -p $p; echo 0x10de >$p/vendor; "
        "echo 0x030200 >$p/class; echo ${d#*/} >$p/numa_node; done; "
        "p=bus/pci/devices/0000:00:02.0; mkdir -p $p; echo 0x8086 >$p/vendor; echo 0x030000 >$p/class; echo 0 "
        ">$p/numa_node");
}

static int tidy(void **state)
{
    setenv("ROOT", *state, 1);
    return chdir("/") == 0 ? shell(output, "rm -r \"$ROOT\"") : -1;
}

static void allow(cpu_set_t *set, int first, int last)
{
    for (int cpu = first; cpu <= last; cpu++)
        CPU_SET(cpu, set);
}

/* "4 5 12 13" of a rank. */
static void assert_cores(char **cpus, int rank, const char *want)
{
    char text[256] = "";
    assert_non_null(cpus);
    for (int cpu = 0; cpu < 64; cpu++)
        if (CPU_ISSET(cpu, (cpu_set_t *)(void *)cpus[rank]))
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", text[0] ? " " : "", cpu);
    assert_string_equal(text, want);
}

static void ranks_are_near_their_gpus(void **state)
{
    (void)state;
    cpu_set_t all;
    CPU_ZERO(&all);
    allow(&all, 0, 15);
    char **cpus = pc__cpus_divide(".", 2, &all, sizeof all, NULL);
    assert_cores(cpus, 0, "4 5 6 7 12 13 14 15");
    assert_cores(cpus, 1, "0 1 2 3 8 9 10 11");
    pc__cpus_free(cpus);
    cpus = pc__cpus_divide(".", 2, &all, sizeof all, "1,0"); /* the program's order */
    assert_cores(cpus, 0, "0 1 2 3 8 9 10 11");
    assert_cores(cpus, 1, "4 5 6 7 12 13 14 15");
    pc__cpus_free(cpus);
    cpus = pc__cpus_divide(".", 2, &all, sizeof all, "1,1");
    assert_cores(cpus, 0, "0 1 8 9");
    assert_cores(cpus, 1, "2 3 10 11");
    pc__cpus_free(cpus);
}

static void ranks_without_gpus_share_the_nodes(void **state)
{
    (void)state;
    cpu_set_t all;
    CPU_ZERO(&all);
    allow(&all, 0, 15);
    char **cpus = pc__cpus_divide(".", 4, &all, sizeof all, NULL);
    assert_cores(cpus, 0, "0 1 8 9");
    assert_cores(cpus, 1, "2 3 10 11");
    assert_cores(cpus, 2, "4 5 12 13");
    assert_cores(cpus, 3, "6 7 14 15");
    pc__cpus_free(cpus);
    CPU_ZERO(&all);
    allow(&all, 1, 2); /* a container's */
    allow(&all, 9, 9);
    assert_null(pc__cpus_divide(".", 1, &all, sizeof all, NULL)); /* nobody to share with */
    cpus = pc__cpus_divide(".", 2, &all, sizeof all, "");
    assert_cores(cpus, 0, "1 9");
    assert_cores(cpus, 1, "2");
    pc__cpus_free(cpus);
    cpus = pc__cpus_divide("/none", 2, &all, sizeof all, NULL);
    assert_cores(cpus, 0, "1");
    assert_cores(cpus, 1, "2 9");
    pc__cpus_free(cpus);
}

static void too_many_ranks_are_not_bound(void **state)
{
    (void)state;
    cpu_set_t all;
    CPU_ZERO(&all);
    allow(&all, 0, 15);
    assert_null(pc__cpus_divide(".", 9, &all, sizeof all, NULL));
    assert_false(pc_failed());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_near_their_gpus),
        cmocka_unit_test(ranks_without_gpus_share_the_nodes),
        cmocka_unit_test(too_many_ranks_are_not_bound),
    };
    return cmocka_run_group_tests(tests, prepare, tidy);
}

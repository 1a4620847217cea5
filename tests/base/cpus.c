/* The cores that a process may use: quotas of control groups, as containers have them. */
#include "../data/pictures.h"

#include "base/launcher.h"

#include <paracord/threads.h>

static test_path root;

static void put(const char *name, const char *text)
{
    put_bytes(root.s, name, text, strlen(text));
}

static int new_machine(void **state)
{
    (void)state;
    root = new_root();
    return 0;
}

static int end_machine(void **state)
{
    (void)state;
    remove_root(&root);
    return 0;
}

static void assert_quota(double want)
{
    assert_close(pc__cpu_quota(root.s), want, 1e-12);
}

static void without_groups_there_is_no_quota(void **state)
{
    (void)state;
    assert_quota(0);
    put("proc/self/cgroup", "");
    assert_quota(0);
    put("proc/self/cgroup", "0::/\n");
    assert_quota(0);
    put("proc/self/cgroup", "nonsense\n0:\n::\n");
    assert_quota(0);
}

static void a_container_of_version_2(void **state)
{
    (void)state;
    put("proc/self/cgroup", "0::/\n");
    put("sys/fs/cgroup/cpu.max", "max 100000\n");
    assert_quota(0);
    put("sys/fs/cgroup/cpu.max", "150000 100000\n");
    assert_quota(1.5);
    for (const char *const *bad = (const char *const[]){"", "150000", "-1 100000", "150000 0", "x y", NULL}; *bad;
         bad++) {
        put("sys/fs/cgroup/cpu.max", *bad);
        assert_quota(0);
    }
}

static void the_least_of_all_levels_counts(void **state)
{
    (void)state;
    put("proc/self/cgroup", "0::/user.slice/job/step\n");
    put("sys/fs/cgroup/user.slice/job/step/cpu.max", "800000 100000\n");
    assert_quota(8);
    put("sys/fs/cgroup/user.slice/job/cpu.max", "200000 50000\n");
    assert_quota(4);
    put("sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
    assert_quota(4);
    put("sys/fs/cgroup/cpu.max", "300000 100000\n");
    assert_quota(3);
    put("sys/fs/cgroup/user.slice/other/cpu.max", "100000 100000\n"); /* not ours */
    assert_quota(3);
}

static void version_1_and_paths_of_the_host(void **state)
{
    (void)state;
    put("proc/self/cgroup", "11:cpuset:/docker/1f0e\n4:cpu,cpuacct:/docker/1f0e\n1:name=systemd:/x\n0::/y\n");
    put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    assert_quota(0);
    put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000\n"); /* the container's group is what is mounted */
    assert_quota(2.5);
    put("sys/fs/cgroup/cpuset/docker/1f0e/cpu.cfs_quota_us", "100000\n"); /* another controller's */
    put("sys/fs/cgroup/cpuset/docker/1f0e/cpu.cfs_period_us", "100000\n");
    assert_quota(2.5);
    put("proc/self/cgroup", "3:cpuacct,cpu:/a\n");
    put("sys/fs/cgroup/cpuacct,cpu/a/cpu.cfs_quota_us", "100000\n");
    put("sys/fs/cgroup/cpuacct,cpu/a/cpu.cfs_period_us", "50000\n");
    assert_quota(2);
    /* the file of groups may have them in another order than the folder that they are mounted at */
    put("proc/self/cgroup", "3:cpuacct,cpu:/b\n");
    put("sys/fs/cgroup/cpu/b/cpu.cfs_quota_us", "300000\n");
    put("sys/fs/cgroup/cpu/b/cpu.cfs_period_us", "100000\n");
    assert_quota(3);
}

/* Together they may use no more than one process could. */
static void ranks_of_a_host_share_the_quota(void **state)
{
    (void)state;
    const int cores = pc__cpu_count_in(root.s);
    char text[64];
    put("proc/self/cgroup", "0::/\n");
    snprintf(text, sizeof text, "%d 100000\n", cores * 100000);
    put("sys/fs/cgroup/cpu.max", text);
    assert_int_equal(pc__cpu_count_in(root.s), cores);
    snprintf(text, sizeof text, "%d", cores);
    setenv("LOCAL_WORLD_SIZE", text, 1);
    assert_int_equal(pc__cpu_count_in(root.s), 1);
    setenv("LOCAL_WORLD_SIZE", "1000", 1);
    assert_int_equal(pc__cpu_count_in(root.s), 1);
    put("sys/fs/cgroup/cpu.max", "150000 100000\n");
    setenv("LOCAL_WORLD_SIZE", "1", 1);
    assert_int_equal(pc__cpu_count_in(root.s), PC__MIN(cores, 2));
    for (const char *const *odd = (const char *const[]){"", "0", "-3", "two", "2x", "4294967298", NULL}; *odd; odd++) {
        setenv("LOCAL_WORLD_SIZE", *odd, 1);
        assert_int_equal(pc__cpu_count_in(root.s), PC__MIN(cores, 2));
    }
    put("sys/fs/cgroup/cpu.max", "max 100000\n"); /* cores are the launcher's to give out */
    setenv("LOCAL_WORLD_SIZE", "2", 1);
    assert_int_equal(pc__cpu_count_in(root.s), cores);
    unsetenv("LOCAL_WORLD_SIZE");
}

static const char *const *variables; /* names and values by turns */

static char *get(const char *name)
{
    for (const char *const *v = variables; *v; v += 2)
        if (!strcmp(*v, name))
            return (char *)(uintptr_t)v[1];
    return NULL;
}

/* Whoever started them; and of what one launcher started under another, the last one counts. */
static void launchers_say_how_many_share_it(void **state)
{
    (void)state;
    static const struct {
        const char *variables[9];
        int ranks;
    } all[] = {
        {{NULL}, 1},
        {{"LOCAL_WORLD_SIZE", "8"}, 8},
        {{"LOCAL_WORLD_SIZE", "2", "OMPI_COMM_WORLD_LOCAL_SIZE", "8"}, 2},
        {{"LOCAL_WORLD_SIZE", "", "OMPI_COMM_WORLD_LOCAL_SIZE", "8"}, 8},
        {{"OMPI_COMM_WORLD_LOCAL_SIZE", "99999999999"}, 1},
        {{"MPI_LOCALNRANKS", "4", "SLURM_STEP_ID", "0", "SLURM_NTASKS_PER_NODE", "2"}, 4},
        {{"SLURM_STEP_ID", "0", "SLURM_NTASKS_PER_NODE", "6"}, 6},
        {{"SLURM_STEP_ID", "0", "SLURM_NODEID", "2", "SLURM_STEP_TASKS_PER_NODE", "4(x2),3"}, 3},
        {{"SLURM_STEP_ID", "4294967291", "SLURM_NTASKS_PER_NODE", "6"}, 1}, /* a batch script is one process */
        {{"SLURM_NTASKS_PER_NODE", "6"}, 1},
    };
    for (int i = 0; i < PC__COUNT(all); i++) {
        variables = all[i].variables;
        assert_int_equal(pc__ranks_of_host(get), all[i].ranks);
    }
    put("proc/self/cgroup", "0::/\n");
    put("sys/fs/cgroup/cpu.max", "200000 100000\n");
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2", 1);
    assert_int_equal(pc__cpu_count_in(root.s), 1);
    unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
}

static void there_is_always_a_thread(void **state)
{
    (void)state;
    assert_true(pc__cpu_count() >= 1);
    assert_true(pc_threads_get() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_groups_there_is_no_quota, new_machine, end_machine),
        cmocka_unit_test_setup_teardown(a_container_of_version_2, new_machine, end_machine),
        cmocka_unit_test_setup_teardown(the_least_of_all_levels_counts, new_machine, end_machine),
        cmocka_unit_test_setup_teardown(version_1_and_paths_of_the_host, new_machine, end_machine),
        cmocka_unit_test_setup_teardown(ranks_of_a_host_share_the_quota, new_machine, end_machine),
        cmocka_unit_test_setup_teardown(launchers_say_how_many_share_it, new_machine, end_machine),
        cmocka_unit_test(there_is_always_a_thread),
    };
    return cmocka_run_group_tests_name("base.cpus", tests, NULL, NULL);
}

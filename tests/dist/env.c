/* env.c: who a process is, by each launcher's variables, and what is said of variables that make no sense. */
#include "comma.h"
#include "support.h"

#include "store/env.h"

#include <stdlib.h>

#define MOST 12

static const char *const *given; /* NAME, value, ..., NULL */

static char *look_up(const char *name)
{
    for (int i = 0; given[i]; i += 2)
        if (!strcmp(given[i], name))
            return (char *)(uintptr_t)given[i + 1];
    return NULL;
}

typedef struct good {
    const char *variables[2 * MOST + 1];
    int rank, size, local_rank, local_size, node_rank, generation;
    const char *launcher, *host;
    int port;
    const char *token;
    bool serves, one_host;
} good;

static const good goods[] = {
    {{NULL}, 0, 1, 0, 1, 0, 0, "", "", 0, "", false, true},
    {{"RANK", "0", "WORLD_SIZE", "1"}, 0, 1, 0, 1, 0, 0, "variables of the environment", "", 0, "", false, true},
    /* torchrun on one host, whose agent has the port */
    {{"RANK",
      "3",
      "WORLD_SIZE",
      "4",
      "LOCAL_RANK",
      "3",
      "LOCAL_WORLD_SIZE",
      "4",
      "MASTER_ADDR",
      "box",
      "MASTER_PORT",
      "29400",
      "TORCHELASTIC_RUN_ID",
      "abc",
      "TORCHELASTIC_USE_AGENT_STORE",
      "True",
      "TORCHELASTIC_RESTART_COUNT",
      "2",
      "GROUP_RANK",
      "0"},
     3,
     4,
     3,
     4,
     0,
     2,
     "torchrun",
     "127.0.0.1",
     29401,
     "abc",
     false,
     true},
    /* on two */
    {{"RANK", "0", "WORLD_SIZE", "4", "LOCAL_RANK", "0", "LOCAL_WORLD_SIZE", "2", "MASTER_ADDR", "box", "MASTER_PORT",
      "29400", "TORCHELASTIC_RUN_ID", "abc", "GROUP_RANK", "0"},
     0,
     4,
     0,
     2,
     0,
     0,
     "torchrun",
     "box",
     29400,
     "abc",
     true,
     false},
    /* set by hand */
    {{"RANK", "1", "WORLD_SIZE", "2", "MASTER_ADDR", "127.0.0.1", "MASTER_PORT", "4000", "PARACORD_TOKEN", "secret"},
     1,
     2,
     1,
     2,
     0,
     0,
     "variables of the environment",
     "127.0.0.1",
     4000,
     "secret",
     false,
     true},
    /* ours, whose variables come before those of an mpirun around it */
    {{"RANK", "2", "WORLD_SIZE", "4", "LOCAL_RANK", "0", "LOCAL_WORLD_SIZE", "2", "PARACORD_STORE", "[fd00::1]:400",
      "PARACORD_TOKEN", "t", "OMPI_COMM_WORLD_RANK", "0", "OMPI_COMM_WORLD_SIZE", "1", "TORCHELASTIC_RESTART_COUNT",
      "1"},
     2,
     4,
     0,
     2,
     1,
     1,
     "paracord launch",
     "fd00::1",
     400,
     "t",
     false,
     false},
    {{"OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "2", "OMPI_COMM_WORLD_LOCAL_RANK", "1",
      "OMPI_COMM_WORLD_LOCAL_SIZE", "2", "PMIX_NAMESPACE", "12345", "PMIX_RANK", "1", "PARACORD_STORE_PORT", "5000"},
     1,
     2,
     1,
     2,
     0,
     0,
     "Open MPI",
     "127.0.0.1",
     5000,
     "12345",
     false,
     true},
    {{"PMI_RANK", "5", "PMI_SIZE", "8", "MPI_LOCALRANKID", "1", "MPI_LOCALNRANKS", "4", "PARACORD_TOKEN", "x",
      "MASTER_ADDR", "a", "MASTER_PORT", "7"},
     5,
     8,
     1,
     4,
     1,
     0,
     "MPICH",
     "a",
     7,
     "x",
     false,
     false},
    {{"SLURM_PROCID", "6", "SLURM_NTASKS", "7", "SLURM_LOCALID", "2", "SLURM_NODEID", "1", "SLURM_TASKS_PER_NODE",
      "4,3", "SLURM_JOB_ID", "99", "SLURM_STEP_ID", "0", "SLURM_JOB_NODELIST", "gpu[003-005,9],login", "MASTER_PORT",
      "1234"},
     6,
     7,
     2,
     3,
     1,
     0,
     "Slurm",
     "gpu003",
     1234,
     "99.0",
     false,
     false},
    {{"SLURM_PROCID",
      "0",
      "SLURM_NTASKS",
      "8",
      "SLURM_STEP_NUM_TASKS",
      "4",
      "SLURM_LOCALID",
      "0",
      "SLURM_NTASKS_PER_NODE",
      "2",
      "SLURM_JOB_ID",
      "99",
      "SLURM_LAUNCH_NODE_IPADDR",
      "10.0.0.9",
      "MASTER_PORT",
      "1234",
      "SLURM_RESTART_COUNT",
      "3",
      "SLURM_STEP_ID",
      "1"},
     0,
     4,
     0,
     2,
     0,
     3,
     "Slurm",
     "10.0.0.9",
     1234,
     "99.1",
     true,
     false},
    /* srun --mpi=pmi2, which sets two of MPICH's variables */
    {{"SLURM_PROCID",
      "3",
      "SLURM_NTASKS",
      "4",
      "SLURM_LOCALID",
      "1",
      "SLURM_NODEID",
      "1",
      "SLURM_TASKS_PER_NODE",
      "2(x2)",
      "SLURM_JOB_ID",
      "99",
      "SLURM_STEP_ID",
      "0",
      "SLURM_JOB_NODELIST",
      "a[1-2]",
      "PMI_RANK",
      "3",
      "PMI_SIZE",
      "4",
      "PMI_FD",
      "9",
      "MASTER_PORT",
      "1234"},
     3,
     4,
     1,
     2,
     1,
     0,
     "Slurm",
     "a1",
     1234,
     "99.0",
     false,
     false},
    /* mpiexec of MPICH whose helpers are tasks of Slurm's */
    {{"SLURM_PROCID",    "1", "SLURM_NTASKS", "2", "SLURM_LOCALID", "0", "SLURM_JOB_ID",    "99",
      "SLURM_STEP_ID",   "0", "PMI_RANK",     "3", "PMI_SIZE",      "4", "MPI_LOCALRANKID", "1",
      "MPI_LOCALNRANKS", "2", "MASTER_ADDR",  "a", "MASTER_PORT",   "7"},
     3,
     4,
     1,
     2,
     1,
     0,
     "MPICH",
     "a",
     7,
     "99.0",
     false,
     false},
};

static void reads_each_launcher(void **state)
{
    (void)state;
    for (int i = 0; i < PC__COUNT(goods); i++) {
        const good *want = &goods[i];
        pc__world got;
        given = want->variables;
        if (pc__world_read(look_up, &got) != PC_OK)
            fail_msg("row %d: %s", i, pc_error_last()->message);
        assert_int_equal(got.rank, want->rank);
        assert_int_equal(got.size, want->size);
        assert_int_equal(got.local_rank, want->local_rank);
        assert_int_equal(got.local_size, want->local_size);
        assert_int_equal(got.node_rank, want->node_rank);
        assert_int_equal(got.generation, want->generation);
        assert_string_equal(got.launcher, want->launcher);
        assert_string_equal(got.host, want->host);
        assert_int_equal(got.port, want->port);
        assert_string_equal(got.token, want->token);
        assert_int_equal(got.serves, want->serves);
        assert_int_equal(got.one_host, want->one_host);
    }
}

typedef struct bad {
    const char *variables[2 * MOST + 1];
    const char *name, *value, *way_out; /* each is in the message */
} bad;

static const bad bads[] = {
    {{"RANK", "1"}, "WORLD_SIZE is not", "RANK", "unset both"},
    {{"WORLD_SIZE", "4"}, "RANK is not", "WORLD_SIZE", "set both"},
    {{"RANK", "x", "WORLD_SIZE", "4"}, "RANK", "\"x\"", "correct it"},
    {{"RANK", "1 ", "WORLD_SIZE", "4"}, "RANK", "\"1 \"", "correct it"},
    {{"RANK", " 1", "WORLD_SIZE", "4"}, "RANK", "\" 1\"", "correct it"},
    {{"RANK", "-1", "WORLD_SIZE", "4"}, "RANK", "\"-1\"", "correct it"},
    {{"RANK", "99999999999999999999", "WORLD_SIZE", "4"}, "RANK", "99999999999", "correct it"},
    {{"RANK", "0", "WORLD_SIZE", "0"}, "WORLD_SIZE", "\"0\"", "correct it"},
    {{"RANK", "4", "WORLD_SIZE", "4"}, "RANK is 4", "WORLD_SIZE is 4", "0 to 3"},
    {{"RANK", "1", "WORLD_SIZE", "4", "MASTER_ADDR", "box"}, "LOCAL_RANK", "RANK is 1", "set it"},
    {{"RANK", "1", "WORLD_SIZE", "4", "LOCAL_RANK", "0"}, "LOCAL_WORLD_SIZE", "RANK is 1", "set it"},
    {{"RANK", "1", "WORLD_SIZE", "4", "LOCAL_RANK", "2", "LOCAL_WORLD_SIZE", "2"}, "LOCAL_RANK", "2", "0 to 1"},
    {{"RANK", "1", "WORLD_SIZE", "4", "LOCAL_RANK", "2", "LOCAL_WORLD_SIZE", "8"}, "LOCAL_WORLD_SIZE", "8", "no more"},
    {{"RANK", "1", "WORLD_SIZE", "4", "LOCAL_RANK", "0", "LOCAL_WORLD_SIZE", "2"},
     "MASTER_ADDR",
     "several hosts",
     "set it"},
    {{"RANK", "1", "WORLD_SIZE", "2", "MASTER_ADDR", "::1", "MASTER_PORT", "0", "PARACORD_TOKEN", "t"},
     "MASTER_PORT",
     "\"0\"",
     "65534"},
    {{"RANK", "1", "WORLD_SIZE", "2", "MASTER_ADDR", "::1", "MASTER_PORT", "29400"},
     "PARACORD_TOKEN",
     "is not set",
     "set it"},
    {{"RANK", "1", "WORLD_SIZE", "2", "LOCAL_RANK", "0", "LOCAL_WORLD_SIZE", "2", "PARACORD_STORE", "box"},
     "PARACORD_STORE",
     "\"box\"",
     "HOST:PORT"},
    {{"RANK", "1", "WORLD_SIZE", "2", "LOCAL_RANK", "0", "LOCAL_WORLD_SIZE", "2", "PARACORD_STORE", "::1:80"},
     "PARACORD_STORE",
     "\"::1:80\"",
     "[fd00::1]"},
    {{"RANK", "1", "WORLD_SIZE", "2", "LOCAL_RANK", "0", "LOCAL_WORLD_SIZE", "2", "PARACORD_STORE", "box:80"},
     "PARACORD_TOKEN",
     "not",
     "paracord launch"},
    {{"OMPI_COMM_WORLD_RANK", "1"}, "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "both"},
    {{"OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "2"}, "OMPI_COMM_WORLD_LOCAL_RANK", "is 1", "set it"},
    {{"PMI_SIZE", "2"}, "PMI_RANK", "PMI_SIZE", "both"},
    {{"PMI_RANK", "1", "PMI_SIZE", "2", "MPI_LOCALRANKID", "1", "MPI_LOCALNRANKS", "2"},
     "PARACORD_TOKEN",
     "MPICH",
     "random"},
    {{"PMIX_RANK", "2"}, "PMIX_RANK", "2", "WORLD_SIZE"},
    {{"SLURM_PROCID", "2", "SLURM_STEP_ID", "0"}, "SLURM_NTASKS", "SLURM_PROCID", "both"},
    {{"SLURM_PROCID", "1", "SLURM_NTASKS", "4", "SLURM_LOCALID", "0", "SLURM_NTASKS_PER_NODE", "1", "SLURM_JOB_ID", "1",
      "SLURM_STEP_ID", "0", "SLURM_JOB_NODELIST", "a[x]"},
     "SLURM_JOB_NODELIST",
     "a[x]",
     "MASTER_ADDR"},
};

static void names_what_is_wrong(void **state)
{
    (void)state;
    for (int i = 0; i < PC__COUNT(bads); i++) {
        pc__world world;
        given = bads[i].variables;
        pc_error_clear();
        const pc_status status = pc__world_read(look_up, &world);
        const char *message = pc_error_last()->message;
        if (status != PC_ERR_ARGUMENT || !strstr(message, bads[i].name) || !strstr(message, bads[i].value) ||
            !strstr(message, bads[i].way_out))
            fail_msg("row %d: %s: \"%s\" lacks one of \"%s\", \"%s\", \"%s\"", i, pc_status_name(status), message,
                     bads[i].name, bads[i].value, bads[i].way_out);
    }
    pc_error_clear();
}

static void ports_follow_from_jobs(void **state)
{
    (void)state;
    pc__world a, b;
    const char *one[] = {"OMPI_COMM_WORLD_RANK",
                         "1",
                         "OMPI_COMM_WORLD_SIZE",
                         "2",
                         "OMPI_COMM_WORLD_LOCAL_RANK",
                         "1",
                         "OMPI_COMM_WORLD_LOCAL_SIZE",
                         "2",
                         "PMIX_NAMESPACE",
                         "1",
                         NULL};
    given = one;
    assert_ok(pc__world_read(look_up, &a));
    one[1] = "0";
    assert_ok(pc__world_read(look_up, &b));
    assert_int_equal(a.port, b.port);
    one[9] = "2";
    assert_ok(pc__world_read(look_up, &b));
    assert_int_not_equal(a.port, b.port);
    assert_in_range(a.port, 20000, 29999);
}

static void reads_slurm_lists(void **state)
{
    (void)state;
    char host[PC__HOST_MAX];
    static const char *const lists[][2] = {
        {"a", "a"}, {"a,b", "a"}, {"a[1-3]", "a1"}, {"a[01,7]", "a01"}, {"n[1-2]-ib[3]", "n1-ib3"}};
    for (int i = 0; i < PC__COUNT(lists); i++) {
        assert_true(pc__slurm_first_host(lists[i][0], host));
        assert_string_equal(host, lists[i][1]);
    }
    assert_false(pc__slurm_first_host("", host));
    assert_false(pc__slurm_first_host("a[1-3", host));
    assert_false(pc__slurm_first_host("a[]", host));
    assert_int_equal(pc__slurm_tasks("4(x2),3", 0), 4);
    assert_int_equal(pc__slurm_tasks("4(x2),3", 1), 4);
    assert_int_equal(pc__slurm_tasks("4(x2),3", 2), 3);
    assert_int_equal(pc__slurm_tasks("4(x2),3", 3), 0);
    assert_int_equal(pc__slurm_tasks("4(x", 0), 0);
    assert_int_equal(pc__slurm_tasks("", 0), 0);
    assert_int_equal(pc__slurm_tasks("-1", 0), 0);
}

static void reads_limits(void **state)
{
    (void)state;
    double seconds;
    char folder[] = "/tmp/paracord-env-XXXXXX", place[64] = "";
    const char *one[] = {"PARACORD_BEAT_LIMIT", "2.5", NULL};
    given = one;
    assert_ok(pc__beat_limit(look_up, &seconds));
    assert_close(seconds, 2.5, 0);
    assert_non_null(mkdtemp(folder));
    (void)comma_locale(folder, place, sizeof place);
    const pc_status status = pc__beat_limit(look_up, &seconds);
    one[1] = "2,5";
    assert_fails(pc__beat_limit(look_up, &seconds), PC_ERR_ARGUMENT, "PARACORD_BEAT_LIMIT");
    comma_locale_end(place);
    rmdir(folder);
    assert_int_equal(status, PC_OK);
    static const char *const wrong[] = {"x", "-1", "0.1", "nan", "1e9"};
    for (int i = 0; i < PC__COUNT(wrong); i++) {
        one[1] = wrong[i];
        assert_fails(pc__beat_limit(look_up, &seconds), PC_ERR_ARGUMENT, "PARACORD_BEAT_LIMIT");
    }
}

/* A batch script, a shell of salloc, and one that is a step itself are no tasks: what runs there is alone. */
static void slurm_without_srun(void **state)
{
    (void)state;
    const char *const shells[][9] = {{"SLURM_NTASKS", "8", "SLURM_JOB_ID", "9", NULL},
                                     {"SLURM_PROCID", "0", "SLURM_NTASKS", "8", "SLURM_JOB_ID", "9", NULL},
                                     {"SLURM_PROCID", "0", "SLURM_NTASKS", "8", "SLURM_STEP_ID", "4294967290", NULL},
                                     {"SLURM_PROCID", "0", "SLURM_NTASKS", "8", "SLURM_STEP_ID", "4294967291", NULL}};
    for (int i = 0; i < PC__COUNT(shells); i++) {
        pc__world got;
        given = shells[i];
        assert_ok(pc__world_read(look_up, &got));
        assert_int_equal(got.size, 1);
        assert_string_equal(got.launcher, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_each_launcher),    cmocka_unit_test(names_what_is_wrong),
        cmocka_unit_test(ports_follow_from_jobs), cmocka_unit_test(reads_slurm_lists),
        cmocka_unit_test(reads_limits),           cmocka_unit_test(slurm_without_srun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

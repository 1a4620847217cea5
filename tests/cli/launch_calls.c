/* launch_calls.c: ranks under paracord launch that part, die, are asked or late: what they leave of their calls and times, and
 * what `paracord trace` says of it. */
#include "launch.h"

#include <paracord.h>

/* Rank 2 does as the mode says in front of the 13th call. */
static pc_status call(pc_group *world, pc_tensor *t, const char *mode)
{
    const bool odd = pc_dist_rank() == 2;
    if (odd && !strcmp(mode, "dies")) {
        usleep(300000); /* the others are in the 13th by then */
        kill(getpid(), SIGKILL);
    }
    if (odd && !strcmp(mode, "sleeps"))
        sleep(20);
    if (!strcmp(mode, "asked")) {
        printf("ready\n");
        fflush(stdout);
        sleep(2);
    }
    if (odd && !strcmp(mode, "differs"))
        return pc_group_broadcast(world, t, 0);
    return pc_group_all_reduce(world, t, PC_GROUP_SUM);
}

static int work(pc_group *world, const char *mode)
{
    pc_status status = pc_group_set_timeout(world, strcmp(mode, "asked") ? 1 : 60);
    PC_SCOPE {
        pc_tensor *t = pc_ones(PC_SHAPE(5), PC_F32, PC_DEVICE_CPU);
        for (int i = 1; i <= 15 && status == PC_OK; i++) {
            if (pc_dist_rank() == 2 && !strcmp(mode, "slow"))
                usleep(50000);
            status = i == 13 ? call(world, t, mode) : pc_group_all_reduce(world, t, PC_GROUP_SUM);
        }
    }
    return status == PC_OK ? 0 : 1 + 0 * pc_report(stderr);
}

static int rank_main(const char *mode)
{
    if (pc_dist_init((pc_dist_options){0}) != PC_OK)
        return 1 + 0 * pc_report(stderr);
    pc_group *world = pc_group_world();
    if (!world || !pc_group_stream(world, PC_DEVICE_CPU)) {
        const bool no_mpi = pc_error_last()->status == PC_ERR_UNSUPPORTED;
        (void)pc_report(stderr);
        return no_mpi ? 77 : 1;
    }
    const int status = work(world, mode);
    pc_group_free(world);
    return pc_dist_end() == PC_OK ? status : 1;
}

static bool has_mpi;

static void run_mode(const char *mode, int status)
{
    char line[256];
    snprintf(line, sizeof line, "rm -rf dump; PARACORD_DIST_DUMP=dump timeout 60 $P launch -n 4 -- $R %s 2>&1", mode);
    const int got = shell(output, line);
    has_mpi = got != 77;
    if (!has_mpi) {
        print_message("no MPI here: %s\n", output);
        skip();
    }
    if (got != status)
        fail_msg("%s: exit status %d, not %d:\n%s", line, got, status, output);
}

static void a_rank_that_does_not_come(void **state)
{
    (void)state;
    run_mode("sleeps", 1);
    assert_has("what ranks did last: paracord trace calls dump");
    assert_status("COLUMNS=400 $P trace calls dump", 0);
    assert_has("4 ranks, the last calls of 4 of them");
    assert_has(
        "rank 2 never came to call 13 of world, all_reduce of 20 bytes (5 float32, sum), in which ranks 0, 1, 3 have "
        "been for ");
    assert_has("it is in no call; its last one was 12 of world, all_reduce of 20 bytes (5 float32, sum), done ");
    assert_has("\n         12  all_reduce of 20 bytes (5 float32, sum): done; ");
    assert_has("not in it: rank 2");
}

static void a_rank_that_calls_something_else(void **state)
{
    (void)state;
    run_mode("differs", 1);
    assert_status("COLUMNS=400 $P trace calls dump", 0);
    assert_has("call 13 of world: rank 2 called broadcast of 20 bytes (5 float32, root 0) where ranks 0, 1, 3 called "
               "all_reduce of 20 bytes (5 float32, sum)");
    assert_status("$P trace calls dump --json | grep -c '\"number\": 13, \"words\": \"call 13 of world'", 0);
}

static void a_rank_that_dies(void **state)
{
    (void)state;
    run_mode("dies", 137);
    assert_status("COLUMNS=400 $P trace calls dump", 0);
    assert_has("4 ranks, the last calls of 3 of them");
    assert_has("No file of rank 2: killed");
    assert_has("rank 2 never came to call 13 of world");
    assert_has("it has left no file");
    assert_status("test $(ls dump | grep -vc '^calls[.]rank[013][.]json$') = 0", 0); /* no temporary either */
}

static void a_job_that_is_asked_goes_on(void **state)
{
    (void)state;
    if (!has_mpi)
        skip();
    assert_status("rm -rf dump out; PARACORD_DIST_DUMP=dump $P launch -n 4 -- $R asked >out 2>&1 & "
                  "for i in $(seq 3000); do test \"$(grep -c ready out 2>/dev/null)\" = 4 && break; sleep 0.01; done; "
                  "kill -USR1 $!; wait $!; s=$?; cat out; exit $s",
                  0);
    assert_has("the ranks write their last calls: paracord trace calls dump");
    assert_status("COLUMNS=400 $P trace calls dump", 0);
    assert_has("Written because: paracord launch was asked to (SIGUSR1)");
    assert_has("All ranks made the same calls, and none waits in one for others.");
    assert_has("  0-3        entered and finished 12 of world, all_reduce of 20 bytes (5 float32, sum); in none for ");
}

/* Of the files of the test above: the first rank's is cut at each place, and another job's lies beside it. */
static void damaged_files_are_named(void **state)
{
    (void)state;
    if (shell(output, "test -s dump/calls.rank0.json") != 0)
        skip();
    assert_status("mkdir bad; for n in 0 1 100 2000; do head -c $n dump/calls.rank1.json >bad/calls.rank1.json; "
                  "$P trace calls bad && exit 9; done 2>&1; exit 0",
                  0);
    assert_has("bad/calls.rank1.json: it is cut off or damaged");
    assert_status("echo '{\"paracord_calls\":1}' >bad/calls.rank1.json; $P trace calls bad 2>&1", 1);
    assert_has("bad/calls.rank1.json: it is cut off or damaged");
    assert_status("rm bad/*; $P trace calls bad 2>&1", 1);
    assert_has("bad holds no calls of ranks (calls.rank0.json and so on)");
    assert_status("$P trace calls nowhere 2>&1", 1);
    assert_has("nowhere");
    assert_status("cp dump/* bad; sed 's/\"job\":\"....\"/&/; s/\"job\":\"[0-9a-f]*\"/\"job\":\"other\"/; "
                  "s/\"written\":[0-9]*/\"written\":5/' dump/calls.rank1.json >bad/calls.rank1.json; COLUMNS=400 $P "
                  "trace calls bad",
                  0);
    assert_has("No file of rank 1");
    assert_has("Left out, of another job or an earlier start: calls.rank1.json");
    assert_status("rm -r bad", 0);
}

static void a_rank_that_is_late(void **state)
{
    (void)state;
    if (!has_mpi)
        skip();
    assert_status(
        "rm -rf dump; PARACORD_TRACE=dump/ timeout 60 $P launch -n 4 -- $R slow 2>&1 && ls dump | tr '\\n' ' '", 0);
    assert_has("trace.rank0.json trace.rank1.json trace.rank2.json trace.rank3.json ");
    assert_status("COLUMNS=400 $P trace summary dump && $P trace summary dump --json && $P trace view dump && test -s "
                  "dump/trace.html",
                  0);
    assert_has("rank 2 is the straggler: it came last to ");
    assert_has("\"rank_words\": \"rank 2 is the straggler");
    assert_lacks("calls without those of the other ranks");
    assert_status("rm dump/trace.rank1.json; COLUMNS=400 $P trace summary dump", 0);
    assert_has("no timeline of rank 1");
    assert_has("45 calls without those of the other ranks");
    assert_status("rm dump/*.json; $P trace summary dump 2>&1", 1);
    assert_has("holds no timelines of ranks");
}

/* Under another launcher, whose variables are others, and where rank 0 serves the store. */
static void ranks_of_mpirun(void **state)
{
    (void)state;
    if (!has_mpi || shell(output, "mpirun --version | grep 'Open MPI'") != 0)
        skip();
    setenv("MPIRUN",
           "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 60 mpirun --oversubscribe --bind-to "
           "none -n 3",
           1);
    assert_status("rm -rf dump; PARACORD_DIST_DUMP=dump PARACORD_TRACE=dump $MPIRUN $R differs 2>&1; COLUMNS=400 $P "
                  "trace calls dump",
                  0);
    assert_has("3 ranks, the last calls of 3 of them");
    assert_has(
        "call 13 of world: rank 2 called broadcast of 20 bytes (5 float32, root 0) where ranks 0, 1 called all_reduce");
    assert_status("rm -rf dump; PARACORD_TRACE=dump $MPIRUN $R slow 2>&1 && COLUMNS=400 $P trace summary dump", 0);
    assert_has("rank 2 is the straggler: it came last to ");
    assert_lacks("calls without those of the other ranks");
}

/* Rank 1 in a time namespace, whose clock shows 1,000 s more, as another host's may. */
static void clocks_of_several_hosts(void **state)
{
    (void)state;
    if (!has_mpi || shell(output, "unshare --time --monotonic 1000 --fork true 2>&1") != 0)
        skip();
    assert_status(
        "rm -rf dump; PARACORD_TRACE=dump timeout 60 $P launch -n 3 -- sh -c 'test $RANK = 1 && exec unshare --time "
        "--monotonic 1000 --fork $R slow; exec $R slow' 2>&1; grep -h offset_ns dump/trace.rank1.json",
        0);
    assert_has("\"offset_ns\":-");
    assert_status("COLUMNS=400 $P trace summary dump; $P trace summary dump --json | grep -o '\"wall_us\": [0-9]*'", 0);
    assert_has("rank 2 is the straggler: it came last to ");
    assert_has("clocks of the hosts are known within ");
    const char *wall = strstr(output, "\"wall_us\": ");
    assert_non_null(wall);
    assert_true(atof(wall + 11) < 60e6); /* and not 1,000 s */
}

static int prepare(void **state)
{
    static char folder[] = "/tmp/paracord-calls-XXXXXX";
    *state = folder;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int tidy(void **state)
{
    (void)shell(output, "rm -rf dump out");
    return chdir("/") == 0 ? rmdir(*state) : -1;
}

int main(int argc, char **argv)
{
    int status;
    if (argc == 2)
        return rank_main(argv[1]);
    if (is_rank(argc, argv, &status))
        return status;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_that_does_not_come), cmocka_unit_test(a_rank_that_calls_something_else),
        cmocka_unit_test(a_rank_that_dies),          cmocka_unit_test(a_job_that_is_asked_goes_on),
        cmocka_unit_test(damaged_files_are_named),   cmocka_unit_test(a_rank_that_is_late),
        cmocka_unit_test(clocks_of_several_hosts),   cmocka_unit_test(ranks_of_mpirun),
    };
    return cmocka_run_group_tests(tests, prepare, tidy);
}

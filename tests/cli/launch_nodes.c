/* launch_nodes.c: paracord launch on two hosts: two launchers on one, and two network namespaces whose link is cut. */
#include "nodes.h"

static void start_one_world(void **state)
{
    (void)state;
    both("(node 0 -n 2 -- $R fine; echo 0: $?) >a 2>&1 & (node 1 -n 3 -- $R fine; echo 1: $?) >b 2>&1; wait");
    static const char *const words[] = {
        "[0] rank 0 of 5", "[1] rank 1 of 5", "[2] rank 2 of 5", "[3] rank 3 of 5", "[4] rank 4 of 5", "0: 0", "1: 0"};
    for (int i = 0; i < 7; i++)
        assert_has(words[i]);
    both("node 1 -n 1 -- sh -c 'echo $RANK $WORLD_SIZE $LOCAL_RANK $GROUP_RANK $MASTER_ADDR' >b 2>&1 & sleep 0.2; "
         "node 0 -n 2 -- sh -c 'echo $RANK $WORLD_SIZE $LOCAL_RANK $GROUP_RANK $MASTER_ADDR' >a 2>&1; wait");
    assert_has("[0] 0 3 0 0 127.0.0.1");
    assert_has("[1] 1 3 1 0 127.0.0.1");
    assert_has("[2] 2 3 0 1 127.0.0.1");
}

static void are_told_of_mpi(void **state)
{
    (void)state;
    both("node 0 -n 1 -- $R group >a 2>&1 & node 1 -n 1 -- $R group >b 2>&1; wait");
    assert_has(
        "groups of processes on cpu go by MPI: paracord launch starts ranks for MPI on one host alone, and these 2 "
        "are on several: ");
    assert_lacks("or paracord launch");
}

static void end_and_start_again_together(void **state)
{
    (void)state;
    both("(node 0 -n 1 -- $R exit; echo 0: $?) >a 2>&1 & (node 1 -n 1 -- $R exit; echo 1: $?) >b 2>&1; wait");
    assert_has("rank 1 (process ");
    assert_has("ended with exit status 3");
    assert_has("0: 3");
    assert_has("1: 3");
    both("(node 0 -n 2 --max-restarts 1 -- $R once; echo 0: $?) >a 2>&1 & "
         "(node 1 -n 2 --max-restarts 1 -- $R once; echo 1: $?) >b 2>&1; wait");
    assert_has("[0] rank 0 of 4 start 1");
    assert_has("[3] rank 3 of 4 start 1");
    assert_has("0: 0");
    assert_has("1: 0");
    both("(node 0 -n 1 -- sleep 98771; echo 0: $?) >a 2>&1 & (node 1 -n 1 -- sleep 98771; echo 1: $?) >b 2>&1 & sleep "
         "0.6; "
         "pkill -INT -f '^[^ ]*paracord launch --nodes 2 --node-rank 1 --master '$M; wait; ! pgrep -fx 'sleep 98771'");
    assert_has("0: 130");
    assert_has("1: 130");
}

static void notice_that_the_other_is_gone(void **state)
{
    (void)state;
    both("(node 0 -n 1 -- sleep 98772; echo 0: $?) >a 2>&1 & (node 1 -n 1 -- sleep 98772; echo 1: $?) >b 2>&1 & sleep "
         "0.6; "
         "pkill -KILL -f '^[^ ]*paracord launch --nodes 2 --node-rank 1 --master '$M; wait; ! pgrep -fx 'sleep 98772'");
    assert_has("node 1 (");
    assert_has("is lost: the connection to node 1");
    assert_has("0: 1");
    both("(node 0 -n 1 -- sleep 98773; echo 0: $?) >a 2>&1 & (node 1 -n 1 --timeout 1 -- sleep 98773; echo 1: $?) >b "
         "2>&1 & sleep 0.6; "
         "pkill -KILL -f '^[^ ]*paracord launch --nodes 2 --node-rank 0 --master '$M; wait; ! pgrep -fx 'sleep 98773'");
    assert_has("is gone; stopping the ranks of this host");
    assert_has("is gone, and has not come back within 1 s");
    assert_has("1: 1");
    /* Another launcher takes the place of the one that was killed. */
    both("(node 0 -n 1 --max-restarts 1 -- $R fine; echo 0: $?) >a 2>&1 & sleep 0.1; "
         "node 1 -n 1 -- sh -c 'kill -KILL $PPID; sleep 60' >b 2>&1; (node 1 -n 1 -- $R fine; echo 1: $?) >b 2>&1; "
         "wait");
    assert_has("starting all ranks again (restart 1 of 1)");
    assert_has("[0] rank 0 of 2 start 1");
    assert_has("[1] rank 1 of 2 start 1");
    assert_has("0: 0");
}

static void are_told_what_is_wrong(void **state)
{
    (void)state;
    fresh();
    assert_status(NODE "node 0 --timeout 0.5 -- true 2>&1", 1);
    assert_has("node 1 of 2 has not come to 127.0.0.1:");
    assert_status(NODE "node 1 --timeout 0.5 -- true 2>&1", 1);
    assert_has("nobody serves the store at 127.0.0.1");
    assert_status(NODE "node 0 --timeout 1 -- true 2>/dev/null & sleep 0.3; PARACORD_TOKEN=other; node 1 -- true 2>&1; "
                       "s=$?; wait; exit $s",
                  1);
    assert_has("the token is another one");
    assert_status(NODE "node 0 --timeout 1 -- true 2>/dev/null & sleep 0.3; node 0 -- true 2>&1; s=$?; wait; exit $s",
                  1);
    assert_has("is in use");
    assert_status(NODE "M=127.0.0.1; node 0 -- true 2>&1", 1);
    assert_has("HOST:PORT");
}

static void survive_a_cut_cable(void **state)
{
    (void)state;
    use_cable();
    setenv("PARACORD_BEAT_LIMIT", "2", 1);
    assert_status(NODE "node 0 -n 1 -- $R fine >a 2>&1 & node 1 -n 1 -- $R fine >b 2>&1; wait; cat a b; rm a b", 0);
    assert_has("[0] rank 0 of 2 start 0");
    assert_has("[1] rank 1 of 2 start 0");
    /* Nothing is left on either side; after a while the cable is there again, and so is the job. */
    assert_status(NODE "(node 0 -n 1 --max-restarts 1 -- sh -c 'test $TORCHELASTIC_RESTART_COUNT = 1 || exec $R wait; "
                       "exec $R fine'; echo 0: $?) "
                       ">a 2>&1 & (node 1 -n 1 -- sh -c 'test $TORCHELASTIC_RESTART_COUNT = 1 || exec $R wait; exec $R "
                       "fine'; echo 1: $?) >b "
                       "2>&1 & seen 'rank 1' b; ip -n ${IN}0 link set v0 down; sleep 4; "
                       "pgrep -fx \"$R wait\" && exit 98; ip -n ${IN}0 link "
                       "set v0 up; wait; cat a b; rm a b",
                  0);
    assert_has("node 1 (");
    assert_has(" is lost");
    assert_has("is gone; stopping the ranks of this host");
    assert_has("[0] rank 0 of 2 start 1");
    assert_has("[1] rank 1 of 2 start 1");
    assert_has("0: 0");
    assert_has("1: 0");
}

int main(int argc, char **argv)
{
    int status;
    if (is_rank(argc, argv, &status))
        return status;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(start_one_world),
        cmocka_unit_test(are_told_of_mpi),
        cmocka_unit_test(end_and_start_again_together),
        cmocka_unit_test(notice_that_the_other_is_gone),
        cmocka_unit_test(are_told_what_is_wrong),
        cmocka_unit_test_setup_teardown(survive_a_cut_cable, lay_cable, take_away),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}

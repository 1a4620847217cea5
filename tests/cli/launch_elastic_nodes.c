/* launch_elastic_nodes.c: paracord launch --elastic on two hosts: one that is killed, or cut off, or never comes, or whose disk
 * is full; and one that comes back. */
#include "nodes.h"

#define GOES_ON_WITHOUT_NODE_1 "going on with 2 of 3 ranks, without node 1 ("

static void goes_on_without_a_host(void **state)
{
    (void)state;
    /* The agent of host 1 is killed, and the kernel kills its ranks. */
    both("(FINE_FOR=2 node 0 -n 2 --elastic -- $R host; echo 0: $?) >a 2>&1 & node 1 -n 1 -- $R host >b 2>&1; "
         "wait");
    assert_has("node 1 (");
    assert_has("is lost: the connection to node 1");
    assert_has(GOES_ON_WITHOUT_NODE_1);
    assert_has("no restart is left");
    assert_has("[0] rank 0 of 2 start 1");
    assert_has("[1] rank 1 of 2 start 1");
    assert_has("0: 0");
    /* With restarts left it may come back, which is waited for. */
    both("(FINE_FOR=2 node 0 -n 2 --elastic --max-restarts 3 --timeout 3 -- $R host; echo 0: $?) >a 2>&1 & node 1 "
         "-n 1 -- $R host >b 2>&1; wait");
    assert_has("starting all ranks again (restart 1 of 3)");
    assert_has("going on with 2 ranks, without node 1: it has not come within 3 s");
    assert_has("[1] rank 1 of 2 start 1");
    assert_has("0: 0");
    both("(node 0 -n 2 --elastic --timeout 1 -- $R fine; echo 0: $?) >a 2>&1; : >b");
    assert_has("going on with 2 ranks, without node 1: it has not come within 1 s");
    assert_has("[1] rank 1 of 2 start 0");
    assert_has("0: 0");
    both("(node 0 -n 2 --elastic --min-ranks 3 --timeout 0.5 -- $R fine; echo 0: $?) >a 2>&1; : >b");
    assert_has("node 1 of 2 has not come");
    assert_has("0: 1");
}

/* It is seen when it comes, and takes part from the next start on. */
static void takes_a_host_that_comes_back(void **state)
{
    (void)state;
    both("C='case $TORCHELASTIC_RESTART_COUNT in 0) exec $R host;; 2) exec $R fine;; esac; test $RANK != 1 || while :; "
         "do ! "
         "test -e again || exit 3; sleep 0.02; done; sleep 30'; "
         "(node 0 -n 2 --elastic --max-restarts 2 --timeout 3 -- sh -c \"$C\"; echo 0: $?) >a 2>&1 & "
         "node 1 -n 1 -- sh -c \"$C\" >b 2>&1; seen 'without node 1' a; "
         "(node 1 -n 1 -- sh -c \"$C\"; echo 1: $?) >b 2>&1 & seen joins a; "
         ": >again; wait; rm again");
    assert_has("going on with 2 ranks, without node 1: it has not come within 3 s");
    assert_has(") is here, and joins at the next start");
    assert_has("starting all ranks again (restart 2 of 2)");
    for (int rank = 0; rank < 3; rank++) {
        char words[64];
        snprintf(words, sizeof words, "[%d] rank %d of 3 start 2\n", rank, rank);
        assert_has(words);
    }
    assert_has("0: 0");
    assert_has("1: 0");
}

static void leaves_out_a_host_whose_disk_is_full(void **state)
{
    (void)state;
    both("(FINE_FOR=1 node 0 -n 1 --elastic --max-restarts 4 -- $R disk; echo 0: $?) >a 2>&1 & (FINE_FOR=1 node 1 -n 1 "
         "-- "
         "$R disk; echo 1: $?) >b 2>&1; wait");
    assert_has("says: cannot write here: No space left on device");
    assert_has("starting all ranks again (restart 1 of 4)");
    assert_has("going on with 1 of 2 ranks, without node 1 (");
    assert_has("it has failed twice in a short time");
    assert_has("[0] rank 0 of 1 start 2");
    assert_has("0: 0");
    assert_has("1: 0");
}

/* Neighbours stay on one host: what is left over is of the host that has no whole number of them, here all that it has. */
static void leaves_places_of_one_host_idle(void **state)
{
    (void)state;
    setenv("MULTIPLE", "2", 1);
    both("(FINE_FOR=2 node 0 -n 2 --elastic -- $R kill; echo 0: $?) >a 2>&1 & (FINE_FOR=2 node 1 -n 2 -- $R kill; "
         "echo 1: $?) >b 2>&1; wait");
    unsetenv("MULTIPLE");
    assert_has("going on with 2 of 4 ranks, without rank 1 (place 1 of node 0, ");
    assert_has("; 1 of the 3 places is idle");
    const char *other = strstr(output, "0: 0\n");
    assert_non_null(other);
    assert_non_null(strstr(other, "[0] rank 0 of 2 start 1"));
    assert_non_null(strstr(other, "[1] rank 1 of 2 start 1"));
    assert_non_null(strstr(other, "1: 0\n"));
}

static void goes_on_with_a_cut_cable(void **state)
{
    (void)state;
    use_cable();
    setenv("PARACORD_BEAT_LIMIT", "2", 1);
    setenv("FINE_FOR", "1", 1);
    /* The host is cut off for good: it stops its ranks, waits, and gives up. */
    assert_status(NODE
                  "(node 0 -n 1 --elastic -- $R wait; echo 0: $?) >a 2>&1 & (node 1 -n 1 --timeout 5 -- $R wait; echo "
                  "1: $?) >b 2>&1 & seen 'rank 1' b; "
                  "ip -n ${IN}0 link del v0; wait; pgrep -fx \"$R wait\" && exit 98; cat a b; rm a b",
                  0);
    assert_has("node 1 (");
    assert_has("going on with 1 of 2 ranks, without node 1 (");
    assert_has("[0] rank 0 of 1 start 1");
    assert_has("0: 0");
    assert_has("is gone, and has not come back within 5 s");
    assert_has("1: 1");
}

/* All processes of a host at once, as if its power had gone. */
static void goes_on_without_a_killed_host(void **state)
{
    (void)state;
    use_cable();
    setenv("FINE_FOR", "1", 1);
    assert_status(
        NODE
        "(node 0 -n 1 --elastic -- $R wait; echo 0: $?) >a 2>&1 & (node 1 -n 1 -- $R wait) >b 2>&1 & seen 'rank 1' b; "
        "kill -KILL $(ip netns pids ${IN}1); wait; pgrep -fx \"$R wait\" && exit 98; cat a b; rm a b",
        0);
    assert_has("going on with 1 of 2 ranks, without node 1 (");
    assert_has("[0] rank 0 of 1 start 1");
    assert_has("0: 0");
}

static int take_all_away(void **state)
{
    unsetenv("FINE_FOR");
    return take_away(state);
}

int main(int argc, char **argv)
{
    int status;
    if (is_rank(argc, argv, &status))
        return status;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_on_without_a_host),
        cmocka_unit_test(takes_a_host_that_comes_back),
        cmocka_unit_test(leaves_out_a_host_whose_disk_is_full),
        cmocka_unit_test(leaves_places_of_one_host_idle),
        cmocka_unit_test_setup_teardown(goes_on_with_a_cut_cable, lay_cable, take_all_away),
        cmocka_unit_test_setup_teardown(goes_on_without_a_killed_host, lay_cable, take_all_away),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}

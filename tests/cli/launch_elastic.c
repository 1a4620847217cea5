/* launch_elastic.c: paracord launch --elastic on one host: which failures leave a place out, which do not, and what the ranks
 * that go on get. */
#include "launch.h"

static void goes_on_without_a_place(void **state)
{
    (void)state;
    assert_status("FINE_FOR=2 timeout 30 $P launch -n 3 --elastic -- $R kill 2>&1", 0);
    assert_has("was ended by signal 9 (SIGKILL)");
    assert_has("going on with 2 of 3 ranks, without rank 1 (place 1 of node 0, ");
    assert_has("): no restart is left");
    assert_has("[0] rank 0 of 2 start 1");
    assert_has("[1] rank 1 of 2 start 1");
    assert_lacks("starting all ranks again");
    assert_status("FINE_FOR=1 PARACORD_BEAT_LIMIT=2 timeout 30 $P launch -n 2 --elastic -- $R stop 2>&1", 0);
    assert_has("gave no sign of life for ");
    assert_has("[0] rank 0 of 1 start 1");
    assert_status("FINE_FOR=2 timeout 30 $P launch -n 3 --elastic -- $R device 2>&1", 0);
    assert_has(" says: cuda:1 is lost");
    assert_has("going on with 2 of 3 ranks, without rank 1 (place 1 of node 0, ");
}

static void tries_a_place_again_once(void **state)
{
    (void)state;
    assert_status("FINE_FOR=2 timeout 30 $P launch -n 3 --elastic --max-restarts 5 -- $R exit 2>&1", 0);
    assert_has("starting all ranks again (restart 1 of 5)");
    assert_lacks("restart 2 of 5");
    assert_has("going on with 2 of 3 ranks, without rank 1 (place 1 of node 0, ");
    assert_has("): it has failed twice in a short time");
    assert_has("[1] rank 1 of 2 start 2");
    /* Another place each time: all of them begin again, while restarts are left. */
    assert_status(
        "timeout 30 $P launch -n 3 --elastic --max-restarts 2 -- sh -c 'case $TORCHELASTIC_RESTART_COUNT in 3) "
        "exit 0;; $RANK) exit 5;; esac; sleep 30' 2>&1",
        0);
    assert_has("restart 2 of 2");
    assert_has("going on with 2 of 3 ranks, without rank 2 (place 2 of node 0, ");
    assert_has("): no restart is left");
}

/* Ranks are counted anew, and GPUs of places that are left out are hidden. */
static void numbers_what_is_left(void **state)
{
    (void)state;
    static const char *const rows[][4] = {
        {"", "0 3 0 3 0 1 -", "0 2 0 2 0 1 0,2", "1 2 1 2 0 1 0,2"},
        {"CUDA_VISIBLE_DEVICES=GPU-a,GPU-b,GPU-c,GPU-d", "0 3 0 3 0 1 GPU-a,GPU-b,GPU-c,GPU-d",
         "0 2 0 2 0 1 GPU-a,GPU-c,GPU-d", "1 2 1 2 0 1 GPU-a,GPU-c,GPU-d"},
        {"CUDA_VISIBLE_DEVICES=5", "0 3 0 3 0 1 5", "0 2 0 2 0 1 5", "1 2 1 2 0 1 5"}, /* a GPU that all share */
    };
    for (int i = 0; i < (int)(sizeof rows / sizeof *rows); i++) {
        char line[512];
        snprintf(line, sizeof line,
                 "unset CUDA_VISIBLE_DEVICES; %s timeout 30 $P launch -n 3 --elastic -- sh -c 'echo $RANK $WORLD_SIZE "
                 "$LOCAL_RANK $LOCAL_WORLD_SIZE $GROUP_RANK $GROUP_WORLD_SIZE ${CUDA_VISIBLE_DEVICES:--}; test "
                 "$WORLD_SIZE = 3 || exit 0; sleep 0.2; test $RANK != 1 || exit 3; sleep 30' 2>&1",
                 rows[i][0]);
        assert_status(line, 0);
        for (int j = 1; j < 4; j++)
            assert_has(rows[i][j]);
    }
}

static void ends_where_fewer_are_no_help(void **state)
{
    (void)state;
    assert_status("timeout 30 $P launch -n 3 --elastic --min-ranks 2 -- $R kill 2>&1", 137);
    assert_has("going on with 2 of 3 ranks");
    assert_has("not going on: without rank 1 (place 2 of node 0, ");
    assert_has(") there would be 1 ranks, fewer than --min-ranks 2");
    /* What a rank says of its program would be so with fewer, too; and a host's disk is as full for its other ranks. */
    static const char *const modes[] = {"error", "disk"};
    for (int i = 0; i < 2; i++) {
        char line[256];
        snprintf(line, sizeof line, "timeout 30 $P launch -n 3 --elastic --max-restarts 2 -- $R %s 2>&1", modes[i]);
        assert_status(line, 1);
        assert_has("restart 2 of 2");
        assert_lacks("going on");
        assert_has("; rank 1 on ");
    }
    /* All ranks down to the last one. */
    assert_status("timeout 30 $P launch -n 3 --elastic -- sh -c 'exit 4' 2>&1", 4);
    assert_has("going on with 1 of 2 ranks");
    assert_has("not going on: without rank 0 ");
    assert_status("timeout 30 $P launch -n 2 --min-ranks 1 -- true 2>&1", 2);
    assert_has("--min-ranks is for --elastic");
}

/* Of programs that take a multiple of some number of ranks, places are left idle, and take part when others fail. */
static void goes_on_with_a_multiple(void **state)
{
    (void)state;
    assert_status("MULTIPLE=2 FINE_FOR=2 timeout 30 $P launch -n 4 --elastic -- $R kill 2>&1", 0);
    assert_has("going on with 2 of 4 ranks, without rank 1 (place 1 of node 0, ");
    assert_has("; 1 of the 3 places is idle, since the program takes a multiple of 2 ranks\n");
    assert_has("[0] rank 0 of 2 start 1");
    assert_has("[1] rank 1 of 2 start 1");
    assert_lacks("these are");
    assert_status("MULTIPLE=2 timeout 30 $P launch -n 5 --elastic -- sh -c 'test $TORCHELASTIC_RESTART_COUNT = 2 && "
                  "exec $R fine; exec $R kill' 2>&1",
                  0);
    assert_has("says: these are 5 ranks");
    assert_has("going on with 4 ranks; 1 of the 5 places is idle, since the program takes a multiple of 2 ranks\n");
    assert_has("going on with 4 of 4 ranks, without rank 1 (place 1 of node 0, ");
    assert_has("[3] rank 3 of 4 start 2");
    assert_status("MULTIPLE=3 timeout 30 $P launch -n 3 --elastic -- $R kill 2>&1", 137);
    assert_has("there would be places for 2 ranks, of which the program takes a multiple of 3: fewer than --min-ranks "
               "3 are left\n");
    /* Without --elastic what does not fit ends. */
    assert_status("MULTIPLE=2 timeout 30 $P launch -n 3 -- $R kill 2>&1", 1);
    assert_lacks("going on");
}

static void ends_on_request(void **state)
{
    (void)state;
    assert_status(
        "(timeout 30 $P launch -n 2 --elastic --max-restarts 3 -- sh -c 'echo ready; exec sleep 98781' & echo $! >pid; "
        "wait $!; echo status $?) >out 2>&1 & for i in $(seq 1000); do test $(grep -c ready out) = 2 && break; sleep "
        "0.01; done; kill -INT $(cat pid); wait; cat out; rm out pid; ! pgrep -fx 'sleep 98781'",
        0);
    assert_has("status 130\n");
    assert_lacks("going on");
    assert_lacks("restart");
}

int main(int argc, char **argv)
{
    int status;
    if (is_rank(argc, argv, &status))
        return status;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_on_without_a_place), cmocka_unit_test(tries_a_place_again_once),
        cmocka_unit_test(numbers_what_is_left),    cmocka_unit_test(ends_where_fewer_are_no_help),
        cmocka_unit_test(goes_on_with_a_multiple), cmocka_unit_test(ends_on_request),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}

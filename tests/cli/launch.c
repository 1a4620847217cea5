/* launch.c: paracord launch on one host: what ranks get, what is told when one ends, and what is left: nothing. */
#include "launch.h"

static void starts_ranks_with_their_variables(void **state)
{
    (void)state;
    assert_status("$P launch -n 4 -- $R fine 2>&1 | sort", 0);
    assert_string_equal(
        output, "[0] rank 0 of 4 start 0\n[1] rank 1 of 4 start 0\n[2] rank 2 of 4 start 0\n[3] rank 3 of 4 start 0\n");
    assert_status(
        "RANK=7 OMPI_COMM_WORLD_RANK=3 PARACORD_STORE=x:1 SOME=thing $P launch -n 2 -- sh -c "
        "'echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $GROUP_RANK $MASTER_ADDR $TORCHELASTIC_RESTART_COUNT "
        "${#PARACORD_TOKEN} $SOME ${OMPI_COMM_WORLD_RANK-none}' | sort",
        0);
    assert_string_equal(output, "[0] 0 2 0 2 0 127.0.0.1 0 32 thing none\n[1] 1 2 1 2 0 127.0.0.1 0 32 thing none\n");
    assert_status("$P launch -n 3 -- sh -c 'echo $MASTER_PORT $PARACORD_STORE $PARACORD_TOKEN' | cut -d' ' -f2- | sort "
                  "-u | wc -l",
                  0);
    assert_string_equal(output, "1\n");
    assert_status("$P launch -n 2 -- sh -c 'cat; echo end of input' 2>&1", 0);
    assert_has("[1] end of input\n");
}

static void labels_whole_lines(void **state)
{
    (void)state;
    assert_status("$P launch -n 1 -- sh -c 'printf \"a\\nb\"; sleep 0.1; printf \"c\\n\\nno end\"; printf \"wrong\\n\" "
                  ">&2' 2>err; "
                  "cat err; rm err",
                  0);
    assert_string_equal(output, "[0] a\n[0] bc\n[0] \n[0] no end\n[0] wrong\n");
    assert_status("$P launch -n 2 -- sh -c 'for i in $(seq 2000); do echo $RANK some text that is not cut $i; done' | "
                  "grep -cE '^\\[([01])\\] \\1 some text that is not cut [0-9]+$'",
                  0);
    assert_string_equal(output, "4000\n");
    assert_status("$P launch -n 1 -- sh -c 'head -c 3000000 /dev/zero | tr \"\\\\0\" x' | tr -d 'x\\n'", 0);
    assert_string_equal(output, "[0] [0] [0] ");
}

static void ends_with_its_reader(void **state)
{
    (void)state;
    assert_status("$P launch -n 2 -- sh -c 'while sleep 0.01; do echo $RANK; done' 2>err | head -n 3 | wc -l; sleep "
                  "0.1; cat err; rm err; "
                  "! pgrep -fx 'sh -c while sleep 0.01.*'",
                  0);
    assert_has("3\n");
    assert_has("cannot be written any more (Broken pipe); stopping them");
    if (!access("/dev/full", W_OK)) {
        const int status = shell(output, "timeout 20 $P launch -n 2 -- echo hello 2>&1 >/dev/full");
        assert_true(status == 1 || status == 143); /* it may have ended before that is known */
        assert_has("cannot be written any more (No space left on device)");
    }
}

/* A pager that is left alone, a terminal that is stopped: the job goes on, and all of it comes out later. */
static void waits_for_its_reader(void **state)
{
    (void)state;
    assert_status("(PARACORD_BEAT_LIMIT=0.5 timeout 20 $P launch -n 2 -- $R loud 2>err; echo status $? >>err) | "
                  "(sleep 1.2; grep -c '^.0. 0.*[0-9]$'); cat err; rm err",
                  0);
    assert_string_equal(output, "5000\nstatus 0\n");
    assert_status("line=$(printf %099d 7); timeout 20 $P launch -n 2 -- sh -c 'yes $0 | head -n 120000; echo end >&2' "
                  "$line 2>&1 | (sleep 0.2; grep -v '^.[01]. 0*7$' | sort | uniq -c)",
                  0); /* more than is kept */
    assert_string_equal(output, "      1 [0] end\n      1 [1] end\n");
    assert_status("mkfifo pipe; sleep 20 <pipe & reader=$!; "
                  "timeout 20 $P launch -n 1 -- sh -c 'yes | head -c 300000; sleep 98767' >pipe 2>err & "
                  "for i in $(seq 500); do pgrep -fcx 'sleep 98767' >none && break; sleep 0.01; done; kill -TERM $!; "
                  "wait $!; echo $?; kill $reader; cat err; rm pipe err none",
                  0); /* and whoever has enough of that can end it */
    assert_string_equal(output, "143\n");
}

static void tells_who_died_of_what(void **state)
{
    (void)state;
    assert_status("timeout 20 $P launch -n 3 -- $R exit 2>&1", 3);
    assert_has("paracord launch: rank 1 (process ");
    assert_has("ended with exit status 3; it had entered no collective");
    assert_has("stopping all other ranks");
    assert_status("timeout 20 $P launch -n 3 -- $R kill 2>&1", 137);
    assert_has("rank 1 (process ");
    assert_has("was ended by signal 9 (SIGKILL)");
    assert_status("PARACORD_BEAT_LIMIT=2 timeout 20 $P launch -n 3 -- $R stop 2>&1", 137);
    assert_has("rank 1 (process ");
    assert_has("gave no sign of life for ");
    assert_status(
        "PARACORD_BEAT_LIMIT=1 timeout 20 $P launch -n 3 -- sh -c 'test $RANK != 1 || kill -STOP $$; sleep 60' 2>&1",
        137);
    assert_has("rank 1 (process ");
    assert_has(" was stopped (SIGSTOP) for more than 1 s");
    assert_status("timeout 20 $P launch -n 3 -- $R error 2>&1", 1);
    assert_has("says: the shapes of rank 1 do not fit");
    assert_status("timeout 20 $P launch -n 3 -- $R beat 2>&1", 4);
    assert_has("it was in collective 17 (all_reduce, 4096 bytes)");
    assert_status("timeout 20 $P launch -n 3 -- sh -c 'test $RANK != 1 || kill -SEGV $$; sleep 60' 2>&1", 139);
    assert_has("was ended by signal 11 (SIGSEGV)");
}

static void starts_all_again(void **state)
{
    (void)state;
    assert_status("timeout 20 $P launch -n 3 --max-restarts 2 -- $R once 2>&1", 0);
    assert_has("[1] rank 1 of 3 start 0");
    assert_has("starting all ranks again (restart 1 of 2)");
    for (int rank = 0; rank < 3; rank++) {
        char line[64];
        snprintf(line, sizeof line, "[%d] rank %d of 3 start 1\n", rank, rank);
        assert_has(line);
    }
    assert_lacks("start 2");
    assert_status("timeout 20 $P launch -n 2 --max-restarts 2 -- $R kill 2>&1", 137);
    assert_has("restart 2 of 2");
    assert_has("[1] rank 1 of 2 start 2");
}

static void stops_those_that_do_not_listen(void **state)
{
    (void)state;
    assert_status(
        "start=$(date +%s); timeout 20 $P launch -n 2 -- sh -c 'test $RANK = 0 && sleep 0.5 && exit 5; trap \"\" TERM; "
        "while :; do sleep 0.1; done' 2>&1; status=$?; test $(($(date +%s) - start)) -le 15 && exit $status",
        5);
}

/* Processes that ranks have started: in their group, in sessions of their own, started by something that has ended. */
static void leaves_no_process_behind(void **state)
{
    (void)state;
    static const char *const ends[] = {"exit 0", "exit 3", "kill -9 $$"};
    static const int statuses[] = {0, 3, 137};
    for (int i = 0; i < 3; i++) {
        char line[512];
        snprintf(line, sizeof line,
                 "timeout 20 $P launch -n 2 -- sh -c 'sleep 98761 & setsid sleep 98762 & (setsid sh -c \"sleep 98763 & "
                 "sleep 98764\" &) ; "
                 "sleep 0.2; %s' 2>&1; status=$?; ! pgrep -fx 'sleep 9876[1-4]' || exit 99; exit $status",
                 ends[i]);
        assert_status(line, statuses[i]);
    }
    assert_status("$P launch -n 2 -- sleep 98765 & sleep 0.3; kill -9 $!; sleep 0.2; ! pgrep -fx 'sleep 98765'", 0);
}

static void forwards_signals(void **state)
{
    (void)state;
    assert_status("($P launch -n 2 -- $R catch & echo $! >pid; wait $!; echo status $?) >out 2>&1 & "
                  "for i in $(seq 500); do test $(grep -c ready out) = 2 && break; sleep 0.01; done; kill -INT $(cat "
                  "pid); wait; cat out",
                  0);
    assert_has("[0] rank 0 caught 2\n");
    assert_has("[1] rank 1 caught 2\n");
    assert_has("status 0\n");
    static const char *const signals[] = {"INT", "TERM", "HUP"};
    static const int statuses[] = {130, 143, 129};
    for (int i = 0; i < 3; i++) {
        char line[384], words[32];
        snprintf(
            line, sizeof line,
            "($P launch -n 2 --max-restarts 3 -- sleep 98766 & echo $! >pid; wait $!; echo status $?) "
            ">out 2>&1 & for i in $(seq 1000); do test $(pgrep -fcx 'sleep 98766') = 2 && break; sleep 0.01; done; "
            "kill -%s $(cat pid); wait; cat out; ! pgrep -fx 'sleep 98766'",
            signals[i]);
        assert_status(line, 0);
        snprintf(words, sizeof words, "status %d\n", statuses[i]);
        assert_has(words);
        assert_lacks("restart");
    }
    /* A second one ends ranks that take no notice of the first. */
    assert_status("($P launch -n 1 -- sh -c 'trap \"\" INT; echo ready; while :; do sleep 0.1; done' & echo $! >pid; "
                  "wait $!; echo "
                  "status $?) >out 2>&1 & for i in $(seq 500); do grep -q ready out && break; sleep 0.01; done; "
                  "kill -INT $(cat pid); sleep 0.5; kill -INT $(cat pid); wait; cat out; rm -f out pid",
                  0);
    assert_has("status 130\n");
}

static void names_what_is_wrong_with_the_command(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"-n 2 -- no-such-program", "there is no program no-such-program in the folders of PATH: give its path"},
        {"-n 2 -- ./no/such", "there is no program ./no/such"},
        {"-- ./plain", "./plain is not executable: chmod +x"},
        {"-- /tmp", "cannot start /tmp: Is a directory"},
        {"-n 2", "COMMAND"},
        {"-n 0 -- true", "--ranks"},
        {"-n 1 --bind here -- true", "--bind"},
        {"-n 1 --nodes 2 --master a:1 -- true", "PARACORD_TOKEN"},
        {"-n 1 --nodes 2 --node-rank 2 -- true", "--node-rank is 2"},
    };
    assert_status("echo echo >plain", 0);
    for (int i = 0; i < (int)(sizeof rows / sizeof *rows); i++) {
        char line[256];
        snprintf(line, sizeof line, "timeout 10 $P launch %s 2>&1 >/dev/null", rows[i][0]);
        const int status = shell(output, line);
        if ((status != 1 && status != 2) || !strstr(output, rows[i][1]) ||
            strchr(output, '\n') != output + strlen(output) - 1)
            fail_msg("%s: exit status %d and \"%s\"", line, status, output);
    }
    assert_status("rm plain; PARACORD_TOKEN=x timeout 10 $P launch --nodes 2 -- true 2>&1", 1);
    assert_has("--master HOST:PORT");
    assert_status("printf '#!/no/such/shell\\n' >script; chmod +x script; timeout 10 $P launch -- ./script 2>&1; s=$?; "
                  "rm script; exit $s",
                  127);
    assert_has("rank 0 on ");
    assert_has("the program that its first line names is not there");
    assert_status("printf 'echo hello\\n' >script; chmod +x script; timeout 10 $P launch -- ./script 2>&1; s=$?; rm "
                  "script; exit $s",
                  127);
    assert_has("a script without #!");
}

int main(int argc, char **argv)
{
    int status;
    if (is_rank(argc, argv, &status))
        return status;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_ranks_with_their_variables),
        cmocka_unit_test(labels_whole_lines),
        cmocka_unit_test(ends_with_its_reader),
        cmocka_unit_test(waits_for_its_reader),
        cmocka_unit_test(tells_who_died_of_what),
        cmocka_unit_test(starts_all_again),
        cmocka_unit_test(stops_those_that_do_not_listen),
        cmocka_unit_test(leaves_no_process_behind),
        cmocka_unit_test(forwards_signals),
        cmocka_unit_test(names_what_is_wrong_with_the_command),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}

/* Kill -9 at any moment of a training run: resumed, it ends with the same network bit for bit as when left alone. */
#include "job.h"

static test_path root;
static unsigned seed;

static int prepare(void **state)
{
    (void)state;
    root = folder_in_memory();
    draw_pictures(root.s, 24, 6);
    seed = (unsigned)time(NULL);
    print_message("kills are drawn from seed %u\n", seed);
    return 0;
}

static int tidy(void **state)
{
    (void)state;
    remove_root(&root);
    return 0;
}

/* 0 to 1 */
static double chance(void)
{
    return (double)rand_r(&seed) / RAND_MAX;
}

/* A training of these settings; `threads`, which must not matter, changes from start to start. */
typedef struct job {
    const char *arch, *epochs, *size;
    const char *devices; /* of the ranks; NULL: it is alone */
    test_path alone, killed;
    double seconds; /* when left alone */
} job;

static pid_t begin(const job *j, const test_path *out, int number)
{
    static const char *const threads[] = {"0", "1", "2"};
    return start_quietly(ARGUMENTS("train", root.s, "--arch", j->arch, "--epochs", j->epochs, "--size", j->size,
                                   "--batch", "8", "--seed", "5", "--resume", "--threads", threads[number % 3], "--out",
                                   out->s, j->devices ? "--devices" : NULL, j->devices));
}

static void leave_alone(job *j, const char *name)
{
    char killed[64];
    snprintf(killed, sizeof killed, "%s-killed", name);
    j->alone = joined(root.s, name);
    j->killed = joined(root.s, killed);
    double before = seconds_now();
    assert_int_equal(wait_for(begin(j, &j->alone, 0)), 0);
    j->seconds = seconds_now() - before;
}

/* The run that was killed has come to its end. */
static void compare(const job *j)
{
    assert_same_runs(j->alone.s, j->killed.s);
}

/* Many kills in one run. One that ends before it could be killed often enough is compared and begun again. */
static void killed_again_and_again(const char *arch, const char *epochs, const char *devices)
{
    job j = {.arch = arch, .epochs = epochs, .size = "32", .devices = devices};
    leave_alone(&j, devices ? "ranks" : arch);
    int kills = 0, finished = 0, starts = 0;
    for (bool ended = false; kills < 20 || !ended; starts++) {
        pid_t child = begin(&j, &j.killed, starts);
        if (kills < 20) {
            sleep_for(0.01 + chance() * j.seconds / 8);
            kill(child, SIGKILL);
        }
        int status = wait_for(child);
        if (status != -SIGKILL && status != 0)
            fail_msg("start %d ended with %d", starts, status);
        kills += status == -SIGKILL;
        if ((ended = status == 0)) {
            compare(&j);
            remove_root(&j.killed);
            finished++;
        }
    }
    print_message("%s%s%s: %d kills, %d runs that ended; alone %.2f s\n", arch, devices ? " on " : "",
                  devices ? devices : "", kills, finished, j.seconds);
}

static void article(void **state)
{
    (void)state;
    killed_again_and_again("article", SANITIZED ? "40" : "600", NULL);
}

static void two_conv(void **state)
{
    (void)state;
    killed_again_and_again("two-conv", SANITIZED ? "15" : "150", NULL);
}

/* Four ranks in one process, each with a device. */
static void ranks(void **state)
{
    (void)state;
    setenv("PARACORD_SIM", "4", 1);
    killed_again_and_again("article", SANITIZED ? "10" : "100", "sim:0,sim:1,sim:2,sim:3");
    unsetenv("PARACORD_SIM");
}

/* Short runs, each killed once about the time when it writes its last checkpoint, its network and its report. */
static void while_the_results_are_written(void **state)
{
    (void)state;
    job j = {.arch = "article", .epochs = "2", .size = "32"};
    leave_alone(&j, "short");
    int kills = 0;
    for (int i = 0; i < (SANITIZED ? 10 : 25); i++) {
        pid_t child = begin(&j, &j.killed, i);
        sleep_for((0.4 + 0.6 * chance()) * j.seconds);
        kill(child, SIGKILL);
        kills += wait_for(child) == -SIGKILL;
        assert_int_equal(wait_for(begin(&j, &j.killed, i + 1)), 0);
        compare(&j);
        remove_root(&j.killed);
    }
    print_message("%d kills in runs of %.3f s\n", kills, j.seconds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(article), cmocka_unit_test(two_conv), cmocka_unit_test(ranks),
                                       cmocka_unit_test(while_the_results_are_written)};
    return cmocka_run_group_tests_name("cli.job_kill", tests, prepare, tidy);
}

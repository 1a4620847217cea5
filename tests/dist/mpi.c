/* mpi.c: what goes wrong between ranks that are processes: it has a name in each of them, and nobody waits for ever. The test
 * starts itself by mpirun; the variable MPI_ROLE says then what a rank does, and what it prints is what is looked at. */
#include "device/plugin.h"
#include "device/plugin_file.h"
#include "dist/group.h"
#include "dist/mpi.h"
#include "ranks.h"

#include <paracord.h>

enum { OUTPUT = 16384, MANY = 100000 /* which are not on their way before somebody takes them */ };

/* --- in a rank --- */

static pc_device device;
static double begun;

/* Wait until so many ranks have come to this place, which is a file of each in the test's folder: neither the world nor MPI is
 * asked, for what a test does to them. */
static void wait_for(const char *place, int ranks)
{
    int came = 0;
    for (int turn = 0; came < ranks && turn < 2000; turn++) {
        came = 0;
        for (int r = 0; r < 3; r++) {
            char path[512];
            snprintf(path, sizeof path, "%s/%s.%d", getenv("MPI_MEET"), place, r);
            came += access(path, F_OK) == 0;
        }
        usleep(10000);
    }
}

static void come_to(const char *place)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.%d", getenv("MPI_MEET"), place, pc_dist_rank());
    FILE *file = fopen(path, "w");
    RANK_CHECK(file);
    fclose(file);
}

static void say(const char *what, pc_status status)
{
    printf("<%s: rank %d: %s after %.1f s: %s>\n", what, pc_dist_rank(), pc_status_name(status), pc__dist_now() - begun,
           pc_error_last()->message);
    fflush(stdout);
    pc_error_clear();
}

/* On sim the error comes with the wait. */
static pc_status done(pc_status queued)
{
    const pc_status waited = pc_device_synchronize(device);
    return queued == PC_OK ? waited : queued;
}

static pc_tensor *ones(int64_t n, pc_dtype dtype)
{
    return pc_full(PC_SHAPE(n), 1, dtype, device);
}

static pc_group *world(double seconds)
{
    pc_group *g = pc_group_world();
    RANK_CHECK(g);
    RANK_OK(pc_group_set_timeout(g, seconds));
    begun = pc__dist_now();
    return g;
}

static void differs_in(const char *what, pc_status (*call)(pc_group *g, int rank))
{
    pc_group *g = world(20);
    PC_SCOPE {
        say(what, done(call(g, pc_dist_rank())));
        say("again", done(pc_group_all_reduce(g, ones(1, PC_F32), PC_GROUP_SUM)));
    }
    pc_group_free(g);
}

static pc_status in_count(pc_group *g, int rank)
{
    return pc_group_all_reduce(g, ones(10 + rank, PC_F32), PC_GROUP_SUM);
}

static pc_status in_dtype(pc_group *g, int rank)
{
    return pc_group_broadcast(g, ones(10, rank ? PC_I32 : PC_F32), 0);
}

static pc_status in_reduction(pc_group *g, int rank)
{
    return pc_group_reduce(g, ones(10, PC_F32), rank ? PC_GROUP_MAX : PC_GROUP_MEAN, 0);
}

static pc_status in_root(pc_group *g, int rank)
{
    return pc_group_broadcast(g, ones(10, PC_F32), rank);
}

static pc_status in_op(pc_group *g, int rank)
{
    return rank ? pc_group_broadcast(g, ones(10, PC_F32), 0) : pc_group_all_reduce(g, ones(10, PC_F32), PC_GROUP_SUM);
}

static pc_status in_message(pc_group *g, int rank)
{
    return rank ? pc_group_receive(g, ones(6, PC_F64), 0) : pc_group_send(g, ones(5, PC_F64), 1);
}

static pc_status in_direction(pc_group *g, int rank)
{
    return pc_group_send(g, ones(5, PC_F64), 1 - rank);
}

static pc_status in_order(pc_group *g, int rank)
{
    pc_tensor *t = pc_zeros(PC_SHAPE(2, 2, 2), PC_F32, device);
    return pc_group_broadcast(g, rank ? pc_transpose(t, 0, 2) : t, 0);
}

static void mismatches(void)
{
    differs_in("count", in_count);
    differs_in("dtype", in_dtype);
    differs_in("reduction", in_reduction);
    differs_in("root", in_root);
    differs_in("op", in_op);
    differs_in("message", in_message);
    differs_in("direction", in_direction);
    differs_in("order", in_order);
}

/* Rank 2 has done one call and comes to no other. */
static void two_of_three(pc_group *g, double seconds, void (*rank_2)(void))
{
    PC_SCOPE {
        RANK_OK(done(pc_group_broadcast(g, ones(10, PC_F32), 0)));
        RANK_OK(pc_group_set_timeout(g, seconds));
        come_to("the first call's end");
        wait_for("the first call's end", 3);
        begun = pc__dist_now();
        if (pc_dist_rank() == 2)
            rank_2();
        else
            say("waits", done(pc_group_all_reduce(g, ones(MANY, PC_F32), PC_GROUP_SUM)));
    }
}

static pc_group *group;

static void come_late(void)
{
    wait_for("given up", 2);
    RANK_OK(pc_group_set_timeout(group, 20));
    begun = pc__dist_now();
    say("comes", done(pc_group_all_reduce(group, ones(MANY, PC_F32), PC_GROUP_SUM)));
}

static void late(void)
{
    pc_group *other = world(20);
    group = world(20);
    PC_SCOPE {
        RANK_OK(done(pc_group_broadcast(other, ones(1, PC_F32), 0)));
        two_of_three(group, 2, come_late);
        come_to("given up");
        begun = pc__dist_now();
        if (pc_dist_rank() < 2) /* MPI is not called any more */
            say("later", done(pc_group_send(other, ones(1, PC_F32), 2)));
    }
}

static void kill_self(void)
{
    kill(getpid(), SIGKILL);
}

static void killed(void)
{
    two_of_three(world(20), 20, kill_self);
}

static void stop_self(void)
{
    kill(getpid(), SIGSTOP);
}

static void stopped(void)
{
    two_of_three(world(20), 20, stop_self);
}

static void *abort_soon(void *context)
{
    pc__comm *comm = context;
    usleep(300000);
    comm->engine->abort(comm, "the test wants it so");
    return NULL;
}

static void aborted(void)
{
    pc_group *g = world(20);
    pthread_t thread;
    PC_SCOPE {
        RANK_OK(done(pc_group_broadcast(g, ones(10, PC_F32), 0)));
        RANK_CHECK(pthread_create(&thread, NULL, abort_soon, &pc__group_end_of(g, device)->comm) == 0);
        begun = pc__dist_now();
        if (pc_dist_rank() == 0)
            say("waits", done(pc_group_all_reduce(g, ones(MANY, PC_F32), PC_GROUP_SUM)));
        pthread_join(thread, NULL);
    }
}

/* Two ranks of three come to MPI's beginning. */
static void part(void)
{
    pc_group *some;
    assert_ok(pc_group_split(world(2), pc_dist_rank() == 2 ? -1 : 0, 0, &some));
    begun = pc__dist_now();
    PC_SCOPE {
        if (some)
            say("begins", pc_group_all_reduce(some, ones(1, PC_F32), PC_GROUP_SUM));
    }
    pc_group_free(some);
}

static void begins(void)
{
    pc_group *g = world(20);
    PC_SCOPE {
        say("begins", pc_group_all_reduce(g, ones(1, PC_F32), PC_GROUP_SUM));
    }
    pc_group_free(g);
}

/* What a crash does to a process when MPI has begun. */
static void crashes(void)
{
    struct sigaction before, after;
    RANK_CHECK(sigaction(SIGSEGV, NULL, &before) == 0);
    begins();
    RANK_CHECK(sigaction(SIGSEGV, NULL, &after) == 0);
    say(after.sa_handler == before.sa_handler ? "as before" : "caught", PC_OK);
}

/* Rank 1 finds a plug-in that is none. */
static void broken(void)
{
    if (pc_dist_rank() == 1)
        setenv("PARACORD_PLUGIN_PATH", getenv("MPI_BROKEN"), 1);
    begins();
}

static pc_tensor *fails_at_last(void *context, pc_tensor *x)
{
    int *calls = context;
    return ++*calls == 3 && pc_dist_rank() == 1 ? pc_reshape(x, PC_SHAPE(-1, 5)) : x;
}

static pc_tensor *mean_square(void *context, pc_tensor *y, pc_tensor *target)
{
    (void)context;
    return pc_mse(y, target);
}

/* The middle one of three stages fails with its third microbatch. */
static void stage(void)
{
    pc_group *g = world(20);
    int calls = 0;
    pc_module *net = pc_sequential(pc_linear(4, 4), pc_function_module(fails_at_last, &calls));
    RANK_OK(pc_module_to(net, device, PC_F32));
    pc_pipeline *pipe = pc_pipeline(net, g, mean_square, NULL, .microbatches = 4);
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(8, 4), PC_F32, device);
        say("stage", done(pc_pipeline_step(pipe, x, x, NULL)));
    }
}

static int play(const char *role)
{
    static const struct {
        const char *name;
        void (*act)(void);
        int ranks; /* that come to the end */
    } roles[] = {{"mismatches", mismatches, 2}, {"late", late, 3},      {"killed", killed, 2}, {"stopped", stopped, 2},
                 {"aborted", aborted, 2},       {"part", part, 3},      {"begins", begins, 2}, {"broken", broken, 2},
                 {"stage", stage, 3},           {"crashes", crashes, 2}};
    device = pc_device_pick(getenv("MPI_DEVICE") ? getenv("MPI_DEVICE") : "cpu");
    RANK_OK(join_world(10));
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (strcmp(roles[i].name, role) == 0) {
            roles[i].act();
            come_to("the end");
            wait_for("the end", roles[i].ranks); /* mpirun ends all of them when one goes without MPI_Finalize */
        }
    usleep(500000); /* and reads what they have printed */
    _exit(0);
}

/* --- in the test --- */

static char output[OUTPUT];

static void run(const char *command)
{
    char meet[] = "/tmp/paracord-meet-XXXXXX", clean[64];
    assert_non_null(mkdtemp(meet));
    setenv("MPI_MEET", meet, 1);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    const size_t n = fread(output, 1, sizeof output - 1, pipe);
    output[n] = 0;
    (void)pclose(pipe);
    snprintf(clean, sizeof clean, "rm -r %s", meet);
    assert_int_equal(system(clean), 0);
}

static void by_mpirun(const char *before, const char *options, int ranks, const char *role)
{
    char command[1024], self[512];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0);
    self[n] = 0;
    snprintf(command, sizeof command, "exec 2>&1; %s MPI_ROLE=%s timeout -k 1 40 mpirun --bind-to none %s -n %d '%s'",
             before, role, options, ranks, self);
    run(command);
}

/* What this rank has said begins so and holds these words, and it was no later than that. */
static void said(const char *what, int rank, const char *status, double limit, const char *words)
{
    char start[64];
    snprintf(start, sizeof start, "<%s: rank %d: ", what, rank);
    const char *at = strstr(output, start), *end = at ? strstr(at, ">\n") : NULL;
    if (!end)
        fail_msg("rank %d has not said what comes of \"%s\":\n%s", rank, what, output);
    char line[1024], got[32];
    double seconds;
    snprintf(line, sizeof line, "%.*s", (int)(end - at - (ptrdiff_t)strlen(start)), at + strlen(start));
    assert_int_equal(sscanf(line, "%31s after %lf s", got, &seconds), 2);
    if (strcmp(got, status) != 0 || !strstr(line, words) || seconds > limit)
        fail_msg("%s, rank %d, should be %s within %g s with \"%s\":\n%s", what, rank, status, limit, words, line);
}

static int need_mpirun(void **state)
{
    (void)state;
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
    if (system("mpirun --version 2>/dev/null | grep -q 'Open MPI'") == 0)
        return 0;
    print_message("skipped: no mpirun (Debian: openmpi-bin)\n");
    exit(77);
}

static void both_said(const char *what, const char *words)
{
    said(what, 0, "state", 15, words);
    said(what, 1, "state", 15, words);
}

static void calls_that_differ(void **state)
{
    (void)state;
    by_mpirun("PARACORD_CHECK=collectives", "", 2, "mismatches");
    both_said("count", "world, number 1: rank 0 calls all_reduce of 10 float32 (sum), and rank 1 all_reduce of 11 "
                       "float32 (sum); every rank must make the same calls");
    both_said("dtype", "broadcast of 10 float32 (root 0), and rank 1 broadcast of 10 int32 (root 0)");
    both_said("reduction", "(mean, root 0), and rank 1 reduce of 10 float32 (max, root 0)");
    both_said("root", "(root 0), and rank 1 broadcast of 10 float32 (root 1)");
    both_said("op", "rank 0 calls all_reduce of 10 float32 (sum), and rank 1 broadcast of 10 float32 (root 0)");
    both_said("message", "rank 0 calls send of 5 float64 (with 1), and rank 1 receive of 6 float64 (with 0)");
    both_said("direction", "rank 0 calls send of 5 float64 (with 1), and rank 1 send of 5 float64 (with 0)");
    both_said("order", "rank 0 calls broadcast of 8 float32 in C order (root 0), and rank 1 broadcast of 8 float32 in "
                       "memory order 2 1 0 (root 0)");
    both_said("again", "the group was given up");
}

static void a_rank_that_does_not_come(void **state)
{
    (void)state;
    by_mpirun("PARACORD_SIM=2 MPI_DEVICE=sim:0", "", 3, "late");
    said("comes", 2, "state", 10, "has given up its calls; its own error says why");
    for (int rank = 0; rank < 2; rank++) {
        said("waits", rank, "timeout", 8,
             "of world.1, has waited 2 s for rank 2 (last in broadcast, number 1, of 40 bytes); every rank must");
        said("later", rank, "state", 8, "the group was given up: all_reduce, number 2 of rank");
    }
}

static void a_rank_that_is_killed(void **state)
{
    (void)state;
    by_mpirun("", "--enable-recovery", 3, "killed");
    for (int rank = 0; rank < 2; rank++)
        said("waits", rank, "lost", 10, "all_reduce, number 2 of rank");
}

static void a_rank_that_is_stopped(void **state)
{
    (void)state;
    by_mpirun("PARACORD_BEAT_LIMIT=2 PARACORD_SIM=2 MPI_DEVICE=sim:0", "", 3, "stopped");
    for (int rank = 0; rank < 2; rank++)
        said("waits", rank, "lost", 10, "no sign of life");
}

static void a_group_that_is_aborted(void **state)
{
    (void)state;
    by_mpirun("", "", 2, "aborted");
    said("waits", 0, "state", 10, "the group was given up: the test wants it so");
}

static void a_stage_that_fails(void **state)
{
    (void)state;
    by_mpirun("", "", 3, "stage");
    said("stage", 1, "shape", 10, "stage 1, microbatch 2, forward: layer 1 (Function");
    said("stage", 0, "lost", 10, "stage 1, microbatch 2, forward: layer 1 (Function");
    said("stage", 2, "lost", 10, "stage 1, microbatch 2, forward: layer 1 (Function");
}

static void some_ranks_at_the_beginning(void **state)
{
    (void)state;
    by_mpirun("", "", 3, "part");
    for (int rank = 0; rank < 2; rank++)
        said("begins", rank, "timeout", 10, "MPI begins in all ranks of the world at once");
    said("begins", 0, "timeout", 10, "of 3 ranks 2 has not come within 2 s");
}

/* Open MPI catches crashes only where somebody asks for that. */
static void what_a_crash_does(void **state)
{
    (void)state;
    for (int asked = 0; asked < 2; asked++) {
        by_mpirun(asked ? "OMPI_MCA_opal_signal=11" : "", "", 2, "crashes");
        for (int rank = 0; rank < 2; rank++)
            said(asked ? "caught" : "as before", rank, "ok", 20, "");
    }
}

static int no_launcher(int rank)
{
    (void)rank;
    RANK_OK(join_world(10));
    pc_group *g = pc_group_world();
    RANK_CHECK(g);
    PC_SCOPE {
        RANK_FAILS(pc_group_all_reduce(g, pc_ones(PC_SHAPE(1), PC_F32, PC_DEVICE_CPU), PC_GROUP_SUM),
                   PC_ERR_UNSUPPORTED, "has not started this program for MPI: start it by mpirun -n 2");
    }
    pc_group_free(g);
    RANK_OK(pc_dist_end());
    return 0;
}

static void forget(const char *const *variables)
{
    for (; *variables; variables++)
        unsetenv(*variables);
}

static void without_a_launcher_of_mpi(void **state)
{
    (void)state;
    forget((const char *const[]){"OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", "PMIX_RANK", "PMI_RANK", "PMI_FD",
                                 "PMI_SIZE", NULL});
    run_ranks(2, no_launcher);
    forget(
        (const char *const[]){"WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "PARACORD_TOKEN", NULL});
}

static void two_worlds_of_one(void **state)
{
    (void)state;
    char command[2048], self[512];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    const char *const one = "RANK=%d LOCAL_RANK=%d mpirun --bind-to none -n 1 '%s'";
    int at = snprintf(command, sizeof command,
                      "exec 2>&1; export MPI_ROLE=begins WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 "
                      "MASTER_PORT=%d PARACORD_TOKEN=t; ",
                      free_port());
    for (int rank = 0; rank < 2; rank++) {
        at += snprintf(command + at, sizeof command - (size_t)at, one, rank, rank, self);
        at += snprintf(command + at, sizeof command - (size_t)at, rank ? "; wait" : " & ");
    }
    run(command);
    said("begins", 0, "unsupported", 15, "this process is rank 0 of 2, but rank 0 of 1 to MPI (Open MPI");
    said("begins", 1, "unsupported", 15, "start all ranks by its own mpirun -n 2");
}

static void a_plugin_that_one_rank_lacks(void **state)
{
    (void)state;
    char folder[] = "/tmp/paracord-mpi-XXXXXX", path[128], setting[128];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/" PC__MPI_OPEN_MPI, folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    snprintf(setting, sizeof setting, "MPI_BROKEN=%s", folder);
    by_mpirun(setting, "", 2, "broken");
    said("begins", 0, "unsupported", 15, "rank 1 of world: groups of processes on cpu go by MPI: /tmp/paracord-mpi-");
    said("begins", 1, "unsupported", 15, PC__MPI_OPEN_MPI " cannot be opened");
    unlink(path);
    rmdir(folder);
}

static const pc__mpi *ask(pc__mpi_entry entry, pc__mpi_host host, char why[256])
{
    why[0] = 0;
    return entry(&host, why, 256);
}

static void a_plugin_of_another_version(void **state)
{
    (void)state;
    char why[256];
    pc__mpi_entry entry;
    pc__plugin_file found;
    char missing[PC__PLUGIN_WHY];
    if (!pc__plugin_find(PC__MPI_OPEN_MPI, PC__MPI_ENTRY, false, &found, missing))
        fail_msg("%s", missing);
    memcpy(&entry, &found.entry, sizeof entry);
    const pc__mpi_host host = {.api_version = PC__MPI_API, .version = PC_VERSION, .ops = pc__op_names};
    pc__mpi_host other = host;
    assert_non_null(ask(entry, host, why));
    other.version = "9.9.9";
    assert_null(ask(entry, other, why));
    assert_string_equal(why, "it belongs to Paracord " PC_VERSION ", this library is 9.9.9");
    other = host;
    other.api_version = 99;
    assert_null(ask(entry, other, why));
    assert_non_null(strstr(why, "this library has 99"));
    other = host;
    other.ops = "add sub ";
    assert_null(ask(entry, other, why));
    assert_non_null(strstr(why, "it was built with other ops"));
}

int main(void)
{
    if (getenv("MPI_ROLE"))
        return play(getenv("MPI_ROLE"));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plugin_of_another_version), cmocka_unit_test(without_a_launcher_of_mpi),
        cmocka_unit_test(two_worlds_of_one),           cmocka_unit_test(a_plugin_that_one_rank_lacks),
        cmocka_unit_test(some_ranks_at_the_beginning), cmocka_unit_test(calls_that_differ),
        cmocka_unit_test(a_rank_that_does_not_come),   cmocka_unit_test(a_rank_that_is_killed),
        cmocka_unit_test(a_rank_that_is_stopped),      cmocka_unit_test(a_group_that_is_aborted),
        cmocka_unit_test(a_stage_that_fails),          cmocka_unit_test(what_a_crash_does),
    };
    return cmocka_run_group_tests(tests, need_mpirun, NULL);
}

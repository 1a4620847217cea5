/* launch_kills.c: trainings of four ranks whose processes are killed at random moments, under paracord launch and mpirun. Each
 * goes on and ends with the weights of one that is left alone: the same bits where the world stays as large, else up to
 * rounding; and nothing is left of it: no process, no shared memory, no port.
 *
 * PARACORD_TEST_KILLS=100 test.cli.launch_kills: so many kills instead of a few; PARACORD_TEST_SEED=N draws the same again. */
#include "job.h"

#include "base/base.h"

#include <net/if.h>
#include <paracord/ops.h>
#include <paracord/weights.h>
#include <math.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define RANKS 4
#define ENOUGH 6 /* kills of one run, which then may come to its end */

static test_path root;
static uint64_t seed;
static bool apart; /* this process and its children have shared memory and ports of their own */

static double chance(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX */
    return (double)(seed >> 33) / (double)(1u << 31);
}

static int chosen(int n)
{
    return (int)(chance() * n);
}

static int number_of(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

/* --- a world that can be looked through --- */

static void stand_apart(void)
{
    struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    if (unshare(CLONE_NEWNS | CLONE_NEWNET) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777") != 0) {
        print_message("no namespaces here: what is left of shared memory and ports is not looked at\n");
        return;
    }
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    apart = ioctl(fd, SIOCSIFFLAGS, &loopback) == 0;
    close(fd);
}

static void assert_no_memory_left(void)
{
    DIR *list = opendir("/dev/shm");
    const char *ours = strrchr(root.s, '/') + 1;
    for (const struct dirent *entry; list && (entry = readdir(list));)
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, ours) != 0)
            fail_msg("/dev/shm/%s is left", entry->d_name);
    closedir(list);
}

static void assert_no_port_left(void)
{
    static const char *const tables[] = {"/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"};
    for (int i = 0; i < 2; i++) {
        char line[512], local[64];
        unsigned state;
        FILE *table = fopen(tables[i], "re");
        while (table && fgets(line, sizeof line, table))
            if (sscanf(line, " %*[^:]: %63s %*s %x", local, &state) == 2 && state == 10)
                fail_msg("somebody still listens at %s", local);
        if (table)
            fclose(table);
    }
}

/* What has lost its parent is this process's child. */
static bool no_process_is_left(double seconds)
{
    for (const double end = seconds_now() + seconds; seconds_now() < end; sleep_for(0.01)) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
            return true;
    }
    return false;
}

static void assert_nothing_is_left(void)
{
    if (!no_process_is_left(2))
        fail_msg("processes are left of a job that has ended");
    if (apart) {
        assert_no_memory_left();
        assert_no_port_left();
    }
}

/* --- trainings --- */

static int prepare(void **state)
{
    (void)state;
    stand_apart();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    root = folder_in_memory();
    pc__text text = {0};
    for (int i = 0; i < 300; i++)
        pc__text_add(&text, "line %d: %s and then %s\n", i, i % 3 ? "the cat sat" : "a dog ran",
                     i % 7 ? "went home" : "slept");
    put_bytes(root.s, "text", text.data, text.length);
    pc__text_free(&text);
    setenv("PARACORD_SIM", "4", 1);
    setenv("PARACORD_BEAT_LIMIT", "3", 1); /* more than a busy machine keeps a heart waiting */
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
    setenv("PARACORD", binary(), 1);
    setenv("ROOT", root.s, 1);
    seed = (uint64_t)number_of("PARACORD_TEST_SEED", (int)time(NULL));
    print_message("kills are drawn from seed %d\n", (int)seed);
    return 0;
}

static int tidy(void **state)
{
    (void)state;
    remove_root(&root);
    return 0;
}

#define TRAIN                                                                                                          \
    "\"$PARACORD\" gpt train \"$ROOT/text\" --resume --out \"$OUT\" --layers 2 --heads 2 --width 32 --context 32 "     \
    "--batch 12 --steps 300 --test-every 20 --test-batches 2 --sample 0 --device sim --threads 1 $MORE"

/* The shell becomes the launcher. What it prints is kept for whoever asks why. */
static pid_t begin(const char *launcher, const char *out)
{
    char line[2048];
    setenv("OUT", out, 1);
    snprintf(line, sizeof line, "exec %s " TRAIN " >>\"$OUT.log\" 2>&1", launcher);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child)
        return child;
    execl("/bin/sh", "sh", "-c", line, NULL);
    _exit(127);
}

/* Its log is $OUT.log. */
static void show_log(void)
{
    if (system("tail -n 40 \"$OUT.log\" >&2") != 0)
        print_message("there is no log\n");
}

static int children_of(pid_t parent, pid_t *children, int most)
{
    char path[64];
    int n = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
    FILE *list = fopen(path, "re");
    while (list && n < most && fscanf(list, "%d", &children[n]) == 1)
        n++;
    if (list)
        fclose(list);
    return n;
}

typedef enum manner { RANK_KILLED, RANK_CRASHED, RANK_STOPPED, LAUNCHER_KILLED, MANNERS } manner;

typedef struct tally {
    int kills[MANNERS], all, runs, hung; /* mpiruns */
    double difference;                   /* the largest of weights */
} tally;

static void count(tally *t, manner how)
{
    t->kills[how]++;
    t->all++;
}

/* One process of the job. False where there is none. */
static bool strike(tally *t, pid_t launcher, manner how)
{
    static const int signals[] = {SIGKILL, SIGSEGV, SIGSTOP, SIGKILL};
    pid_t ranks[RANKS];
    const int n = children_of(launcher, ranks, RANKS);
    if (!n)
        return false;
    kill(how == LAUNCHER_KILLED ? launcher : ranks[chosen(n)], signals[how]);
    count(t, how);
    return true;
}

static bool has_ended(pid_t launcher, int *status)
{
    siginfo_t about = {0};
    if (waitid(P_PID, (id_t)launcher, &about, WEXITED | WNOHANG | WNOWAIT) != 0 || !about.si_pid)
        return false;
    *status = wait_for(launcher);
    return true;
}

/* --- what is right --- */

static double difference(const char *out, const char *alone)
{
    pc_weights *a = pc_weights_open(joined(out, "checkpoint").s), *b = pc_weights_open(joined(alone, "checkpoint").s);
    assert_not_null_ok(a);
    assert_not_null_ok(b);
    assert_int_equal(pc_weights_count(a), pc_weights_count(b));
    assert_string_equal(pc_weights_note(a, "step"), pc_weights_note(b, "step"));
    double most = 0;
    for (int i = 0; i < pc_weights_count(a); i++)
        PC_SCOPE {
            pc_weights_entry entry;
            assert_ok(pc_weights_query(a, i, &entry));
            if (strcmp(entry.name, "curve") == 0) /* seconds */
                break;
            pc_tensor *x = pc_weights_read(a, entry.name, PC_DEVICE_CPU),
                      *y = pc_weights_read(b, entry.name, PC_DEVICE_CPU);
            most = fmax(most, pc_item(pc_max(pc_abs(pc_sub(x, y)))));
        }
    pc_weights_free(a);
    pc_weights_free(b);
    return most;
}

static double compare(const char *out, const char *alone, double tolerance)
{
    const double d = difference(out, alone);
    if (!(d <= tolerance))
        fail_msg("weights differ by %g", d);
    if (tolerance == 0)
        assert_same_file(out, alone, "model.safetensors");
    assert_no_temporaries(out);
    return d;
}

static double leave_alone(const char *launcher, const char *out)
{
    const double start = seconds_now();
    const int status = wait_for(begin(launcher, out));
    if (status)
        show_log();
    assert_int_equal(status, 0);
    assert_nothing_is_left();
    return seconds_now() - start;
}

/* --- runs that are disturbed --- */

typedef struct campaign {
    const char *name, *launcher;
    int kills, enough, manners; /* in all, of one run, kinds */
    bool restarts;              /* the launcher starts ranks again; else whoever has called it does */
    double tolerance;
} campaign;

/* Open MPI's mpirun may wait for ever for a rank that dies in MPI_Init. Its user ends it then, and what it leaves. */
static bool end_mpirun(tally *t, pid_t mpirun)
{
    kill(mpirun, SIGKILL);
    t->hung++;
    return system("rm -f /dev/shm/vader_segment.*") == 0;
}

/* One start of the job: true when it was disturbed as whoever has called it has to start it again. */
static bool disturb_once(const campaign *c, tally *t, int most, int *status)
{
    const pid_t launcher = begin(c->launcher, getenv("OUT"));
    const double start = seconds_now();
    double next = start + 0.05 + 1.2 * chance(), last = 0;
    bool over = false; /* it is about to end */
    for (int strikes = 0; !has_ended(launcher, status); sleep_for(0.005)) {
        const double now = seconds_now();
        if (over && !c->restarts && now > last + 30 && end_mpirun(t, launcher))
            last = now + 3600;
        if (now > start + 300) {
            show_log();
            fail_msg("%s does not end", c->name);
        }
        if (over || strikes == most || now < next)
            continue;
        const manner how = chosen(c->manners);
        if (strike(t, launcher, how)) {
            strikes++;
            last = now;
            over = how == LAUNCHER_KILLED || !c->restarts;
        }
        next = now + 0.05 + 1.2 * chance();
    }
    if (over && !no_process_is_left(15))
        fail_msg("ranks have outlived the launcher");
    return over;
}

/* A run to its end, with so many kills at most. */
static void disturb(const campaign *c, const char *out, tally *t)
{
    const int before = t->all, enough = PC__MIN(c->enough, c->kills - t->all);
    int status = -1;
    setenv("OUT", out, 1);
    t->runs++;
    while (status != 0)
        if (!disturb_once(c, t, enough - (t->all - before), &status) && status) {
            show_log();
            fail_msg("%s ended with status %d", c->name, status);
        }
}

/* No world went down by itself. */
static void assert_shrunk_at_most(int times)
{
    char output[64];
    FILE *pipe = popen("grep -c '^paracord launch: going on with' \"$OUT.log\"", "r");
    assert_non_null(pipe);
    output[fread(output, 1, sizeof output - 1, pipe)] = 0;
    (void)pclose(pipe);
    if (atoi(output) > times) {
        show_log();
        fail_msg("the world went down %d times, at %d kills", atoi(output), times);
    }
}

static void carry_out(const campaign *c, const char *alone)
{
    tally t = {0};
    const double start = seconds_now();
    while (t.all < c->kills) {
        char name[32];
        snprintf(name, sizeof name, "run%d", t.runs);
        const test_path out = joined(root.s, name);
        const int before = t.all;
        disturb(c, out.s, &t);
        assert_nothing_is_left();
        t.difference = fmax(t.difference, compare(out.s, alone, c->tolerance));
        if (c->tolerance > 0)
            assert_shrunk_at_most(t.all - before);
        test_path done = out;
        remove_root(&done);
        (void)remove(joined(root.s, (snprintf(name, sizeof name, "run%d.log", t.runs - 1), name)).s);
    }
    print_message("%s: %d kills (%d ranks killed, %d crashed, %d stopped, %d launchers killed) in %d runs, %.0f s; "
                  "weights differ "
                  "by %.2g at most; %d mpiruns had to be ended\n",
                  c->name, t.all, t.kills[RANK_KILLED], t.kills[RANK_CRASHED], t.kills[RANK_STOPPED],
                  t.kills[LAUNCHER_KILLED], t.runs, seconds_now() - start, t.difference, t.hung);
}

static int share_of_kills(double share)
{
    const int all = number_of("PARACORD_TEST_KILLS", 12);
    return PC__MAX(1, (int)(share * all + 0.5));
}

static bool has_mpi(void)
{
    return system("mpirun --version 2>/dev/null | grep -q 'Open MPI'") == 0;
}

#define LAUNCH "\"$PARACORD\" launch -n 4 --bind none --max-restarts 1000000 --"
#define SHRINK "\"$PARACORD\" launch -n 4 --bind none --elastic --"
#define MPIRUN "mpirun --bind-to none -n 4"

static int leave_one_alone(void **state)
{
    (void)state;
    if (!has_mpi() || exists(root.s, "alone"))
        return 0;
    print_message("left alone: %.1f s\n", leave_alone(LAUNCH, joined(root.s, "alone").s));
    return 0;
}

/* What a test that failed has left. */
static int end_all(void **state)
{
    pid_t left[64];
    (void)state;
    for (int n; (n = children_of(getpid(), left, 64)) > 0;)
        while (n > 0) {
            kill(left[--n], SIGKILL);
            (void)waitpid(left[n], NULL, 0);
        }
    return 0;
}

static void a_world_that_stays(void **state)
{
    (void)state;
    if (!has_mpi())
        skip();
    carry_out(&(campaign){"restarted", LAUNCH, share_of_kills(0.5), ENOUGH, MANNERS, true, 0},
              joined(root.s, "alone").s);
}

/* Two copies of a network, each cut up among two ranks. */
static void a_world_of_cut_networks(void **state)
{
    (void)state;
    if (!has_mpi())
        skip();
    setenv("MORE", "--tensor-parallel 2 --dropout 0.1", 1);
    print_message("left alone: %.1f s\n", leave_alone(LAUNCH, joined(root.s, "cut").s));
    carry_out(&(campaign){"cut up", LAUNCH, share_of_kills(0.25), ENOUGH, MANNERS, true, 0}, joined(root.s, "cut").s);
    unsetenv("MORE");
}

static void a_world_that_shrinks(void **state)
{
    (void)state;
    if (!has_mpi())
        skip();
    carry_out(&(campaign){"shrunk", SHRINK, share_of_kills(0.25), RANKS - 1, LAUNCHER_KILLED, true, 1e-3},
              joined(root.s, "alone").s);
}

/* Whoever has called mpirun calls it again. A rank that is stopped in MPI_Init is waited for by MPI itself, for ever. */
static void a_world_of_mpi(void **state)
{
    (void)state;
    if (!has_mpi())
        skip();
    carry_out(&(campaign){"by mpirun", MPIRUN, share_of_kills(0.25), ENOUGH, RANK_STOPPED, false, 0},
              joined(root.s, "alone").s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_world_that_stays, leave_one_alone, end_all),
        cmocka_unit_test_setup_teardown(a_world_of_cut_networks, leave_one_alone, end_all),
        cmocka_unit_test_setup_teardown(a_world_that_shrinks, leave_one_alone, end_all),
        cmocka_unit_test_setup_teardown(a_world_of_mpi, leave_one_alone, end_all),
    };
    return cmocka_run_group_tests(tests, prepare, tidy);
}

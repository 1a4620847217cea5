/* launch_wrong.c: jobs in which something is wrong, as a user meets them: a collective that does not fit or that a rank does not
 * enter, a rank that hangs, an address, a port, a version, an engine. Each ends by itself within its limit, and says what. */
#include "nodes.h"

#include "base/base.h"
#include "store/server.h"

#include <paracord.h>
#include <sys/prctl.h>
#include <time.h>
#include <uv.h>

enum { MANY = 100000 };

/* --- in a rank: rank 1 of 3 does otherwise --- */

static pc_device device;

static pc_tensor *ones(int64_t n, pc_dtype dtype)
{
    return pc_full(PC_SHAPE(n), 1, dtype, device);
}

static pc_status sum(pc_group *g)
{
    return pc_group_all_reduce(g, ones(MANY, PC_F32), PC_GROUP_SUM);
}

static pc_status do_otherwise(const char *mode, pc_group *g)
{
    if (!strcmp(mode, "reduction"))
        return pc_group_all_reduce(g, ones(MANY, PC_F32), PC_GROUP_MAX);
    if (!strcmp(mode, "dtype"))
        return pc_group_all_reduce(g, ones(MANY, PC_F64), PC_GROUP_SUM);
    if (!strcmp(mode, "count"))
        return pc_group_all_reduce(g, ones(MANY - 1, PC_F32), PC_GROUP_SUM);
    if (!strcmp(mode, "op") || !strcmp(mode, "order"))
        return pc_group_broadcast(g, ones(MANY, PC_F32), 0);
    if (!strcmp(mode, "root"))
        return pc_group_broadcast(g, ones(MANY, PC_F32), 1);
    if (!strcmp(mode, "sleep"))
        (void)wait_for_the_end();
    if (!strcmp(mode, "leave"))
        exit(pc_dist_end() == PC_OK ? 0 : 94);
    if (!strcmp(mode, "vanish"))
        exit(0);
    if (!strcmp(mode, "exit"))
        _exit(3);
    if (!strcmp(mode, "abort"))
        abort();
    if (!strcmp(mode, "kill"))
        kill(getpid(), SIGKILL);
    if (!strcmp(mode, "stop"))
        kill(getpid(), SIGSTOP);
    if (!strcmp(mode, "tell")) {
        (void)pc_fail(PC_ERR_RANGE, "the loss of rank 1 is no number");
        exit(pc_report(stderr));
    }
    return sum(g);
}

static pc_status work(const char *mode, pc_group *g)
{
    PC_SCOPE {
        pc_status status = sum(g);
        if (status == PC_OK)
            status = pc_dist_rank() == 1         ? do_otherwise(mode, g)
                     : strcmp(mode, "root") == 0 ? pc_group_broadcast(g, ones(MANY, PC_F32), 0)
                                                 : sum(g);
        if (status == PC_OK && !strcmp(mode, "order"))
            status = pc_dist_rank() == 1 ? sum(g) : pc_group_broadcast(g, ones(MANY, PC_F32), 0);
        if (status == PC_OK)
            status = pc_device_synchronize(device);
        if (status != PC_OK)
            exit(pc_report(stderr));
    }
    return PC_OK;
}

static int wrong_rank(const char *mode)
{
    if (pc_dist_init((pc_dist_options){0}) != PC_OK)
        return pc_report(stderr);
    device = (pc_device){PC_SIM, (uint8_t)pc_dist_local_rank()};
    pc_group *g = pc_group_world();
    if (!g || work(mode, g) != PC_OK)
        return pc_report(stderr);
    pc_group_free(g);
    return pc_dist_end() == PC_OK ? 0 : pc_report(stderr);
}

/* --- in the test --- */

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef struct wrong {
    const char *line, *words[3];
    double limit; /* seconds */
} wrong;

/* It fails, says these words, and took no longer. */
static void check(const wrong *rows, int count)
{
    for (int i = 0; i < count; i++) {
        char line[2048];
        const wrong *w = &rows[i];
        fresh();
        snprintf(line, sizeof line, "exec 2>&1; " NODE "%s", w->line);
        const double start = seconds_now();
        const int status = shell(output, line);
        const double took = seconds_now() - start;
        if (status == 0 || took > w->limit)
            fail_msg("%s: exit status %d after %.1f s, which should be a failure within %g s:\n%s", w->line, status,
                     took, w->limit, output);
        for (int j = 0; j < 3 && w->words[j]; j++)
            if (!strstr(output, w->words[j]))
                fail_msg("%s: no \"%s\" in:\n%s", w->line, w->words[j], output);
    }
    print_message("%d runs\n", count);
}
#define CHECK(rows) check((rows), (int)(sizeof(rows) / sizeof *(rows)))

#define THREE(mode) "PARACORD_CHECK=collectives timeout 60 $P launch -n 3 --bind none -- $R wrong:" mode
#define LIMIT 15 /* 10, and what a busy machine needs to start processes */

static void collectives_that_do_not_fit(void **state)
{
    (void)state;
    static const wrong rows[] = {
        {THREE("reduction"), {"all_reduce", "rank 1"}, LIMIT},
        {THREE("dtype"), {"all_reduce", "float64"}, LIMIT},
        {THREE("count"), {"all_reduce", "99999"}, LIMIT},
        {THREE("op"), {"all_reduce", "broadcast", "rank 1"}, LIMIT},
        {THREE("root"), {"broadcast", "root", "rank 1"}, LIMIT},
        {THREE("order"), {"all_reduce", "broadcast", "rank 1"}, LIMIT},
    };
    CHECK(rows);
}

static void collectives_that_a_rank_does_not_enter(void **state)
{
    (void)state;
    static const wrong rows[] = {
        {"PARACORD_GROUP_TIMEOUT=3 " THREE("sleep"), {"all_reduce, number 2", "rank 1", "3 s"}, LIMIT},
        {"PARACORD_GROUP_TIMEOUT=5 " THREE("leave"), {"all_reduce, number 2", "rank 1"}, LIMIT},
        {THREE("vanish"), {"rank 1", "ended without pc_dist_end"}, LIMIT},
        {THREE("exit"), {"rank 1 (process ", "ended with exit status 3", "collective"}, LIMIT},
        {THREE("abort"), {"rank 1 (process ", "was ended by signal 6 (SIGABRT)"}, LIMIT},
        {THREE("kill"), {"rank 1 (process ", "was ended by signal 9 (SIGKILL)"}, LIMIT},
        {THREE("tell"), {" says: the loss of rank 1 is no number"}, LIMIT},
        {"PARACORD_BEAT_LIMIT=2 " THREE("stop"), {"rank 1 (process ", "gave no sign of life for "}, LIMIT},
    };
    CHECK(rows);
}

static void addresses_and_ports(void **state)
{
    (void)state;
    static const wrong rows[] = {
        {"node 1 --timeout 1 -- true", {"nobody serves the store at 127.0.0.1", "correct the master's address"}, LIMIT},
        {"M=no.such.host.invalid:29500 node 1 --timeout 2 -- true", {"no.such.host.invalid"}, LIMIT},
        {"M=127.0.0.1 node 1 -- true", {"HOST:PORT"}, LIMIT},
        {"M=192.0.2.7:29500 node 1 --timeout 2 -- true", {"192.0.2.7"}, LIMIT},
        {"node 0 --timeout 3 -- true >/dev/null & sleep 0.3; node 0 -- true; s=$?; wait; exit $s",
         {"is in use"},
         LIMIT},
        {"node 0 --timeout 4 -- true >/dev/null & sleep 0.3; PARACORD_TOKEN=other node 1 -- true; s=$?; wait; exit $s",
         {"the token is another one"},
         LIMIT},
        {"unset PARACORD_TOKEN; node 1 -- true", {"PARACORD_TOKEN"}, LIMIT},
        {"node 0 --timeout 1 -- true", {"node 1 of 2 has not come to 127.0.0.1:"}, LIMIT},
        {"python3 -c 'import socket,sys,time; s=socket.socket(); s.bind((\"127.0.0.1\", int(sys.argv[1]))); "
         "s.listen(); "
         "c=s.accept()[0]; c.send(b\"SSH-2.0-OpenSSH_9.2\\r\\n\"); time.sleep(2)' ${M#*:} & sleep 0.5; node 1 "
         "--timeout 3 -- "
         "true; s=$?; wait; exit $s",
         {"SSH-2.0-OpenSSH_9.2"},
         LIMIT},
        {"RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=${M#*:} $R wrong:fine",
         {"nobody serves the store at 127.0.0.1"},
         LIMIT},
        {"RANK=2 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=${M#*:} $R wrong:fine",
         {"RANK is 2", "WORLD_SIZE"},
         LIMIT},
        {"RANK=one WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=${M#*:} $R wrong:fine", {"RANK", "one"}, LIMIT},
        {"RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=${M#*:} $R wrong:fine", {"WORLD_SIZE"}, LIMIT},
    };
    CHECK(rows);
}

/* A store of this version that calls itself another one. */
static pid_t serve_as(const char *version, int port)
{
    const pid_t child = fork();
    if (child)
        return child;
    uv_loop_t loop;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    uv_loop_init(&loop);
    const pc__server_options options = {
        .host = "127.0.0.1", .port = port, .token = getenv("PARACORD_TOKEN"), .version = version, .size = 2};
    if (pc__server_open(&loop, &options))
        uv_run(&loop, UV_RUN_DEFAULT);
    _exit(1);
}

static void versions(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "exec 2>&1; " NODE "node 1 --timeout 5 -- true",
        "exec 2>&1; RANK=1 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 PARACORD_STORE=$M $R wrong:fine",
    };
    fresh();
    const pid_t server = serve_as("0.0.7", atoi(strchr(getenv("M"), ':') + 1));
    for (int i = 0; i < 2; i++) {
        const double start = seconds_now();
        assert_int_equal(shell(output, lines[i]), 1);
        assert_has("it is served by Paracord 0.0.7, and this process has " PC_VERSION);
        assert_true(seconds_now() - start < LIMIT);
    }
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
}

/* Ranks of one training that do not train the same, and engines that are not there. */
static void trainings(void **state)
{
    (void)state;
    static const wrong rows[] = {
        {"timeout 60 $P launch -n 2 -- sh -c '$P gpt train text --device sim --out b --width $((32 + 32 * RANK)) "
         "--steps 4'",
         {"rank 1", "other networks"},
         LIMIT},
        {"cp -r had b0; mkdir b1; timeout 60 $P launch -n 2 -- sh -c '$P gpt train text --device sim --layers 1 "
         "--heads 1 "
         "--width 16 --context 16 --steps 4 --test-every 2 --test-batches 1 --resume --out b$RANK'",
         {"rank 0 goes on from the checkpoint in b", "which rank 1 does not have"},
         LIMIT},
        {"timeout 60 $P launch -n 4 -- $P gpt train text --device sim --out c --batch 3",
         {"a batch of 3 is too small for 4 ranks"},
         LIMIT},
        {"timeout 60 $P launch -n 3 -- $P gpt train text --device sim --out c --tensor-parallel 2",
         {"3 ranks cannot be put together into networks of 2", "a multiple of 2 ranks"},
         LIMIT},
        {"timeout 60 $P launch -n 4 -- $P gpt train text --device sim --out c --tensor-parallel 4 --heads 2",
         {"4 ranks cannot share 2 heads equally"},
         LIMIT},
        {"timeout 60 $P launch -n 2 -- $P gpt train text --devices sim:0,sim:1 --out d",
         {"--devices: this process is rank ", "--device"},
         LIMIT},
    };
    assert_status(
        "for i in $(seq 300); do echo \"line $i: the cat sat and then went home\"; done >text; $P gpt train text "
        "--layers 1 --heads 1 --width 16 --context 16 --steps 4 --test-every 2 --test-batches 1 --device cpu --out "
        "had 2>&1",
        0);
    CHECK(rows);
    assert_status("rm -rf text had a b b0 b1 c d", 0);
}

static int prepare(void **state)
{
    static char folder[] = "/tmp/paracord-wrong-XXXXXX";
    *state = folder;
    setenv("PARACORD_SIM", "4", 1);
    if (!mkdtemp(folder) || chdir(folder) != 0)
        return -1;
    if (shell(output, "timeout 60 $P launch -n 2 -- $R wrong:fine 2>&1") == 0)
        return 0;
    print_message("skipped: ranks as processes go by MPI, which is not here: %s\n", output);
    exit(77);
}

static int tidy(void **state)
{
    return chdir("/") == 0 ? rmdir(*state) : -1;
}

int main(int argc, char **argv)
{
    int status;
    if (argc == 2 && !strncmp(argv[1], "wrong:", 6))
        return wrong_rank(argv[1] + 6);
    (void)is_rank(argc, argv, &status);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collectives_that_do_not_fit),
        cmocka_unit_test(collectives_that_a_rank_does_not_enter),
        cmocka_unit_test(addresses_and_ports),
        cmocka_unit_test(versions),
        cmocka_unit_test(trainings),
    };
    return cmocka_run_group_tests(tests, prepare, tidy);
}

/* refused.c: who does not get into a store, and what it is told: wrong addresses, ports in use, other versions, tokens, sizes
 * and starts; strangers, and garbage on the port. */
#include "ranks.h"

#include "base/base.h"
#include "store/client.h"
#include "store/wire.h"

#include <poll.h>

/* A job of two whose rank 0 is a child that waits to be ended; this process plays rank 1 and strangers. */
static pid_t server;
static int port;

static int serves(int rank)
{
    (void)rank;
    RANK_OK(join_world(0));
    for (;;) {
        RANK_CHECK(!pc__dist_lost(NULL, NULL));
        usleep(10000);
    }
}

static int stranger(void)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    for (int turn = 0; turn < 200 && connect(fd, (const struct sockaddr *)&address, sizeof address) != 0; turn++)
        usleep(10000);
    return fd;
}

static int begin(void **state)
{
    (void)state;
    port = free_port();
    set_job(2, port);
    set_rank(0);
    server = start_rank(0, serves);
    set_rank(1);
    close(stranger()); /* it listens now */
    return 0;
}

static int end(void **state)
{
    (void)state;
    int status = 0;
    const bool lives = waitpid(server, &status, WNOHANG) == 0;
    kill(server, SIGKILL);
    waitpid(server, &status, 0);
    pc_error_clear();
    return lives ? 0 : -1; /* nothing of all that has disturbed it */
}

static void assert_serves(void)
{
    pc__beat_record records[2];
    int count;
    assert_ok(join_world(10));
    do { /* it listens before it is the rank that has come */
        assert_ok(pc__beats_get(records, 2, &count));
        assert_int_equal(count, 2);
    } while (!records[0].came && !records[0].lost && poll(NULL, 0, 10) == 0);
    assert_false(records[0].lost);
    assert_ok(pc_dist_end());
}

static void with_other_variables(void **state)
{
    (void)state;
    setenv("PARACORD_TOKEN", "another", 1);
    assert_fails(join_world(5), PC_ERR_STATE, "the token is another one");
    setenv("PARACORD_TOKEN", "a token of this tes", 1);
    assert_fails(join_world(5), PC_ERR_STATE, "the token is another one");
    set_job(3, port);
    assert_fails(join_world(5), PC_ERR_STATE, "its world has 2 ranks, not 3");
    set_job(2, port);
    set_number("TORCHELASTIC_RESTART_COUNT", 1);
    assert_fails(join_world(0.3), PC_ERR_STATE, "it serves start 0 of the job, this rank is of start 1");
    unsetenv("TORCHELASTIC_RESTART_COUNT");
    setenv("PARACORD_STORE", "127.0.0.1:1", 1);
    set_number("RANK", 0);
    char address[32];
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    setenv("PARACORD_STORE", address, 1);
    assert_fails(join_world(5), PC_ERR_STATE, "is rank 0 already");
    unsetenv("PARACORD_STORE");
    set_number("RANK", 1);
    assert_serves();
}

static void of_another_version(void **state)
{
    (void)state;
    const pc__world world = {.rank = 1, .size = 2, .host = "127.0.0.1", .port = port, .token = "a token of this test"};
    assert_fails(pc__client_open(&world, "9.9.9", 5), PC_ERR_STATE, "it is served by Paracord " PC_VERSION);
    assert_serves();
}

static void where_a_port_is_in_use(void **state)
{
    (void)state;
    set_number("RANK", 0);
    assert_fails(join_world(5), PC_ERR_BACKEND, "is in use");
    set_number("RANK", 1);
    assert_serves();
}

static double seconds_of(pc_status expected, const char *words, double limit)
{
    const double start = pc__dist_now();
    assert_fails(join_world(limit), expected, words);
    return pc__dist_now() - start;
}

static void at_wrong_addresses(void **state)
{
    (void)state;
    set_job(2, free_port());
    assert_true(seconds_of(PC_ERR_TIMEOUT, "nobody serves the store at 127.0.0.1", 0.5) < 2);
    setenv("LOCAL_WORLD_SIZE", "1", 1);
    setenv("LOCAL_RANK", "0", 1);
    setenv("MASTER_ADDR", "no.such.host.invalid", 1);
    const double start = pc__dist_now();
    pc_error_clear();
    assert_int_not_equal(join_world(1), PC_OK); /* without a network, names may be asked for again and again */
    assert_non_null(strstr(pc_error_last()->message, "no.such.host.invalid"));
    assert_true(pc__dist_now() - start < 10);
    set_job(2, port);
    set_rank(1);
    assert_serves();
}

/* Something else listens there. */
static int listener(int at)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)at), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

static void where_something_else_listens(void **state)
{
    (void)state;
    const int at = free_port(), fd = listener(at);
    const pid_t other = fork();
    if (other == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        const int peer = accept(fd, NULL, NULL);
        _exit(write(peer, "SSH-2.0-OpenSSH_9.2\r\n", 21) != 21 || poll(NULL, 0, 5000));
    }
    close(fd);
    set_job(2, at);
    assert_true(seconds_of(PC_ERR_STATE, "SSH-2.0-OpenSSH_9.2", 5) < 4);
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    const int silent = free_port(), quiet = listener(silent);
    set_job(2, silent);
    assert_true(seconds_of(PC_ERR_TIMEOUT, "does not answer within 0.5 s", 0.5) < 3);
    close(quiet);
    set_job(2, port);
    assert_serves();
}

/* Its process is stopped for a while: whoever comes meanwhile waits, and is taken, once. */
static void where_the_store_is_slow(void **state)
{
    (void)state;
    enum { STOPPED_MS = 5500 };
    int status;
    assert_int_equal(kill(server, SIGSTOP), 0);
    assert_int_equal(waitpid(server, &status, WUNTRACED), server);
    const pid_t other = fork();
    if (other == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        poll(NULL, 0, STOPPED_MS);
        _exit(kill(server, SIGCONT));
    }
    pc__beat_record records[2];
    int count;
    assert_ok(join_world(30));
    assert_ok(pc__beats_get(records, 2, &count));
    assert_true(count == 2 && !records[0].lost && !records[1].lost);
    assert_ok(pc_dist_end());
    assert_int_equal(end_of(other), 0);
}

/* What it gets back is an end, and not a byte. */
static void assert_cut(int fd, const void *bytes, size_t n)
{
    char answer[64];
    assert_int_equal(send(fd, bytes, n, MSG_NOSIGNAL), n);
    assert_true(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 8000) > 0);
    assert_true(recv(fd, answer, sizeof answer, 0) <= 0);
    close(fd);
}

static void with_garbage(void **state)
{
    (void)state;
    static const char http[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static const uint8_t huge[] = "PARACORD\xff\xff\xff\xff\x01\0\0\0\0";
    static const uint8_t tiny[] = "PARACORD\x01\0\0\0\x01\0\0\0\0";
    static const uint8_t not_hello[] = "PARACORD\x05\0\0\0\x03\0\0\0\0";
    static const uint8_t short_hello[] = "PARACORD\x09\0\0\0\x01\0\0\0\0\x01\0\0\0";
    assert_cut(stranger(), http, sizeof http - 1);
    assert_cut(stranger(), huge, sizeof huge - 1);
    assert_cut(stranger(), tiny, sizeof tiny - 1);
    assert_cut(stranger(), not_hello, sizeof not_hello - 1);
    assert_cut(stranger(), short_hello, sizeof short_hello - 1);
    uint8_t noise[5000];
    uint32_t seed = 1;
    for (int turn = 0; turn < 50; turn++) { /* behind a right beginning */
        for (size_t i = 0; i < sizeof noise; i++)
            noise[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
        memcpy(noise, "PARACORD", 8);
        const int fd = stranger();
        (void)!send(fd, noise, sizeof noise, MSG_NOSIGNAL);
        close(fd);
    }
    assert_serves();
}

/* Somebody who knows the token and then talks nonsense is cut off, and the server lives. */
static void with_garbage_behind_the_token(void **state)
{
    (void)state;
    uint32_t seed = 7;
    const pc__hello hello = {.version = PC_VERSION, .token = "a token of this test", .host = "h", .rank = 1, .size = 2};
    pc__stream_in in = {.limit = PC__WIRE_FRAME_MAX};
    const int fd = pc__wire_connect((pc__address){"127.0.0.1", port, "test"}, &hello, 5, NULL, &in);
    assert_true(fd >= 0);
    pc__text out = {0};
    for (int kind = 3; kind < 24; kind++) /* bodies of the kinds there are */
        for (int n = 0; n < 40; n++) {
            if (kind == PC__WIRE_ERROR || kind == PC__WIRE_BYE)
                continue;
            const size_t at = pc__frame_begin(&out, (pc__wire_kind)kind, seed);
            for (int i = 0; i < n; i++)
                pc__put_u8(&out, (seed = seed * 1664525u + 1013904223u) >> (i % 3 ? 31 : 24));
            pc__frame_end(&out, at);
        }
    (void)!send(fd, out.data, out.length, MSG_NOSIGNAL);
    pc__text_free(&out);
    char answer[256];
    while (recv(fd, answer, sizeof answer, 0) > 0)
        ;
    close(fd);
    pc__stream_free(&in);
}

static int alive_still(void **state)
{
    /* rank 1 is lost there by now, which `serves` ends on: 99 */
    (void)state;
    const int status = end_of(server);
    pc_error_clear();
    return status == 99 ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(with_other_variables, begin, end),
        cmocka_unit_test_setup_teardown(of_another_version, begin, end),
        cmocka_unit_test_setup_teardown(where_a_port_is_in_use, begin, end),
        cmocka_unit_test_setup_teardown(at_wrong_addresses, begin, end),
        cmocka_unit_test_setup_teardown(where_something_else_listens, begin, end),
        cmocka_unit_test_setup_teardown(where_the_store_is_slow, begin, end),
        cmocka_unit_test_setup_teardown(with_garbage, begin, end),
        cmocka_unit_test_setup_teardown(with_garbage_behind_the_token, begin, alive_still),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

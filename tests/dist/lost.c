/* lost.c: ranks that are killed, stopped or end with an error, a server that is gone: everybody hears of it, and why. */
#include "ranks.h"

#include "base/base.h"

static int told(int *rank, char why[PC__WHY_MAX], double seconds)
{
    const double deadline = pc__dist_now() + seconds;
    while (!pc__dist_lost(rank, why))
        if (pc__dist_now() > deadline)
            return 0;
        else
            usleep(1000);
    return 1;
}

/* Rank 2 does as the test says; the others are to hear of it within a time, in these words. */
static struct {
    void (*end)(void);
    double limit;
    const char *words;
} play;

static void wait_for_rank_1(void)
{
    pc__beat_record records[3] = {{.rank = 0}};
    int count;
    for (int turn = 0; !records[1].left && turn < 1000; turn++) {
        RANK_OK(pc__beats_get(records, 3, &count));
        usleep(10000);
    }
}

static int sees_the_end(int rank)
{
    int who = -2;
    char why[PC__WHY_MAX], value;
    RANK_OK(join_world(0));
    RANK_OK(pc__store_barrier("there", 10));
    if (rank == 2) {
        play.end();
        return 0;
    }
    const double start = pc__dist_now();
    if (rank == 1) { /* waits end, too */
        RANK_FAILS(pc__store_get("never", &value, 1, NULL, 30), PC_ERR_LOST, play.words);
        RANK_FAILS(pc__store_barrier("never", 30), PC_ERR_LOST, play.words);
        RANK_OK(pc__store_set("still", "works", 5));
        RANK_OK(pc__store_get("still", why, sizeof why, NULL, 0));
    }
    RANK_CHECK(told(&who, why, play.limit));
    RANK_CHECK(pc__dist_now() - start < play.limit);
    if (who != 2 || !strstr(why, play.words)) {
        fprintf(stderr, "rank %d heard of rank %d: %s\n", rank, who, why);
        return 1;
    }
    if (rank == 0) /* whose store rank 1 still uses */
        wait_for_rank_1();
    pc_error_clear();
    RANK_FAILS(pc_dist_end(), PC_ERR_LOST, play.words);
    return 0;
}

static void end_of_rank_2(void (*end)(void), double limit, const char *words, int status)
{
    pid_t children[3];
    play.end = end;
    play.limit = limit;
    play.words = words;
    set_job(3, free_port());
    for (int rank = 0; rank < 3; rank++)
        children[rank] = start_rank(rank, sees_the_end);
    assert_int_equal(end_of(children[0]), 0);
    assert_int_equal(end_of(children[1]), 0);
    if (status == 1000 + SIGKILL)
        kill(children[2], SIGKILL);
    assert_int_equal(end_of(children[2]), status);
}

static void kill_self(void)
{
    kill(getpid(), SIGKILL);
}

static void a_killed_rank_is_told(void **state)
{
    (void)state;
    end_of_rank_2(kill_self, 5, "rank 2 (process ", 1000 + SIGKILL);
}

static void stop_self(void)
{
    kill(getpid(), SIGSTOP);
}

static void a_stopped_rank_is_told(void **state)
{
    (void)state;
    setenv("PARACORD_BEAT_LIMIT", "1.5", 1);
    end_of_rank_2(stop_self, 8, "no sign of life", 1000 + SIGKILL);
    unsetenv("PARACORD_BEAT_LIMIT");
}

static void tell(void)
{
    pc__dist_tell_error(PC_ERR_FILE, "the disk of this host is full");
    pause();
}

static void an_error_is_told(void **state)
{
    (void)state;
    end_of_rank_2(tell, 5, "says: the disk of this host is full", 1000 + SIGKILL);
}

static void fail_and_exit(void)
{
    (void)pc_fail(PC_ERR_SHAPE, "shapes [2, 3] and [4] do not fit");
    exit(7);
}

static void an_error_at_exit_is_told(void **state)
{
    (void)state;
    end_of_rank_2(fail_and_exit, 5, "says: shapes [2, 3] and [4] do not fit", 7);
}

static void just_exit(void)
{
    exit(0);
}

static void an_end_without_goodbye_is_told(void **state)
{
    (void)state;
    end_of_rank_2(just_exit, 5, "ended without pc_dist_end", 0);
}

static int loses_the_store(int rank)
{
    int who;
    char why[PC__WHY_MAX];
    RANK_OK(join_world(0));
    if (rank == 0) {
        RANK_OK(pc__store_get("there", why, sizeof why, NULL, 10));
        usleep(100000); /* the other one has its answer by then */
        kill_self();
    }
    RANK_OK(pc__store_set("there", "", 0));
    RANK_CHECK(told(&who, why, 5) && who == -1 && strstr(why, "the store at 127.0.0.1"));
    RANK_FAILS(pc__store_set("a", "", 0), PC_ERR_LOST, "is gone");
    RANK_FAILS(pc_dist_end(), PC_ERR_LOST, "is gone");
    RANK_CHECK(!pc__dist_lost(NULL, NULL));
    return 0;
}

static void the_end_of_the_store_is_told(void **state)
{
    (void)state;
    set_job(2, free_port());
    const pid_t first = start_rank(0, loses_the_store), second = start_rank(1, loses_the_store);
    assert_int_equal(end_of(second), 0);
    assert_int_equal(end_of(first), 1000 + SIGKILL);
}

static int waits_for_a_stopped_store(int rank)
{
    int who;
    char why[PC__WHY_MAX];
    RANK_OK(join_world(0));
    if (rank == 0) {
        RANK_OK(pc__store_get("there", why, sizeof why, NULL, 10));
        usleep(100000);
        kill(getpid(), SIGSTOP);
        return 0;
    }
    RANK_OK(pc__store_set("there", "", 0));
    RANK_CHECK(told(&who, why, 5) && who == -1 && strstr(why, "it gave no sign of life for "));
    RANK_CHECK(strstr(why, "was stopped, or its host or network is gone"));
    const double start = pc__dist_now();
    pc__dist_tell_error(PC_ERR_FILE, "nobody hears it");
    RANK_FAILS(pc_dist_end(), PC_ERR_LOST, "is gone");
    RANK_CHECK(pc__dist_now() - start < 1);
    return 0;
}

static void a_stopped_store_is_told(void **state)
{
    (void)state;
    set_job(2, free_port());
    setenv("PARACORD_BEAT_LIMIT", "1.5", 1);
    const pid_t first = start_rank(0, waits_for_a_stopped_store), second = start_rank(1, waits_for_a_stopped_store);
    assert_int_equal(end_of(second), 0);
    kill(first, SIGKILL);
    assert_int_equal(end_of(first), 1000 + SIGKILL);
    unsetenv("PARACORD_BEAT_LIMIT");
}

static int beats(int rank)
{
    pc__beat_record records[3];
    int count = 0;
    const pc__beat beat = {.entered = 7,
                           .finished = 6,
                           .group = 3,
                           .bytes = 1ull << 40,
                           .hash = 5,
                           .dtype = rank,
                           .state = 1,
                           .name = "all_reduce"};
    RANK_OK(join_world(0));
    pc__beat_set(&beat);
    RANK_OK(pc__store_barrier("set", 10));
    for (int turn = 0; turn < 1500; turn++) {
        RANK_OK(pc__beats_get(records, 3, &count));
        RANK_CHECK(count == 3);
        if (records[0].beat.entered == 7 && records[1].beat.entered == 7 && records[2].beat.entered == 7)
            break;
        usleep(20000);
    }
    for (int i = 0; i < 3; i++) {
        const pc__beat *b = &records[i].beat;
        RANK_CHECK(records[i].rank == i && records[i].came && !records[i].lost && records[i].age < 30);
        RANK_CHECK(b->entered == 7 && b->finished == 6 && b->group == 3 && b->bytes == 1ull << 40 && b->hash == 5 &&
                   b->dtype == i && b->state == 1 && !strcmp(b->name, "all_reduce"));
    }
    RANK_OK(pc__store_barrier("read", 10));
    if (rank == 1) {
        usleep(200000);
        RANK_OK(pc__beats_get(records, 1, &count));
        RANK_CHECK(count == 3);
    }
    RANK_OK(pc_dist_end());
    return 0;
}

static void beats_say_what_ranks_do(void **state)
{
    (void)state;
    run_ranks(3, beats);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_rank_is_told),
        cmocka_unit_test(a_stopped_rank_is_told),
        cmocka_unit_test(an_error_is_told),
        cmocka_unit_test(an_error_at_exit_is_told),
        cmocka_unit_test(an_end_without_goodbye_is_told),
        cmocka_unit_test(the_end_of_the_store_is_told),
        cmocka_unit_test(a_stopped_store_is_told),
        cmocka_unit_test(beats_say_what_ranks_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

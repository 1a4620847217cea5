/* store.c: values that ranks share, waits with deadlines, barriers, many clients and threads, names of groups. */
#include "ranks.h"

#include "base/base.h"
#include "dist/group.h"

#include <pthread.h>

static int shares_values(int rank)
{
    char text[64] = "";
    size_t n;
    bool swapped;
    RANK_OK(join_world(0));
    RANK_CHECK(pc_dist_rank() == rank && pc_dist_size() == 4 && pc_dist_local_rank() == rank &&
               pc_dist_node_rank() == 0);
    if (rank == 0) {
        usleep(50000); /* the others wait for it */
        RANK_OK(pc__store_set("a", "hello", 5));
    }
    RANK_OK(pc__store_get("a", text, sizeof text, &n, 5));
    RANK_CHECK(n == 5 && !memcmp(text, "hello", 5));
    RANK_FAILS(pc__store_get("a", text, 3, &n, 5), PC_ERR_RANGE, "5 bytes");
    RANK_CHECK(n == 5);
    RANK_OK(pc__store_set("empty", NULL, 0));
    RANK_OK(pc__store_get("empty", NULL, 0, &n, 0));
    RANK_CHECK(n == 0);
    RANK_OK(pc__store_barrier("first", 5));
    RANK_OK(pc__store_compare_set("once", NULL, 0, "x", 1, &swapped));
    if (swapped)
        RANK_OK(pc__store_add("winners", 1, NULL));
    RANK_OK(pc__store_barrier("second", 5));
    int64_t winners;
    RANK_OK(pc__store_add("winners", 0, &winners));
    RANK_CHECK(winners == 1);
    RANK_OK(pc__store_compare_set("once", "y", 1, "z", 1, &swapped));
    RANK_CHECK(!swapped);
    RANK_FAILS(pc__store_add("a", 1, NULL), PC_ERR_STATE, "no number");
    RANK_OK(pc_dist_end());
    RANK_CHECK(pc_dist_size() == 1);
    return 0;
}

static void ranks_share_values(void **state)
{
    (void)state;
    run_ranks(4, shares_values);
}

static int counts(int rank)
{
    RANK_OK(join_world(0));
    int64_t value = 0;
    for (int i = 0; i < 20; i++)
        RANK_OK(pc__store_add("count", rank, NULL));
    RANK_OK(pc__store_barrier("counted", 20));
    RANK_OK(pc__store_add("count", 0, &value));
    RANK_CHECK(value == 20 * 31 * 32 / 2);
    RANK_OK(pc_dist_end());
    return 0;
}

static void many_ranks_count(void **state)
{
    (void)state;
    run_ranks(32, counts);
}

static int waits_with_deadlines(int rank)
{
    RANK_OK(join_world(0));
    char value;
    const double start = pc__dist_now();
    RANK_FAILS(pc__store_get("never", &value, 1, NULL, 0.2), PC_ERR_TIMEOUT, "never within 0.2 s");
    RANK_FAILS(pc__store_get("never", &value, 1, NULL, 0), PC_ERR_TIMEOUT, "never");
    const char *const keys[] = {"there", "never", "neither"};
    RANK_OK(pc__store_set("there", "", 0));
    RANK_FAILS(pc__store_wait_all(keys, 3, 0.2), PC_ERR_TIMEOUT, "set never, neither within");
    RANK_OK(pc__store_wait_all(keys, 1, 0));
    if (rank != 1)
        RANK_FAILS(pc__store_barrier("all", 0.3), PC_ERR_TIMEOUT, "of 3 ranks 1 has not come within 0.3 s");
    RANK_CHECK(pc__dist_now() - start < 5);
    RANK_OK(pc__store_barrier("end", 10));
    RANK_OK(pc_dist_end());
    return 0;
}

static void waits_have_deadlines(void **state)
{
    (void)state;
    run_ranks(3, waits_with_deadlines);
}

static int forgets(int rank)
{
    int deleted = -1;
    char key[300], big[300];
    RANK_OK(join_world(0));
    if (rank == 0) {
        for (int i = 0; i < 300; i++) {
            snprintf(key, sizeof key, "group/%d", i);
            RANK_OK(pc__store_set(key, &i, sizeof i));
        }
        RANK_OK(pc__store_set("groups", "", 0));
        RANK_OK(pc__store_delete("group/", &deleted));
        RANK_CHECK(deleted == 300);
        RANK_OK(pc__store_get("groups", NULL, 0, NULL, 0));
        RANK_FAILS(pc__store_get("group/7", &deleted, 4, NULL, 0), PC_ERR_TIMEOUT, "group/7");
        memset(big, 'k', sizeof big);
        big[299] = 0;
        RANK_FAILS(pc__store_set(big, "", 0), PC_ERR_RANGE, "299 characters");
        big[PC__STORE_KEY_MAX] = 0;
        RANK_OK(pc__store_set(big, "", 0));
        char *much = calloc(1, PC__STORE_VALUE_MAX + 1);
        size_t n;
        RANK_FAILS(pc__store_set("much", much, PC__STORE_VALUE_MAX + 1), PC_ERR_RANGE, "bytes");
        much[PC__STORE_VALUE_MAX - 1] = 7;
        RANK_OK(pc__store_set("much", much, PC__STORE_VALUE_MAX));
        much[PC__STORE_VALUE_MAX - 1] = 0;
        RANK_OK(pc__store_get("much", much, PC__STORE_VALUE_MAX, &n, 0));
        RANK_CHECK(n == PC__STORE_VALUE_MAX && much[PC__STORE_VALUE_MAX - 1] == 7);
        free(much);
    }
    RANK_OK(pc_dist_end());
    return 0;
}

static void forgets_by_prefix_and_has_limits(void **state)
{
    (void)state;
    run_ranks(2, forgets);
}

#define THREADS 8

static void *from_a_thread(void *number)
{
    char key[32], value[32] = "", mine[32];
    const int i = (int)(intptr_t)number;
    for (int turn = 0; turn < 50; turn++) {
        snprintf(key, sizeof key, "%d/%d", (i + 1) % THREADS, turn);
        snprintf(mine, sizeof mine, "%d/%d", i, turn);
        if (pc__store_set(mine, mine, sizeof mine) != PC_OK ||
            pc__store_get(key, value, sizeof value, NULL, 20) != PC_OK || strcmp(key, value) != 0)
            return (void *)1;
        pc__beat_set(&(pc__beat){.entered = (uint64_t)turn, .name = "all_reduce"});
        (void)pc__dist_lost(NULL, NULL);
    }
    return NULL;
}

static int uses_threads(int rank)
{
    pthread_t threads[THREADS];
    void *result;
    RANK_OK(join_world(0));
    if (rank == 0) {
        for (intptr_t i = 0; i < THREADS; i++)
            RANK_CHECK(pthread_create(&threads[i], NULL, from_a_thread, (void *)i) == 0);
        for (int i = 0; i < THREADS; i++)
            RANK_CHECK(pthread_join(threads[i], &result) == 0 && !result);
    }
    RANK_OK(pc_dist_end());
    return 0;
}

static void threads_share_the_connection(void **state)
{
    (void)state;
    run_ranks(2, uses_threads);
}

/* One after another in the same processes: rank 0's port is free again, and nothing is left of the first. */
static int joins_again(int rank)
{
    char value;
    for (int turn = 0; turn < 5; turn++) {
        set_number("TORCHELASTIC_RESTART_COUNT", turn);
        RANK_OK(join_world(0));
        RANK_CHECK(pc_dist_generation() == turn);
        RANK_FAILS(join_world(0), PC_ERR_STATE, "already");
        if (rank == 0)
            RANK_FAILS(pc__store_get("left", &value, 1, NULL, 0), PC_ERR_TIMEOUT, "left");
        RANK_OK(pc__store_barrier("looked", 5));
        RANK_OK(pc__store_set("left", "1", 1));
        RANK_OK(pc_dist_end());
    }
    return 0;
}

static void joins_and_leaves_again(void **state)
{
    (void)state;
    run_ranks(3, joins_again);
}

static int comes_late(int rank)
{
    if (rank)
        usleep(300000);
    RANK_OK(join_world(0));
    RANK_OK(pc_dist_end());
    return 0;
}

/* Rank 0 has nothing to do, and still serves those that come after it has ended. */
static void the_server_waits_for_late_ranks(void **state)
{
    (void)state;
    run_ranks(3, comes_late);
}

#define COLOR 1000000000

/* Groups of groups, whose names would be too long: each meets in places of its own. */
static int splits(int rank)
{
    pc_group *world, *all, *pair, *inner, *half;
    RANK_OK(join_world(0));
    world = pc_group_world();
    RANK_OK(pc_group_set_timeout(world, 10));
    RANK_OK(pc_group_split(world, COLOR, 0, &all));
    RANK_OK(pc_group_split(all, COLOR + rank / 2, 0, &pair));
    RANK_OK(pc_group_split(pair, COLOR, 0, &inner));
    RANK_CHECK(strlen(inner->name) < sizeof inner->name && strstr(inner->name, "world"));
    if (rank < 2)
        RANK_OK(pc__store_barrier("the other pair has met", 10));
    if (rank == 1)
        usleep(20000); /* rank 0 looks for its word before */
    RANK_OK(pc_group_split(inner, rank < 2 ? 0 : rank, 0, &half));
    RANK_CHECK(pc_group_size(half) == (rank < 2 ? 2 : 1));
    if (rank >= 2)
        RANK_OK(pc__store_barrier("the other pair has met", 10));
    pc_group *const groups[] = {half, inner, pair, all, world};
    for (int i = 0; i < PC__COUNT(groups); i++)
        pc_group_free(groups[i]);
    RANK_OK(pc_dist_end());
    return 0;
}

static void groups_have_names_of_their_own(void **state)
{
    (void)state;
    run_ranks(4, splits);
}

static void a_world_of_one_has_no_store(void **state)
{
    (void)state;
    static const char *const names[] = {"RANK",        "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
                                        "MASTER_ADDR", "MASTER_PORT"};
    char value;
    for (int i = 0; i < PC__COUNT(names); i++)
        unsetenv(names[i]);
    assert_ok(join_world(0));
    assert_int_equal(pc_dist_size(), 1);
    assert_string_equal(pc_dist_launcher(), "");
    assert_fails(pc__store_get("a", &value, 1, NULL, 0), PC_ERR_STATE, "no store");
    assert_ok(pc__store_barrier("alone", 0));
    assert_false(pc__dist_lost(NULL, NULL));
    pc__beat_set(&(pc__beat){.entered = 1});
    assert_ok(pc_dist_end());
    assert_ok(pc_dist_end());
    assert_fails(join_world(-1), PC_ERR_ARGUMENT, "timeout_seconds");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_share_values),
        cmocka_unit_test(many_ranks_count),
        cmocka_unit_test(waits_have_deadlines),
        cmocka_unit_test(forgets_by_prefix_and_has_limits),
        cmocka_unit_test(threads_share_the_connection),
        cmocka_unit_test(joins_and_leaves_again),
        cmocka_unit_test(the_server_waits_for_late_ranks),
        cmocka_unit_test(groups_have_names_of_their_own),
        cmocka_unit_test(a_world_of_one_has_no_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The stream checker's reports: which bytes, which words, once for each pair of lines; its bounds; many threads. */
#include "device/check.h"
#include "support.h"

#include <paracord/check.h>
#include <paracord/memory.h>
#include <pthread.h>
#include <time.h>

enum { STREAMS = 4 };

static pc_stream streams[STREAMS];
static char memory[2];
static int works;

static void begin_program(void)
{
    for (int i = 0; i < STREAMS; i++)
        streams[i] = (pc_stream){.id = (uint32_t)(7 * i + 3), .device = {PC_SIM, (int16_t)(i % 2)}};
    pc_check_streams(true);
}

static void one(int s, size_t begin, size_t end, bool write)
{
    char name[16];
    snprintf(name, sizeof name, "w%d", ++works);
    pc__check_use use = {memory, begin, end, write};
    pc__check_work(name, 0, &streams[s], ++streams[s].ticket, &use, 1);
}

static void views_side_by_side_are_no_race(void **state)
{
    (void)state;
    begin_program();
    one(0, 0, 4, true);
    one(1, 4, 8, true);
    one(2, 8, 12, false);
    one(3, 8, 12, false);
    one(0, 3, 3, true); /* nothing */
    assert_int_equal(pc_check_count(), 0);
    one(2, 0, 12, true);
    pc_race race;
    assert_int_equal(pc_check_count(), 3); /* both writers, and the other reader */
    assert_true(pc_check_race(1, &race));
    assert_int_equal(race.begin, 4);
    assert_int_equal(race.end, 8);
    assert_int_equal(race.second.end, 12);
    assert_true(pc_check_race(2, &race));
    assert_int_equal(race.kind, PC_RACE_WRITE_AFTER_READ);
    pc_check_streams(false);
}

static void a_use_cut_in_two_is_one_report(void **state)
{
    (void)state;
    begin_program();
    one(0, 0, 12, true);
    one(0, 4, 8, true);
    one(1, 2, 10, false);
    assert_int_equal(pc_check_count(), 2);
    pc_race race;
    assert_true(pc_check_race(0, &race));
    assert_int_equal(race.times, 1);
    assert_int_equal(race.begin, 2);
    assert_int_equal(race.end, 10);
    assert_int_equal(race.first.begin, 0);
    assert_int_equal(race.first.end, 12);
    assert_true(pc_check_race(1, &race));
    assert_int_equal(race.begin, 4);
    assert_int_equal(race.end, 8);
    pc_check_streams(false);
}

static void the_text_has_all_of_it(void **state)
{
    (void)state;
    begin_program();
    pc__check_use x = {memory, 16, 64, true}, y = {memory, 0, 32, false};
    pc__check_work("conv2d", 0, &streams[0], 1, &x, 1);
    pc__check_work("add", 0, &streams[1], 1, &y, 1);
    pc__check_host("pc_data", 0, &y);
    pc_race race;
    assert_true(pc_check_race(0, &race));
    assert_non_null(
        strstr(race.text, "read after write: add at unknown place on stream 10 of sim:1 reads bytes 0 to 32"));
    assert_non_null(
        strstr(race.text, "after conv2d at unknown place on stream 3 of sim:0, which writes bytes 16 to 64"));
    assert_non_null(strstr(race.text, "pc_event_wait"));
    assert_null(strchr(race.text, '\n'));
    assert_true(pc_check_race(1, &race));
    assert_string_equal(race.second.device, "host");
    assert_non_null(strstr(race.text, "pc_data at unknown place on the host reads"));
    assert_non_null(strstr(race.text, "pc_stream_synchronize"));
    assert_false(pc_check_race(2, &race));
    assert_false(pc_check_race(-1, &race));
    pc_check_streams(false);
    assert_int_equal(pc_check_count(), 2); /* kept */
    pc_check_streams(true);
    assert_int_equal(pc_check_count(), 0);
    pc_check_streams(false);
}

/* What one thread alone does is no matter for a tool that watches threads, which takes minutes over it. */
#if defined(__SANITIZE_THREAD__)
enum { ROWS = 12000, STORAGES = 20000 };
#else
enum { ROWS = 50000, STORAGES = 200000 };
#endif

static void a_pair_of_lines_is_one_report(void **state)
{
    (void)state;
    begin_program();
    pc__check_use x = {memory, 0, 8, true};
    for (uint64_t i = 1; i <= 10; i++) {
        pc__check_work("a", 41, &streams[0], i, &x, 1);
        pc__check_work("b", 42, &streams[1], i, &x, 1);
    }
    assert_int_equal(pc_check_count(), 2); /* 41 then 42, 42 then 41 */
    pc__check_work("b", 43, &streams[1], 11, &x, 1);
    assert_int_equal(pc_check_count(), 3);
    pc_check_streams(false);
    pc__check_work("b", 44, &streams[2], 1, &x, 1); /* off */
    assert_int_equal(pc_check_count(), 3);
}

static void bounds_hide_and_never_invent(void **state)
{
    (void)state;
    begin_program();
    pc__check_use x = {memory, 0, 8, true};
    uint64_t ticket[2] = {0};
    for (int i = 0; i < 5000; i++) { /* to and fro, the host never waits: a long past */
        int s = i & 1;
        pc__check_stream_waits(&streams[s], &streams[!s], ticket[!s]);
        pc__check_work("step", 0, &streams[s], ++ticket[s], &x, 1);
    }
    assert_int_equal(pc_check_unchecked(), 0);
    pc__check_stream_waits(&streams[2], &streams[0], 10);
    assert_int_equal(pc_check_unchecked(), 1);
    for (size_t i = 0; i < ROWS; i++) { /* many rows of one storage */
        pc__check_use row = {memory + 1, 8 * i, 8 * i + 8, true};
        pc__check_work("row", 0, &streams[0], ++ticket[0], &row, 1);
    }
    assert_true(pc_check_unchecked() > 1000);
    for (uint32_t i = 1; i < 5000; i++) { /* more streams than it follows */
        pc_stream brief = {.id = 1000 + i};
        pc__check_work("brief", 0, &brief, 1, &x, 1);
        pc__check_host_waited(&brief, 1);
        if (i == 1) /* that one was a race */
            assert_true(pc_check_count() > 0);
    }
    int count = pc_check_count();
    assert_true(count <= 2); /* with the two streams that nobody waited for */
    pc_check_streams(false);
    assert_int_equal(pc_allocator_live(), 0);
}

static void many_storages_leave_when_the_host_has_waited(void **state)
{
    (void)state;
    begin_program();
    for (uint64_t i = 1; i <= STORAGES; i++) {
        pc__check_use x = {(const void *)(uintptr_t)(64 * i), 0, 8, true};
        pc__check_work("fill", 0, &streams[0], i, &x, 1);
        if (i % 1000 == 0)
            pc__check_host_waited(&streams[0], i);
    }
    assert_true(pc_allocator_live() < STORAGES / 2);
    assert_int_equal(pc_check_unchecked(), 0);
    pc_check_streams(false);
}

enum { THREADS = 8 };

static void *one_thread(void *argument)
{
    int t = *(const int *)argument;
    static char own[THREADS], shared;
    pc_stream a = {.id = (uint32_t)(100 + 2 * t)}, b = {.id = (uint32_t)(101 + 2 * t)};
    pc_event event = {0};
    pc__check_use write = {&own[t], 0, 64, true}, read[2] = {{&own[t], 0, 64, false}, {&shared, 0, 8, false}};
    for (uint64_t i = 1; i <= 300; i++) {
        pc__check_event_waits(&event, &a);
        pc__check_work("write", 0, &a, i, &write, 1);
        pc__check_stream_waits(&b, &a, i);
        pc__check_work("read", 0, &b, i, read, 2);
        pc__check_event_recorded(&event, &b);
        if (i % 50 == 0)
            pc__check_host_waited(&b, i);
        (void)pc_check_count();
    }
    pc__check_event_gone(&event);
    char name[16];
    snprintf(name, sizeof name, "planted %d", t);
    pc__check_work(name, 0, &b, 301, &write, 1);
    pc__check_work("write", 0, &a, 301, &write, 1);
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int t = 0; t < THREADS; t++) {
        numbers[t] = t;
        assert_int_equal(pthread_create(&threads[t], NULL, one_thread, &numbers[t]), 0);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
}

static void many_threads(void **state)
{
    (void)state;
    pc_check_streams(true);
    run_threads();
    assert_int_equal(pc_check_count(), THREADS); /* one planted in each */
    assert_int_equal(pc_check_unchecked(), 0);
    pc_check_streams(false);
}

static void *switch_it(void *stop)
{
    const struct timespec pause = {.tv_nsec = 100000};
    for (int i = 0; !atomic_load((atomic_bool *)stop); i++) {
        pc_check_streams(i & 1);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static void switched_while_threads_work(void **state)
{
    (void)state;
    atomic_bool stop = false;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, switch_it, &stop), 0);
    run_threads();
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    pc_check_streams(false);
    assert_int_equal(pc_allocator_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_side_by_side_are_no_race),
        cmocka_unit_test(a_use_cut_in_two_is_one_report),
        cmocka_unit_test(the_text_has_all_of_it),
        cmocka_unit_test(a_pair_of_lines_is_one_report),
        cmocka_unit_test(bounds_hide_and_never_invent),
        cmocka_unit_test(many_storages_leave_when_the_host_has_waited),
        cmocka_unit_test(many_threads),
        cmocka_unit_test(switched_while_threads_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Work on all cores: every index once, whoever calls, from wherever, with whatever limit. Run it with ./dev tsan too.
 */
#include "support.h"

#include "base/base.h"
#include "base/parallel.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 257, CALLERS = 6, ROUNDS = 400 };

typedef struct sheet {
    int threads;
    int64_t row[ROWS];             /* plain memory: a race on it is a bug */
    int64_t sums[PC__THREADS_MAX]; /* scratch of each thread number */
    atomic_int outside;            /* thread numbers beyond the call's */
} sheet;

static void mark(void *context, int64_t i)
{
    sheet *s = context;
    int number = pc__thread();
    if (number < 0 || number >= s->threads)
        atomic_fetch_add(&s->outside, 1);
    else
        s->sums[number] += i;
    s->row[i] += i + 1;
}

/* One call; how many rows it got wrong. */
static int mistakes(int threads, int64_t n)
{
    sheet s = {0}; /* no heap: a child of fork may find it locked by a sanitizer */
    int wrong = 0;
    int64_t sum = 0;
    s.threads = PC__MAX(threads, 1);
    pc__parallel(threads, n, mark, &s);
    for (int64_t i = 0; i < ROWS; i++)
        wrong += s.row[i] != (i < n ? i + 1 : 0);
    for (int i = 0; i < PC__THREADS_MAX; i++)
        sum += s.sums[i];
    wrong += sum != n * (n - 1) / 2;
    wrong += atomic_load(&s.outside);
    return wrong;
}

static void every_index_once(void **state)
{
    (void)state;
    for (int threads = 0; threads <= 9; threads++)
        for (int64_t n = 0; n <= ROWS; n += n < 12 ? 1 : 49)
            for (int round = 0; round < 20; round++)
                assert_int_equal(mistakes(threads, n), 0);
    assert_int_equal(mistakes(1000, ROWS), 0); /* more than there may be */
    assert_int_equal(pc__thread(), 0);
}

/* --- calls inside calls --- */

static void nest(void *context, int64_t i)
{
    int before = pc__thread();
    atomic_int *wrong = context;
    atomic_fetch_add(wrong, pc__threads(INT64_MAX) != 1);
    atomic_fetch_add(wrong, mistakes(4, 40 + i));
    atomic_fetch_add(wrong, pc__thread() != before);
}

static void calls_nest(void **state)
{
    (void)state;
    atomic_int wrong = 0;
    for (int round = 0; round < 50; round++)
        pc__parallel(4, 16, nest, &wrong);
    assert_int_equal(atomic_load(&wrong), 0);
    assert_true(pc__threads(INT64_MAX) >= 1);
}

/* --- many callers, and the limit moving --- */

static void *call_often(void *context)
{
    atomic_int *wrong = context;
    for (int round = 0; round < ROUNDS; round++)
        atomic_fetch_add(wrong, mistakes(2 + round % 4, round % ROWS));
    return NULL;
}

static void many_callers(void **state)
{
    (void)state;
    pthread_t callers[CALLERS];
    atomic_int wrong = 0;
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, call_often, &wrong), 0);
    for (int i = 0; i < 200; i++) {
        pc_threads_set(i % 5);
        atomic_fetch_add(&wrong, mistakes(pc_threads_get(), ROWS));
    }
    for (int i = 0; i < CALLERS; i++)
        pthread_join(callers[i], NULL);
    assert_int_equal(atomic_load(&wrong), 0);
}

static void the_limit(void **state)
{
    (void)state;
    pc_threads_set(3);
    assert_int_equal(pc_threads_get(), 3);
    assert_int_equal(pc__threads(INT64_MAX), 3);
    assert_int_equal(pc__threads(0), 1);
    pc_threads_set(100000);
    assert_int_equal(pc_threads_get(), PC__THREADS_MAX);
    pc_threads_set(-7);
    assert_int_equal(pc_threads_get(), PC__MIN(pc__cpu_count(), PC__THREADS_MAX));
    pc_threads_set(0);
}

/* Helpers that went to sleep come back. */
static void after_a_pause(void **state)
{
    (void)state;
    for (int round = 0; round < 30; round++) {
        usleep(round % 3 * 1000);
        assert_int_equal(mistakes(4, ROWS), 0);
    }
}

/* --- a child of fork, while the parent works --- */

static void *keep_working(void *context)
{
    while (!atomic_load((atomic_bool *)context))
        (void)mistakes(4, ROWS);
    return NULL;
}

static void children_of_fork(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__)
    skip(); /* the sanitizer wants no threads in children of programs with threads */
#endif
    pthread_t worker;
    static atomic_bool stop;
    assert_int_equal(mistakes(4, ROWS), 0);
    assert_int_equal(pthread_create(&worker, NULL, keep_working, &stop), 0);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(20); /* a child that hangs is a child that fails */
            int wrong = 0;
            for (int round = 0; round < 20; round++)
                wrong += mistakes(4, ROWS);
            _exit(wrong != 0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    atomic_store(&stop, true);
    pthread_join(worker, NULL);
}

/* --- signals stay in the program's threads --- */

static pthread_t program;
static volatile sig_atomic_t handled, strayed;

static void handle(int number)
{
    (void)number;
    handled++;
    strayed += !pthread_equal(pthread_self(), program);
}

static void signals_stay_here(void **state)
{
    (void)state;
    assert_int_equal(mistakes(4, ROWS), 0); /* there are helpers */
    program = pthread_self();
    struct sigaction action = {.sa_handler = handle}, before;
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    for (int i = 0; i < 50; i++) {
        pthread_sigmask(SIG_BLOCK, &set, NULL); /* a helper that took signals would get it now */
        kill(getpid(), SIGUSR1);
        usleep(200);
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    }
    assert_int_equal(handled, 50);
    assert_int_equal(strayed, 0);
    sigaction(SIGUSR1, &before, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limit),         cmocka_unit_test(every_index_once), cmocka_unit_test(calls_nest),
        cmocka_unit_test(many_callers),      cmocka_unit_test(after_a_pause),    cmocka_unit_test(children_of_fork),
        cmocka_unit_test(signals_stay_here),
    };
    return cmocka_run_group_tests_name("base.parallel", tests, NULL, NULL);
}

/* A child in jail has no rights, and whatever it does ends it alone; the program around it is not disturbed. */
#include "support.h"

#include "base/child.h"
#include "base/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <paracord/memory.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

typedef enum deed {
    READ_FILE,
    READ_OTHER,
    FAIL,
    OPEN_FILE,
    CONNECT,
    FORK,
    SIGNAL_PARENT,
    WRITE_FILE,
    FILL_ROOM,
    ALLOCATE,
    LOOP,
    EAT,
    CRASH,
    LEAVE
} deed;

static long eat(void)
{
    long n = 0;
    for (char *volatile block; n < 100000 && (block = malloc(1 << 20)); n++) /* volatile: nobody reads it */
        memset(block, 1, 1 << 20);
    return n;
}

static int other = -1; /* a file of the program that is none of the child's business */

static long do_deed(const pc__jail_cell *cell, deed what)
{
    char bytes[8];
    int *volatile nowhere = NULL;
    switch (what) {
    case READ_FILE:
        return pread(cell->file, bytes, 8, 0);
    case READ_OTHER:
        return pread(other, bytes, 8, 0);
    case FAIL:
        return pc__fail(PC_ERR_FILE, "an error in the child");
    case OPEN_FILE:
        return open("/dev/null", O_RDONLY);
    case CONNECT:
        return socket(AF_INET, SOCK_STREAM, 0);
    case FORK:
        return fork();
    case SIGNAL_PARENT:
        return kill(getppid(), 0);
    case WRITE_FILE:
        return write(cell->file, "x", 1);
    case FILL_ROOM:
        memset(cell->room, 7, cell->room_bytes);
        return 0;
    case ALLOCATE: {
        void *block = pc__alloc(100);
        pc__free(block);
        return block != NULL;
    }
    case LOOP:
        for (volatile bool on = true; on;)
            ;
        return 0;
    case EAT:
        return eat();
    case CRASH:
        return *nowhere;
    case LEAVE:
        _exit(3);
    }
    return 0;
}

static void serve(const pc__jail_cell *cell, void *context)
{
    (void)context;
    deed what;
    while (pc__cell_listen(cell, &what, sizeof what)) {
        const long done = do_deed(cell, what);
        pc__cell_answer(cell, &done, sizeof done);
    }
}

static char why[PC__JAIL_WORDS];
static unsigned lost;

/* What the deed gave; INT_MIN when the child did not live to say it. */
static long tried(deed what)
{
    const int file = open("/proc/self/exe", O_RDONLY);
    pc__jail_plan plan = {.serve = serve, .file = file, .room = 1 << 20, .memory = 64 << 20, .seconds = 1};
    pc__jail jail;
    long done = 0;
    assert_true(file >= 0 && pc__jail_start(&jail, &plan));
    lost = jail.lost;
    const bool alive = pc__jail_ask(&jail, &what, sizeof what, &done, sizeof done, why);
    if (what == FILL_ROOM) {
        unsigned char bytes[3] = {0};
        assert_true(alive && pc__jail_take(&jail, bytes, 3) && bytes[2] == 7);
        assert_false(pc__jail_take(&jail, bytes, (1 << 20) + 1));
    }
    pc__jail_end(&jail);
    close(file);
    return alive ? done : INT_MIN;
}

static atomic_bool loader_is_held;

static int hold_for_a_moment(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)object, (void)size, (void)context;
    atomic_store(&loader_is_held, true);
    usleep(300000);
    return 1;
}

static void *hold_the_loader(void *context)
{
    dl_iterate_phdr(hold_for_a_moment, NULL);
    return context;
}

/* The first error of a process looks through its loaded objects, under a lock that stays held in a child for ever. The
 * first test: no error has been recorded yet. */
static void a_thread_in_the_loader(void **state)
{
    (void)state;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, hold_the_loader, NULL), 0);
    while (!atomic_load(&loader_is_held))
        usleep(1000);
    if (pc__child_may_allocate())
        assert_int_equal(tried(FAIL), PC_ERR_FILE);
    pthread_join(thread, NULL);
}

/* A kernel that does not know close_range, for this process. */
static bool forget_close_range(void)
{
    struct sock_filter steps[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr)},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_close_range},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    };
    struct sock_fprog program = {PC__COUNT(steps), steps};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

static void files_that_are_closed(void **state)
{
    (void)state;
    int status;
    const int low = open("/proc/self/exe", O_RDONLY);
    other = fcntl(low, F_DUPFD, 100); /* beside the numbers that the child's own files get */
    close(low);
    assert_int_equal(tried(READ_OTHER), -1);
    const pid_t older = fork();
    if (older == 0)
        _exit(!forget_close_range() ? 2 : tried(READ_OTHER) != -1);
    assert_int_equal(waitpid(older, &status, 0), older);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 1);
    close(other);
}

/* Whoever asks on after the end hears that; a child of the program is not taken for ours. */
static void questions_after_the_end(void **state)
{
    (void)state;
    pc__jail_plan plan = {.serve = serve, .file = -1, .room = 4096, .memory = 64 << 20, .seconds = 10};
    pc__jail jail;
    deed what = LEAVE;
    long done;
    int status;
    assert_true(pc__jail_start(&jail, &plan));
    assert_false(pc__jail_ask(&jail, &what, sizeof what, &done, sizeof done, why));
    const pid_t own = fork();
    if (own == 0)
        _exit(9);
    usleep(100000);
    assert_false(pc__jail_ask(&jail, &what, sizeof what, &done, sizeof done, why));
    assert_non_null(strstr(why, "ended"));
    assert_int_equal(waitpid(own, &status, 0), own);
    assert_int_equal(WEXITSTATUS(status), 9);
    pc__jail_end(&jail);
}

static void rights_that_are_lost(void **state)
{
    (void)state;
    static const deed forbidden[] = {OPEN_FILE, CONNECT, FORK, SIGNAL_PARENT, WRITE_FILE};
    assert_int_equal(tried(READ_FILE), 8);
    tried(FILL_ROOM);
    assert_int_equal(tried(ALLOCATE), 1);
    assert_true(lost & PC__JAIL_LIMITS);
    for (int i = 0; i < PC__COUNT(forbidden); i++)
        if (lost & PC__JAIL_SECCOMP)
            assert_int_equal(tried(forbidden[i]), -1);
    assert_int_equal(tried(OPEN_FILE), -1); /* Landlock, or no descriptors */
}

static void ends_that_are_its_own(void **state)
{
    (void)state;
    assert_int_equal(tried(LOOP), INT_MIN);
    assert_non_null(strstr(why, "it took more than the 1 seconds that it gets"));
    assert_int_equal(tried(CRASH), INT_MIN);
    /* a sanitizer catches the signal, and ends the process with a status */
    assert_true(strstr(why, "crashed") || (SANITIZED && strstr(why, "ended")));
    assert_int_equal(tried(LEAVE), INT_MIN);
    assert_non_null(strstr(why, "ended"));
    if (!SANITIZED && lost & PC__JAIL_MEMORY)
        assert_in_range(tried(EAT), 8, 64);
}

static atomic_int reaped;

static void reap_all(int number)
{
    (void)number;
    const int before = errno;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        atomic_fetch_add(&reaped, 1);
    errno = before;
}

/* Programs that wait for all children, or for none, and one whose own child is not ours to wait for. */
static void programs_with_children(void **state)
{
    (void)state;
    struct sigaction before;
    sigaction(SIGCHLD, &(struct sigaction){.sa_handler = reap_all, .sa_flags = SA_RESTART}, &before);
    assert_int_equal(tried(READ_FILE), 8);
    assert_int_equal(tried(CRASH), INT_MIN);
    sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    assert_int_equal(tried(READ_FILE), 8);
    assert_int_equal(tried(LEAVE), INT_MIN);
    sigaction(SIGCHLD, &before, NULL);
    const pid_t own = fork();
    if (own == 0)
        _exit(9);
    assert_int_equal(tried(READ_FILE), 8);
    assert_int_equal(tried(CRASH), INT_MIN);
    int status;
    assert_int_equal(waitpid(own, &status, 0), own);
    assert_int_equal(WEXITSTATUS(status), 9);
    assert_int_equal(waitpid(-1, &status, WNOHANG), -1); /* none of ours is left */
}

static pid_t handled_in;

static void note_handler(int number)
{
    (void)number;
    handled_in = getpid();
}

static void signals_are_the_program_s(void **state)
{
    (void)state;
    sigset_t before, after;
    signal(SIGUSR1, note_handler);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(tried(READ_FILE), 8);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int number = 1; number < NSIG; number++)
        assert_int_equal(sigismember(&before, number), sigismember(&after, number));
    raise(SIGUSR1);
    assert_int_equal(handled_in, getpid());
    signal(SIGUSR1, SIG_DFL);
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool stop;

static void *locking_alloc(void *context, size_t bytes, size_t alignment)
{
    (void)context, (void)alignment;
    pthread_mutex_lock(&held);
    void *block = malloc(bytes);
    pthread_mutex_unlock(&held);
    return block;
}

static void *locking_resize(void *context, void *block, size_t bytes)
{
    (void)context;
    return realloc(block, bytes);
}

static void plain_free(void *context, void *block)
{
    (void)context;
    free(block);
}

static void *allocate_always(void *context)
{
    (void)context;
    while (!atomic_load(&stop)) {
        void *block = pc__alloc(1000);
        pc__free(block);
    }
    return NULL;
}

/* Where a child might wait for ever for the allocator, none is made. */
static void allocators_that_cannot_fork(void **state)
{
    (void)state;
    pc__jail_plan plan = {.serve = serve, .file = -1, .room = 4096, .memory = 64 << 20, .seconds = 10};
    pc__jail jail;
    pthread_t busy;
    assert_true(pc__child_may_allocate());
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&busy, NULL, allocate_always, NULL), 0);
    const bool started = pc__jail_start(&jail, &plan);
    const int problem = errno;
    if (started)
        pc__jail_end(&jail);
    atomic_store(&stop, true);
    pthread_join(busy, NULL);
    atomic_store(&stop, false);
    assert_int_equal(started, !SANITIZED);
    assert_true(started || problem == EDEADLK);
}

static void *ask_often(void *context)
{
    for (int i = 0; i < 25; i++) {
        pc__jail_plan plan = {.serve = serve, .file = -1, .room = 4096, .memory = 64 << 20, .seconds = 10};
        pc__jail jail;
        deed what = ALLOCATE;
        char words[PC__JAIL_WORDS];
        long done;
        if (!pc__jail_start(&jail, &plan) || !pc__jail_ask(&jail, &what, sizeof what, &done, sizeof done, words))
            return context;
        pc__jail_end(&jail);
    }
    return NULL;
}

/* A lock that another thread holds at the fork stays held in the child for ever: the library's allocator is not asked
 * there, and malloc's locks are whole. */
static void threads_that_allocate(void **state)
{
    (void)state;
    const pc_allocator locking = {locking_alloc, locking_resize, plain_free, NULL};
    pthread_t busy[2], asking[2];
    void *failed;
    if (SANITIZED)
        skip(); /* no child is made there */
    assert_ok(pc_allocator_set(&locking));
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&busy[i], NULL, allocate_always, NULL), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&asking[i], NULL, ask_often, asking), 0);
    for (int i = 0; i < 2; i++) {
        pthread_join(asking[i], &failed);
        assert_null(failed);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++)
        pthread_join(busy[i], NULL);
    assert_ok(pc_allocator_set(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_in_the_loader),    cmocka_unit_test(files_that_are_closed),
        cmocka_unit_test(questions_after_the_end),   cmocka_unit_test(rights_that_are_lost),
        cmocka_unit_test(ends_that_are_its_own),     cmocka_unit_test(programs_with_children),
        cmocka_unit_test(signals_are_the_program_s), cmocka_unit_test(allocators_that_cannot_fork),
        cmocka_unit_test(threads_that_allocate),
    };
    return cmocka_run_group_tests_name("base.jail", tests, NULL, NULL);
}

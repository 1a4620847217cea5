/* launch.c: pc_launch, from its options to its end. */
#include <paracord-tools/launch.h>

#if PC_HAVE_UV
#include "device/trace.h"
#include "launch/parts.h"

#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#define RANKS_MOST 4096 /* of a host */
#define NODES_MOST 65536

void pc__launch_tell(pc__launch *launch, const char *format, ...)
{
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pc__writer_line(launch->err, "paracord launch: ", text, strlen(text));
}

void pc__launch_interrupt(pc__launch *launch, int number)
{
    pc__text body = {0};
    pc__agent_signal(launch, number);
    pc__put_u8(&body, PC__SAY_SIGNAL);
    pc__put_u32(&body, (uint32_t)number);
    pc__put_u32(&body, 0);
    pc__put_text(&body, "");
    pc__agent_say(launch, &body);
}

static void on_signal(uv_signal_t *handle, int number)
{
    if (number == SIGCHLD)
        pc__agent_children(handle->data);
    else if (number == SIGUSR1)
        pc__job_ask_dump(handle->data);
    else
        pc__launch_interrupt(handle->data, number);
}

/* libuv writes to connections that the other side has closed. Blocked, the signal is an error of that write alone. */
static void block_pipe_signal(sigset_t *before)
{
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, before);
}

static void restore_signals(const sigset_t *before)
{
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    if (!sigismember(before, SIGPIPE))
        while (sigtimedwait(&pipe, NULL, &(struct timespec){0, 0}) > 0)
            ;
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

static void watch_signals(pc__launch *l)
{
    static const int numbers[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1};
    for (int i = 0; i < PC__COUNT(numbers); i++) {
        uv_signal_init(&l->loop, &l->signals[i]);
        l->signals[i].data = l;
        uv_signal_start(&l->signals[i], on_signal, numbers[i]);
    }
}

void pc__launch_over(pc__launch *launch, int status)
{
    if (launch->over)
        return;
    launch->over = true;
    launch->status = status;
    uv_stop(&launch->loop);
}

static pc_status check(pc__launch *l)
{
    pc_launch_options *o = &l->options;
    if (!l->command[0])
        return pc__fail(PC_ERR_ARGUMENT, "pc_launch: command is empty; its first text is a program");
    if (!o->out || !o->err)
        return pc__fail(PC_ERR_ARGUMENT, "pc_launch: %s is NULL: name the file for what ranks write",
                        o->out ? "err" : "out");
    if (o->ranks < 0 || o->ranks > RANKS_MOST)
        return pc__fail(PC_ERR_ARGUMENT, "pc_launch: ranks is %d, not from 1 to %d", o->ranks, RANKS_MOST);
    if (o->nodes < 0 || o->nodes > NODES_MOST || o->node_rank < 0 || o->node_rank >= PC__MAX(o->nodes, 1))
        return pc__fail(PC_ERR_ARGUMENT, "pc_launch: node_rank is %d, and nodes is %d: nodes count from 0 to nodes - 1",
                        o->node_rank, o->nodes);
    if (o->max_restarts < 0)
        return pc__fail(PC_ERR_ARGUMENT, "pc_launch: max_restarts is %d, below 0", o->max_restarts);
    if (o->min_ranks < 0)
        return pc__fail(PC_ERR_ARGUMENT, "pc_launch: min_ranks is %d, below 0", o->min_ranks);
    if ((unsigned)o->bind > PC_LAUNCH_BIND_NONE)
        return pc__fail(PC_ERR_ARGUMENT, "pc_launch: bind is %d, none of PC_LAUNCH_BIND_", (int)o->bind);
    if (!(o->timeout_seconds >= 0) || o->timeout_seconds > 1e6)
        return pc__fail(PC_ERR_ARGUMENT, "pc_launch: timeout_seconds is %g, not from 0 (60 s) to 1e6",
                        o->timeout_seconds);
    o->ranks = PC__MAX(o->ranks, 1);
    o->nodes = PC__MAX(o->nodes, 1);
    o->timeout_seconds = o->timeout_seconds > 0 ? o->timeout_seconds : 60;
    return PC_OK;
}

/* One host makes a token for itself; several have to be given the same one. */
static pc_status choose_token(pc__launch *l)
{
    unsigned char random[16];
    const char *given = getenv("PARACORD_TOKEN");
    if (l->options.nodes > 1) {
        if (!given || !given[0])
            return pc__fail(PC_ERR_ARGUMENT,
                            "several hosts need a secret that they share: set PARACORD_TOKEN to one random text on "
                            "all of them (openssl rand -hex 16 makes one)");
        if (strlen(given) > PC__TOKEN_MAX)
            return pc__fail(PC_ERR_ARGUMENT, "PARACORD_TOKEN has %zu characters, more than %d", strlen(given),
                            PC__TOKEN_MAX);
        snprintf(l->token, sizeof l->token, "%s", given);
        return PC_OK;
    }
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return pc__fail(PC_ERR_BACKEND, "the system gives no random numbers, of which the job's token is made");
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(l->token + 2 * i, 3, "%02x", random[i]);
    return PC_OK;
}

static pc_status prepare(pc__launch *l)
{
    char host[PC__HOST_MAX];
    int port;
    cpu_set_t allowed;
    PC__TRY(check(l));
    PC__TRY(pc__spawn_find(l));
    PC__TRY(choose_token(l));
    (void)gethostname(l->host, sizeof l->host - 1);
    if (l->options.nodes > 1) {
        if (!l->options.master)
            return pc__fail(PC_ERR_ARGUMENT,
                            "several hosts need --master HOST:PORT, the address of node 0 and a free port there");
        PC__TRY(pc__env_address("--master", l->options.master, host, &port));
        snprintf(l->store, sizeof l->store, "%s", l->options.master);
        if (l->options.node_rank == 0) /* its own ranks need no network, which may go */
            snprintf(l->store, sizeof l->store, "127.0.0.1:%d", port);
    }
    if (l->options.bind == PC_LAUNCH_BIND_NUMA && sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        l->cpus = pc__cpus_divide("/sys", l->options.ranks, &allowed, sizeof allowed, getenv("CUDA_VISIBLE_DEVICES"));
    return pc_failed() ? pc_error_last()->status : PC_OK;
}

static void close_all(pc__launch *l)
{
    for (int i = 0; i < PC__COUNT(l->signals); i++)
        if (l->signals[i].data)
            uv_close((uv_handle_t *)&l->signals[i], NULL);
    pc__pmix_end(l);
    if (l->processes)
        pc__agent_close(l);
    pc__job_close(l);
    pc__link_close(l);
    uv_run(&l->loop, UV_RUN_DEFAULT);
    uv_loop_close(&l->loop);
    pc__free(l->link);
    for (int i = 0; l->nodes && i < l->options.nodes; i++)
        pc__free(l->nodes[i].slots);
    pc__free(l->nodes);
    pc__free(l->start.places);
    pc__free(l->processes);
}

static pc_status ready(pc__launch *l)
{
    pc__text body = {0};
    pc__put_u8(&body, PC__SAY_READY);
    pc__put_u32(&body, (uint32_t)l->options.ranks);
    pc__put_u32(&body, 0);
    pc__put_text(&body, l->host);
    pc__agent_say(l, &body);
    return PC_OK;
}

static pc_status begin(pc__launch *l)
{
    const bool first = l->options.node_rank == 0;
    PC__TRY(pc__output_begin(l));
    PC__TRY(pc__agent_begin(l));
    PC__TRY(first ? pc__job_begin(l) : pc__link_begin(l));
    pc__pmix_begin(l);
    watch_signals(l);
    return first ? ready(l) : PC_OK;
}

static pc_status run(pc__launch *l, int *status)
{
    sigset_t before;
    if (uv_loop_init(&l->loop) < 0)
        return pc__fail(PC_ERR_MEMORY, "pc_launch: libuv has no loop");
    block_pipe_signal(&before);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pc_status result = begin(l);
    if (result == PC_OK) {
        while (!l->over)
            uv_run(&l->loop, UV_RUN_DEFAULT);
        *status = l->status;
        result = pc__error_put(&l->error);
    }
    const pc_error error = pc__error_take(); /* closing may not hide it */
    const bool all = pc__output_end(l);
    if (result == PC_OK && !all && !*status)
        *status = l->unwritten ? 1 : 128 + l->signalled;
    close_all(l);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    restore_signals(&before);
    pc_error_clear();
    (void)pc__error_put(&error);
    return result;
}

pc_status pc_launch(const char *const *command, pc_launch_options options, int *status)
{
    PC__NEED(command);
    PC__NEED(status);
    pc__launch *l = pc__calloc(1, sizeof *l);
    if (!l)
        return PC_ERR_MEMORY;
    l->command = command;
    l->options = options;
    pc__trace_leave_to_ranks();
    pc_status result = prepare(l);
    if (result == PC_OK)
        result = run(l, status);
    pc__cpus_free(l->cpus);
    pc__free(l);
    return result;
}
#else
#include "base/base.h"

pc_status pc_launch(const char *const *command, pc_launch_options options, int *status)
{
    (void)options;
    PC__NEED(command);
    PC__NEED(status);
    return pc__fail(PC_ERR_UNSUPPORTED,
                    "this build of Paracord has no libuv, by which jobs are started: install libuv1-dev and "
                    "configure it again");
}
#endif

/* agent.c: the ranks of this host: their beginning, their end, and what they leave behind. */
#if PC_HAVE_UV
#include "launch/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK_MS 20
#define LINES_LIMIT_MS 500

static void say(pc__launch *l, pc__say what, uint32_t a, uint32_t b, const char *text)
{
    pc__text body = {0};
    pc__put_u8(&body, what);
    pc__put_u32(&body, a);
    pc__put_u32(&body, b);
    pc__put_text(&body, text);
    pc__agent_say(l, &body);
}

void pc__agent_say(pc__launch *launch, pc__text *body)
{
    if (launch->link) {
        pc__link_say(launch, body);
        return;
    }
    pc__body read = {(const uint8_t *)body->data, (const uint8_t *)body->data + body->length, body->failed};
    pc__job_hear(launch, 0, &read);
    pc__text_free(body);
}

static int running(const pc__launch *l)
{
    int n = 0;
    for (int i = 0; i < l->options.ranks; i++)
        n += l->processes[i].runs;
    return n;
}

/* To each rank with what it has started in its group; a stopped one has to go on to see it. */
static void signal_ranks(pc__launch *l, int number)
{
    for (int i = 0; i < l->options.ranks; i++)
        if (l->processes[i].runs) {
            kill(-l->processes[i].id, number);
            kill(-l->processes[i].id, SIGCONT);
        }
}

static void how_it_ended(const pc__launch *l, const pc__process *p, int status, char text[PC__WHY_MAX])
{
    if (p->hung)
        snprintf(text, PC__WHY_MAX, "rank %d (process %d on %s) was stopped (SIGSTOP) for more than %.3g s", p->rank,
                 (int)p->id, l->host, l->beat_limit);
    else if (WIFSIGNALED(status)) {
        const char *name = sigabbrev_np(WTERMSIG(status));
        const bool killed = WTERMSIG(status) == SIGKILL && !l->stopping;
        snprintf(text, PC__WHY_MAX, "rank %d (process %d on %s) was ended by signal %d (SIG%s)%s%s", p->rank,
                 (int)p->id, l->host, WTERMSIG(status), name ? name : "?", WCOREDUMP(status) ? ", core dumped" : "",
                 killed ? ", perhaps because memory ran out" : "");
    } else
        snprintf(text, PC__WHY_MAX, "rank %d (process %d on %s) ended with exit status %d", p->rank, (int)p->id,
                 l->host, WEXITSTATUS(status));
}

void pc__agent_children(pc__launch *launch)
{
    int status;
    char text[PC__WHY_MAX];
    for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) > 0;)
        for (int i = 0; i < launch->options.ranks; i++) {
            pc__process *p = &launch->processes[i];
            if (!p->runs || p->id != ended)
                continue;
            p->runs = false;
            how_it_ended(launch, p, status, text);
            say(launch, PC__SAY_ENDED, (uint32_t)p->rank,
                WIFSIGNALED(status) ? 128u + (unsigned)WTERMSIG(status) : (unsigned)WEXITSTATUS(status), text);
            break;
        }
}

static void spawn_failed(pc__launch *l, const pc__process *p)
{
    char text[PC__WHY_MAX];
    const pc_error error = pc__error_take();
    snprintf(text, sizeof text, "rank %d on %s did not start: %.200s%s%.80s", p->rank, l->host, error.message,
             error.cause[0] ? ": " : "", error.cause);
    say(l, PC__SAY_ENDED, (uint32_t)p->rank, 127, text);
}

/* One rank: two pipes, its variables, its process. */
static bool start_rank(pc__launch *l, int local_rank)
{
    const int place = l->start.places[local_rank];
    pc__process *p = &l->processes[place];
    pc__writer *const to[2] = {l->out, l->err};
    int pipes[2][2] = {{-1, -1}, {-1, -1}};
    p->rank = l->start.base + local_rank;
    p->id = 0;
    p->hung = false;
    p->stopped_since = 0;
    char **environment = pc__variables(l, local_rank);
    bool fine = environment != NULL;
    for (int i = 0; i < 2 && fine; i++) {
        fine = pipe2(pipes[i], O_CLOEXEC) == 0;
        if (!fine)
            (void)pc__fail_file(errno, "no pipe for what rank %d writes", p->rank);
        else
            fine = pc__lines_begin(l, &p->lines[i], p->rank, pipes[i][0], to[i]);
    }
    if (fine) {
        const int files[2] = {pipes[0][1], pipes[1][1]};
        fine = pc__spawn(l, p, place, environment, files);
    }
    for (int i = 0; i < 2; i++)
        if (pipes[i][1] >= 0)
            close(pipes[i][1]);
    pc__variables_free(environment);
    return fine;
}

static void start(pc__launch *l)
{
    l->busy = true;
    l->stopping = false;
    l->stop_at = l->ended_at = 0;
    (void)pc__pmix_start(l);
    for (int i = 0; i < l->start.ranks; i++)
        if (!start_rank(l, i)) {
            pc__process *p = &l->processes[l->start.places[i]];
            p->runs = false;
            spawn_failed(l, p);
            break;
        }
}

void pc__agent_stop(pc__launch *launch, int kill_rank)
{
    for (int i = 0; i < launch->options.ranks; i++)
        if (launch->processes[i].runs && launch->processes[i].rank == kill_rank)
            kill(-launch->processes[i].id, SIGKILL);
    if (launch->stopping || !launch->busy)
        return;
    launch->stopping = true;
    launch->stop_at = uv_now(&launch->loop) + PC__STOP_LIMIT_MS;
    signal_ranks(launch, SIGTERM);
}

void pc__agent_signal(pc__launch *launch, int number)
{
    if (launch->signalled) { /* again: nobody wants to wait */
        signal_ranks(launch, SIGKILL);
        return;
    }
    launch->signalled = number;
    signal_ranks(launch, number);
}

static bool hear_places(pc__launch *l, pc__body *body)
{
    pc__start *s = &l->start;
    s->ranks = 0;
    for (uint32_t n = pc__take_u32(body); n > 0 && !body->broken; n--) {
        const uint32_t place = pc__take_u32(body);
        if (place >= (uint32_t)l->options.ranks || s->ranks == l->options.ranks)
            return false;
        s->places[s->ranks++] = (int)place;
    }
    return !body->broken && s->ranks > 0;
}

static void hear_start(pc__launch *l, pc__body *body)
{
    pc__start *s = &l->start;
    s->generation = (int)pc__take_u32(body);
    s->size = (int)pc__take_u32(body);
    s->base = (int)pc__take_u32(body);
    s->node = (int)pc__take_u32(body);
    s->nodes = (int)pc__take_u32(body);
    s->master_port = (int)pc__take_u32(body);
    pc__take_text(body, s->master, sizeof s->master);
    pc__take_text(body, s->run, sizeof s->run);
    if (hear_places(l, body) && !l->busy)
        start(l);
}

void pc__agent_hear(pc__launch *launch, pc__body *body)
{
    switch (pc__take_u8(body)) {
    case PC__SAY_START:
        hear_start(launch, body);
        break;
    case PC__SAY_STOP:
        pc__agent_stop(launch, (int)pc__take_u32(body));
        break;
    case PC__SAY_SIGNAL:
        pc__agent_signal(launch, (int)pc__take_u32(body));
        break;
    case PC__SAY_END:
        pc__launch_over(launch, (int)pc__take_u32(body));
        break;
    default:
        break;
    }
}

/* Close what ranks wrote to; true when all of it is closed. What still comes is read first. */
static bool lines_closed(pc__launch *l, bool now)
{
    bool closed = true;
    for (int i = 0; i < 2 * l->options.ranks; i++) {
        pc__lines *lines = &l->processes[i / 2].lines[i % 2];
        if (now)
            pc__lines_end(lines);
        closed = closed && !lines->open && !lines->closing;
    }
    return closed;
}

static bool is_paused(const pc__launch *l)
{
    for (int i = 0; i < 2 * l->options.ranks; i++)
        if (l->processes[i / 2].lines[i % 2].open && l->processes[i / 2].lines[i % 2].paused)
            return true;
    return false;
}

static void tick(uv_timer_t *timer)
{
    pc__launch *l = timer->data;
    const uint64_t now = uv_now(&l->loop);
    if (!l->busy)
        return;
    pc__stopped_end(l, now);
    const bool due = l->stop_at && now >= l->stop_at;
    if (due)
        signal_ranks(l, SIGKILL);
    if (running(l))
        return;
    if (!l->ended_at) {
        l->ended_at = now;
        l->stop_at = PC__MAX(l->stop_at, now + PC__STOP_LIMIT_MS / 5); /* for what ranks have left behind */
    }
    if (pc__orphans_signal(l, due ? SIGKILL : SIGTERM) > 0)
        return;
    const bool paused = is_paused(l);
    if (paused && !l->signalled) /* what ranks wrote last waits for its reader, too */
        l->ended_at = now;
    if (!lines_closed(l, now > l->ended_at + (paused ? PC__STOP_LIMIT_MS
                                                     : LINES_LIMIT_MS))) /* pipes have an end when no process is left */
        return;
    l->busy = false;
    say(l, PC__SAY_ALL_ENDED, 0, 0, "");
}

pc_status pc__agent_begin(pc__launch *launch)
{
    PC__TRY(pc__beat_limit(getenv, &launch->beat_limit));
    launch->processes = pc__calloc((size_t)launch->options.ranks, sizeof *launch->processes);
    launch->start.places = pc__calloc((size_t)launch->options.ranks, sizeof *launch->start.places);
    if (!launch->processes || !launch->start.places)
        return PC_ERR_MEMORY;
    uv_timer_init(&launch->loop, &launch->agent_timer);
    launch->agent_timer.data = launch;
    uv_timer_start(&launch->agent_timer, tick, TICK_MS, TICK_MS);
    return PC_OK;
}

void pc__agent_close(pc__launch *launch)
{
    uv_close((uv_handle_t *)&launch->agent_timer, NULL);
    for (int i = 0; i < 2 * launch->options.ranks; i++)
        pc__lines_end(&launch->processes[i / 2].lines[i % 2]);
}
#endif

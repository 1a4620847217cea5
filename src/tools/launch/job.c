/* job.c: node 0 gathers the hosts, starts the ranks on all of them, and starts them again. */
#if PC_HAVE_UV
#include "launch/parts.h"

#include <stdlib.h>
#include <sys/random.h>

#define TICK_MS 50
#define TOLD_LIMIT_MS 3000 /* a rank that has told an error and does not end */

void pc__job_say(pc__launch *launch, int node, pc__text *body)
{
    if (node) {
        pc__server_tell(launch->server, node, body);
        return;
    }
    pc__body read = {(const uint8_t *)body->data, (const uint8_t *)body->data + body->length, body->failed};
    pc__agent_hear(launch, &read);
    pc__text_free(body);
}

static void say_to_all(pc__launch *l, pc__say what, int number, int but)
{
    for (int node = l->options.nodes - 1; node >= 0; node--) { /* this host last: it may end what is going on here */
        pc__text body = {0};
        if (!l->nodes[node].here || node == but)
            continue;
        pc__put_u8(&body, what);
        pc__put_u32(&body, (uint32_t)number);
        pc__job_say(l, node, &body);
    }
}

static bool any_busy(const pc__launch *l)
{
    for (int node = 0; node < l->options.nodes; node++)
        if (l->nodes[node].busy)
            return true;
    return false;
}

static void gather(pc__launch *l)
{
    l->phase = PC__GATHERING;
    l->gather_until = uv_now(&l->loop) + (uint64_t)(1000 * l->options.timeout_seconds);
    pc__job_start(l);
}

static void end(pc__launch *l, int status)
{
    l->phase = PC__OVER;
    say_to_all(l, PC__SAY_END, status, 0);
    pc__launch_over(l, status);
}

/* When no rank is left anywhere: well, or once more, or over. */
static void settle(pc__launch *l)
{
    if (l->phase == PC__GATHERING || l->phase == PC__OVER || any_busy(l))
        return;
    if (!l->has_culprit) {
        end(l, 0);
        return;
    }
    if (!l->signalled)
        pc__job_tell_culprit(l);
    if (l->signalled || !pc__job_goes_on(l)) {
        end(l, l->signalled ? 128 + l->signalled : l->culprit_status);
        return;
    }
    l->generation++;
    gather(l);
}

void pc__job_hear(pc__launch *launch, int node, pc__body *body)
{
    pc__node *n = &launch->nodes[node];
    char text[PC__WHY_MAX];
    const unsigned what = pc__take_u8(body);
    const int a = (int)pc__take_u32(body), b = (int)pc__take_u32(body);
    pc__take_text(body, text, sizeof text);
    if (body->broken)
        return;
    switch (what) {
    case PC__SAY_READY:
        snprintf(n->host, sizeof n->host, "%.63s", text);
        n->ready = pc__job_take_node(launch, node, PC__MIN(PC__MAX(a, 1), PC__RANKS_MAX / launch->options.nodes));
        if (launch->phase == PC__GATHERING)
            pc__job_start(launch);
        break;
    case PC__SAY_ENDED:
        pc__job_rank_ended(launch, a, b, text);
        break;
    case PC__SAY_ALL_ENDED:
        n->busy = false;
        n->ready = n->here;
        settle(launch);
        break;
    case PC__SAY_SIGNAL:
        say_to_all(launch, PC__SAY_SIGNAL, a, node);
        break;
    default:
        break;
    }
}

static void came(void *context, int node)
{
    pc__launch *l = context;
    if (node > 0 && node < l->options.nodes)
        l->nodes[node].here = true;
}

static void said(void *context, int node, pc__body *body)
{
    pc__launch *l = context;
    if (node > 0 && node < l->options.nodes)
        pc__job_hear(l, node, body);
}

static void gone(void *context, int node, const char *why)
{
    pc__launch *l = context;
    if (node <= 0 || node >= l->options.nodes)
        return;
    pc__node *n = &l->nodes[node];
    const bool busy = n->busy;
    n->here = n->ready = n->busy = false;
    if (busy)
        pc__job_node_lost(l, node, why);
    settle(l);
}

static void missing_nodes(pc__launch *l)
{
    char nodes[128] = "";
    size_t n = 0;
    for (int node = 0; node < l->options.nodes && n + 16 < sizeof nodes; node++)
        if (!l->nodes[node].ready)
            n += (size_t)snprintf(nodes + n, sizeof nodes - n, "%s%d", n ? ", " : "", node);
    (void)pc__fail(
        PC_ERR_TIMEOUT,
        "node %s of %d has not come to %s within %.3g s: start paracord launch there with its --node-rank, with the "
        "same --nodes, --master and PARACORD_TOKEN, and let that port through firewalls",
        nodes, l->options.nodes, l->options.master, l->options.timeout_seconds);
    l->error = pc__error_take();
}

static void tick(uv_timer_t *timer)
{
    pc__launch *l = timer->data;
    const uint64_t now = uv_now(&l->loop);
    if (l->phase == PC__GATHERING && l->signalled)
        end(l, 128 + l->signalled);
    else if (l->phase == PC__GATHERING && now > l->gather_until) {
        if (pc__job_goes_without(l)) {
            pc__job_start(l);
            return;
        }
        missing_nodes(l);
        end(l, 1);
    } else if (l->phase == PC__RUNNING && l->told_at && now > l->told_at + TOLD_LIMIT_MS)
        pc__job_stop_soon(l, l->culprit);
    else if (l->phase == PC__RUNNING && l->stop_due && now >= l->stop_due)
        pc__job_stop(l, l->stop_kill);
}

static pc_status serve(pc__launch *l)
{
    char host[PC__HOST_MAX];
    pc__server_options options = {.host = "127.0.0.1",
                                  .token = l->token,
                                  .version = PC_VERSION,
                                  .size = 1,
                                  .context = l,
                                  .lost = pc__job_lost,
                                  .came = came,
                                  .said = said,
                                  .gone = gone};
    PC__TRY(pc__beat_limit(getenv, &options.beat_limit));
    if (l->options.nodes > 1) {
        PC__TRY(pc__env_address("--master", l->options.master, host, &options.port));
        options.host = "::";
    }
    l->server = pc__server_open(&l->loop, &options);
    if (!l->server)
        return pc_error_last()->status;
    if (l->options.nodes == 1)
        snprintf(l->store, sizeof l->store, "127.0.0.1:%d", pc__server_port(l->server));
    return PC_OK;
}

pc_status pc__job_begin(pc__launch *launch)
{
    unsigned char random[8] = {0};
    launch->nodes = pc__calloc((size_t)launch->options.nodes, sizeof *launch->nodes);
    if (!launch->nodes)
        return PC_ERR_MEMORY;
    launch->nodes[0].here = true;
    (void)!getrandom(random, sizeof random, 0);
    snprintf(launch->start.run, sizeof launch->start.run, "paracord-");
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(launch->start.run + 9 + 2 * i, 3, "%02x", random[i]);
    uv_timer_init(&launch->loop, &launch->job_timer);
    launch->job_timer.data = launch;
    uv_timer_start(&launch->job_timer, tick, TICK_MS, TICK_MS);
    PC__TRY(serve(launch));
    launch->gather_until = uv_now(&launch->loop) + (uint64_t)(1000 * launch->options.timeout_seconds);
    return PC_OK;
}

void pc__job_close(pc__launch *launch)
{
    if (!launch->nodes)
        return;
    uv_close((uv_handle_t *)&launch->job_timer, NULL);
    if (launch->server)
        pc__server_close(launch->server, NULL, NULL);
    launch->server = NULL;
}
#endif

/* elastic.c: which places a start has, when some have failed: all again while that is worth a try, else the job goes on without
 * a rank's place, or without a host.
 *
 * A place, which is a GPU and its part of the host, is tried again once; when it has failed twice within AGAIN_SECONDS, or
 * no restart is left, the next start does without it. What a rank told of its failure may say that the place is not to blame:
 * a file that cannot be written is the host's matter, and what is wrong in the program would be so with fewer ranks, too.
 *
 * A program that can do with a multiple of some number of ranks alone (copies of a network that is cut up) has said so in the
 * store. The next start has the largest multiple that there are places for; what is left over is idle, to spare for the next
 * failure. */
#if PC_HAVE_UV
#include "launch/parts.h"

#define AGAIN_SECONDS 600

typedef enum fault_kind { OF_A_PLACE, OF_A_HOST, OF_THE_PROGRAM } fault_kind;

static fault_kind fault_of(pc_status told)
{
    switch (told) {
    case PC_ERR_FILE:
        return OF_A_HOST;
    case PC_ERR_ARGUMENT:
    case PC_ERR_SHAPE:
    case PC_ERR_DTYPE:
    case PC_ERR_RANGE:
    case PC_ERR_UNSUPPORTED:
    case PC_ERR_STATE:
    case PC_ERR_FORMAT:
    case PC_ERR_NOT_FOUND:
        return OF_THE_PROGRAM;
    default: /* killed, stopped, exited without a word, or a device is gone or out of memory */
        return OF_A_PLACE;
    }
}

/* A host that comes, also one that comes back, has all of its places: somebody may have mended it. */
bool pc__job_take_node(pc__launch *launch, int node, int ranks)
{
    pc__node *n = &launch->nodes[node];
    if (ranks != n->places) {
        pc__slot *slots = pc__calloc((size_t)ranks, sizeof *slots);
        if (!slots)
            return false;
        pc__free(n->slots);
        n->slots = slots;
        n->places = ranks;
    }
    for (int i = 0; i < ranks; i++)
        n->slots[i].out = false;
    if (n->out && launch->phase != PC__GATHERING)
        pc__launch_tell(launch, "node %d (%s) is here, and joins at the next start", node, n->host);
    n->out = false;
    return true;
}

static int places_of(const pc__node *node)
{
    int n = 0;
    for (int i = 0; i < node->places && !node->out; i++)
        n += !node->slots[i].out;
    return n;
}

void pc__job_find_place(const pc__launch *launch, int rank, int *node, int *place)
{
    *node = *place = -1;
    for (int i = 0; i < launch->options.nodes; i++) {
        const pc__node *n = &launch->nodes[i];
        int at = n->base;
        if (rank < n->base || rank >= n->base + n->ranks)
            continue;
        *node = i;
        for (*place = 0; *place < n->places && (n->slots[*place].out || at++ < rank); (*place)++)
            ;
    }
}

static int places_of_all(const pc__launch *l)
{
    int n = 0;
    for (int i = 0; i < l->options.nodes; i++)
        n += places_of(&l->nodes[i]);
    return n;
}

static int spare_places(const pc__launch *l)
{
    return l->multiple ? places_of_all(l) % l->multiple : 0;
}

static int ranks_of_all(const pc__launch *l)
{
    return places_of_all(l) - spare_places(l);
}

/* The node that has a rank less: the last one whose ranks are no multiple, so that others' neighbours stay on one host. */
static pc__node *giver(pc__launch *l)
{
    pc__node *any = NULL;
    for (int i = l->options.nodes - 1; i >= 0; i--) {
        pc__node *n = &l->nodes[i];
        if (n->ranks % l->multiple)
            return n;
        any = n->ranks && !any ? n : any;
    }
    return any;
}

void pc__job_divide(pc__launch *launch)
{
    for (int i = 0; i < launch->options.nodes; i++)
        launch->nodes[i].ranks = places_of(&launch->nodes[i]);
    for (int spare = spare_places(launch); spare > 0; spare--)
        giver(launch)->ranks--;
}

/* Whether this place has failed not long ago, too. */
static bool fails_again(pc__launch *l)
{
    pc__node *n = &l->nodes[l->culprit_node];
    if (l->culprit_place < 0 || l->culprit_place >= n->places)
        return false;
    pc__slot *slot = &n->slots[l->culprit_place];
    const uint64_t now = uv_now(&l->loop);
    const bool again = slot->failed && now - slot->failed_at <= 1000 * (uint64_t)AGAIN_SECONDS;
    slot->failed = true;
    slot->failed_at = now;
    return again;
}

static bool is_alone(const pc__launch *l, int node)
{
    return places_of(&l->nodes[node]) == places_of_all(l);
}

/* Leave out what has failed; false where that is no help. `what` says it. */
static bool leave_out(pc__launch *l, fault_kind fault, char what[PC__WHY_MAX])
{
    pc__node *n = &l->nodes[l->culprit_node];
    const bool host = fault == OF_A_HOST || l->culprit_place < 0 || !n->here;
    if (fault == OF_THE_PROGRAM || (host && is_alone(l, l->culprit_node)))
        return false;
    if (host)
        snprintf(what, PC__WHY_MAX, "node %d (%s)", l->culprit_node, n->host);
    else
        snprintf(what, PC__WHY_MAX, "rank %d (place %d of node %d, %s)", l->culprit, l->culprit_place, l->culprit_node,
                 n->host);
    if (!n->here)
        n->out = true;
    for (int i = 0; i < n->places; i++)
        n->slots[i].out |= host || i == l->culprit_place;
    return true;
}

static bool again(pc__launch *l)
{
    if (l->restarts >= l->options.max_restarts)
        return false;
    l->restarts++;
    pc__launch_tell(l, "starting all ranks again (restart %d of %d)", l->restarts, l->options.max_restarts);
    return true;
}

static bool are_enough(pc__launch *l, const char *what)
{
    const int ranks = ranks_of_all(l), least = l->options.min_ranks;
    if (ranks >= least)
        return true;
    if (spare_places(l))
        pc__launch_tell(l,
                        "not going on: without %s there would be places for %d ranks, of which the program takes a "
                        "multiple of %d: fewer than --min-ranks %d are left",
                        what, places_of_all(l), l->multiple, PC__MAX(least, l->multiple));
    else
        pc__launch_tell(l, "not going on: without %s there would be %d ranks, fewer than --min-ranks %d", what, ranks,
                        least);
    return false;
}

/* Why places are left over, for behind a sentence. */
static const char *spare_words(const pc__launch *l, char text[96])
{
    text[0] = 0;
    if (spare_places(l))
        snprintf(text, 96, "; %d of the %d places %s idle, since the program takes a multiple of %d ranks",
                 spare_places(l), places_of_all(l), spare_places(l) == 1 ? "is" : "are", l->multiple);
    return text;
}

/* A start whose ranks said of which numbers the program takes a multiple, and are none. */
static bool fits_better(pc__launch *l)
{
    char spare[96];
    if (!l->multiple || l->size % l->multiple == 0 || ranks_of_all(l) < l->options.min_ranks)
        return false;
    pc__launch_tell(l, "going on with %d ranks%s", ranks_of_all(l), spare_words(l, spare));
    return true;
}

bool pc__job_goes_on(pc__launch *launch)
{
    char what[PC__WHY_MAX], spare[96];
    if (!launch->options.min_ranks || launch->culprit_node < 0)
        return again(launch);
    const int multiple = pc__server_multiple(launch->server);
    launch->multiple = multiple ? multiple : launch->multiple;
    const int before = ranks_of_all(launch);
    const fault_kind fault = fault_of(pc__server_told(launch->server, launch->culprit));
    if (fault == OF_THE_PROGRAM && fits_better(launch))
        return true;
    const bool twice = fault != OF_THE_PROGRAM && fails_again(launch);
    if (!twice && again(launch))
        return true;
    if (!leave_out(launch, fault, what))
        return again(launch);
    if (!are_enough(launch, what))
        return false;
    pc__launch_tell(launch, "going on with %d of %d ranks, without %s: %s%s", ranks_of_all(launch), before, what,
                    twice ? "it has failed twice in a short time" : "no restart is left", spare_words(launch, spare));
    return true;
}

bool pc__job_goes_without(pc__launch *launch)
{
    char nodes[128] = "";
    size_t n = 0;
    if (!launch->options.min_ranks)
        return false;
    for (int node = 1; node < launch->options.nodes; node++) {
        pc__node *at = &launch->nodes[node];
        if (at->ready || at->out)
            continue;
        at->out = true;
        if (n + 16 < sizeof nodes)
            n += (size_t)snprintf(nodes + n, sizeof nodes - n, "%s%d", n ? ", " : "", node);
    }
    const int left = ranks_of_all(launch);
    if (!launch->nodes[0].ready || left < launch->options.min_ranks)
        return false;
    char spare[96];
    pc__launch_tell(launch, "going on with %d ranks, without node %s: it has not come within %.3g s%s", left, nodes,
                    launch->options.timeout_seconds, spare_words(launch, spare));
    return true;
}
#endif

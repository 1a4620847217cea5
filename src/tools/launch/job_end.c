/* job_end.c: who has failed first, of what, and what is told of it. The first sign counts: a rank that told an error, whose
 * connection broke or whose heart stopped, or that ended; others fail because of it. */
#if PC_HAVE_UV
#include "launch/parts.h"

#include <stdlib.h>

#define DUMP_FOLDER "PARACORD_DIST_DUMP"
#define DUMP_LIMIT_MS 500 /* in which ranks that hear of a lost one write their last calls */

void pc__job_stop(pc__launch *launch, int kill_rank)
{
    launch->phase = PC__STOPPING;
    for (int node = launch->options.nodes - 1; node >= 0; node--) {
        pc__text body = {0};
        if (!launch->nodes[node].here)
            continue;
        pc__put_u8(&body, PC__SAY_STOP);
        pc__put_u32(&body, (uint32_t)kill_rank);
        pc__job_say(launch, node, &body);
    }
}

void pc__job_stop_soon(pc__launch *launch, int kill_rank)
{
    if (launch->stop_due)
        return;
    launch->stop_kill = kill_rank;
    if (getenv(DUMP_FOLDER) && getenv(DUMP_FOLDER)[0])
        launch->stop_due = uv_now(&launch->loop) + DUMP_LIMIT_MS;
    else
        pc__job_stop(launch, kill_rank);
}

void pc__job_ask_dump(pc__launch *launch)
{
    const char *folder = getenv(DUMP_FOLDER);
    if (!launch->server)
        pc__launch_tell(launch, "SIGUSR1 is for the launcher of node 0");
    else if (!folder || !folder[0])
        pc__launch_tell(launch, "SIGUSR1 has ranks write their last calls where " DUMP_FOLDER " names a folder");
    else {
        pc__launch_tell(launch, "the ranks write their last calls: paracord trace calls %s", folder);
        pc__server_dump(launch->server, "paracord launch was asked to (SIGUSR1)");
    }
}

/* What it did when its heart beat last. */
static void put_beat(const pc__launch *l, int rank, char *text, size_t n)
{
    pc__beat beat;
    text[0] = 0;
    if (!l->server || !pc__server_beat(l->server, rank, &beat))
        return;
    if (!beat.entered)
        snprintf(text, n, "; it had entered no collective");
    else if (beat.entered != beat.finished)
        snprintf(text, n, "; it was in collective %llu (%s, %llu bytes)", (unsigned long long)beat.entered, beat.name,
                 (unsigned long long)beat.bytes);
    else
        snprintf(text, n, "; its last collective was %llu (%s, %llu bytes)", (unsigned long long)beat.finished,
                 beat.name, (unsigned long long)beat.bytes);
}

void pc__job_tell_culprit(pc__launch *launch)
{
    char beat[160];
    if (launch->culprit_told)
        return;
    launch->culprit_told = true;
    put_beat(launch, launch->culprit, beat, sizeof beat);
    const char *end = launch->culprit_end, *said = launch->culprit_said;
    pc__launch_tell(launch, "%s%s%s%s", end, said[0] && end[0] ? "; " : "", said, beat);
    if (getenv(DUMP_FOLDER) && getenv(DUMP_FOLDER)[0])
        pc__launch_tell(launch, "what ranks did last: paracord trace calls %s", getenv(DUMP_FOLDER));
}

static void blame(pc__launch *l, int rank, int status, const char *said)
{
    l->has_culprit = true;
    l->culprit = rank;
    pc__job_find_place(l, rank, &l->culprit_node, &l->culprit_place);
    l->culprit_status = status;
    snprintf(l->culprit_said, sizeof l->culprit_said, "%s", said);
}

void pc__job_lost(void *launch, int rank, bool silent, const char *why)
{
    pc__launch *l = launch;
    if (l->phase != PC__RUNNING || l->has_culprit)
        return;
    blame(l, rank, silent ? 128 + 9 : 1, why);
    if (silent) {
        l->culprit_known = true;
        pc__job_tell_culprit(l);
        pc__launch_tell(l, "stopping all ranks");
        pc__job_stop_soon(l, rank);
    } else
        l->told_at = uv_now(&l->loop); /* its end is near, and says more */
}

/* The culprit's end is all there is to say of a connection that just broke. */
static void convict(pc__launch *l, int status, const char *how)
{
    l->culprit_known = true;
    l->culprit_status = status;
    if (strstr(l->culprit_said, "without pc_dist_end"))
        l->culprit_said[0] = 0;
    snprintf(l->culprit_end, sizeof l->culprit_end, "%s", how);
    if (!l->signalled)
        pc__job_tell_culprit(l);
}

static void stop_others(pc__launch *l)
{
    if (l->phase != PC__RUNNING || l->signalled) /* who was asked to end may take the time to do so in good order */
        return;
    if (!l->stop_due)
        pc__launch_tell(l, "stopping all other ranks");
    pc__job_stop_soon(l, -1);
}

/* It was suspected, and left in good order after all, if without a word: whoever else has failed did so by itself. */
static void acquit(pc__launch *l)
{
    l->has_culprit = false;
    l->told_at = 0;
    if (l->failed < 0)
        return;
    blame(l, l->failed, l->failed_status, "");
    convict(l, l->failed_status, l->failed_end);
    stop_others(l);
}

void pc__job_rank_ended(pc__launch *launch, int rank, int status, const char *how)
{
    pc__launch *l = launch;
    const bool suspected = l->has_culprit && l->culprit == rank && !l->culprit_known;
    if (status == 0) {
        if (suspected && l->phase == PC__RUNNING)
            acquit(l);
        return;
    }
    if (!suspected && l->phase != PC__RUNNING)
        return;
    if (l->failed < 0) {
        l->failed = rank;
        l->failed_status = status;
        snprintf(l->failed_end, sizeof l->failed_end, "%s", how);
    }
    if (!l->has_culprit)
        blame(l, rank, status, "");
    if (l->culprit == rank && !l->culprit_known)
        convict(l, status, how);
    pc__server_lose(l->server, rank, false, how); /* for ranks that have no connection to lose */
    if (l->culprit_known)                         /* else it is about to end, and is not to be disturbed */
        stop_others(l);
}

void pc__job_node_lost(pc__launch *launch, int node, const char *why)
{
    char text[PC__WHY_MAX];
    snprintf(text, sizeof text, "node %d (%s) is lost: %.250s", node, launch->nodes[node].host, why);
    /* The connection of one of its ranks may have broken a moment before. */
    const bool suspected = launch->has_culprit && !launch->culprit_known && launch->culprit_node == node;
    const bool to_blame = launch->phase == PC__RUNNING && (!launch->has_culprit || suspected);
    if (!to_blame)
        pc__launch_tell(launch, "%s", text);
    if (launch->phase != PC__RUNNING)
        return;
    if (to_blame) {
        blame(launch, -1, 1, text);
        launch->culprit_node = node;
        launch->culprit_known = true;
        pc__job_tell_culprit(launch);
    }
    for (int rank = launch->nodes[node].base; rank < launch->nodes[node].base + launch->nodes[node].ranks; rank++)
        pc__server_lose(launch->server, rank, false, text);
    stop_others(launch);
}
#endif

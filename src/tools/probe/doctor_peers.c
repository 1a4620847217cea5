/* doctor_peers.c: do GPUs work together? What trying it (paracord-tools/peers.h) has shown. */
#include "probe/doctor.h"

#include <stdlib.h>

/* The lines of what was tried, from pc__alloc; NULL for none. */
static char *tried(const pc__exam *e)
{
    if (!e->machine->live)
        return pc__root_text(e->m->root, "answers/peers", 65536, false);
    return e->options->peers ? pc__strdup(e->options->peers) : NULL;
}

/* What a line says: FROM TO STATE WORDS, or all-reduce COUNT STATE WORDS. */
typedef struct result {
    char from[32], to[32], state[16];
    const char *words; /* to the end of the line, not ended */
} result;

/* The line at `line`; false when it is none. */
static bool read_result(const char *line, result *r)
{
    int at = 0;
    const int n = sscanf(line, "%31s %31s %15s%n", r->from, r->to, r->state, &at);
    r->words = line + at + strspn(line + at, " ");
    return n == 3 && !memchr(line, '\n', (size_t)at);
}

/* The result of the line that begins with these words; false when there is none. */
static bool find_result(const char *lines, const char *from, result *r)
{
    for (const char *line = lines; line && *line; line = pc__behind(line, '\n'))
        if (read_result(line, r) && !strcmp(r->from, from))
            return true;
    return false;
}

static bool is_wrong(const result *r)
{
    return !strcmp(r->state, "corrupt") || !strcmp(r->state, "hangs");
}

/* Does the way out lead out? */
static void say_way_out(pc__exam *e, pc_finding *f, const char *lines)
{
    result r;
    const bool known = find_result(lines, "all-reduce-without-p2p", &r);
    if (known && is_wrong(&r)) {
        pc__how(e, f, "With NCCL_P2P_DISABLE=1, the usual way out, an all-reduce is wrong, too (%s).", r.state);
        return;
    }
    if (known && !strcmp(r.state, "intact"))
        pc__how(e, f, "With NCCL_P2P_DISABLE=1 an all-reduce over all %s of them comes out right.", r.to);
    pc__fix(e, f, "export NCCL_P2P_DISABLE=1 # at once: what NCCL sends goes through the host's memory");
}

/* Pairs of one state: "cuda:0 to cuda:1, ...", and how many. */
static int list_pairs(const char *lines, const char *state, char list[512])
{
    int count = 0;
    result r;
    list[0] = 0;
    for (const char *line = lines; line && *line; line = pc__behind(line, '\n')) {
        if (!read_result(line, &r) || !strchr(r.from, ':') || strcmp(r.state, state))
            continue;
        const size_t used = strlen(list);
        if (count++ < 8)
            snprintf(list + used, 512 - used, "%s%s to %s", used ? ", " : "", r.from, r.to);
    }
    const size_t used = strlen(list);
    if (count > 8)
        snprintf(list + used, 512 - used, " and %d more", count - 8);
    return count;
}

static void say_untried(pc__exam *e, const char *lines)
{
    result r;
    for (const char *line = lines; line && *line; line = pc__behind(line, '\n')) {
        if (!read_result(line, &r))
            continue;
        const int n = (int)strcspn(r.words, "\n");
        const int count = strcmp(r.from, "devices") ? 2 : atoi(r.state);
        if (count == 0 && !strcmp(r.to, "cuda"))
            pc__unseen(e, "it takes two GPUs, and Paracord can use none: %.*s", n, r.words);
        else if (count < 2)
            pc__unseen(e, "it takes two GPUs, and there is %s", count ? "one" : "none");
        else if (!strcmp(r.from, "open"))
            pc__unseen(e, "%s was not open after %.*s", r.to, n, r.words);
        else if (strchr(r.from, ':') && !strcmp(r.state, "failed"))
            pc__unseen(e, "the copy from %s to %s failed: %.*s", r.from, r.to, n, r.words);
    }
}

void pc__check_peers(pc__exam *e)
{
    char *lines = tried(e), hung[512], corrupt[512];
    const int hangs = list_pairs(lines, "hangs", hung), wrong = list_pairs(lines, "corrupt", corrupt);
    if (hangs || wrong) {
        result all;
        pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
        if (hangs)
            pc__what(e, f, "Copies between GPUs do not end: training on several of them hangs.");
        else
            pc__what(e, f,
                     "Copies between GPUs arrive as something else: training on several of them gives wrong networks.");
        if (hangs)
            pc__how(e, f, "16 MiB were copied in a process aside, which was ended: %s.", hung);
        if (wrong)
            pc__how(e, f, "16 MiB were copied and compared, and other bytes arrived: %s.", corrupt);
        if (find_result(lines, "all-reduce", &all) && is_wrong(&all))
            pc__how(e, f, "So it is with an all-reduce over all %s (%s).", all.to, all.state);
        say_way_out(e, f, lines);
        pc__say_between(e, f);
    }
    say_untried(e, lines);
    pc__free(lines);
}

static void say_missing(pc__exam *e, const result *r)
{
    pc_finding *f = pc__found(e, PC_SEVERITY_ADVICE, NULL);
    pc__what(e, f, "NCCL is missing: several GPUs cannot work together.");
    pc__how(e, f, "An all-reduce over %s GPUs says: %.*s", r->to, (int)strcspn(r->words, "\n"), r->words);
    pc__fix(e, f, "%s # from NVIDIA's repository of CUDA", pc__install(e, "libnccl2", "libnccl", "libnccl2", "nccl"));
}

void pc__check_all_reduce(pc__exam *e)
{
    result r;
    char *lines = tried(e);
    if (!find_result(lines, "all-reduce", &r) || pc__found_by(e, "peer-copies")) {
        pc__free(lines); /* that it hangs, or is wrong, is part of that finding */
        return;
    }
    if (is_wrong(&r)) {
        const bool hangs = !strcmp(r.state, "hangs");
        pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, NULL);
        pc__what(
            e, f,
            hangs ? "An all-reduce over the GPUs of this machine does not end, though copies between them do."
                  : "An all-reduce over the GPUs of this machine gives wrong sums, though copies between them arrive.");
        if (hangs)
            pc__how(e, f, "16 MiB over %s GPUs, in a process aside, which was ended after %.*s.", r.to,
                    (int)strcspn(r.words, "\n"), r.words);
        else
            pc__how(e, f, "16 MiB over %s GPUs: %.*s.", r.to, (int)strcspn(r.words, "\n"), r.words);
        say_way_out(e, f, lines);
        pc__say_between(e, f);
    } else if (!strcmp(r.state, "missing")) {
        say_missing(e, &r);
    } else if (!strcmp(r.state, "failed")) {
        pc__unseen(e, "it failed: %.*s", (int)strcspn(r.words, "\n"), r.words);
    }
    pc__free(lines);
}

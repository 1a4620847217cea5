/* read.c: from NCCL's words to ranks. Versions differ, so a line is known by its own words, and what is unknown is passed
 * over; it is foreign input. */
#include "ras/parts.h"

#include <ctype.h>
#include <stdlib.h>

enum { MOST = 16384 }; /* of each list: larger jobs name fewer ranks than they have */

typedef struct reader {
    pc_ras *ras;
    int group_room, rank_room, count_room;
    bool failed;
    int totals; /* how many numbers the row of the job's totals will have; 0: none is expected */
    bool table; /* of communicators */
    /* the block that lines belong to */
    bool dead, incomplete;
    char communicator[48], operation[32];
    long long calls; /* of the ranks that follow; -1: not said */
} reader;

static void *more(reader *r, void *array, int *count, int *room, size_t size)
{
    void **items = array;
    if (*count >= MOST)
        return NULL;
    if (r->failed || pc__grow(items, room, *count, size) != PC_OK) {
        r->failed = true;
        return NULL;
    }
    return memset((char *)*items + (size_t)(*count)++ * size, 0, size);
}

static pc_ras_rank *add_rank(reader *r, pc_ras_state state, int number)
{
    pc_ras_rank *rank = more(r, &r->ras->ranks, &r->ras->rank_count, &r->rank_room, sizeof *rank);
    if (!rank)
        return NULL;
    *rank = (pc_ras_rank){.state = state, .rank = number, .process = -1, .calls = -1, .most = -1};
    snprintf(rank->communicator, sizeof rank->communicator, "%s", r->communicator);
    return rank;
}

/* "GPU 0 managed by process 483072 on node 172.16.64.210", "managing GPUs 0,1": names end where the next word begins. */
static void read_place(pc_ras_rank *rank, const char *words)
{
    const char *gpu = strstr(words, "GPU"), *process = strstr(words, "rocess "), *host = strstr(words, " on node ");
    gpu = gpu ? gpu + 3 + (gpu[3] == 's') : NULL;
    if (gpu && *gpu == ' ') {
        const char *end = strstr(gpu, " managed by");
        const size_t n = end ? (size_t)(end - gpu - 1) : strlen(gpu + 1);
        snprintf(rank->gpu, sizeof rank->gpu, "%.*s", (int)PC__MIN(n, sizeof rank->gpu - 1), gpu + 1);
    }
    if (process && isdigit((unsigned char)process[7]))
        rank->process = strtoll(process + 7, NULL, 10);
    if (host)
        sscanf(host + 9, "%63s", rank->host);
}

static pc_ras_state state_in(const reader *r)
{
    return r->dead ? PC_RAS_DEAD : PC_RAS_MISSING;
}

/* "Rank 7 has launched up to operation 6649 -- GPU 7 managed by ..." and its like. */
static bool read_rank(reader *r, const char *line)
{
    int number, at = 0;
    if (sscanf(line, "Rank %d%n", &number, &at) != 1 || number < 0)
        return false;
    const char *words = line + at + strspn(line + at, " ");
    long long calls = r->calls;
    char said[64] = "";
    pc_ras_state state = r->incomplete ? state_in(r) : calls >= 0 ? PC_RAS_BEHIND : PC_RAS_DIFFERS;
    if (sscanf(words, "has launched up to operation %lld", &calls) == 1) {
        state = PC_RAS_BEHIND;
    } else if (!strncmp(words, "has not launched any", 20)) {
        state = PC_RAS_BEHIND;
        calls = 0;
    } else if (sscanf(words, "has status %63s", said) == 1) {
        state = PC_RAS_DIFFERS;
        calls = -1;
    } else if (!strncmp(words, "reported ", 9)) {
        const char *end = strstr(words, " -- ");
        const size_t n = end ? (size_t)(end - words - 9) : strlen(words + 9);
        snprintf(said, sizeof said, "%.*s", (int)PC__MIN(n, sizeof said - 1), words + 9);
        state = PC_RAS_FAILED;
    }
    pc_ras_rank *rank = add_rank(r, state, number);
    if (!rank)
        return true;
    rank->calls = state == PC_RAS_BEHIND ? calls : -1;
    snprintf(rank->words, sizeof rank->words, "%s", said);
    snprintf(rank->operation, sizeof rank->operation, "%s", state == PC_RAS_BEHIND ? r->operation : "");
    read_place(rank, words);
    return true;
}

/* "26 ranks have launched up to operation 6650" */
static bool read_count(reader *r, const char *line)
{
    int ranks, at = 0;
    long long calls = -1;
    if (sscanf(line, "%d ranks %n", &ranks, &at) != 1 || !at)
        return false;
    if (!strncmp(line + at, "have not launched any", 21))
        calls = 0;
    else if (sscanf(line + at, "have launched up to operation %lld", &calls) != 1)
        calls = -1;
    r->calls = calls;
    pc_ras_count *count =
        calls < 0 ? NULL : more(r, &r->ras->counts, &r->ras->count_count, &r->count_room, sizeof *count);
    if (!count)
        return true;
    count->ranks = ranks;
    count->calls = calls;
    snprintf(count->communicator, sizeof count->communicator, "%s", r->communicator);
    snprintf(count->operation, sizeof count->operation, "%s", r->operation);
    return true;
}

/* "The missing ranks: 3, 5-7" */
static bool read_missing(reader *r, const char *line)
{
    const char *at = strncmp(line, "The missing rank", 16) ? NULL : strchr(line, ':');
    for (char *end; at && *at; at = end + strspn(end, ", ")) {
        at += strspn(at, ": ");
        const long first = strtol(at, &end, 10);
        long last = first;
        if (end == at)
            break;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        for (long i = first; i >= 0 && i <= last && i < first + 65536 && !r->failed; i++)
            (void)add_rank(r, PC_RAS_MISSING, (int)i);
    }
    return at != NULL;
}

static bool read_group(reader *r, const char *line)
{
    pc_ras_group g = {0};
    int total;
    if (!r->table || sscanf(line, "%d %d %d %*s %d %d %23s %23s", &g.number, &g.communicators, &g.nodes, &g.ranks,
                            &total, g.status, g.errors) != 7)
        return false;
    pc_ras_group *group = more(r, &r->ras->groups, &r->ras->group_count, &r->group_room, sizeof *group);
    if (group)
        *group = g;
    return true;
}

/* The row below "(total) per node per process (total) (total)", or below three times "(total)". */
static bool read_totals(reader *r, const char *line)
{
    int n[5], got = sscanf(line, "%d %d %d %d %d", &n[0], &n[1], &n[2], &n[3], &n[4]);
    if (!strncmp(line, "(total)", 7)) {
        r->totals = strstr(line, "per node") ? 5 : 3;
        return true;
    }
    if (!r->totals || got != r->totals)
        return false;
    r->ras->nodes = n[0];
    r->ras->processes = n[got - 2];
    r->ras->gpus = n[got - 1];
    r->totals = 0;
    return true;
}

/* Lines that others belong to. */
static bool read_heading(reader *r, const char *line)
{
    char word[32] = "", id[16], hash[24];
    const bool own = sscanf(line, "#%11s (%22[^)]) %31s", id, hash, word) == 3;
    if (!strncmp(line, "Communicators...", 16))
        return r->table = true;
    if (!strcmp(line, "Errors") || !strcmp(line, "Warnings")) {
        r->ras->complete |= line[0] == 'W';
        r->table = false;
        return true;
    }
    if (!own && strcmp(line, "INCOMPLETE") && strcmp(line, "DEAD") && strcmp(line, "TIMEOUT"))
        return false;
    r->communicator[0] = 0;
    if (own)
        snprintf(r->communicator, sizeof r->communicator, "#%s (%s)", id, hash);
    r->dead = !own && line[0] == 'D';
    r->incomplete = !strcmp(own ? word : line, "INCOMPLETE") || r->dead;
    r->operation[0] = 0;
    r->calls = -1;
    return true;
}

static void read_line(reader *r, const char *line)
{
    char operation[32];
    if (read_heading(r, line) || read_totals(r, line) || read_group(r, line) || read_rank(r, line) ||
        read_count(r, line) || read_missing(r, line))
        return;
    if (sscanf(line, "NCCL version %31s", r->ras->version) == 1 ||
        sscanf(line, "Encountered %d", &r->ras->timeouts) == 1)
        return;
    if (r->incomplete && !strncmp(line, "Process ", 8)) {
        pc_ras_rank *rank = add_rank(r, state_in(r), -1);
        if (rank)
            read_place(rank, line);
    } else if (sscanf(line, "Communicator ranks have different %31s", operation) == 1) {
        snprintf(r->operation, sizeof r->operation, "%s",
                 strcmp(operation, "collective") && strcmp(operation, "status") ? operation : "");
        r->calls = -1;
    }
}

static bool same_calls(const pc_ras_rank *rank, const char *communicator, const char *operation)
{
    return !strcmp(rank->communicator, communicator) && !strcmp(rank->operation, operation);
}

/* Who is behind, and who ahead of the rest, follows from all that was counted. Ranks of one block, [begin, end), stand
 * together. */
static void compare_block(pc_ras *ras, int begin, int end)
{
    const pc_ras_rank *first = &ras->ranks[begin];
    long long most = -1;
    for (int i = 0; i < ras->count_count; i++)
        if (same_calls(first, ras->counts[i].communicator, ras->counts[i].operation))
            most = PC__MAX(most, ras->counts[i].calls);
    for (int i = begin; i < end; i++)
        most = PC__MAX(most, ras->ranks[i].calls);
    for (int i = begin; i < end; i++) {
        ras->ranks[i].most = most;
        if (ras->ranks[i].calls == most)
            ras->ranks[i].state = PC_RAS_AHEAD;
    }
}

static void compare(pc_ras *ras)
{
    for (int i = 0, end; i < ras->rank_count; i = end) {
        const pc_ras_rank *first = &ras->ranks[i];
        for (end = i + 1; end < ras->rank_count && ras->ranks[end].state == first->state &&
                          same_calls(&ras->ranks[end], first->communicator, first->operation);)
            end++;
        if (first->state == PC_RAS_BEHIND)
            compare_block(ras, i, end);
    }
}

/* Without blanks at its ends and what a terminal would obey. */
static char *tidy(char *line)
{
    line += strspn(line, " \t");
    for (size_t end = strlen(line); end && isspace((unsigned char)line[end - 1]); end--)
        line[end - 1] = 0;
    for (char *c = line; *c; c++)
        *c = (unsigned char)*c < ' ' || *c == 127 ? '?' : *c;
    return line;
}

pc_ras *pc_ras_read(const char *text)
{
    PC__NEED_OR(NULL, text);
    pc_ras *ras = pc__calloc(1, sizeof *ras);
    if (!ras)
        return NULL;
    reader r = {.ras = ras, .calls = -1};
    ras->nodes = ras->processes = ras->gpus = -1;
    ras->text = pc__strdup(text);
    char *lines = ras->text ? pc__strdup(text) : NULL, *next = lines;
    r.failed = !lines;
    for (char *line; !r.failed && (line = strsep(&next, "\n"));)
        read_line(&r, tidy(line));
    pc__free(lines);
    compare(ras);
    if (!r.failed)
        return ras;
    pc_ras_free(ras);
    return pc__null(PC_ERR_MEMORY, "no memory for what the job says");
}

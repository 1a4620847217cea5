/* reduce.c: in the child: an all-reduce over all devices, a thread for each. */
#include "peers/parts.h"

#include <paracord/group.h>
#include <paracord/ops.h>

#include <pthread.h>
#include <unistd.h>

#define ROUNDS 3

typedef struct rank {
    pthread_t thread;
    pc_group *group;
    pc_device device;
    const char *name;
    int socket, number, count;
    char text[96]; /* "intact", "corrupt ..." */
} rank;

/* The others may wait for this one for ever: the child ends here, with what went wrong. */
static void give_up(const rank *r)
{
    const pc_error *e = pc_error_last();
    pc__peers_say(r->socket, "%s %d %s %s", r->name, r->count, e->status == PC_ERR_UNSUPPORTED ? "missing" : "failed",
                  e->message);
    pc__peers_say(r->socket, "done");
    _exit(0);
}

/* Rank r brings r + 1 times a number that is small enough for sums of all; whole numbers, so that sums are exact in any
 * order. */
static int32_t brought(const rank *r, int64_t i, int round)
{
    return (int32_t)((uint32_t)pc__peers_element(i, round) >> 16) * (r->number + 1);
}

static void reduce_once(rank *r, int round, int32_t *numbers, int32_t *found)
{
    const int32_t ranks = r->count * (r->count + 1) / 2;
    for (int64_t i = 0; i < PC__PEERS_COUNT; i++)
        numbers[i] = brought(r, i, round);
    PC_SCOPE {
        pc_tensor *t = pc_from_data(numbers, PC_SHAPE(PC__PEERS_COUNT), PC_I32, r->device);
        if (!t || pc_group_all_reduce(r->group, t, PC_GROUP_SUM) != PC_OK ||
            pc_read(t, found, (size_t)PC__PEERS_COUNT * 4) != PC_OK)
            give_up(r);
    }
    for (int64_t i = 0; i < PC__PEERS_COUNT; i++)
        numbers[i] = numbers[i] / (r->number + 1) * ranks;
    pc__peers_compare(found, numbers, r->text);
}

static void *work(void *context)
{
    rank *r = context;
    int32_t *numbers = pc__alloc((size_t)PC__PEERS_COUNT * 4), *found = pc__alloc((size_t)PC__PEERS_COUNT * 4);
    if (!numbers || !found || pc_group_set_timeout(r->group, 0) != PC_OK) /* the parent has the deadline */
        give_up(r);
    char wrong[96] = "";
    for (int round = 0; round < ROUNDS; round++) { /* all of them: the others count on it */
        reduce_once(r, round, numbers, found);
        if (strcmp(r->text, "intact") && !wrong[0])
            snprintf(wrong, sizeof wrong, "%s", r->text);
    }
    if (wrong[0])
        snprintf(r->text, sizeof r->text, "%s", wrong);
    return NULL;
}

void pc__peers_reduce(int socket, pc_device_type type, int count, const char *name)
{
    rank ranks[PC_PEERS_MAX];
    pc_group *groups[PC_PEERS_MAX];
    if (count < 2)
        return;
    pc__peers_say(socket, "slow %s %d", name, count);
    bool fine = pc_group_threads(count, groups) == PC_OK;
    for (int i = 0; i < count; i++) {
        ranks[i] = (rank){.group = fine ? groups[i] : NULL,
                          .device = {(int16_t)type, (int16_t)i},
                          .name = name,
                          .socket = socket,
                          .number = i,
                          .count = count};
        if (fine && pthread_create(&ranks[i].thread, NULL, work, &ranks[i]) != 0)
            fine = pc__fail(PC_ERR_MEMORY, "the system gives no thread for rank %d", i) == PC_OK;
        if (!fine)
            give_up(&ranks[i]);
    }
    const char *text = "intact";
    for (int i = 0; i < count; i++) {
        pthread_join(ranks[i].thread, NULL);
        if (strcmp(ranks[i].text, "intact") && !strcmp(text, "intact"))
            text = ranks[i].text;
    }
    pc__peers_say(socket, "%s %d %s", name, count, text);
}

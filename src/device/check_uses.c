/* check_uses.c: the uses of each storage that later work could still race with.
 *
 * A use makes an older one that is ordered before it superfluous where they overlap, unless it reads what the older one
 * wrote: whatever races with the older one there races with it too. What is not ordered stays beside it. Uses that the
 * host has waited for can race with nothing that is still to come.
 */
#include "device/check_uses.h"

enum {
    SLOTS = 4096,
    STORAGE_USES_MAX = 8192, /* beyond, the older half goes */
    USES_MAX = 1 << 19,      /* beyond, new ones are not noted */
    SWEEP_MIN = 1 << 14,
};

typedef struct storage_uses {
    const void *memory;
    pc__access *uses; /* oldest first; what is left of one use stands together */
    int count, capacity;
    struct storage_uses *next;
} storage_uses;

static storage_uses *slots[SLOTS];
static size_t total, sweep_at = SWEEP_MIN;
static uint64_t swept_version; /* of the host's clock */
uint64_t pc__uses_dropped;

static storage_uses **find(const void *memory)
{
    uint64_t mixed = (uint64_t)(uintptr_t)memory * 0x9E3779B97F4A7C15u;
    storage_uses **link = &slots[mixed >> 52];
    while (*link && (*link)->memory != memory)
        link = &(*link)->next;
    return link;
}

static bool overlap(const pc__access *a, const pc__access *b)
{
    return a->begin < b->end && b->begin < a->end;
}

static bool ordered(const pc__access *older, const pc__access *newer, const pc__clock *clock)
{
    return older->stream == newer->stream || pc__clock_knows(clock, older->stream, older->ticket);
}

void pc__uses_look(const void *memory, const pc__access *access, const pc__clock *clock)
{
    const storage_uses *storage = *find(memory);
    const pc__access *race = NULL;
    size_t begin = 0, end = 0;
    for (int i = 0; storage && i < storage->count; i++) {
        const pc__access *older = &storage->uses[i];
        if (!(older->write || access->write) || !overlap(older, access) || ordered(older, access, clock))
            continue;
        if (race && race->number != older->number) {
            pc__race_found(race, access, begin, end);
            race = NULL;
        }
        size_t from = PC__MAX(older->begin, access->begin);
        begin = race ? PC__MIN(begin, from) : from;
        size_t to = PC__MIN(older->end, access->end);
        end = race ? PC__MAX(end, to) : to;
        race = older;
    }
    if (race)
        pc__race_found(race, access, begin, end);
}

static bool replaces(const pc__access *newer, const pc__access *older, const pc__clock *clock)
{
    return (newer->write || !older->write) && overlap(newer, older) && ordered(older, newer, clock);
}

static bool splits(const pc__access *newer, const pc__access *older)
{
    return older->begin < newer->begin && older->end > newer->end;
}

/* Take out what the host knows and what `newer` replaces, but for uses that it splits in two: gives their number. */
static int trim(storage_uses *storage, const pc__access *newer, const pc__clock *clock)
{
    int kept = 0, split = 0;
    for (int i = 0; i < storage->count; i++) {
        pc__access *use = &storage->uses[i];
        if (pc__clock_knows(pc__hb_host(), use->stream, use->ticket))
            continue;
        if (replaces(newer, use, clock)) {
            bool left = use->begin<newer->begin, right = use->end> newer->end;
            if (!left && !right)
                continue;
            if (left && right)
                split++;
            else if (left)
                use->end = newer->begin;
            else
                use->begin = newer->end;
        }
        if (kept != i) /* mostly all stay where they are */
            storage->uses[kept] = *use;
        kept++;
    }
    total -= (size_t)(storage->count - kept);
    storage->count = kept;
    return split;
}

static bool make_room(storage_uses *storage, int more)
{
    if (storage->count + more <= storage->capacity)
        return true;
    int wanted = PC__MAX(2 * storage->capacity, storage->count + more);
    pc__access *wider = pc__try_alloc_aligned((size_t)wanted * sizeof *wider, 16);
    if (!wider)
        return false;
    if (storage->count)
        memcpy(wider, storage->uses, (size_t)storage->count * sizeof *wider);
    pc__free(storage->uses);
    storage->uses = wider;
    storage->capacity = wanted;
    return true;
}

/* Cut `newer` out of the middle of `split` uses, from the last one on: there is room behind. */
static void split_uses(storage_uses *storage, const pc__access *newer, const pc__clock *clock, int split)
{
    int to = storage->count + split;
    storage->count = to;
    total += (size_t)split;
    for (int from = to - split - 1; from < to - 1; from--) {
        pc__access use = storage->uses[from];
        if (replaces(newer, &use, clock) && splits(newer, &use)) {
            storage->uses[--to] = use;
            storage->uses[to].begin = newer->end;
            use.end = newer->begin;
        }
        storage->uses[--to] = use;
    }
}

static void drop_older_half(storage_uses *storage)
{
    int n = storage->count / 2;
    pc__uses_dropped += (uint64_t)n;
    total -= (size_t)n;
    storage->count -= n;
    memmove(storage->uses, storage->uses + n, (size_t)storage->count * sizeof *storage->uses);
}

static void remove_storage(storage_uses **link)
{
    storage_uses *gone = *link;
    *link = gone->next;
    total -= (size_t)gone->count;
    pc__free(gone->uses);
    pc__free(gone);
}

/* Uses of other storages that the host knows by now would stay for ever: look at all, now and then. */
static bool sweep(void)
{
    if (total >= sweep_at && swept_version != pc__hb_host_version()) {
        swept_version = pc__hb_host_version();
        for (int i = 0; i < SLOTS; i++) {
            for (storage_uses **link = &slots[i]; *link;) {
                (void)trim(*link, &(pc__access){.begin = 0, .end = 0}, NULL);
                if ((*link)->count == 0)
                    remove_storage(link);
                else
                    link = &(*link)->next;
            }
        }
        sweep_at = PC__MIN(PC__MAX(2 * total, SWEEP_MIN), USES_MAX);
    }
    return total < USES_MAX;
}

static storage_uses *uses_of(const void *memory)
{
    storage_uses **link = find(memory);
    if (!*link && (*link = pc__try_alloc_aligned(sizeof **link, 16)) != NULL)
        **link = (storage_uses){.memory = memory};
    return *link;
}

bool pc__uses_note(const void *memory, const pc__access *access, const pc__clock *clock)
{
    if (!sweep())
        return false;
    storage_uses *storage = uses_of(memory);
    if (!storage)
        return false;
    int split = trim(storage, access, clock);
    if (storage->count + split >= STORAGE_USES_MAX) {
        drop_older_half(storage);
        split = trim(storage, access, clock);
    }
    if (!make_room(storage, split + 1))
        return false;
    split_uses(storage, access, clock, split);
    storage->uses[storage->count++] = *access;
    total++;
    return true;
}

size_t pc__uses_forget(const void *memory)
{
    size_t before = total;
    storage_uses **link = find(memory);
    if (*link)
        remove_storage(link);
    return before - total;
}

size_t pc__uses_clear(void)
{
    size_t before = total;
    for (int i = 0; i < SLOTS; i++)
        while (slots[i])
            remove_storage(&slots[i]);
    sweep_at = SWEEP_MIN;
    swept_version = 0;
    return before;
}

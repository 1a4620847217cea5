/* trace_wait.c: waits between streams as arrows. A wait is told when work is queued, its two ends when they are done,
 * in any order: waits are kept until both are known, and finished work for a while in case that a wait still comes. */
#include "device/trace_write.h"

enum { WAITS = 4096, FINISHED = 4096, CHAINS = 1024 };
enum { FROM, TO, SIDES }; /* the work waited for, the work that waits */

typedef struct piece { /* of work */
    pc__row row;
    uint64_t ticket;
} piece;

typedef struct wait {
    piece end[SIDES];
    int64_t at[SIDES]; /* -1: not known yet */
    int next[SIDES];   /* the next wait, plus 1, of the chain that this end is in */
} wait;

static wait waits[WAITS]; /* a ring: the newest takes the place of the oldest */
static unsigned newest;
static int chains[SIDES][CHAINS]; /* waits whose end on that side is not known, plus 1 */
static int64_t arrows;

static struct {
    piece work;
    int64_t started, ended;
} finished[FINISHED];

void pc__trace_arrows_reset(void)
{
    memset(waits, 0, sizeof waits);
    memset(chains, 0, sizeof chains);
    memset(finished, 0, sizeof finished);
    newest = 0;
    arrows = 0;
}

static size_t hash(piece p)
{
    uint64_t key = ((uint64_t)p.row.process << 32 | p.row.thread) * 0x9e3779b97f4a7c15u + p.ticket;
    return key * 0x9e3779b97f4a7c15u >> 40;
}

static bool same(piece a, piece b)
{
    return a.ticket == b.ticket && a.row.thread == b.row.thread && a.row.process == b.row.process;
}

static void draw(const wait *w)
{
    arrows++;
    pc__trace_event("s", "wait", "wait", w->end[FROM].row, w->at[FROM]);
    pc__trace_integer("id", arrows);
    pc__trace_finish();
    pc__trace_event("f", "wait", "wait", w->end[TO].row, w->at[TO]);
    pc__trace_integer("id", arrows);
    pc__trace_text("bp", "e");
    pc__trace_finish();
}

/* Where an arrow touches work: its start, or its end, which still has to lie within it to belong to it. */
static int64_t touches(int side, int64_t started, int64_t ended)
{
    return side == TO ? started : PC__MAX(started, ended - 1);
}

static void take_out(int index, int side)
{
    int *link = &chains[side][hash(waits[index].end[side]) % CHAINS];
    while (*link && *link != index + 1)
        link = &waits[*link - 1].next[side];
    if (*link)
        *link = waits[index].next[side];
}

/* Room for one more; the oldest wait is given up if its ends are still not known. */
static int make_room(void)
{
    int index = (int)(newest++ % WAITS);
    wait *w = &waits[index];
    bool lost = false;
    for (int side = 0; side < SIDES; side++)
        if (w->at[side] < 0) {
            take_out(index, side);
            lost = true;
        }
    if (lost)
        pc__trace_drop();
    return index;
}

void pc__trace_arrow_wanted(pc__row row, uint64_t ticket, pc__row other, uint64_t other_ticket)
{
    int index = make_room();
    wait *w = &waits[index];
    *w = (wait){.end = {[FROM] = {other, other_ticket}, [TO] = {row, ticket}}};
    for (int side = 0; side < SIDES; side++) {
        size_t h = hash(w->end[side]);
        w->at[side] = -1;
        if (same(finished[h % FINISHED].work, w->end[side])) {
            w->at[side] = touches(side, finished[h % FINISHED].started, finished[h % FINISHED].ended);
        } else {
            w->next[side] = chains[side][h % CHAINS];
            chains[side][h % CHAINS] = index + 1;
        }
    }
    if (w->at[FROM] >= 0 && w->at[TO] >= 0)
        draw(w);
}

void pc__trace_arrow_work(pc__row row, uint64_t ticket, int64_t started, int64_t ended)
{
    piece work = {row, ticket};
    size_t h = hash(work);
    finished[h % FINISHED].work = work;
    finished[h % FINISHED].started = started;
    finished[h % FINISHED].ended = ended;
    for (int side = 0; side < SIDES; side++)
        for (int *link = &chains[side][h % CHAINS]; *link;) {
            wait *w = &waits[*link - 1];
            if (!same(w->end[side], work)) {
                link = &w->next[side];
                continue;
            }
            *link = w->next[side];
            w->at[side] = touches(side, started, ended);
            if (w->at[1 - side] >= 0)
                draw(w);
        }
}

/* block.cpp: whose turn it is, and what the threads of a block wait for. */
#include "block.h"

#include "fiber.h"
#include "trap.h"
#include "turns.h"

#include <mutex>
#include <vector>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace emulator
{

const char *kernel_name = "a kernel";

namespace
{

enum state { READY, AT_BLOCK, AT_WARP, DONE };

struct thread {
    fiber context;
    state now = DONE;
    uint3 index;
    unsigned mask; // whom it waits for at AT_WARP, and for what
    together work;
};

struct warp {
    unsigned arrived, alive;
    slot slots[LANES];
};

struct {
    std::vector<thread> threads{MOST_THREADS};
    std::vector<warp> warps{MOST_THREADS / LANES};
    int count, alive, waiting; // threads; those not at their end; of these those at the block's barrier
    int current;
    bool any[2]; // of this and of the next meet_block_any
    int turn;
    fiber scheduler;
    const std::function<void()> *body;
} block;

void release_block()
{
    if (!block.alive || block.waiting != block.alive)
        return;
    for (int i = 0; i < block.count; i++)
        if (block.threads[i].now == AT_BLOCK)
            block.threads[i].now = READY;
    block.waiting = 0;
    block.turn ^= 1;
    block.any[block.turn] = false;
}

/* When all lanes of `mask` that are alive have come. */
void release_warp(int number, unsigned mask)
{
    warp &w = block.warps[number];
    thread *lane = &block.threads[number * LANES];
    unsigned lanes = mask & w.alive;
    if ((w.arrived & lanes) != lanes || !lanes)
        return;
    int first = __builtin_ctz(lanes);
    for (int i = 0; i < LANES; i++)
        if (lanes >> i & 1 && (lane[i].mask != mask || lane[i].work != lane[first].work))
            fail("lanes %d and %d of warp %d meet for different things (masks %08x and %08x)", first, i, number,
                 lane[first].mask, lane[i].mask);
    if (lane[first].work)
        lane[first].work(w.slots, lanes);
    for (int i = 0; i < LANES; i++)
        if (lanes >> i & 1)
            lane[i].now = READY;
    w.arrived &= ~lanes;
}

void wait(thread &self)
{
    if (self.now != READY)
        switch_fiber(self.context, block.scheduler);
}

/* Whoever has ended is waited for no longer. */
void end_thread()
{
    int self = block.current, number = self / LANES;
    warp &w = block.warps[number];
    block.threads[self].now = DONE;
    block.alive--;
    w.alive &= ~(1u << self % LANES);
    for (int i = 0; i < LANES; i++)
        if (w.arrived >> i & 1)
            release_warp(number, block.threads[number * LANES + i].mask);
    release_block();
}

void enter()
{
    (*block.body)();
    leave_block();
}

void begin_block(int count)
{
    block.count = block.alive = count;
    block.waiting = 0;
    block.any[0] = block.any[1] = false;
    forget_copies(count);
    for (int i = count; i % LANES; i++) // lanes that the last warp lacks
        block.threads[i].now = DONE;
    for (int i = 0; i < count; i++) {
        thread &t = block.threads[i];
        unsigned place = static_cast<unsigned>(i);
        t.now = READY;
        t.index = {place % blockDim.x, place / blockDim.x % blockDim.y, place / blockDim.x / blockDim.y};
        start_fiber(t.context, enter, i % LANES);
        warp &w = block.warps[i / LANES];
        if (i % LANES == 0)
            w.arrived = w.alive = 0;
        w.alive |= 1u << i % LANES;
    }
}

[[noreturn]] void stuck()
{
    int at_warp = 0;
    for (int i = 0; i < block.count; i++)
        if (block.threads[i].now == AT_WARP) {
            block.current = i;
            at_warp++;
        }
    fail("the block is stuck: of %d threads %d are at __syncthreads, %d wait for lanes of their warp, %d have ended",
         block.count, block.waiting, at_warp, block.count - block.alive);
}

/* A warp goes on until the block must be waited for, which keeps its stacks in the cache. */
bool run_warp(int number, turns &order)
{
    bool moved = false;
    for (bool again = true; again;) {
        again = false;
        for (int lane : order.next_lanes()) {
            thread &t = block.threads[number * LANES + lane];
            if (t.now != READY)
                continue;
            moved = again = true;
            block.current = number * LANES + lane;
            threadIdx = t.index;
            switch_fiber(block.scheduler, t.context);
        }
    }
    return moved;
}

void run_block(turns &order)
{
    while (block.alive > 0) {
        bool moved = false;
        for (int warp : order.next_warps())
            if (run_warp(warp, order))
                moved = true;
        if (!moved)
            stuck();
    }
}

} // namespace

int thread_in_block()
{
    return block.current;
}

slot &own_slot()
{
    return block.warps[block.current / LANES].slots[block.current % LANES];
}

void meet_warp(unsigned mask, together work)
{
    thread &self = block.threads[block.current];
    if (!(mask >> block.current % LANES & 1))
        fail("lane %d is not in its own mask %08x", block.current % LANES, mask);
    self.mask = mask;
    self.work = work;
    self.now = AT_WARP;
    block.warps[block.current / LANES].arrived |= 1u << block.current % LANES;
    release_warp(block.current / LANES, mask);
    wait(self);
}

void meet_block()
{
    thread &self = block.threads[block.current];
    self.now = AT_BLOCK;
    block.waiting++;
    release_block();
    wait(self);
}

void leave_block()
{
    end_thread();
    switch_fiber(block.threads[block.current].context, block.scheduler);
    __builtin_unreachable();
}

bool meet_block_any(bool mine)
{
    bool &any = block.any[block.turn];
    any |= mine;
    meet_block();
    return any;
}

void run_grid(dim3 grid, dim3 threads, size_t shared, const std::function<void()> &body)
{
    static std::mutex one_launch;
    std::lock_guard<std::mutex> hold(one_launch);
    int count = static_cast<int>(threads.x * threads.y * threads.z);
    turns order((count + LANES - 1) / LANES);
    gridDim = grid;
    blockDim = threads;
    block.body = &body;
    watch_for_traps();
    unsigned long blocks = 1ul * grid.x * grid.y * grid.z;
    for (unsigned long i = 0; i < blocks; i++) {
        unsigned long place = order.backward() ? blocks - 1 - i : i;
        blockIdx = {static_cast<unsigned>(place % grid.x), static_cast<unsigned>(place / grid.x % grid.y),
                    static_cast<unsigned>(place / grid.x / grid.y)};
        open_shared(shared);
        begin_block(count);
        run_block(order);
        close_shared();
    }
    stop_watching();
    kernel_name = "a kernel";
}

} // namespace emulator

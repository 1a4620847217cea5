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
int current_thread;
slot slots[MOST_THREADS];

namespace
{

struct thread {
    fiber *stack; // NULL: it has not begun, or has ended
    uint3 index;
    unsigned mask; // whom it waits for in its warp, and for what
    together work;
};

struct warp {
    unsigned ready, alive, at_warp, at_block; // its lanes by what they do: they may go on, are not at their end, wait
    unsigned mask;                            // of the first that waits now
    together work;                            // and for what
    bool as_one;                              // those that wait have the same mask and work
};

struct {
    std::vector<thread> threads{MOST_THREADS};
    std::vector<warp> warps{MOST_THREADS / LANES};
    int count, alive, waiting; // threads; those not at their end; of these those at the block's barrier
    bool any[2];               // of this and of the next meet_block_any
    int turn;
    fiber scheduler;
    const std::function<void()> *body;
    turns *order;
    const int *lanes; // of the warp whose turn it is: in what order they go on
    int place;        // the next of them
} block;

void release_block()
{
    if (!block.alive || block.waiting != block.alive)
        return;
    for (int i = 0; i < (block.count + LANES - 1) / LANES; i++) {
        block.warps[i].ready |= block.warps[i].at_block;
        block.warps[i].at_block = 0;
    }
    block.waiting = 0;
    block.turn ^= 1;
    block.any[block.turn] = false;
}

void check_as_one(int number, unsigned mask, unsigned lanes)
{
    const thread *lane = &block.threads[number * LANES];
    int first = __builtin_ctz(lanes);
    for (int i = 0; i < LANES; i++)
        if (lanes >> i & 1 && (lane[i].mask != mask || lane[i].work != lane[first].work))
            fail("lanes %d and %d of warp %d meet for different things (masks %08x and %08x)", first, i, number,
                 lane[first].mask, lane[i].mask);
}

/* When all lanes of `mask` that are alive have come. */
void release_warp(int number, unsigned mask)
{
    warp &w = block.warps[number];
    unsigned lanes = mask & w.alive;
    if ((w.at_warp & lanes) != lanes || !lanes)
        return;
    if (!w.as_one)
        check_as_one(number, mask, lanes);
    if (together work = block.threads[number * LANES + __builtin_ctz(lanes)].work)
        work(&slots[number * LANES], lanes);
    w.ready |= lanes;
    w.at_warp &= ~lanes;
}

/* Whoever has ended is waited for no longer. */
void end_thread()
{
    int self = current_thread, number = self / LANES;
    warp &w = block.warps[number];
    block.threads[self].stack = nullptr;
    block.alive--;
    w.alive &= ~(1u << self % LANES);
    w.ready &= ~(1u << self % LANES);
    for (int i = 0; w.at_warp && i < LANES; i++)
        if (w.at_warp >> i & 1)
            release_warp(number, block.threads[number * LANES + i].mask);
    if (block.waiting)
        release_block();
}

/* The next thread of the warp becomes the current one, unless all of them wait. */
thread *next_thread(int number)
{
    const warp &w = block.warps[number];
    while (w.ready) {
        for (; block.place < LANES; block.place++) {
            int lane = block.lanes[block.place];
            if (!(w.ready >> lane & 1))
                continue;
            current_thread = number * LANES + lane;
            thread &t = block.threads[current_thread];
            threadIdx = t.index;
            return &t;
        }
        block.lanes = block.order->next_lanes().data();
        block.place = 0;
    }
    return nullptr;
}

/* A thread that begins takes the stack that was in use last: one that waits for nobody leaves it to the next. */
void enter()
{
    fiber *own = block.threads[current_thread].stack;
    for (;;) {
        (*block.body)();
        end_thread();
        thread *next = next_thread(current_thread / LANES);
        if (next && !next->stack) {
            next->stack = own;
            continue;
        }
        give_fiber(own);
        switch_fiber(*own, next ? *next->stack : block.scheduler);
    }
}

void go_on(fiber &from, thread *next)
{
    if (next && !next->stack)
        next->stack = take_fiber(enter);
    switch_fiber(from, next ? *next->stack : block.scheduler);
}

/* The next one of the warp goes on, until this one may. */
void wait()
{
    int number = current_thread / LANES;
    if (block.warps[number].ready >> current_thread % LANES & 1)
        return;
    fiber *own = block.threads[current_thread].stack;
    go_on(*own, next_thread(number));
}

void begin_block(int count)
{
    block.count = block.alive = count;
    block.waiting = 0;
    block.any[0] = block.any[1] = false;
    forget_copies();
    for (int i = 0; i < count; i += LANES) {
        unsigned lanes = count - i < LANES ? (1u << (count - i)) - 1 : ALL_LANES;
        block.warps[i / LANES] = {lanes, lanes, 0, 0, 0, nullptr, true};
    }
}

[[noreturn]] void stuck()
{
    int at_warp = 0;
    for (int i = 0; i < block.count; i++)
        if (block.warps[i / LANES].at_warp >> i % LANES & 1) {
            current_thread = i;
            at_warp++;
        }
    fail("the block is stuck: of %d threads %d are at __syncthreads, %d wait for lanes of their warp, %d have ended",
         block.count, block.waiting, at_warp, block.count - block.alive);
}

/* A warp goes on until the block must be waited for, which keeps its stacks in the cache. */
bool run_warp(int number)
{
    if (!block.warps[number].ready)
        return false;
    block.lanes = block.order->next_lanes().data();
    block.place = 0;
    go_on(block.scheduler, next_thread(number));
    return true;
}

void run_block()
{
    while (block.alive > 0) {
        bool moved = false;
        for (int warp : block.order->next_warps())
            if (run_warp(warp))
                moved = true;
        if (!moved)
            stuck();
    }
}

} // namespace

void meet_warp(unsigned mask, together work)
{
    int lane = current_thread % LANES;
    thread &self = block.threads[current_thread];
    warp &w = block.warps[current_thread / LANES];
    if (!(mask >> lane & 1))
        fail("lane %d is not in its own mask %08x", lane, mask);
    self.mask = mask;
    self.work = work;
    if (!w.at_warp) {
        w.mask = mask;
        w.work = work;
        w.as_one = true;
    }
    w.as_one &= w.mask == mask && w.work == work;
    w.at_warp |= 1u << lane;
    w.ready &= ~(1u << lane);
    release_warp(current_thread / LANES, mask);
    wait();
}

void meet_block()
{
    warp &w = block.warps[current_thread / LANES];
    w.at_block |= 1u << current_thread % LANES;
    w.ready &= ~(1u << current_thread % LANES);
    block.waiting++;
    release_block();
    wait();
}

void leave_block()
{
    fiber *own = block.threads[current_thread].stack, left;
    end_thread();
    drop_fiber(own);
    go_on(left, next_thread(current_thread / LANES));
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
    block.order = &order;
    gridDim = grid;
    blockDim = threads;
    for (unsigned i = 0; i < static_cast<unsigned>(count); i++)
        block.threads[i].index = {i % threads.x, i / threads.x % threads.y, i / threads.x / threads.y};
    block.body = &body;
    watch_for_traps();
    unsigned long blocks = 1ul * grid.x * grid.y * grid.z;
    for (unsigned long i = 0; i < blocks; i++) {
        unsigned long place = order.backward() ? blocks - 1 - i : i;
        blockIdx = {static_cast<unsigned>(place % grid.x), static_cast<unsigned>(place / grid.x % grid.y),
                    static_cast<unsigned>(place / grid.x / grid.y)};
        open_shared(shared);
        begin_block(count);
        run_block();
        close_shared();
    }
    stop_watching();
    kernel_name = "a kernel";
}

} // namespace emulator

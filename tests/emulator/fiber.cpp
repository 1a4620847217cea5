/* fiber.cpp: stacks, those in use and those that are free. */
#include "fiber.h"

#include "block.h"
#include "trap.h"

#include <sys/mman.h>
#include <vector>

namespace emulator
{

constexpr size_t STACK = 96 << 10;

namespace
{

constexpr int UNUSED = 128 / sizeof(void *); // what a function may use below its stack pointer

std::vector<fiber *> free_fibers;

char *new_stack()
{
    static size_t made;
    void *room =
        mmap(nullptr, PAGE + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED || mprotect(room, PAGE, PROT_NONE))
        fail("no memory for the stack of a thread");
    // Those that go on in turn begin at different lines of the cache.
    return static_cast<char *>(room) + PAGE + STACK - 128 * (made++ % LANES);
}

} // namespace

fiber *take_fiber(void (*entry)())
{
    if (free_fibers.empty())
        free_fibers.push_back(new fiber{nullptr, new_stack()});
    fiber *f = free_fibers.back();
    free_fibers.pop_back();
    if (f->at)
        return f;
    void **top = reinterpret_cast<void **>(f->top);
    *--top = nullptr; // where entry would return to: the stack is aligned as after a call
    top -= UNUSED;
    *--top = nullptr; // %rbp
    *--top = reinterpret_cast<void *>(entry);
    f->at = top;
    return f;
}

void give_fiber(fiber *f)
{
    free_fibers.push_back(f);
}

void drop_fiber(fiber *f)
{
    f->at = nullptr;
    give_fiber(f);
}

} // namespace emulator

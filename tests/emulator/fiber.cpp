/* fiber.cpp: stacks, and the switch between them: x86-64, System V. The library's own switch (swapcontext) asks the
 * kernel for the signal mask each time, a hundred times the cost. */
#include "fiber.h"

#include "block.h"
#include "trap.h"

#include <sys/mman.h>

namespace emulator
{

constexpr size_t STACK = 96 << 10;

extern "C" void pc_emulator_switch(void **from, void *to);
asm(R"(
    .text
    .globl pc_emulator_switch
    .hidden pc_emulator_switch
    .type pc_emulator_switch, @function
pc_emulator_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size pc_emulator_switch, . - pc_emulator_switch
)");

constexpr int SAVED = 6; // registers that the switch keeps

void start_fiber(fiber &f, void (*entry)(), int colour)
{
    if (!f.stack) {
        void *room =
            mmap(nullptr, PAGE + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (room == MAP_FAILED || mprotect(room, PAGE, PROT_NONE))
            fail("no memory for the stack of a thread");
        f.stack = static_cast<char *>(room) + PAGE;
    }
    void **top = reinterpret_cast<void **>(f.stack + STACK - 128 * colour);
    *--top = nullptr; // where entry would return to: the stack is aligned as after a call
    *--top = reinterpret_cast<void *>(entry);
    for (int i = 0; i < SAVED; i++)
        *--top = nullptr;
    f.at = top;
}

void switch_fiber(fiber &from, fiber &to)
{
    pc_emulator_switch(&from.at, to.at);
}

} // namespace emulator

/* fiber.h: a stack of its own, and where on it to go on. */
#ifndef PC_EMULATOR_FIBER_H
#define PC_EMULATOR_FIBER_H

namespace emulator
{

struct fiber {
    void *at = nullptr;  // its stack pointer, while it waits; NULL: it is to begin
    char *top = nullptr; // where its stack begins; a page without access rights ends it
};

/* A fiber that is free, the one last given back first, as its stack is in the cache; one that was never in use, or was
 * dropped, begins with `entry`. */
fiber *take_fiber(void (*entry)());
void give_fiber(fiber *f);

/* Given back wherever it is: it will not go on from there. */
void drop_fiber(fiber *f);

/* Keep where `from` is, go on where `to` was: x86-64, System V. The library's own switch (swapcontext) asks the kernel
 * for the signal mask each time, a hundred times the cost. In line and without a return, as the processor foresees
 * where a fiber goes on: most often where the one before it has stopped. */
inline void switch_fiber(fiber &from, fiber &to)
{
    void **kept = &from.at, *at = to.at;
    asm volatile("leaq -128(%%rsp), %%rsp\n\t"
                 "pushq %%rbp\n\t"
                 "leaq 1f(%%rip), %%rax\n\t"
                 "pushq %%rax\n\t"
                 "movq %%rsp, (%0)\n\t"
                 "movq %1, %%rsp\n\t"
                 "popq %%rax\n\t"
                 "popq %%rbp\n\t"
                 "leaq 128(%%rsp), %%rsp\n\t"
                 "jmpq *%%rax\n"
                 "1:"
                 : "+D"(kept), "+S"(at)
                 :
                 : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1",
                   "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
                   "xmm14", "xmm15", "memory", "cc");
}

} // namespace emulator

#endif

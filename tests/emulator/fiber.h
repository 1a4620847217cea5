/* fiber.h: a stack of its own, and where on it to go on. */
#ifndef PC_EMULATOR_FIBER_H
#define PC_EMULATOR_FIBER_H

namespace emulator
{

struct fiber {
    void *at = nullptr;    // its stack pointer, while it waits
    char *stack = nullptr; // made when first needed; a page without access rights ends it
};

/* `colour`, 0 to 31: fibers that run in turn begin at different lines of the cache, if theirs differ. */
void start_fiber(fiber &f, void (*entry)(), int colour);

/* Keep where `from` is, go on where `to` was. */
void switch_fiber(fiber &from, fiber &to);

} // namespace emulator

#endif

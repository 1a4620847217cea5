/* trap.h: what a kernel does wrong becomes a line that says so, and the end of the process. */
#ifndef PC_EMULATOR_TRAP_H
#define PC_EMULATOR_TRAP_H

#include <cstddef>

namespace emulator
{

constexpr size_t PAGE = 4096;
constexpr unsigned char NOTHING = 0xff; // what nobody has written: a NaN in all floating types, an index far outside

/* Whether [from, to) is full of NOTHING still. */
bool untouched(const char *from, const char *to);

/* From here on the signals of a fault on this thread are the kernel's. */
void watch_for_traps();
void stop_watching();

/* `bytes` of dynamic shared memory for a block, full of NaN; behind them is nothing, before them what nobody may write.
 */
void open_shared(size_t bytes);
void close_shared();

} // namespace emulator

#endif
